"""Finds earlier messages that may matter for a question and renders them for the prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import structlog

from bot.agents.embeddings import (
    COMMANDS_AMONG,
    Embedder,
    QuestionVector,
    find_passages,
    question_vector_beside,
    spoken_passages,
)
from bot.agents.running_turns import note_sources
from bot.agents.tools.deps import Recall
from bot.answering.question import Turn
from bot.answering.window import statements_of_people
from bot.feishu import markup
from bot.process import metrics
from bot.process.concurrency import compute_apart
from bot.process.metrics import timed_stage
from bot.services import Services
from bot.text.roster import from_card
from bot.text.slash_commands import parse_command
from memory.errors import StoreError, StoreUnavailable
from memory.models import FormerValue, OpenTurn
from memory.recall.passages import (
    Passage,
    RecallScope,
    needs_recall,
    passages,
    recall_at_once,
    usual_scope,
)
from memory.recall.selection import (
    MOST_IN_PROMPT,
    RenderedPassages,
    SpeakerLabel,
    asks_for_former,
    fitting_hits,
    ordered_hits,
    passages_for_prompt,
    render_passages,
    with_former_values,
)
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore

log = structlog.get_logger()
_MOST_IN_WINDOW = 20  # of the best matches so many may stand in the window already
NamesIn = Callable[[str], tuple[Mapping[str, str], SpeakerLabel]]


async def recalled_passages(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    window_ids: Collection[str | None],
    hidden_ids: Collection[str] = (),
) -> RenderedPassages:
    """What was said earlier, where the thread as told does not hold the question's words: in this
    chat (in p2p, where nobody else reads the answer, everywhere).

    `window_ids` are the ids of the turns that the prompt has already; nothing comes from
    `hidden_ids`.
    """
    most = MOST_IN_PROMPT + min(len(window_ids), _MOST_IN_WINDOW) + len(hidden_ids)
    if open_turn.recalled is not None:
        there = passages(open_turn.recalled)
        hits = await compute_apart(lambda: ordered_hits(there, turn.question, most), size_of(there))
        found_passages = spoken_passages(fitting_hits(hits, turn.question), most)
    elif _is_wanted(services, turn, open_turn):
        found_passages = await _find_passages(services, turn, open_turn, most)
    else:
        found_passages = ()
    earlier = passages_for_prompt(
        [
            one
            for one in found_passages
            if one.turn_id not in window_ids and not set(one.ids) & set(hidden_ids)
        ],
        by_meaning=services.embedder is not None,
    )
    metrics.keep_for_record(recalled=[passage.turn_id for passage in earlier])
    names, now = turn.names, _asked_at(services, turn)
    tell = partial(
        rendered_earlier,
        earlier,
        turn.context,
        now,
        names.known,
        names.label,
        turn.question,
        window=statements_of_people(open_turn.told, turn.context.chat_id) if earlier else (),
    )
    lines = await compute_apart(tell, size_of(earlier))
    former = [
        one for one in await _former(services, turn, open_turn) if one.turn_id not in hidden_ids
    ]
    note_sources(one.turn_id for one in former)
    subject = names.label(turn.context.user_id, "")
    return with_former_values(lines, former, question=turn.question, subject=subject, now=now)


def size_of(passages: Iterable[Passage]) -> int:
    """Their characters."""
    return sum([len(one.question) + len(one.answer) for one in passages])


def vector_of(services: Services, turn: Turn) -> AbstractContextManager[QuestionVector | None]:
    """The question's vector, asked for while the turn begins; None where recall goes by words."""
    if services.embedder is None or parse_command(turn.question):
        return nullcontext()
    asked_at = _asked_at(services, turn)
    if not turn.private and not recall_at_once(turn.context, turn.question, now=asked_at, k=1):
        return nullcontext()
    return question_vector_beside(services.embedder, turn.question)


def recall_at_opening(services: Services, turn: Turn) -> Mapping[str, object] | None:
    """What is recalled with the turn's beginning, which saves a call; None: nothing, or later, for
    the question's vector is on its way."""
    if turn.vector or parse_command(turn.question):
        return None
    return recall_at_once(
        turn.context,
        turn.question,
        now=_asked_at(services, turn),
        k=MOST_IN_PROMPT + COMMANDS_AMONG,
    )


async def _former(services: Services, turn: Turn, open_turn: OpenTurn) -> tuple[FormerValue, ...]:
    """What the facts about the subject said before, where that is asked for."""
    facts = open_turn.working_memory.chat or open_turn.working_memory.user
    if open_turn.degraded or not facts or not asks_for_former(turn.question):
        return ()
    try:
        return await services.store.items.former(turn.context)
    except StoreError as exc:
        _log_missing(turn, exc)
        return ()


def _is_wanted(services: Services, turn: Turn, open_turn: OpenTurn) -> bool:
    """Whether to search: that costs the memory a call, greetings are not worth it."""
    if open_turn.degraded or parse_command(turn.question):
        return False
    window = [message.content for message in open_turn.told[:-1]] if not turn.in_group else ()
    return turn.private or needs_recall(turn.question, window, _asked_at(services, turn))


async def _find_passages(
    services: Services, turn: Turn, open_turn: OpenTurn, k: int
) -> tuple[Passage, ...]:
    try:
        with timed_stage("recall"):
            return await find_passages(
                services.store,
                turn.vector or services.embedder,
                turn.context,
                turn.question,
                now=_asked_at(services, turn),
                scope=usual_scope(turn.context),
                k=k,
                before_id=open_turn.history[-1].id if open_turn.history else None,
                newest_too=turn.context.chat_type == "p2p",
            )
    except StoreError as exc:
        _log_missing(turn, exc)
        return ()


"""tenant_key → the names of people in at-tags, and what a speaker is called."""


def recall_tool(
    store: MemoryStore, embedder: Embedder | None, zone: ZoneInfo, names_in: NamesIn
) -> Recall:
    """What the tool `recall` calls; its times are in `zone`."""

    async def recall(
        context: AgentMemoryContext,
        query: str,
        scope: RecallScope,
        k: int,
        asking: str,
        at: datetime,
    ) -> RenderedPassages:
        now = at.astimezone(zone)
        passages = await find_passages(
            store, embedder, context, query, now=now, scope=scope, k=k + 1
        )
        earlier = [passage for passage in passages if passage.turn_id != asking]
        visible_names, label = names_in(context.tenant_key)
        return rendered_earlier(earlier[:k], context, now, visible_names, label, query)

    return recall


def _log_missing(turn: Turn, exc: StoreError) -> None:
    event = "recall.unavailable" if isinstance(exc, StoreUnavailable) else "recall.refused"
    log.warning(event, turn_id=turn.id, error=type(exc).__name__, code=exc.code)


def _asked_at(services: Services, turn: Turn) -> datetime:
    return services.asked_at(turn.request.words_ms)


def rendered_earlier(
    passages: Sequence[Passage],
    here: AgentMemoryContext,
    now: datetime,
    names: Mapping[str, str],
    label: SpeakerLabel,
    question: str = "",
    window: Sequence[Passage] = (),
) -> RenderedPassages:
    """`memory.recall.selection.render_passages`, with the at-tags of cards as names."""

    def visible(card: str) -> str:
        return from_card(card, names, unescape=markup.unescape)

    return render_passages(
        passages,
        here=here,
        now=now,
        label=label,
        visible=visible,
        question=question,
        window=window,
    )
