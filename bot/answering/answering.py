"""Asks the model for an answer within its time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from bot.agents.llm.model import next_step
from bot.agents.loop import stopped_sentence
from bot.agents.manager import AgentAnswer, ModelUnavailable
from bot.agents.prompts.prompt import Prompt
from bot.agents.running_turns import STOPPED, note_sources, noting_sources
from bot.agents.tools.deps import Opened
from bot.answering.answer_sources import cited_sources, find_edits, spoken_here, without_sources
from bot.answering.attachments import AUDIO, limits_of
from bot.answering.material import TAKEN_BACK, Material, gather_material
from bot.answering.prompt_history import Scene, build_prompt
from bot.answering.question import Turn, people_of, turn_language, used_up_sentence
from bot.answering.quoted_messages import QuestionSource
from bot.answering.recall import recalled_passages, size_of
from bot.answering.request_rate import rate_notice
from bot.answering.texts import apology, say_both
from bot.answering.window import with_heard, without_other_topics
from bot.feishu import markup
from bot.feishu.user_scopes import NO_NEEDS, AccessNeeds
from bot.files.reading import refusal_text
from bot.hooks import SourceCheck
from bot.listening.chat_rules import owner_instructions, rules_of
from bot.listening.decisions import Reason
from bot.listening.transcript import MessageRecord
from bot.outbox.buttons import Reply, reply_of
from bot.outbox.foot import AnswerFooter
from bot.process import metrics
from bot.process.concurrency import compute_apart
from bot.process.metrics import timed_stage
from bot.queue.jobs import Later
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreUnavailable
from memory.models import (
    ANSWERED_BY_COMMAND,
    ANSWERED_OUTCOME,
    OpenTurn,
    apology_outcome,
    refusal_outcome,
)
from memory.recall.passages import Passage
from memory.recall.selection import answer_sources
from memory.tables.notes import note_source
from memory.tables.sources import note_read_messages, read_source_id

log = structlog.get_logger()

Answering = Callable[[Services, Turn, OpenTurn], Awaitable[Reply]]

# The first words appear at most this long after the acknowledgement (s).
_BEGINS_WITHIN_S = 56.0
_LEAST_MODEL_TIME_S = 8.0
# Feishu ends the streaming of a card ten minutes after it was opened.
FLOWS_FOR_S = 540.0
# A card or a forward holds other people's words (Feishu: message content, msg_type).
_WRITTEN_BY_SENDER = frozenset({"text", "post", AUDIO})

# The model says this when it has no unasked answer to give (`bot.features.unasked.answers`).
NO_ANSWER = "NO_ANSWER"
_UNASKED = (
    "Nobody asked you: the question was put to the group, and nobody has answered it. Answer in "
    "one or two sentences, and only if what was said in this chat before answers it. Otherwise "
    f"reply with {NO_ANSWER} and nothing else."
)


async def answer_question(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
    """Carries out a command. The model answers everything else."""
    if turn.heard.decision.reason is not Reason.RATE_LIMITED:
        reply: Reply | None = await services.hooks.answer_command(services, turn, open_turn)
        if reply:
            return (
                replace(reply, means=ANSWERED_BY_COMMAND)
                if reply.means == ANSWERED_OUTCOME
                else reply
            )
    return await answer(services, turn, open_turn)


async def answer(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
    """Returns the model's answer, or a refusal if the person has sent too many requests."""
    if turn.heard.decision.reason is Reason.RATE_LIMITED:
        refusal = rate_notice(services, turn_language(services, turn, open_turn))
        return Reply(refusal, means=refusal_outcome("rate_limited"))
    agent_answer, earlier, source_ids = await _answer(services, turn, open_turn)
    reply_language = turn_language(services, turn, open_turn)
    reply = reply_of(agent_answer, source_ids, chat_type=turn.chat_type, language=reply_language)
    seconds = services.clock() - turn.received_ms / 1000
    made_with = await _made_with(turn, agent_answer, earlier)
    foot = _foot(turn, agent_answer, made_with, seconds, reply_language)
    if open_turn.degraded:  # no button would work without the memory
        return replace(reply, foot=replace(foot, bare=True, without_memory=True))
    return replace(reply, foot=foot)


