"""Each reason there is comes about in a group, and `/why` then tells it in both languages.

A new reason fails here until it has a way to come about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import requests

from bot.features import help as explanations
from bot.listening.decisions import Reason
from bot.text.languages import Catalogue, Language
from lab.doubles.processes import APP, eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_chat_rules import decided, set_rule
from tests.acceptance.test_proactive import come, noted
from tests.acceptance.test_why import FOR_THE_JUDGE, group, why
from tests.support.deliveries import Delivery, message_event

__all__ = ["group"]  # the fixture

NOT_FOR_IT = "the press kit is finished on my side"


@pytest.fixture(scope="module")
def bot_options(request: pytest.FixtureRequest) -> dict[str, str]:
    """`param`: a reason that comes about with settings of its own. What a judge finds stands in the
    place of two reasons."""
    return {
        "USE_LLM_JUDGE": str(request.param is Reason.LLM_JUDGE).lower(),
        "REQUESTS_PER_MINUTE": "1" if request.param is Reason.RATE_LIMITED else "0",
        "STREAM_REPLIES": "true",
        "PROACTIVE_HOURS": "0-24",
        "FOLLOWUP_WINDOW_SECONDS": "30",
    }


@pytest.fixture(autouse=True)
def usual_model(world: World) -> None:
    rules = [
        {"when": [FOR_THE_JUDGE], "reply": {"text": "NO"}},
        {"reply": {"text": "The launch is on 3 March, in the blue hall."}},
    ]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})


def answered(group: World, who: str, text: str) -> str:
    question, _ = group.ask(who, text)
    group.settled(question)
    return question


def own_message(group: World) -> str:
    answered(group, "Bob", "when do we launch?")
    event = message_event(
        "@Alice the launch is on 3 March",
        token=APP["FEISHU_VERIFICATION_TOKEN"],
        app_id=APP["FEISHU_APP_ID"],
        chat_id=group.group,
        chat_type="group",
    )
    (turn,) = group.rows("select tenant_key from agent_decisions order by id desc limit 1")
    event["header"]["tenant_key"] = turn["tenant_key"]
    event["event"]["sender"] = {
        "sender_id": {"open_id": group.bot_id},
        "sender_type": "app",
        "tenant_key": turn["tenant_key"],
    }
    delivery = Delivery(event, key=APP["FEISHU_ENCRYPT_KEY"])
    url = f"{group.bot.url}/webhook/event"
    assert requests.post(url, delivery.body, headers=delivery.headers, timeout=10).ok
    return str(event["event"]["message"]["message_id"])


def robot(group: World) -> str:
    id = str(group.platform.post("/people", name="Robo", kind="bot")["open_id"])
    group.platform.post("/join", chat_id=group.group, open_id=id)
    return id


def bot_without_mention(group: World) -> str:
    return str(group.platform.say(robot(group), group.group, "build 17 is green"))


def bot_message(earlier: int) -> Callable[[World], str]:
    """The message of another bot after so many that were answered."""

    def said(group: World) -> str:
        other = robot(group)
        text = f"@{group.bot_name} when do we launch?"
        for _ in range(earlier):
            group.settled(str(group.platform.say(other, group.group, text)))
        return str(group.platform.say(other, group.group, text))

    return said


def among_bots(group: World) -> str:
    group.settled(bot_message(0)(group))
    return group.say("Bob", "and where exactly?")


def other_topic(group: World) -> str:
    for who, text in (
        ("Bob", "测试环境的数据库连不上了"),
        ("Alice", "@Bob 报错是什么？"),
        ("Bob", "@Alice 数据库连接超时"),
    ):
        decided(group, group.say(who, text))
    answered(group, "陈晨", "发布会的场地定了吗？")
    return group.say("Bob", "那数据库的连接数是多少？")


def followed(group: World) -> str:
    answered(group, "Bob", "when do we launch?")
    return group.say("Bob", "and where exactly?")


def unclear(group: World) -> str:
    answered(group, "Bob", "when do we launch?")
    return group.say("Bob", NOT_FOR_IT)


def aside(group: World) -> str:
    answered(group, "Bob", "when do we launch?")
    return group.say("Bob", "anyone up for lunch?")


def quiet(group: World) -> str:
    question = answered(group, "Bob", "when do we launch?")
    set_rule(group, "Alice", "/quiet")
    return group.say("Bob", "and where exactly?", root_id=question)


def of_mode(mode: str) -> Callable[[World], str]:
    def said(group: World) -> str:
        set_rule(group, "Alice", f"/mode {mode}")
        answered(group, "Bob", "when do we launch?")
        return group.say("Bob", "and where exactly?")

    return said


def proactive(group: World) -> str:
    for said in ("remember that the quince launch is on 3 March", "/proactive on"):
        answered(group, "Alice", said)
    set_rule(group, "Alice", "/mode mention")
    question, timer = noted(group, "Bob", "When is the quince launch?")
    come(group, timer)
    return question


def stop(group: World) -> str:
    group.platform.post("/switches", **{"cardkit:card:write": True})
    written = {"text": "The launch is on 3 March and all else waits. " * 12, "chunk_delay_s": 0.15}
    group.model.control("script", {"steps": [written] * 3})
    question = group.say("Bob", f"@{group.bot_name} when is the launch?")

    def begun() -> bool:
        return any(m["streaming"] and "launch" in markdown(m) for m in group.answers(question))

    eventually(begun, what="the card streams")
    said = group.say("Bob", "stop", root_id=question)
    group.settled(question)
    return said


def too_many(group: World) -> str:
    """One more than a quarter of a minute's requests."""
    decided(group, group.say("Bob", f"@{group.bot_name} question 0"))  # so that it comes first
    return group.say("Bob", f"@{group.bot_name} question 1")


