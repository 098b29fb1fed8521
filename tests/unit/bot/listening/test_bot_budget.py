"""Bots do not talk to each other forever: the budget, and whole groups played through with it."""

import heapq
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.listening.chat_rules import HOUR_MS, PER_PAIR_AND_HOUR, BotBudget
from bot.listening.decisions import IncomingMessage, decide_start

NOW = 1_800_000_000_000
ROBO, OTHER = "ou_robo", "ou_other"


def left(budget: BotBudget, *, bot: str = ROBO, at: int = NOW, is_reply: bool = False) -> int:
    return budget.left(bot, at, is_reply=is_reply)


def answered(*times: int, bot: str = ROBO) -> tuple[tuple[str, int], ...]:
    return tuple((bot, time) for time in times)


def test_a_bot_that_asks_once_gets_its_answer_with_nobody_about():
    assert left(BotBudget()) == 2


def test_a_bot_gets_two_answers_and_then_none():
    assert left(BotBudget(answered(NOW - 1))) == 1
    assert left(BotBudget(answered(NOW - 2, NOW - 1))) == 0


def test_a_message_of_a_person_to_a_bot_renews_the_budget():
    assert left(BotBudget(answered(NOW - 9, NOW - 8), request_ms=NOW - 5)) == 2


def test_a_person_who_asks_several_bots_leaves_one_answer():
    assert left(BotBudget(request_ms=NOW - 5, shared=True)) == 1
    assert left(BotBudget(answered(NOW - 1), request_ms=NOW - 5, shared=True)) == 0


def test_answers_to_what_nobody_asked_the_bot_are_spent_too():
    assert left(BotBudget(request_ms=NOW - 5, unasked=1)) == 1
    assert left(BotBudget(request_ms=NOW - 5, unasked=2)) == 0
    assert left(BotBudget(request_ms=NOW - 5, unasked=1, shared=True)) == 0


def test_an_alert_is_answered_again_after_an_hour_and_an_exchange_under_way_is_not():
    spent = BotBudget(answered(NOW - HOUR_MS - 1, NOW - HOUR_MS))
    assert left(spent) == 2
    assert left(spent, is_reply=True) == 0


def test_bots_that_talk_to_each_other_do_not_use_up_the_answer_to_a_third():
    spent = BotBudget(answered(NOW - 2, NOW - 1))
    assert left(spent, bot=OTHER) == 1
    assert left(spent, bot=OTHER, is_reply=True) == 0


def test_however_often_people_ask_one_bot_gets_a_dozen_answers_an_hour():
    many = answered(*range(NOW - PER_PAIR_AND_HOUR, NOW))
    assert left(BotBudget(many, request_ms=NOW)) < 1
    assert left(BotBudget(many[1:], request_ms=NOW)) == 1
    assert left(BotBudget(many, request_ms=NOW), bot=OTHER) == 2


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
