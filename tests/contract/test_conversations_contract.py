"""The group conversation in the database: survives a restart, is shared, bounded, and chat by chat.

Two managers over two stores are two workers; the clock is the test's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bot.conversation import ConversationManager
from bot.listening.conversation_store import (
    ChatConversations,
    Circumstances,
    heard_args,
    tell_conversation_args,
)
from bot.listening.decisions import Decision, IncomingMessage, Reason, decide_start
from bot.listening.transcript import MessageRecord
from memory.errors import AccessDenied
from memory.rpc import Rpc
from memory.store import MemoryStore
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

START = 1_800_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


@pytest.fixture
def clock() -> Clock:
    return Clock()


def worker(rpc: Rpc, group: Group, clock: Clock, *, chat: str = "here") -> ConversationManager:
    store = ChatConversations(rpc, group.turn(chat=chat))
    return ConversationManager(store, timeout_seconds=120, clock=clock, max_messages=5)


def said(group: Group, text: str, at: int, *, who: str = "alice") -> MessageRecord:
    return MessageRecord(
        author=who,
        author_id=group.person(who),
        content=text,
        timestamp=at,
        is_bot=False,
        message_id=group.message(f"{text}-{at}"),
    )


async def test_what_one_worker_records_the_other_sees(rpc: Rpc, group: Group, clock: Clock) -> None:
    one, other = worker(rpc, group, clock), worker(rpc, group, clock)
    first = said(group, "first", START)
    reply = replace(said(group, "second", START + 10, who="bob"), quotes=first.message_id)
    await one.start(group.chat(), [first])
    await other.record_message(group.chat(), reply)

    found = await one.get(group.chat())
    assert found
    assert [(m.content, m.quotes) for m in found.messages] == [
        ("first", ""),
        ("second", first.message_id),
    ]
    assert found.participants == {group.person("alice"): "alice", group.person("bob"): "bob"}
    assert [one["content"] for one in found.llm_history] == ["alice: first", "bob: second"]
    assert [one["content"] for one in found.llm_history] == ["alice: first", "bob: second"]


async def test_silence_ends_it_and_any_message_keeps_it_alive(
    rpc: Rpc, group: Group, clock: Clock
) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat())
    clock.now += 100_000
    assert await here.record_message(group.chat(), said(group, "still here", clock.now))
    clock.now += 100_000
    assert await here.get(group.chat())
    clock.now += 20_000
    assert await here.get(group.chat()), "to the last millisecond"
    clock.now += 1
    assert await here.get(group.chat()) is None
    assert await here.get(group.chat(), at=clock.now - 1), "judged by a message's own time"
    assert await here.record_message(group.chat(), said(group, "late", clock.now)) is None
    assert await here.get(group.chat()) is None


async def test_only_the_newest_messages_are_kept(rpc: Rpc, group: Group, clock: Clock) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat())
    for number in range(9):
        await here.record_message(group.chat(), said(group, f"m{number}", START + number))

    found = await here.get(group.chat())
    assert found
    assert [m.content for m in found.messages] == ["m4", "m5", "m6", "m7", "m8"]


async def test_a_redelivered_message_is_recorded_once(rpc: Rpc, group: Group, clock: Clock) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat())
    record = said(group, "once", START)
    await here.record_message(group.chat(), record)
    found = await here.record_message(group.chat(), replace(record, content="changed"))

    assert found
    assert [m.content for m in found.messages] == ["once"]


async def test_the_bots_answer_opens_the_follow_up_window(
    rpc: Rpc, group: Group, clock: Clock
) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat())
    await here.record_bot_response(group.chat(), said(group, "my answer", START + 5, who="bot"))

    found = await here.get(group.chat())
    assert found
    assert found.last_bot_at == START + 5


async def test_quiet_outlives_the_conversation(rpc: Rpc, group: Group, clock: Clock) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat())
    await here.quieten(group.chat())
    assert await here.get(group.chat()) is None
    await here.start(group.chat())
    found = await here.get(group.chat())
    assert found
    assert found.quiet
    await here.resume(group.chat())
    found = await here.get(group.chat())
    assert found
    assert not found.quiet


async def test_a_recalled_message_leaves(rpc: Rpc, group: Group, clock: Clock) -> None:
    here = worker(rpc, group, clock)
    record = said(group, "oops", START)
    await here.start(group.chat(), [record])
    await here.forget_message(group.chat(), record.message_id)

    found = await here.get(group.chat())
    assert found
    assert not found.messages


async def test_a_token_of_another_chat_sees_and_changes_nothing(
    backend: Backend, rpc: Rpc, group: Group, clock: Clock
) -> None:
    here = worker(rpc, group, clock)
    await here.start(group.chat(), [said(group, "ours", START)])
    stranger = ConversationManager(
        ChatConversations(rpc, group.turn(chat="elsewhere")), clock=clock
    )

    assert await stranger.get(group.chat()) is None
    with pytest.raises(AccessDenied):
        await stranger.record_message(group.chat(), said(group, "theirs", START))
    await stranger.end(group.chat())
    with pytest.raises(AccessDenied):
        await stranger.start(group.chat())
    found = await here.get(group.chat())
    assert found
    assert [m.content for m in found.messages] == ["ours"]


async def test_the_first_decision_on_a_message_holds(rpc: Rpc, group: Group) -> None:
    store = ChatConversations(rpc, group.turn())
    message = IncomingMessage(
        message_id=group.message("decided"),
        author="alice",
        author_id=group.person("alice"),
        text="hello?",
        timestamp=START,
    )
    first = Decision(True, Reason.RECENT_FOLLOWUP, "heuristic", 500)
    again = Decision(False, Reason.NO_TRIGGER)

    assert await store.log_decision(message, first) == first
    held = await store.log_decision(message, again)
    assert (held.respond, held.reason) == (True, Reason.RECENT_FOLLOWUP)


async def test_hearing_stores_the_likely_decision_where_no_conversation_is_on(
    rpc: Rpc, group: Group
) -> None:
    store = ChatConversations(rpc, group.turn())
    settings = SimpleNamespace(chat_mode="follow", chat_language="auto")

    async def heard(name: str, at: int) -> Circumstances:
        message = IncomingMessage(group.message(name), "alice", group.person("alice"), name, at)
        likely = decide_start(message, "ou_us")
        around, _ = await store.hear(message, settings, timeout_ms=120_000, likely=likely)
        return around

    outside = await heard("outside", START)
    assert outside.decided == Decision(False, Reason.NO_TRIGGER)
    assert outside.conversation is None
    assert outside.rules.mode == "follow"
    await store.begin(group.chat(), START, [said(group, "so it begins", START)])
    within = await heard("within", START + 1)
    assert within.decided is None
    assert within.conversation
    contents = [record.content for record in within.conversation.messages]
    assert contents == ["so it begins", "within"]


def from_bot(group: Group, name: str, at: int, **more: object) -> IncomingMessage:
    return IncomingMessage(
        group.message(name), "Robo", group.person("robo"), name, at, is_bot=True,
        mentions_bot=True, **more,
    )  # fmt: skip


async def decided(store: ChatConversations, message: IncomingMessage) -> Reason:
    budget = await store.bot_budget(message)
    decision = await store.log_decision(message, decide_start(message, "ou_us", budget))
    return decision.reason


async def test_bots_are_answered_from_a_budget_that_all_workers_share(
    rpc: Rpc, group: Group
) -> None:
    one, two = (ChatConversations(rpc, group.turn("robo")) for _ in range(2))
    messages = [from_bot(group, f"m{n}", START + n) for n in range(4)]
    reasons = [await decided(store, message)
               for store, message in zip((one, two, one, two), messages, strict=True)]  # fmt: skip
    spent = [Reason.BOT_LOOP_LIMIT] * 2
    assert reasons == [Reason.BOT_ASKED, Reason.BOT_LAST_ANSWER, *spent]


async def test_messages_of_bots_at_the_same_moment_do_not_get_the_same_answer(
    rpc: Rpc, group: Group
) -> None:
    store = ChatConversations(rpc, group.turn("robo"))
    messages = [from_bot(group, f"m{n}", START) for n in range(6)]
    reasons = await asyncio.gather(*(decided(store, message) for message in messages))
    assert sum(reason is not Reason.BOT_LOOP_LIMIT for reason in reasons) == 2


async def test_a_message_of_a_bot_that_is_tried_again_spends_nothing(
    rpc: Rpc, group: Group
) -> None:
    store = ChatConversations(rpc, group.turn("robo"))
    first, second = from_bot(group, "first", START), from_bot(group, "second", START + 1)
    for _ in range(3):  # begun, and ended before anything was decided
        assert (await store.bot_budget(first)).answers == ()
    assert [await decided(store, first) for _ in range(3)] == [Reason.BOT_ASKED] * 3
    assert await decided(store, second) is Reason.BOT_LAST_ANSWER
    assert await decided(store, first) is Reason.BOT_ASKED


async def test_only_a_person_who_writes_to_a_bot_renews_the_budget(rpc: Rpc, group: Group) -> None:
    robo, alice = (ChatConversations(rpc, group.turn(who)) for who in ("robo", "alice"))
    said = {"author": "Alice", "author_id": group.person("alice"), "text": "hm", "timestamp": START}
    talk = IncomingMessage(group.message("talk"), **said)
    to_robo = IncomingMessage(group.message("asks"), **said, mentions_others=True,
                              mentions_bots=True)  # fmt: skip
    for number in range(2):
        await decided(robo, from_bot(group, f"m{number}", START - 9))
    await alice.log_decision(talk, decide_start(talk, "ou_us"))
    assert await decided(robo, from_bot(group, "m3", START + 1)) is Reason.BOT_LOOP_LIMIT
    await alice.log_decision(to_robo, decide_start(to_robo, "ou_us"))
    renewed = [await decided(robo, from_bot(group, f"m{n}", START + n)) for n in (4, 5, 6)]
    assert renewed == [Reason.BOT_ASKED, Reason.BOT_LAST_ANSWER, Reason.BOT_LOOP_LIMIT]


async def test_a_follow_up_that_was_answered_takes_an_answer_from_bots(
    rpc: Rpc, group: Group
) -> None:
    robo, alice = (ChatConversations(rpc, group.turn(who)) for who in ("robo", "alice"))
    asks, goes_on = (IncomingMessage(group.message(name), "Alice", group.person("alice"), name, at,
                                     mentions_bot=name == "asks")
                     for name, at in (("asks", START), ("goes on", START + 1)))  # fmt: skip
    await alice.log_decision(asks, decide_start(asks, "ou_us"))
    await alice.log_decision(goes_on, Decision(True, Reason.RECENT_FOLLOWUP, "heuristic"))
    assert await decided(robo, from_bot(group, "one", START + 2)) is Reason.BOT_LAST_ANSWER


async def test_a_person_who_asks_two_bots_at_once_leaves_one_answer(rpc: Rpc, group: Group) -> None:
    robo, alice = (ChatConversations(rpc, group.turn(who)) for who in ("robo", "alice"))
    both = IncomingMessage(group.message("both"), "Alice", group.person("alice"), "hm", START,
                           mentions_bot=True, mentions_bots=True)  # fmt: skip
    await alice.log_decision(both, decide_start(both, "ou_us"))
    assert await decided(robo, from_bot(group, "one", START + 1)) is Reason.BOT_LAST_ANSWER
    assert await decided(robo, from_bot(group, "two", START + 2)) is Reason.BOT_LOOP_LIMIT


async def test_a_chat_keeps_a_day_of_answers_to_bots_and_no_refusals(
    rpc: Rpc, group: Group
) -> None:
    store = ChatConversations(rpc, group.turn("robo"))
    for number in range(20):
        await decided(store, from_bot(group, f"m{number}", START))
    budget = await store.bot_budget(from_bot(group, "later", START + 1))
    assert budget.answers == ((group.person("robo"), START),) * 2
    day_ms = 86_400_000
    assert (await store.bot_budget(from_bot(group, "next", START + 2 + day_ms))).answers == ()


async def test_a_token_of_another_chat_sees_no_answers_to_bots_here(rpc: Rpc, group: Group) -> None:
    here = ChatConversations(rpc, group.turn("robo"))
    await decided(here, from_bot(group, "here", START))
    there = ChatConversations(rpc, group.turn("robo", chat="there"))
    assert (await there.bot_budget(from_bot(group, "there", START + 1))).answers == ()


async def test_the_bots_own_record_of_a_card_stays_when_the_platform_lists_it_in_other_words(
    rpc: Rpc, group: Group
) -> None:
    store, channel = ChatConversations(rpc, group.turn()), group.turn().chat_id
    asked = said(group, "when?", START)
    sent = replace(said(group, "On **3 March**.", START + 1, who="bot"), ours=True, is_bot=True)
    listed = replace(sent, content="[card] On 3 March.")
    await store.begin(channel, START + 1, [asked, sent])

    await store.begin(channel, START + 900_000, [listed, said(group, "and now?", START + 899_000)])

    conversation = await store.load(channel)
    assert conversation is not None
    assert [m.content for m in conversation.messages] == ["On **3 March**.", "and now?"]


async def test_topics_are_kept_with_the_messages_and_go_with_them(
    rpc: Rpc, group: Group, clock: Clock
) -> None:
    store, channel = ChatConversations(rpc, group.turn()), group.turn().chat_id
    one, two = said(group, "one", START), said(group, "two", START + 1, who="bob")
    await store.begin(channel, START, [one, two])
    silent = IncomingMessage(two.message_id, "bob", two.author_id, "two", two.timestamp)
    told = {one.message_id: START, two.message_id: START + 1, group.message("unknown"): START}

    await store.log_decision(silent, Decision(False, Reason.NO_TRIGGER), told)
    await store.log_decision(silent, Decision(False, Reason.NO_TRIGGER), {two.message_id: START})

    conversation = await store.load(channel)
    assert conversation
    assert [record.topic for record in conversation.messages] == [START, START + 1]
    await store.remove(channel, two.message_id)
    again = await store.append(channel, two, active_since=0, keep=5)
    assert again
    assert [record.topic for record in again.messages] == [START, None]


async def test_a_told_answer_brings_topics_along(rpc: Rpc, group: Group) -> None:
    store, channel = ChatConversations(rpc, group.turn()), group.turn().chat_id
    asked = said(group, "asked", START)
    topics = json.dumps({asked.message_id: START})
    args = {**tell_conversation_args([asked], START, 120_000), "p_topics": topics}
    place = {"p_chat_id": channel, "p_tenant_key": group.turn().tenant_key}

    await rpc.call("continue_conversation", {**place, **args}, group.turn())

    conversation = await store.load(channel)
    assert conversation
    assert [record.topic for record in conversation.messages] == [START]


async def test_what_is_said_while_the_first_answer_is_made_is_part_of_the_conversation(
    rpc: Rpc, group: Group
) -> None:
    store, place = ChatConversations(rpc, group.turn()), group.turn()
    await store.begin(place.chat_id, START - 900_000, [said(group, "long ago", START - 900_000)])
    asked = said(group, "asked", START)
    meanwhile = said(group, "meanwhile", START + 1_000, who="bob")
    later = said(group, "too late", START + 121_000, who="bob")
    answer = replace(said(group, "answered", START + 2_000, who="bot"), ours=True, is_bot=True)

    await MemoryStore(rpc).begin_turn(
        place, turn_id=asked.message_id, content="asked", hearing_args=heard_args(asked, 120_000)
    )
    for line in (meanwhile, later):
        since = line.timestamp - 120_000
        assert await store.append(place.chat_id, line, active_since=since, keep=5) is None
    told = tell_conversation_args([asked, answer], answer.timestamp, 120_000)
    where = {"p_chat_id": place.chat_id, "p_tenant_key": place.tenant_key}
    await rpc.call("continue_conversation", {**where, **told}, place)

    conversation = await store.load(place.chat_id)
    assert conversation
    assert [m.content for m in conversation.messages] == ["asked", "meanwhile", "answered"]


async def test_what_was_said_after_a_question_without_an_answer_is_no_part_of_a_later_conversation(
    rpc: Rpc, group: Group
) -> None:
    store, place = ChatConversations(rpc, group.turn()), group.turn()
    asked, line = said(group, "asked", START), said(group, "meanwhile", START + 1_000, who="bob")
    await MemoryStore(rpc).begin_turn(
        place, turn_id=asked.message_id, content="asked", hearing_args=heard_args(asked, 120_000)
    )
    await store.append(place.chat_id, line, active_since=START - 119_000, keep=5)
    assert await store.load(place.chat_id) is None

    again = said(group, "asked again", START + 500_000)
    await MemoryStore(rpc).begin_turn(
        place,
        turn_id=again.message_id,
        content="asked again",
        hearing_args=heard_args(again, 120_000),
    )
    told = tell_conversation_args([again], again.timestamp, 120_000)
    where = {"p_chat_id": place.chat_id, "p_tenant_key": place.tenant_key}
    await rpc.call("continue_conversation", {**where, **told}, place)

    conversation = await store.load(place.chat_id)
    assert conversation
    assert [m.content for m in conversation.messages] == ["asked again"]