def _foot(
    turn: Turn,
    answer: AgentAnswer,
    made_with: Sequence[Passage],
    seconds: float,
    language: Language,
) -> AnswerFooter:
    """Returns the note below the answer that says how it was made."""
    sources = tuple(cited_sources(turn, made_with))
    transcription = turn.question if turn.request.message_type == AUDIO else ""
    is_apology = answer.means.kind in ("apologised", "refused") or bool(answer.needs.scopes)
    return AnswerFooter(
        language, seconds, sources, answer.end_reason, heard=transcription, apology=is_apology
    )


async def _made_with(turn: Turn, answer: AgentAnswer, earlier: Sequence[Passage]) -> list[Passage]:
    """Returns the earlier passages that the answer uses, oldest first."""
    if answer.means.kind not in ("answered", "stopped"):
        return []
    read = len(answer.text) + size_of([*earlier, *answer.passages])
    return await compute_apart(
        lambda: answer_sources(answer.text, earlier, answer.passages, question=turn.question), read
    )


async def _answer(
    services: Services, turn: Turn, open_turn: OpenTurn
) -> tuple[AgentAnswer, tuple[Passage, ...], tuple[str, ...]]:
    """Returns the model's answer, the earlier passages in its prompt, and the ids of the messages
    it read.

    If no answer arrives in time, the text is an apology.
    """
    if not turn.question.strip():
        return AgentAnswer(say_both("unsupported"), means=refusal_outcome("unreadable")), (), ()
    if refusal := used_up_sentence(services, turn, open_turn):
        return AgentAnswer(refusal, means=refusal_outcome("used_up")), (), ()
    material = await gather_material(services, _source(turn, open_turn))
    services.rates.count(turn.chat.asker, services.clock(), material.files)
    source_check = services.hooks.checks["sources"](services, turn, open_turn)
    if source_check and not await source_check.may_be_told([*material.read, *material.texts]):
        material = TAKEN_BACK
    if not await _may_tell(services, turn, open_turn, material):
        material = TAKEN_BACK
    if refusal := _only_unread(services, turn, open_turn, material):
        return AgentAnswer(refusal, means=refusal_outcome("unreadable")), (), ()
    with noting_sources() as source_ids:
        if open_turn.degraded:
            note_sources(map(read_source_id, {*material.read, *material.texts}))
        open_turn = with_heard(open_turn, _listed_talk(turn, open_turn))
        prompt, earlier = await _prompt(services, turn, open_turn, material)
        if source_check:
            prompt, earlier = await _without_undisclosable(
                services, turn, open_turn, material, source_check, source_ids, (prompt, earlier)
            )
        opened_tools = {} if open_turn.degraded else _open_for_tools(services, turn)
        quoted_id = material.quoted.message_id if material.quoted else ""
        model_call = _ask_model(services, turn, open_turn, prompt, opened_tools, source_check)
        answer = await _unless_edited(services, turn, open_turn, model_call, earlier, quoted_id)
        note_sources(source_check.sources if source_check else ())
    for one in opened_tools.values():
        if not await one.may_still_be_told():
            raise Later("what was read is no longer open to everybody")
    if source_check and not await source_check.still_open():
        raise Later("what was told of is no longer open to everybody")
    answer = replace(answer, needs=_joined_needs(one.needs for one in opened_tools.values()))
    return answer, earlier, tuple(sorted(source_ids - {turn.id, turn.request.message_id}))


async def _unless_edited(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    model_call: Awaitable[AgentAnswer],
    earlier: Sequence[Passage],
    quoted_id: str,
) -> AgentAnswer:
    """Returns the answer. Raises `Later` if a message that it uses was edited: the answer is then
    made again from the new text."""
    if open_turn.degraded:
        return await model_call
    looking = asyncio.create_task(find_edits(services, turn, earlier, quoted_id))
    try:
        answer = await model_call
        any_edited = await looking or await find_edits(services, turn, answer.passages, "")
    finally:
        looking.cancel()
    if any_edited:
        raise Later("a message that the answer rests on was edited")
    return answer


def _open_for_tools(services: Services, turn: Turn) -> dict[str, Opened]:
    """Returns what the features that concern this turn open for their tools, by feature."""
    gathers = services.hooks.gathers.items()
    return {
        name: feature_material
        for name, gather in gathers
        if (feature_material := gather(services, turn))
    }


def _joined_needs(needs: Iterable[AccessNeeds]) -> AccessNeeds:
    joined = NO_NEEDS
    for one in needs:
        joined = AccessNeeds(
            joined.withheld or one.withheld,
            joined.unconnected or one.unconnected,
            joined.scopes + one.scopes,
        )
    return joined


