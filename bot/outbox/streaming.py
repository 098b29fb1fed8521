"""Shows a reply while it is written, in one card, and decides how much of it to show and how often.

create → keep (database) → reply with the card → text, text, … → final text and buttons

A quick answer needs none of it and comes as an ordinary card. The card is kept before it is sent:
after a crash the turn goes on with the same one, and a janitor finishes what no turn comes back to.
Needs the scope cardkit:card:write; without it, or when CardKit refuses, replies are ordinary cards
and CardKit is not asked again for ten minutes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import structlog

from bot.agents.running_turns import Progress
from bot.feishu import cards
from bot.feishu.client import FeishuClient
from bot.feishu.drawable_markdown import normalised_markdown
from bot.feishu.errors import Action, Denials, FeishuError, FeishuFailure, Unreachable
from bot.outbox.delivery import Delivered, Target
from bot.outbox.live_card import LiveCard
from bot.outbox.texts import say
from bot.process import metrics
from bot.services import Services
from bot.text.follow_ups import text_before_questions
from bot.text.languages import Language
from memory.errors import StoreError
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext
from memory.tables.cards import CardStore, OpenCard
from memory.text import display_width

log = structlog.get_logger()
DENIAL = "cardkit"
_SKIPPED = frozenset({Action.RETRY, Action.IN_FLIGHT})
_MOST_FAILURES = 3
_running: set[asyncio.Task[None]] = set()
Render = Callable[[Progress], str]

# After these a name is only known to have ended when the next character is there (`mentions`).
_WITHIN_NAMES = tuple(".-'’")

# Feishu: 10 operations a second on one card, and 1000 a minute on all cards of an app.
_LEAST_GAP_S = 0.6
_GAP_PER_STREAM_S = 0.07
_GAP_PER_CHARACTER_S = 1 / 40_000
_LINE = 60  # columns; a Chinese character takes two
_LONGEST_WAIT_S = 1.0
_LEAST_STAGE_GAP_S = 1.0
_STAGE_GAP_BESIDE_TEXT_S = 5.0
_FRAMES_PER_STAGE = 5  # of a busy app's operations one in so many may go to the seconds


@dataclass(frozen=True, slots=True)
class OpeningTimes:
    """When a card is opened, in seconds: after a silent model was asked, or after its first words.
    A card takes three calls of Feishu and two of the memory, and one more for each frame; an answer
    that is soon whole takes one.
    """

    opens_after_s: float = 2.0
    words_last_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Opening:
    """What a new card needs: whose turn it is and where it goes."""

    context: AgentMemoryContext
    turn_id: str
    target: Target


@dataclass(frozen=True, slots=True)
class Working:
    """What a card shows besides the answer while that is written: `stage`, and a button to stop it,
    whose id is kept with the card."""

    stage: Render
    stop: cards.Button
    stop_id: str


async def begin_stream(
    services: Services,
    opening: Opening,
    open_turn: OpenTurn,
    render: Render,
    working: Working | None = None,
) -> CardStream | None:
    """The card for a turn as it was found: the one that an earlier attempt left, or a new one where
    that is wanted and possible. Raises `StoreError`."""
    if open_turn.degraded or open_turn.state in ("sent", "failed"):
        return None
    store = CardStore(services.rpc)
    open_card = None
    if open_turn.attempts != 1:
        open_card = await store.resume(opening.context, turn_id=opening.turn_id)
    if open_card is None:
        is_denied = services.denials.stands(DENIAL) or services.quota.is_short
        if open_turn.state != "open" or not services.settings.stream_replies or is_denied:
            return None
    return CardStream(
        services.feishu,
        store,
        opening,
        render,
        denials=services.denials,
        open_card=open_card,
        working=working,
    )


class CardStream:
    """The card of one turn while the model works. `render` gives the card's markdown.

    `kept` is the card that an earlier attempt left; `working` is shown while the answer is written.
    `may_be_kept` also of a card that the memory may have, and did not say so.
    Nothing here waits for the network on behalf of the model, and no failure of the card keeps the
    answer from being given.
    """

    def __init__(
        self,
        feishu: FeishuClient,
        store: CardStore,
        opening: Opening,
        render: Render,
        *,
        denials: Denials,
        open_card: OpenCard | None = None,
        pace: OpeningTimes = OpeningTimes(),
        working: Working | None = None,
    ) -> None:
        self._feishu = feishu
        self._store = store
        self._opening = opening
        self._render = render
        self._denials = denials
        self._pace = pace
        self._working = working
        self._staged = ("", 0.0)  # the stage that is shown, and since when (monotonic s)
        self._latest = Progress()
        self._rendered: tuple[Progress, str] | None = None
        self._spoken, self._changed, self._over = (asyncio.Event() for _ in range(3))
        self._shown, self._shown_at = "", 0.0  # the text, and when it came (monotonic s)
        self._creating = False
        self.may_be_kept = open_card is not None
        self.card = LiveCard(feishu, store, open_card) if open_card else None

    async def progress(self, progress: Progress) -> None:
        """What the model has written so far; shown soon, or never if more comes first."""
        self._latest = progress
        self._changed.set()
        if not self._spoken.is_set() and progress.text:
            self._spoken.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Writes frames while the body runs. Afterwards `card` is what must be finished, if any."""
        task = asyncio.create_task(self._run())
        _running.add(task)
        task.add_done_callback(_running.discard)
        at_once = True
        try:
            yield
            at_once = False
        finally:
            await self._stop(task, at_once=at_once)

    @property
    def begun(self) -> bool:
        """Whether there is a card to finish."""
        return self.card is not None

    async def finish(
        self,
        markdown: str,
        *,
        buttons: Sequence[cards.Button],
        names: Mapping[str, str],
        question: str | None = None,
        foot: cards.CardFoot | None = None,
    ) -> Delivered | None:
        """Finishes the card; None where the reply is to be sent as an ordinary one.

        Raises as `LiveCard.finish` does.
        """
        if self.card is None:
            return None
        delivery = await self.card.finish(
            markdown, buttons=buttons, names=names, question=question, foot=foot
        )
        if delivery is None and self.card.message_id is not None:  # else `_failed` has judged
            self._deny()
        return delivery

    async def withdraw(self) -> None:
        """The question was taken back, so no answer will come."""
        if self.card is not None:
            await self.card.withdraw()
            await self.card.closed()

    async def closed(self) -> None:
        """The reply is delivered, in whatever way: nobody needs to go on with the card."""
        if self.card is not None:
            await self.card.closed()

    async def _stop(self, task: asyncio.Task[None], *, at_once: bool) -> None:
        for event in (self._over, self._spoken, self._changed):
            event.set()
        if at_once or self._creating:  # a card that is being created is nowhere to be seen yet
            task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (exc := task.exception()):
            log.error("streaming.broken", turn_id=self._opening.turn_id, error=type(exc).__name__)

    async def _run(self) -> None:
        try:
            if self.card is None:
                await self._until_due()
                if self._over.is_set():
                    return
                self.card = await self._open()
            await self.card.send()
            await self._write(self.card)
        except FeishuFailure as exc:
            self._failed(exc)
        except StoreError as exc:
            log.warning("streaming.not_kept", error=type(exc).__name__, code=exc.code)

    async def _until_due(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pace.opens_after_s) as limit:
                await self._spoken.wait()
                soon = asyncio.get_running_loop().time() + self._pace.words_last_s
                limit.reschedule(min(limit.when() or soon, soon))
                await self._over.wait()

    async def _open(self) -> LiveCard:
        self._creating = True
        self._note_shown(self._markdown())
        element = cards.answer_id(self._opening.turn_id, 0)
        working = self._working
        stage = working.stage(self._latest) if working else ""
        self._staged = (stage, time.monotonic())
        card = cards.streaming_card(
            self._shown, element_id=element, stage=stage, stop=working.stop if working else None
        )
        card_id = await self._feishu.create_card(card)
        self._creating = False
        self.may_be_kept = True
        opening = self._opening
        open_card = await self._store.keep(
            opening.context,
            turn_id=opening.turn_id,
            card_id=card_id,
            reply_to=opening.target.message_id,
            in_thread=opening.target.in_thread,
            stop_id=working.stop_id if working else None,
        )
        return LiveCard(self._feishu, self._store, open_card, visible_card=card)

    async def _write(self, card: LiveCard) -> None:
        """Frame after frame, each with the whole text; frames that Feishu has no time for are
        left out."""
        failures = 0
        while failures < _MOST_FAILURES:
            await self._until_changed()
            if self._over.is_set():
                return
            markdown, stage = self._markdown(), self._due_stage()
            if not stage and (markdown == self._shown or self._line_due_s(markdown) > 0):
                continue
            try:
                if stage:
                    await self._show_stage(card, stage)
                else:
                    await card.write(markdown)
                    self._note_shown(markdown)
                failures = 0
            except Unreachable:
                failures += 1
            except FeishuError as error:
                metrics.FEISHU_ERRORS.labels(code=error.code).inc()
                if error.action not in _SKIPPED:
                    log.info("streaming.stopped", code=error.code, log_id=error.log_id)
                    return
                failures += 1
            await self._pause(len(markdown))

    async def _until_changed(self) -> None:
        """Returns when there is something new to show, half a line has waited long enough, or the
        seconds have moved on."""
        due = [self._stage_due_s()] if self._working else []
        if (markdown := self._markdown()) != self._shown:
            due.append(self._line_due_s(markdown))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(due, default=None)):
                await self._changed.wait()
        self._changed.clear()

    def _markdown(self) -> str:
        """The latest text as the card shows it, rendered once."""
        if self._rendered is None or self._rendered[0] is not self._latest:
            self._rendered = self._latest, self._render(self._latest)
        return self._rendered[1]

    def _note_shown(self, markdown: str) -> None:
        self._shown, self._shown_at = markdown, time.monotonic()

    def _line_due_s(self, markdown: str) -> float:
        return max(0.0, self._shown_at + line_gap_s(self._shown, markdown) - time.monotonic())

    def _stage_due_s(self) -> float:
        gap = stage_gap_s(len(_running), with_text=bool(self._latest.text))
        return max(0.0, self._staged[1] + gap - time.monotonic())

    def _due_stage(self) -> str:
        """The stage to be shown now, if any."""
        if self._working is None or self._stage_due_s() > 0:
            return ""
        stage = self._working.stage(self._latest)
        return stage if stage != self._staged[0] else ""

    async def _show_stage(self, card: LiveCard, stage: str) -> None:
        self._changed.set()  # the text comes with the next frame
        self._staged = (stage, time.monotonic())
        await card.show_stage(stage)

    async def _pause(self, characters: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(frame_gap_s(characters, len(_running))):
                await self._over.wait()

    def _failed(self, failure: FeishuFailure) -> None:
        """There is no card, or it may have been sent and stays to be finished."""
        code = failure.code if isinstance(failure, FeishuError) else 0
        log.warning("streaming.unavailable", code=code, error=type(failure).__name__)
        if isinstance(failure, FeishuError) and not failure.action.is_of_one_call:
            self._deny(failure)

    def _deny(self, error: FeishuError | None = None) -> None:
        self._denials.note(DENIAL, error=error)


def showable_text(progress: Progress, names: Collection[str], language: Language) -> str:
    """The text so far as far as its end is certain; before there is any, what goes on.

    `names` are of people whom the answer may address: an `@name` at the end that could still become
    one of them waits, because half a name may be another person's. So do follow-up questions, which
    become buttons. A code fence that is still open is closed.
    """
    return settled_text(progress.text, names) or status_line(progress.tool, language)


def status_line(tool: str, language: Language) -> str:
    """One line: the tool that runs, or that the model thinks."""
    return say("using" if tool else "thinking", language, tool=tool)


def stage_line(progress: Progress, seconds: float, language: Language) -> str:
    """What goes on and for how long, in small below the answer, which itself says it until there
    is text."""
    elapsed_text = say("seconds", language, seconds=max(0, int(seconds)))
    if not progress.text:
        return elapsed_text
    answering = say("answering", language)
    return f"{answering} · {elapsed_text}" if seconds >= 1 else answering


def stage_gap_s(streams: int, *, with_text: bool = False) -> float:
    """Seconds between two times that a card shows how long it has taken: longer while text grows,
    which itself shows that the answer goes on."""
    least = _STAGE_GAP_BESIDE_TEXT_S if with_text else _LEAST_STAGE_GAP_S
    return max(least, streams * _GAP_PER_STREAM_S * _FRAMES_PER_STAGE)


def settled_text(text: str, names: Collection[str]) -> str:
    """Of an unfinished text what is certain (`showable`); "" when that is nothing."""
    return normalised_markdown(text_before_questions(_settled_part(text, names))).rstrip()


def line_gap_s(visible_text: str, text: str) -> float:
    """Seconds that `text` waits for more of its line after `visible_text`: none where it is a line
    longer, ends one, or is another text."""
    new_text = text.removeprefix(visible_text)
    is_line = new_text == text or "\n" in new_text.rstrip() or display_width(new_text) >= _LINE
    return 0.0 if is_line else _LONGEST_WAIT_S


def frame_gap_s(characters: int, streams: int) -> float:
    """Seconds between two frames of a card: longer for long texts, and when many cards stream."""
    return max(_LEAST_GAP_S + characters * _GAP_PER_CHARACTER_S, streams * _GAP_PER_STREAM_S)


def _settled_part(text: str, names: Collection[str]) -> str:
    start = text.rfind("@")
    if start < 0:
        return text
    name_start = text[start + 1 :].casefold()
    folded_names = [name.casefold() for name in names]
    may_go_on = name_start[-1:] in _WITHIN_NAMES and name_start[:-1] in folded_names
    is_unfinished = may_go_on or any(name.startswith(name_start) for name in folded_names)
    return text[:start] if is_unfinished else text
