"""Bots do not talk to each other forever: the budget, and whole groups played through with it."""

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.listening.chat_rules import HOUR_MS, PER_PAIR_AND_HOUR, BotBudget
from bot.listening.decisions import IncomingMessage, decide_start
from tests.support.rows import every_row

NOW = 1_800_000_000_000
ROBO, OTHER = "ou_robo", "ou_other"


def left(budget: BotBudget, *, bot: str = ROBO, at: int = NOW, is_reply: bool = False) -> int:
    return budget.remaining(bot, at, is_reply=is_reply)


def answered(*times: int, bot: str = ROBO) -> tuple[tuple[str, int], ...]:
    return tuple((bot, time) for time in times)


ONCE, TWICE = answered(NOW - 1), answered(NOW - 2, NOW - 1)
AN_HOUR_AGO = answered(NOW - HOUR_MS - 1, NOW - HOUR_MS)
DOZEN = answered(*range(NOW - PER_PAIR_AND_HOUR, NOW))
ASKED = {"request_ms": NOW - 5}  # by a person


@every_row(
    ("why", "budget", "about", "count"),
    [
        ("a bot that asks once, with nobody about", BotBudget(), {}, 2),
        ("after one answer", BotBudget(ONCE), {}, 1),
        ("after two", BotBudget(TWICE), {}, 0),
        ("a message of a person to a bot renews it",
         BotBudget(answered(NOW - 9, NOW - 8), **ASKED), {}, 2),
        ("a person who asks several bots leaves one", BotBudget(**ASKED, shared=True), {}, 1),
        ("and no second", BotBudget(ONCE, **ASKED, shared=True), {}, 0),
        ("answers to what nobody asked are spent too", BotBudget(**ASKED, unasked=1), {}, 1),
        ("both of them", BotBudget(**ASKED, unasked=2), {}, 0),
        ("and the one of several", BotBudget(**ASKED, unasked=1, shared=True), {}, 0),
        ("an alert is answered again after an hour", BotBudget(AN_HOUR_AGO), {}, 2),
        ("an exchange under way is not", BotBudget(AN_HOUR_AGO), {"is_reply": True}, 0),
        ("two bots that talk to each other leave one to a third", BotBudget(TWICE),
         {"bot": OTHER}, 1),
        ("if it begins", BotBudget(TWICE), {"bot": OTHER, "is_reply": True}, 0),
        ("however often people ask, one bot gets a dozen an hour",
         BotBudget(DOZEN, request_ms=NOW), {}, 0),
        ("the last of the dozen", BotBudget(DOZEN[1:], request_ms=NOW), {}, 1),
        ("and another bot its own", BotBudget(DOZEN, request_ms=NOW), {"bot": OTHER}, 2),
    ],
)  # fmt: skip
def test_so_many_answers_are_left_for_a_bot(
    why: str, budget: BotBudget, about: dict[str, Any], count: int
):
    assert left(budget, **about) == count


# Whole groups. The bots hear what Feishu would push to them. Messages arrive late, twice and out of
# order, but an answer never before the message that it answers.


@dataclass
class Said:
    id: str
    author: str
    at: int
    names: frozenset[str] = frozenset()
    is_bot: bool = False
    root: str | None = None
    answers: "Said | None" = None
    arrived: dict[str, float] = field(default_factory=dict)