async def _without_undisclosable(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    material: Material,
    source_check: SourceCheck,
    source_ids: set[str],
    prompt_and_passages: tuple[Prompt, tuple[Passage, ...]],
) -> tuple[Prompt, tuple[Passage, ...]]:
    """Returns the prompt `prompt_and_passages`, made of `source_ids`, without what comes from
    documents that somebody there cannot open. `source_ids` then holds the ids of the rest."""
    hidden_ids: frozenset[str] = frozenset()
    while more := await source_check.untellable(source_ids) - hidden_ids:
        hidden_ids |= more
        source_ids.clear()
        shortened_turn = without_sources(open_turn, hidden_ids)
        prompt_and_passages = await _prompt(services, turn, shortened_turn, material, hidden_ids)
    return prompt_and_passages


async def _may_tell(
    services: Services, turn: Turn, open_turn: OpenTurn, material: Material
) -> bool:
    """True if the model may see the content of other messages; False if one of them was retracted.

    If one is retracted later, the answer is removed. While the memory is away, the check waits
    until it is back.
    """
    if not (material.read or material.texts) or open_turn.degraded:
        return True
    try:
        return await note_read_messages(
            services.rpc, turn.context, turn.id, material.read, material.texts
        )
    except StoreUnavailable as exc:
        log.warning("incoming.not_noted", turn_id=turn.id, error=type(exc).__name__)
        return True


async def _ask_model(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    prompt: Prompt,
    opened_tools: Mapping[str, Opened],
    source_check: SourceCheck | None,
) -> AgentAnswer:
    """Returns the model's answer, or an apology if it fails or takes too long."""
    begins_s, flows_for_s = _times(services, turn, open_turn)
    try:
        with timed_stage("model"):
            answer = await services.manager.answer(
                prompt,
                timeout_s=begins_s,
                flows_for_s=flows_for_s,
                on_progress=turn.on_progress,
                stop=turn.stop,
                opened_tools=opened_tools,
                may_be_told=source_check.may_be_told if source_check else None,
            )
    except ModelUnavailable as exc:
        return _sorry(turn, exc.reason, turn_language(services, turn, open_turn))
    if answer.end_reason:
        answer = _unfinished_answer(
            turn, open_turn, answer, turn_language(services, turn, open_turn)
        )
    elif not answer.text.strip():
        return _sorry(turn, "empty", turn_language(services, turn, open_turn))
    _count(answer)
    return answer


def _times(services: Services, turn: Turn, open_turn: OpenTurn) -> tuple[float, float]:
    """How soon (s) the answer must begin, and how long (s) it may take in all once it has begun.

    An attempt that continues an earlier attempt's card has only the rest of that card's time.
    """
    spent_s = services.clock() - turn.received_ms / 1000
    timeout_s = services.settings.model_timeout_seconds
    left = max(_LEAST_MODEL_TIME_S, max(_BEGINS_WITHIN_S, timeout_s) - spent_s)
    return min(left, timeout_s), FLOWS_FOR_S - (spent_s if open_turn.attempts > 1 else 0.0)


def _unfinished_answer(
    turn: Turn, open_turn: OpenTurn, answer: AgentAnswer, language: Language
) -> AgentAnswer:
    """Returns the part of the answer that was written, with only the certain part of its last
    words.

    A stopped answer offers no follow-ups, actions or files.
    """
    answer = replace(answer, text=turn.settle(answer.text))
    if answer.end_reason != STOPPED:
        return answer
    metrics.STOPPED.inc()
    answer = replace(answer, follow_ups=(), pending_actions=(), files=())
    if answer.text:
        return answer
    calls = [call["name"] for call in answer.tool_calls if call["ok"]]
    return replace(
        answer, text=stopped_sentence([*open_turn.done, *calls], language), end_reason=""
    )


def _only_unread(services: Services, turn: Turn, open_turn: OpenTurn, material: Material) -> str:
    """Returns the reply to an unreadable file that came without a question; "" otherwise."""
    if turn.request.message_type != "file" or material.file_tokens or not material.unread:
        return ""
    limits, reply_language = limits_of(services), turn_language(services, turn, open_turn)
    return "\n".join(
        refusal_text(markup.escape(name), reason, limits, reply_language)
        for name, reason in material.unread
    )


