"""Turns an answer into a reply: composes the cards, stores them, shows them while they are
written, and hands them to the outbox."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from bot.agents.prompts.tool_context import with_shown
from bot.agents.running_turns import Progress
from bot.answering.answering import Answering
from bot.answering.hearing import HearingResult, talk_before_answer
from bot.answering.question import Turn, delivered_reply_args, notifiable_people, people_of
from bot.answering.texts import say
from bot.feishu import drawable_markdown, markup
from bot.feishu.drawable_markdown import normalised_markdown
from bot.feishu.markup import IncrementalMarkdown
from bot.feishu.user_scopes import AccessNeeds
from bot.files.writing import history_text
from bot.listening.decisions import Reason
from bot.listening.turn_request import TurnRequest
from bot.mentions import ALL_NAMES, address_reply, to_card
from bot.outbox.buttons import Reply, with_danger_marks
from bot.outbox.delivery import Delivered, Target
from bot.outbox.foot import AnswerFooter
from bot.outbox.sending import After, ConversationArgs, Outcome, Outgoing, send
from bot.outbox.streaming import CardStream, settled_text, showable_text, stage_line, status_line
from bot.process.concurrency import compute_apart
from bot.process.metrics import timed_stage
from bot.queue.consumer import Lease
from bot.queue.jobs import Later
from bot.services import Services
from bot.text.languages import Language
from bot.text.meant_commands import asks_for_quiet
from bot.text.roster import (
    NOBODY,
    PLAIN,
    AutoMention,
    EscapeText,
    MentionTemplate,
    Person,
    Roster,
    from_card,
)
from memory.models import ENDED_STATES, OpenTurn, StoredCard, TurnState
from memory.rpc import Statement
from memory.scope import MAIN_ROOT

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks to whom, and how they are addressed; nobody is where `addresses` is off."""

    agent: Person
    addressee: Person | None
    roster: Roster = NOBODY
    sender_type: str = "user"
    chat_type: str = "group"
    addresses: bool = True
    template: MentionTemplate = PLAIN
    allow_all: bool = False


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that is over. `reply`: its cards. `needs`: what its answer lacked. `answer_id`: the
    answer's message, if it can be asked again. `follow_up`: what queues the job that follows, which
    a memory that joins transactions has done."""

    turn: Turn
    reply: Sequence[StoredCard]
    delivery: Outcome
    language: Language
    needs: AccessNeeds
    answer_id: str
    follow_up: Statement | None


def compose(
    services: Services,
    turn: Turn,
    text: str,
    *,
    nothing: str,
    auto_mention: AutoMention | None = None,
) -> list[str]:
    """The markdown of each card: addressed to whom it is for, inert, within the limits.

    `nothing` is said where the text comes to nothing. `auto_mention`: in place of the setting.
    """
    return cards_of(text, voice_of(services, turn, auto_mention), nothing=nothing)


def voice_of(services: Services, turn: Turn, auto_mention: AutoMention | None = None) -> Voice:
    """The bot's voice in a turn: it addresses who asked, or whom the question is about."""
    settings = services.settings
    mode = auto_mention or settings.auto_mention
    sender = turn.request.sender_open_id
    addressee_id = turn.context.user_id if mode == "meant" else sender
    notified_ids = notifiable_people(turn)
    return Voice(
        agent=turn.bot,
        addressee=turn.names.person(addressee_id) if addressee_id in notified_ids else None,
        roster=turn.names.roster(notified_ids) if turn.in_group else NOBODY,
        sender_type=turn.request.sender_type if addressee_id == sender else "user",
        chat_type=turn.request.chat_type,
        addresses=mode != "off",
        template=settings.template,
        allow_all=settings.allow_mention_all,
    )


def cards_of(
    text: str, voice: Voice, *, nothing: str, escape: EscapeText = markup.card_markdown
) -> list[str]:
    """The markdown of each card that says `text` in that voice. Pure."""
    normal_text = _address_text(normalised_markdown(text), voice, addresses=False)
    addressed_text = _address_text(
        normal_text if _is_seen(normal_text) else nothing, voice, addresses=voice.addresses
    )
    markdown = to_card(
        addressed_text,
        voice.roster,
        escape=escape,
        preferred=voice.addressee.open_id if voice.addressee else None,
        allow_all=voice.allow_all,
        lead=voice.template.lead if voice.addresses else "",
    )
    return drawable_markdown.split_markdown(markdown)


def _address_text(text: str, voice: Voice, *, addresses: bool) -> str:
    return address_reply(
        text,
        sender=voice.addressee,
        agent=voice.agent,
        sender_type=voice.sender_type,
        roster=voice.roster,
        chat_type=voice.chat_type,
        auto_mention=addresses,
        template=voice.template,
    )


def _is_seen(text: str) -> bool:
    """Whether a reader sees anything of `text`."""
    return any(unicodedata.category(character) not in _UNSEEN for character in text)


def stored_answer(open_turn: OpenTurn) -> Reply:
    """An answer that an earlier attempt stored. Its cards are `open_turn.reply`."""
    return Reply("", foot=AnswerFooter.of_row(open_turn.shown), means=open_turn.means)


