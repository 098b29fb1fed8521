"""What was said around a question that waits, and since, as Feishu tells it now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC

from bot.answering.earlier_messages import record_of_list
from bot.feishu.models import RawMessage
from bot.listening.open_questions import is_gone_on, is_taken_up
from bot.listening.transcript import MessageRecord
from bot.services import Services
from memory.tables.timers import Timer

_BEFORE_S = 1800
_MOST = 50


@dataclass(frozen=True, slots=True)
class Around:
    """Whether somebody took the question up, or that cannot be seen; who speaks there besides."""

    taken_up: bool
    names: frozenset[str] = frozenset()


UNSEEN = Around(taken_up=True)


async def asked_now(services: Services, timer: Timer) -> RawMessage | None:
    """The question as it stands; None: it is gone. Raises `FeishuFailure`."""
    messages = await services.feishu.get_message(timer.turn_id)
    return messages[0] if messages and not messages[0].deleted else None


async def look_around(services: Services, timer: Timer, question: RawMessage) -> Around:
    """In a thread its messages count, and whatever is said after the question takes it up. In the
    main chat those of its topic, and those of a thread under it. In a group of topics each is a
    thread. Raises `FeishuFailure`."""
    thread = await _thread(services, question) if question.thread_id else []
    main = [] if question.root_id else await _chat(services, timer)
    if thread is None or main is None:
        return UNSEEN
    if question.thread_id and all(raw.thread_id for raw in main):
        main = []
    in_thread, in_main = (
        await _records(services, timer, thread),
        await _records(services, timer, main),
    )
    taken_up = bool(thread) and is_gone_on(in_thread, question.message_id)
    taken_up = taken_up or (bool(main) and is_taken_up(in_main, question.message_id))
    others = (one.author for one in (*in_thread, *in_main) if one.author_id != question.sender_id)
    return Around(taken_up or not (thread or main), frozenset(others))


async def _thread(services: Services, question: RawMessage) -> list[RawMessage] | None:
    """The thread's newest messages, oldest first; None where they do not reach back so far."""
    messages = await services.feishu.list_messages(
        "thread", question.thread_id, descending=True, max_items=_MOST
    )
    return (
        messages[::-1] if any(raw.message_id == question.message_id for raw in messages) else None
    )


async def _chat(services: Services, timer: Timer) -> list[RawMessage] | None:
    """What was said in the main chat, oldest first; None where a lot was said since."""
    asked_s = int(timer.plan.local_at.replace(tzinfo=UTC).timestamp())
    chat_id = timer.context.chat_id
    since = await services.feishu.list_messages(
        "chat", chat_id, start_s=asked_s, max_items=_MOST + 1
    )
    before = await services.feishu.list_messages(
        "chat",
        chat_id,
        start_s=asked_s - _BEFORE_S,
        end_s=asked_s,
        descending=True,
        max_items=20,
    )
    here = {raw.message_id: raw for raw in (*reversed(before), *since)}
    return list(here.values()) if len(since) <= _MOST and timer.turn_id in here else None


async def _records(
    services: Services, timer: Timer, raw_messages: Iterable[RawMessage]
) -> tuple[MessageRecord, ...]:
    bot = await services.own_person.look_up()
    names = services.people.of(timer.context.tenant_key)
    here = [raw for raw in raw_messages if not raw.deleted]
    await names.look_up({raw.sender_id for raw in here if raw.sender_type == "user"})
    app_id = services.settings.feishu_app_id
    return tuple(record_of_list(names, app_id, raw, bot) for raw in here)