@dataclass
class Copy:
    """A copy of this bot: the real decisions, over a ledger that keeps what Postgres keeps."""

    name: str
    hears_all: bool
    bots: frozenset[str]
    talk: list[tuple[str, str, int]] = field(default_factory=list)
    decided: dict[str, bool] = field(default_factory=dict)
    requests: list[tuple[int, bool]] = field(default_factory=list)

    def hear(self, said: Said) -> bool:
        if said.id in self.decided or said.author == self.name:
            return False
        to_me = self.name in said.names
        if not to_me and (said.is_bot or not self.hears_all):
            return False
        others = bool(said.names & self.bots - {self.name})
        message = IncomingMessage(
            said.id, said.author, said.author, "x", said.at, is_bot=said.is_bot,
            mentions_bot=to_me, mentions_others=bool(said.names - {self.name}),
            mentions_bots=others, root_id=said.root,
        )  # fmt: skip
        budget = self._budget(message) if said.is_bot else BotBudget()
        decision = decide_start(message, self.name, budget)
        if message.is_request:
            self.requests.append((said.at, others and to_me))
        self.decided[said.id] = decision.respond
        return decision.respond

    def _budget(self, message: IncomingMessage) -> BotBudget:
        kept = [one for one in self.talk if self.decided.get(one[0], True)]
        self.talk = [*kept, (message.message_id, message.author_id, message.timestamp)]
        last = max((one for one in self.requests if one[0] <= message.timestamp), default=None)
        answers = tuple((bot, at) for _, bot, at in kept)
        return BotBudget(answers, *last) if last else BotBudget(answers)


@dataclass
class Double:
    """Answers every message of another bot's and every one that names it, each once."""

    name: str
    seen: set[str] = field(default_factory=set)

    def hear(self, said: Said) -> bool:
        to_me = said.is_bot or self.name in said.names
        if said.author == self.name or said.id in self.seen or not to_me:
            return False
        self.seen.add(said.id)
        return True


def play(players, chatter: list[tuple[int, frozenset[str]]], dice: random.Random) -> list[Said]:
    """What bots said. Everybody @s everybody in every answer, which is the worst they can do."""
    bots = frozenset(player.name for player in players)
    queue: list[tuple[float, int, str, Said]] = []
    sent: list[Said] = []

    def publish(said: Said) -> None:
        for name in sorted(bots):
            before = said.answers.arrived[name] if said.answers else 0
            said.arrived[name] = max(said.at, before) + dice.choice((1, 40, 900, 70_000))
            for again in dice.choice(((0,), (0,), (0, 5), (0, 90_000))):
                heapq.heappush(queue, (said.arrived[name] + again, dice.random(), name, said))

    for number, (at, names) in enumerate(chatter):
        publish(Said(f"om_{number}", f"ou_person{number % 3}", NOW + at, names))
    while queue:
        now, _, name, said = heapq.heappop(queue)
        player = next(one for one in players if one.name == name)
        if player.hear(said):
            root = dice.choice((None, said.root or said.id))
            reply = Said(f"{said.id}/{name}", name, int(now) + 5, bots - {name}, True, root, said)
            sent.append(reply)
            publish(reply)
        assert len(sent) < 2000, "they talk forever"
    return sent


REQUESTS = [frozenset(), frozenset({"A"}), frozenset({"B"}), frozenset({"A", "B"})]
chatters = st.lists(
    st.tuples(st.integers(0, 2_000_000), st.sampled_from([*REQUESTS[:1] * 4, *REQUESTS])),
    max_size=40,
)


@pytest.mark.parametrize("other", ["copy", "double"])
@pytest.mark.parametrize("hears_all", [True, False])
@given(chatter=chatters, seed=st.integers(0, 2**32))
def test_two_bots_say_at_most_six_messages_for_a_message_of_a_person_to_either(
    other: str, hears_all: bool, chatter: list[tuple[int, frozenset[str]]], seed: int
):
    bots = frozenset({"A", "B"})
    partner = Copy("B", hears_all, bots) if other == "copy" else Double("B")
    sent = play([Copy("A", hears_all, bots), partner], chatter, random.Random(seed))
    assert len(sent) <= 6 * sum(1 for _, names in chatter if names)


@given(chatter=chatters, seed=st.integers(0, 2**32))
def test_three_bots_stop_too(chatter: list[tuple[int, frozenset[str]]], seed: int):
    bots = frozenset({"A", "B", "C"})
    players = [Copy("A", True, bots), Copy("B", True, bots), Double("C")]
    sent = play(players, chatter, random.Random(seed))
    assert len(sent) <= 15 * sum(1 for _, names in chatter if names)