async def store_reply(
    services: Services, turn: Turn, answer: Reply, reply_language: Language
) -> tuple[StoredCard, ...]:
    """Composes the exact card texts and stores them as pending, before anything is sent. Raises
    `Later` when something in the prompt was taken back: then the answer is made without it, and
    what its tools kept is undone."""
    cards = await _cards(services, turn, answer, reply_language)
    with timed_stage("memory_save"):
        state, stored_cards = await services.store.record_reply(
            turn.context,
            turn_id=turn.id,
            cards=cards,
            tool_calls=with_shown(answer.tool_calls, answer.text),
            buttons=answer.buttons,
            files=[{"content": history_text(file), "file": file} for file in answer.files],
            visible_card=answer.foot.row() if answer.foot else None,
            source_ids=answer.given,
            means=answer.means,
        )
    if state == "open":
        await services.store.undo_kept(turn.context, turn.id)
        raise Later("what the answer was made with was taken back")
    return with_danger_marks(stored_cards, answer.buttons)


async def _cards(
    services: Services, turn: Turn, answer: Reply, reply_language: Language
) -> Sequence[str]:
    if answer.unsaid or answer.cards:
        return answer.cards
    text, nothing = answer.text, say("nothing-to-say", reply_language)
    if turn.heard.decision.reason is Reason.BOT_LAST_ANSWER:
        text = f"{text.strip() or nothing}\n\n{say('last-to-bots', reply_language)}"
    voice = voice_of(services, turn, answer.auto_mention)
    return await compute_apart(lambda: cards_of(text, voice, nothing=nothing), len(text))


class ProgressFrames:
    """The markdown for a turn's progress, composed like any reply.

    A quick answer has no frames, and nothing is looked up for it.
    """

    _voice: Voice
    _names: list[str]

    def __init__(self, services: Services, turn: Turn, language: Language) -> None:
        self._services = services
        self._turn = turn
        self.language = language
        self._escape = IncrementalMarkdown()
        self._known: list[str] | None = None

    def __call__(self, progress: Progress) -> str:
        self._learn()
        visible_text = showable_text(progress, self._names, self.language)
        nothing = status_line(progress.tool, self.language)
        return cards_of(visible_text, self._voice, nothing=nothing, escape=self._escape)[0]

    def stage(self, progress: Progress) -> str:
        """What stands below the answer while it is written."""
        seconds = self._services.clock() - self._turn.received_ms / 1000
        return stage_line(progress, seconds, self.language)

    def settled(self, text: str) -> str:
        """What of an unfinished text stays when it ends there."""
        self._learn()
        return settled_text(text, self._names)

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


async def send_reply(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    reply: tuple[StoredCard, ...],
    stream: CardStream | None,
    lease: Lease | None,
    look_up: Callable[[], Statement | None],
) -> Outcome:
    """Sends what is pending of the reply; what came of it. `look_up` gives what is
    queued with the end of the job."""
    if open_turn.state in ENDED_STATES or not reply:
        if stream:
            await stream.withdraw()
        return _over(open_turn.state)
    quiet = asks_for_quiet(turn.question)
    async with talk_before_answer(turn.chat, turn.heard) as before:

        async def tell(delivery: Delivered) -> ConversationArgs:
            if quiet:
                return None
            card_words = from_card(delivery.content, turn.names.known, unescape=markup.unescape)
            return delivered_reply_args(
                services, turn, await before(), card_words, delivery.message_id
            )

        return await send(
            services,
            _outgoing(turn, open_turn, reply, lease, stream),
            lease=lease,
            stream=stream,
            tell=tell,
            after=After(lease, look_up),
        )


def _over(state: TurnState) -> Outcome:
    """What came of a turn that was over, or has nothing to send."""
    match state:
        case "sent":
            return Outcome("duplicate")
        case "failed":
            return Outcome("failed")
    return Outcome("cancelled")


def _outgoing(
    turn: Turn,
    open_turn: OpenTurn,
    reply: tuple[StoredCard, ...],
    lease: Lease | None,
    stream: CardStream | None,
) -> Outgoing:
    return Outgoing(
        turn.context,
        turn.id,
        reply,
        turn.target,
        turn.names.known,
        instead=_without_card(turn),
        since_ms=lease.job.maybe_sent_ms if lease else 0,
        question=turn.question,
        asked_ms=turn.request.create_time_ms or turn.received_ms,
        asked=turn.asked,
        foot=turn.foot,
        plain=_is_plain(open_turn, reply),
        streamed=stream is not None and stream.may_be_kept,
    )


def _without_card(turn: Turn) -> Target | None:
    """Where a press is answered when its card is gone: what it deletes can take the card along."""
    if not turn.origin.is_pressed:
        return None
    root = turn.context.root_id
    return Target("" if root == MAIN_ROOT else root, turn.request.chat_id, turn.target.in_thread)


def _is_plain(open_turn: OpenTurn, reply: tuple[StoredCard, ...]) -> bool:
    """Whether the answer is one card, without buttons, that no earlier attempt can have begun."""
    return open_turn.attempts == 1 and len(reply) == 1 and not reply[0].buttons


class RequestHandler(Protocol):
    """`bot.turn.handle_request`, for rooms below it."""

    async def __call__(
        self,
        services: Services,
        request: TurnRequest,
        received_ms: int,
        *,
        answering: Answering | None = None,
        lease: Lease | None = None,
        hearing: HearingResult | None = None,
    ) -> None: ...
