"""The benchmark among talk: what is said and when, and what a line and a mention cost."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu import crypto, events
from bot.listening.turn_request import TurnRequest
from lab.bench.people import GroupPeople, TalkHeard
from lab.bench.phases import Bot, Phase
from lab.bench.processes import NotMeasured
from lab.bench.runs import TalkRun
from lab.bench.soak import Look, Soaked
from lab.bench.solving import Counted, cost_of_a_line, costs
from lab.bench.speech import CHATS, PEOPLE, Utterance, arrivals, groups, written_discussions
from lab.bench.storage import DiskUse, storage_figures
from lab.bench.targets import figures
from lab.doubles.feishu_events import CREDENTIALS, delivery
from lab.doubles.minimal_feishu import BOT, StandIn
from sandbox.model.model_http import Closed, read_request, response_head


def test_half_of_the_talk_is_chinese_and_none_of_it_names_anybody() -> None:
    talk = written_discussions()
    languages = Counter(discussion.lang for discussion in talk)
    assert languages["en"] == languages["zh"]
    lines = [text for discussion in talk for _, text in discussion.lines]
    assert len(lines) > 3000
    assert not [text for text in lines if "@" in text or "memo" in text.lower()]


def test_twenty_groups_of_sixty_people_speak_one_language_each() -> None:
    said = {group.chat_id: [group.line() for _ in range(40)] for group in groups("a")}
    assert len(said) == CHATS
    assert len({line.person for lines in said.values() for line in lines}) == PEOPLE
    by_text = {text: d.lang for d in written_discussions() for _, text in d.lines}
    assert all(len({by_text[line.question] for line in lines}) == 1 for lines in said.values())
    ids = [line.message_id for lines in said.values() for line in lines]
    assert len(set(ids)) == len(ids)


def test_a_line_is_pushed_without_a_mention_and_a_question_with_one() -> None:
    group = groups("a")[0]
    for said, to_bot in ((group.line(), False), (group.question(), True)):
        body = delivery(said).partition(b"\r\n\r\n")[2]
        key = CREDENTIALS["FEISHU_ENCRYPT_KEY"]
        plain = json.loads(crypto.decrypt(key, json.loads(body)["encrypt"]))
        event = events.parse_message(events.parse_envelope(plain))
        assert TurnRequest.of(event).is_for(BOT) is to_bot
        assert events.question_text(event, BOT) == said.question


def test_a_thread_goes_on_when_its_question_is_answered_and_ends_after_four() -> None:
    group = groups("a")[0]
    asked = [group.question() for _ in range(4)]
    assert not any(question.root_id for question in asked)

    group.answered(asked[0])
    going_on = [group.question() for _ in range(4)]
    (second,) = [question for question in going_on if question.root_id]
    assert (second.root_id, second.person) == (asked[0].message_id, asked[0].person)

    roots: list[str] = []
    for _ in range(40):
        question = group.question()
        roots.append(question.root_id or question.message_id)
        group.answered(question)
    assert max(Counter(roots).values()) == 4


@given(st.floats(0.5, 60), st.floats(0, 5), st.floats(1, 20))
def test_as_many_arrive_as_the_rates_say_all_in_time(
    mentions: float, ratio: float, seconds: float
) -> None:
    lines = mentions * ratio
    found = arrivals(mentions, lines, seconds, 20)
    assert sum(one.to_bot for one in found) == round(mentions * seconds)
    assert sum(not one.to_bot for one in found) == round(lines * seconds)
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    assert all(0 <= one.at_s <= seconds + 0.5 / mentions for one in found if one.to_bot)
    assert all(0 <= one.chat < 20 for one in found)
    assert found == arrivals(mentions, lines, seconds, 20)


_IDLE = {"worker": 10.0, "Postgres": 20.0}  # ms a second
_LINE, _QUICK, _SLOW = (
    {"worker": 7.0, "Postgres": 6.5},
    {"worker": 11.0, "Postgres": 10.0},
    {"worker": 16.0, "Postgres": 12.0},
)


def spent(lines: int, turns: int, mention: dict[str, float], error_ms: float = 0.0) -> Counted:
    took_s = 9.0
    ms = {
        part: _IDLE[part] * took_s + lines * _LINE[part] + turns * mention[part] + error_ms
        for part in _LINE
    }
    return Counted(ms, took_s, lines, turns)


def test_two_ratios_give_a_line_and_a_mention_by_part() -> None:
    line, mentions = costs({0.3: [spent(40, 80, _QUICK), spent(320, 20, _QUICK)]}, _IDLE)
    assert line == pytest.approx(_LINE)
    assert mentions == {0.3: pytest.approx(_QUICK)}


def test_another_model_needs_one_phase_and_a_line_costs_the_same_beside_it() -> None:
    phases = {0.3: [spent(40, 80, _QUICK), spent(320, 20, _QUICK)], 2.0: [spent(41, 79, _SLOW)]}
    line, mentions = costs(phases, _IDLE)
    assert line == pytest.approx(_LINE)
    assert mentions[2.0] == pytest.approx(_SLOW)


def test_what_drifts_meanwhile_adds_to_few_and_many_lines_alike() -> None:
    few, many = (40, 80), (320, 20)
    drifting = [spent(*one, _QUICK, 10.0 * n) for n, one in enumerate((few, many, many, few))]
    steady = [spent(*one, _QUICK, 15.0) for one in (few, many, many, few)]
    (line, mentions), (line_, mentions_) = (costs({0.3: one}, _IDLE) for one in (drifting, steady))
    assert line == pytest.approx(line_)
    assert mentions[0.3] == pytest.approx(mentions_[0.3])


def test_one_ratio_gives_no_solution() -> None:
    with pytest.raises(ValueError, match="as many lines to a turn"):
        costs({0.3: [spent(40, 80, _QUICK), spent(20, 40, _QUICK)]}, _IDLE)


def test_lines_alone_are_divided_by_their_number_without_what_rest_takes() -> None:
    assert cost_of_a_line(spent(250, 0, _QUICK), _IDLE) == pytest.approx(_LINE)


def test_what_has_no_answer_counts_with_the_time_that_it_waited() -> None:
    heard = TalkHeard(2.0, answers=[2.1] * 6, missing=[40.0] * 4)
    assert heard.over_model_ms(0.5) == pytest.approx(100)
    assert heard.over_model_ms(0.95) == pytest.approx(38_000)


def phase(lines: int, turns: int, mention: dict[str, float]) -> Phase:
    taken = spent(lines, turns, mention)
    heard = TalkHeard(0.3, turns, lines, answers=[0.4] * turns, acks=[0.005] * (lines + turns))
    around = {"driver": 0.1, "model": 0.05, "other programs": 0.0}
    cpu = {part: ms / 1000 for part, ms in taken.spent.items()}
    return Phase(heard, cpu, taken.took_s, 8.0, 0.5, around, {"worker": 60.0}, 3)


def test_parts_add_up_to_the_whole() -> None:
    cores = {part: ms / 1000 for part, ms in _IDLE.items()}
    bot = Bot(None, None, 0, cores, {"worker": 60.0, "Postgres": 40.0})  # type: ignore[arg-type]
    run = TalkRun(bot, phase(250, 0, _QUICK), {20: phase(0, 100, _QUICK)})
    run.counting = {
        0.3: [phase(40, 80, _QUICK), phase(320, 20, _QUICK)],
        2.0: [phase(40, 80, _SLOW)],
    }
    run.loads[2.0, 25.0] = phase(400, 200, _SLOW)
    found = {figure.name: figure for figure in figures(run, ["memory"])}

    for name in ("a line where the bot takes part", "a mention, model 2 s"):
        parts = [found[f"{name}: {part}"].value for part in _LINE]
        assert sum(parts) == pytest.approx(found[name].value)
    assert found["a mention, model 2 s ÷ 0.3 s"].value == pytest.approx(28 / 21)
    assert found["a mention, model 2 s ÷ 0.3 s"].verdict == "miss"
    assert found["20 at a time: overhead, p50"].value == pytest.approx(100)
    assert found["25/s, model 2 s: overhead, p50"].bar == 100
    assert found["memory at rest, PSS"].value == 100
    assert found["memory at rest: Postgres"].value == 40


@asynccontextmanager
async def answering_bot(platform: StandIn, *, silent: bool = False) -> AsyncIterator[int]:
    """Acknowledges everything and replies to mentions at once; its port."""

    conversations: list[asyncio.Task[None]] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(Closed):
            while True:
                request = await read_request(reader)
                writer.write(response_head(200, 2) + b"{}")
                key = CREDENTIALS["FEISHU_ENCRYPT_KEY"]
                encrypted = json.loads(request.body)["encrypt"]
                message = json.loads(crypto.decrypt(key, encrypted))["event"]["message"]
                if message.get("mentions") and not silent:
                    platform.replied(message["message_id"], {"content": "{}"})
        writer.close()
        await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversations.append(asyncio.ensure_future(converse(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*conversations)


@pytest.mark.anyio
async def test_every_mention_and_line_is_sent_and_every_answer_noted() -> None:
    platform = StandIn()
    async with answering_bot(platform) as port:
        loop = GroupPeople(platform, port, groups("a"), 0.0)
        await loop.speak(arrivals(60, 120, 0.5, CHATS))
        await loop.finish(60)
        heard = loop.close()
    assert (heard.mentions, heard.lines) == (30, 60)
    assert (len(heard.answers), len(heard.acks), heard.missing) == (30, 90, [])
    assert heard.answered_lines == 0
    assert heard.in_threads


@pytest.mark.anyio
async def test_the_next_does_not_wait_for_an_answer_and_none_is_told_as_missing() -> None:
    platform = StandIn()
    async with answering_bot(platform, silent=True) as port:
        loop = GroupPeople(platform, port, groups("a"), 0.0)
        await loop.speak(arrivals(40, 0, 0.5, CHATS))
        assert loop.waiting == 20
        await loop.finish(0.1)
        heard = loop.close()
    assert (len(heard.acks), len(heard.answers), len(heard.missing)) == (20, 0, 20)
    assert loop.waiting == 0


@pytest.mark.anyio
async def test_an_arrival_that_was_sent_late_is_counted_with_its_lateness() -> None:
    platform = StandIn()
    async with answering_bot(platform) as port:
        loop = GroupPeople(platform, port, groups("a"), 0.0)
        asyncio.get_running_loop().call_later(0.1, time.sleep, 0.3)  # the driver is held up
        await loop.speak([Utterance(0.15, 0, True), Utterance(1.0, 1, False)])
        await loop.finish(60)
        heard = loop.close()
    assert heard.lates[0] > 0.2
    assert heard.answers[0] > 0.2  # since it was due, not since it was sent


@pytest.mark.anyio
async def test_people_who_take_turns_ask_again_after_each_answer() -> None:
    platform = StandIn()
    async with answering_bot(platform) as port:
        people = GroupPeople(platform, port, groups("a"), 0.0)
        await people.ask_in_turn(5, 0.3)
        heard = people.close()
    assert heard.mentions == len(heard.answers) > 5


def test_storage_is_what_grew_for_each_new_message_without_its_text() -> None:
    before = DiskUse(1_000_000, 100, 10_000, {"agent_messages: rows": 50_000})
    grown = {
        "agent_messages: rows": 450_000,
        "agent_turns: agent_turns_pkey": 100_000,
        "jobs: rows": 9,
    }
    found = storage_figures(before, DiskUse(1_560_000, 500, 50_000, grown))
    by_name = {figure.name: figure.value for figure in found}
    assert by_name == {
        "storage beyond the text": pytest.approx(1.3),
        "storage: agent_messages: rows": pytest.approx(1000),
        "storage: agent_turns: agent_turns_pkey": pytest.approx(250),
        "storage: the rest": pytest.approx(150),
    }
    assert found[0].verdict == "miss"
    with pytest.raises(NotMeasured, match="no message was stored"):
        storage_figures(before, before)


def soaked(*looks: Look) -> Soaked:
    return Soaked(TalkHeard(2.0), TalkHeard(2.0), list(looks))


def test_growth_is_of_the_last_third_over_the_second() -> None:
    looks = [Look(100 * n, {"worker": 100.0 + (n >= 6) * 3}, 10, 90_000 * n) for n in range(9)]
    grown = {figure.name: figure.value for figure in soaked(*looks).growth()}
    assert grown == {
        "growth: worker": pytest.approx(3.0),
        "growth: connections": 0,
        "growth: log": 0,
    }


def test_what_people_saw_twice_or_otherwise_than_stored_is_counted() -> None:
    answer, other = ("om_1", "hello"), ("om_2", "hello")
    seen = soaked()
    seen.compare({"q": [answer]}, {"q": [answer]})
    assert (seen.doubled, seen.mismatched) == (0, 0)
    seen.compare({"q": [answer, other]}, {"q": [answer]})
    assert (seen.doubled, seen.mismatched) == (1, 1)
    seen.compare({"q": [answer]}, {"q": [("om_1", "hello, you")]})
    assert (seen.doubled, seen.mismatched) == (1, 2)
    missed = [figure.name for figure in seen.figures() if figure.verdict == "miss"]
    assert missed == ["doubled", "other than stored"]
