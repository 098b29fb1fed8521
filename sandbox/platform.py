"""One simulated tenant, put together."""

from sandbox.config import SandboxConfig
from sandbox.faults import Switchboard
from sandbox.world.actors import Actors
from sandbox.world.agendas import Agendas
from sandbox.world.cardkit import CardKit
from sandbox.world.clicks import Clicks
from sandbox.world.comments import Comments
from sandbox.world.connections import LongConnections
from sandbox.world.ephemeral import Ephemeral
from sandbox.world.feed import Feed
from sandbox.world.groups import Groups
from sandbox.world.journal import Journal, read_journal, rewrite_journal
from sandbox.world.library import Library
from sandbox.world.limits import Limiter
from sandbox.world.messaging import Messenger
from sandbox.world.push import Post, Pusher, http_post
from sandbox.world.scopes import EVENTS
from sandbox.world.state import World
from sandbox.world.user_scopes import USER_EVENTS
from sandbox.world.user_tokens import Tokens, UserTokens


class SandboxPlatform:
    """Everything behind the HTTP interfaces. Threads start with the first pushed event."""

    def __init__(self, config: SandboxConfig, *, post: Post | None = None) -> None:
        self.config = config
        self.world = World(config)
        self.feed = Feed(self.world)
        self._journal = self._open_journal()
        limiter = Limiter(config.clock)
        self.connections = LongConnections(config)
        self.pusher = Pusher(
            config,
            post or http_post(),
            connections=self.connections,
            on_attempt=self.feed.delivery,
            is_wanted=self._is_wanted,
        )
        self.tokens = Tokens(config)
        self.user_tokens = UserTokens(config)
        self.library = Library(self.world)
        self.comments = Comments(self.world, self.library, self.pusher)
        self.agendas = Agendas(self.world)
        self.cardkit = CardKit(self.world, limiter)
        self.messenger = Messenger(self.world, limiter)
        self.ephemeral = Ephemeral(self.world, self.messenger, limiter)
        self.limiter = limiter
        self.actors = Actors(self.world, self.pusher)
        self.groups = Groups(self.world, self.pusher, self.actors)
        self.clicks = Clicks(self.world, self.pusher, self.cardkit, self.actors)
        self.switchboard = Switchboard()
        self.world.listen(self.feed.entity)

    def close(self) -> None:
        """Stop pushing, end the live streams, close the journal."""
        self.pusher.close()
        self.connections.close()
        self.feed.close()
        if self._journal is not None:
            self._journal.close()

    def _is_wanted(self, event_type: str) -> bool:
        with self.world.lock:
            return self.world.may({**EVENTS, **USER_EVENTS}.get(event_type, ()))

    def _open_journal(self) -> Journal | None:
        if self.config.journal is None:
            return None
        for entity in read_journal(self.config.journal):
            self.world.restore(entity)
        rewrite_journal(self.config.journal, self.world.entities())
        journal = Journal(self.config.journal)
        self.world.listen(journal.write, to_the_past=True)
        return journal