def to_alice(group: World) -> str:
    return group.say("Bob", "@Alice are you in today?")


COMES_ABOUT: Mapping[Reason, Callable[[World], str]] = {
    Reason.OWN_MESSAGE: own_message,
    Reason.BOT_WITHOUT_MENTION: bot_without_mention,
    Reason.BOT_ASKED: bot_message(0),
    Reason.BOT_LAST_ANSWER: bot_message(1),
    Reason.BOT_LOOP_LIMIT: bot_message(2),
    Reason.AMONG_BOTS: among_bots,
    Reason.EXPLICIT_TRIGGER: lambda group: answered(group, "Bob", "when do we launch?"),
    Reason.ADDRESSED_TO_OTHER: to_alice,
    Reason.QUIET: quiet,
    Reason.RECENT_FOLLOWUP: followed,
    Reason.OTHER_TOPIC: other_topic,
    Reason.LLM_JUDGE: unclear,
    Reason.NO_TRIGGER: aside,
    Reason.MODE_ALL: of_mode("all"),
    Reason.MODE_MENTION: of_mode("mention"),
    Reason.MODE_THREADS: of_mode("threads"),
    Reason.PROACTIVE: proactive,
    Reason.STOP: stop,
    Reason.RATE_LIMITED: too_many,
}
OF_THEIR_OWN = (Reason.LLM_JUDGE, Reason.RATE_LIMITED)


KEYS = {
    Reason.LLM_JUDGE: "judged-no",
    Reason.NO_TRIGGER: "cue-side_talk",
    Reason.EXPLICIT_TRIGGER: "address-mention",
}


def beginning(reason: Reason, language: Language) -> str:
    """Of the reason's words, what stands before the first field."""
    key = KEYS.get(reason, f"why-{reason}")
    return Catalogue(explanations.__file__).template(key, language).partition("{")[0]


CASES = [(one if one in OF_THEIR_OWN else None, one) for one in Reason]


@pytest.mark.parametrize(
    ("bot_options", "reason"), CASES, indirect=["bot_options"], scope="module", ids=list(Reason)
)
def test_it_comes_about_and_is_told(group: World, reason: Reason) -> None:
    message = COMES_ABOUT[reason](group)
    found = decided(group, message)
    assert found["reason"] == reason
    if found["respond"] and reason not in (Reason.PROACTIVE, Reason.STOP):
        group.settled(message)
    usual = {"rules": [{"reply": {"text": "Noted."}}]}
    group.model.control("script", usual)
    group.model.control("mode", {"mode": "rules"})

    spoken: Language = "zh" if reason is Reason.OTHER_TOPIC else "en"  # Bob's talk was Chinese
    assert beginning(reason, spoken) in why(group)
    assert beginning(reason, "zh") in why(group, "/为什么")