async def _prompt(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    material: Material,
    hidden_ids: Collection[str] = (),
) -> tuple[Prompt, tuple[Passage, ...]]:
    """Returns the prompt without what comes from `hidden_ids`, and the earlier passages in it."""
    open_turn = without_other_topics(open_turn, turn.heard.discussion, turn.question)
    turns = {message.message_id for message in open_turn.told if message.role == "user"}
    earlier = await recalled_passages(services, turn, open_turn, turns, hidden_ids)
    _keep(services, open_turn, material, turn.bot.name)
    note_sources(_prompt_sources(open_turn))
    build = partial(
        build_prompt,
        open_turn,
        turn.question,
        _scene(services, turn, open_turn),
        context=turn.context,
        turn_id=turn.id,
        earlier=earlier,
        budget_tokens=services.settings.history_token_budget + material.file_tokens,
        calibration=services.meter.calibration,
        material=material,
        words_of_model=turn.by_click,
        typed=turn.request.message_type in _WRITTEN_BY_SENDER,
        reads_only=turn.private or turn.unasked,
    )
    chars = sum([len(message.content) for message in open_turn.told])
    prompt = await compute_apart(build, chars + len(turn.question) + len(earlier.text))
    note_sources(source for one in earlier.found for source in one.ids)
    return prompt, (*spoken_here(turn.context, open_turn), *earlier.found)


def _prompt_sources(open_turn: OpenTurn) -> list[str | None]:
    """Returns the ids of the messages, notes and threads that the prompt's content comes from."""
    return [
        *[message.message_id for message in open_turn.told],
        *open_turn.working_memory.turns,
        *[note_source(str(row["id"])) for row in open_turn.registry],
        *([open_turn.summary.source] if open_turn.summary else []),
    ]


def _keep(
    services: Services,
    open_turn: OpenTurn,
    material: Material,
    bot_name: str,
) -> None:
    """Records which rows the prompt is made of, for the record of the turn."""
    metrics.keep_for_record(
        bot=bot_name,
        model=services.settings.openai_model if services.settings.openai_api_key else "offline",
        history_ids=[one.id for one in open_turn.told if one.id > 0],
        transcript_ids=[one.message_id for one in open_turn.told if one.id < 0],
        summary=open_turn.summary.version if open_turn.summary else None,
        came_along=bool(material.text or material.images),
        budget=services.settings.history_token_budget,
    )


def _count(answer: AgentAnswer) -> None:
    metrics.count_tokens("answer", answer.input_tokens, answer.output_tokens)
    metrics.note_for_log(
        tokens_in=answer.input_tokens,
        tokens_out=answer.output_tokens,
        tools=[call["name"] for call in answer.tool_calls],
        specialists=list(answer.specialists),
        cut_short=answer.cut_short,
    )


def _source(turn: Turn, open_turn: OpenTurn) -> QuestionSource:
    talk = turn.heard.conversation.messages if turn.heard.conversation else ()
    told_since_ms = open_turn.rules.get("told_since_ms") or 0
    return QuestionSource(
        turn.chat,
        turn.context,
        open_turn.history,
        talk,
        open_turn.first_read,
        open_turn.asked_in,
        told_since_ms,
    )


def _sorry(turn: Turn, reason: str, language: Language) -> AgentAnswer:
    metrics.MODEL_FAILURES.labels(reason=reason).inc()
    log.error("model.unavailable", turn_id=turn.id, reason=reason, next_step=next_step(reason))
    return AgentAnswer(apology(reason, language), means=apology_outcome(reason))


def _scene(services: Services, turn: Turn, open_turn: OpenTurn) -> Scene:
    settings = services.settings
    owner = owner_instructions(settings.bot_instructions, rules_of(open_turn.rules, settings))
    return Scene(
        bot_name=turn.bot.name,
        subject=turn.names.name(turn.context.user_id),
        names=turn.names.known,
        label=turn.names.label,
        labelled=turn.in_group,
        now=services.now(),
        asked=services.asked_at(turn.request.words_ms),
        people=turn.names.roster(people_of(turn)),
        language=turn_language(services, turn, open_turn),
        owner=f"{owner}\n\n{_UNASKED}".strip() if turn.unasked else owner,
    )


def _listed_talk(turn: Turn, open_turn: OpenTurn) -> list[MessageRecord]:
    """Returns the messages of the place that the memory does not hold: the worker listed them from
    Feishu, or the memory is away and stores nothing."""
    talk, root = turn.heard.conversation, turn.heard.message.root_id
    if talk is None or not (talk.is_listed or open_turn.degraded):
        return []
    return [
        one
        for one in talk.messages
        if one.is_in(root) and one.message_id != turn.request.message_id
    ]
