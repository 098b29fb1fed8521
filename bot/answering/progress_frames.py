"""The answer while it is written: what each frame of its card shows."""

from __future__ import annotations

from functools import cached_property

from bot.agents.progress import Progress
from bot.answering.composing import Voice, cards_of, voice_of
from bot.answering.question import Turn, people_of
from bot.feishu.growing import Growing
from bot.mentions import ALL_NAMES
from bot.outbox.partial_answer import settled, showable, stage, status
from bot.services import Services
from bot.text.languages import Language


class Showing:
    """The markdown for a turn's progress, composed like any reply.

    A quick answer has no frames, and nothing is looked up for it.
    """

    _voice: Voice
    _names: list[str]

    def __init__(self, services: Services, turn: Turn, language: Language) -> None:
        self._services = services
        self._turn = turn
        self.language = language
        self._escape = Growing()
        self._known: list[str] | None = None

    def __call__(self, progress: Progress) -> str:
        self._learn()
        visible_text = showable(progress, self._names, self.language)
        nothing = status(progress.tool, self.language)
        return cards_of(visible_text, self._voice, nothing=nothing, escape=self._escape)[0]

    def stage(self, progress: Progress) -> str:
        """What stands below the answer while it is written."""
        seconds = self._services.clock() - self._turn.received_ms / 1000
        return stage(progress, seconds, self.language)

    def settled(self, text: str) -> str:
        """What of an unfinished text stays when it ends there."""
        self._learn()
        return settled(text, self._names)

    def _learn(self) -> None:
        """Who is addressed how changes only when somebody's name has become known."""
        names = self._turn.names
        person_names = [names.name(open_id) for open_id in self._people]
        if person_names != self._known:
            people = names.roster(self._people).names().values()
            self._known = person_names
            self._names = [*people, self._turn.bot.name, *ALL_NAMES]
            self._voice = voice_of(self._services, self._turn)

    @cached_property
    def _people(self) -> list[str]:
        return people_of(self._turn)
