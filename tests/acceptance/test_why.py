"""`/why`: the last decision in words, to whoever could have seen it taken."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World
from tests.acceptance.test_chat_rules import decided, set_rule
from tests.acceptance.test_handles import AGAIN, again, click, toast

ENGLISH, CHINESE = "/why", "/为什么"
FOR_THE_JUDGE = {"contains": "exactly one word: YES or NO", "in": "system"}


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"USE_LLM_JUDGE": "true"}


def why(world: World, command: str = ENGLISH, **more: object) -> str:
    """What Alice is told in English, 陈晨 in Chinese."""
    question, card = world.ask("Alice" if command == ENGLISH else "陈晨", command, **more)
    world.settled(question)
    return card


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns."""
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    made = world.platform.post("/chats", name="Why", members=members, silently=True)
    fresh.group = made["chat_id"]
    return fresh


def test_nothing_was_decided_yet(group: World) -> None:
    assert "nothing for me to explain here" in why(group)
    assert "还没有可以说明原因的消息" in why(group, CHINESE), "asking is nothing to explain"


def test_each_decision_is_explained_in_both_languages(group: World) -> None:
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    card = why(group)
    assert "**answered** Bob's “when do we launch?”" in card
    assert "it mentioned me." in card
    assert "这条消息 @ 了我" in why(group, CHINESE)

    for text, english, chinese in (
        ("@Alice are you in today?", "someone else", "对别人说的"),
        ("the press kit is finished on my side", "didn't answer", "没有回答"),
    ):
        decided(group, group.say("Bob", text))
        assert english in why(group)
        assert chinese in why(group, CHINESE)


def test_an_apology_is_not_called_an_answer(group: World) -> None:
    no_key = {"status": 401, "body": {"error": {"message": "bad key"}}}
    group.model.control("script", {"rules": [{"reply": no_key}]})
    group.model.control("mode", {"mode": "rules"})
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    group.model.control("mode", {"mode": "echo"})

    told = why(group)
    assert "**couldn't answer** Bob's “when do we launch?”: the model's server rejects the" in told
    assert "bad key" not in told, "a cause holds nobody's words"
    assert "**没能回答**：模型的密钥无效。" in why(group, CHINESE)

    assert "On it" in toast(click(group, "Bob", asked, AGAIN))
    group.settled(again(asked))
    assert "**answered** Bob's “when do we launch?”" in why(group, reply_to=asked, quote=True)


def test_a_follow_up_and_a_quiet_chat_are_explained(group: World) -> None:
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    on = group.say("Bob", "and on Tuesday?", root_id=asked)
    group.settled(on)
    assert "followed up on what I said" in why(group, root_id=asked)
    assert "追问我" in why(group, CHINESE, root_id=asked)

    set_rule(group, "Alice", "/quiet")
    decided(group, group.say("Bob", "and on Wednesday?", root_id=asked))
    assert "`/resume`" in why(group, root_id=asked)
    assert "`/继续`" in why(group, CHINESE, root_id=asked)


def judge_says(world: World, reply: dict[str, object]) -> None:
    rules = [{"when": [FOR_THE_JUDGE], "reply": reply}, {"reply": {"text": "Noted."}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})


def test_what_a_judge_found_is_explained_however_it_says_so(group: World) -> None:
    asked, _ = group.ask("Bob", "our launch is on 3 March")
    group.settled(asked)
    for said, verdict, english, chinese in (
        ("Yes.", "yes", "decided that it was for me", "认为是对我说的"),
        ("**是**。", "yes", "decided that it was for me", "认为是对我说的"),
        ("<think>No? He asks.</think>\n\n“YES”", "yes", "was for me", "认为是对我说的"),
        ("NO", "no", "decided that it wasn't for me", "认为不是对我说的"),
        ("否，他们在互相说话", "no", "wasn't for me", "认为不是对我说的"),
        ("<think>YES</think> Answer: No", "no", "wasn't for me", "认为不是对我说的"),
        ("", "error", "couldn't be reached", "没能给出结果"),
    ):
        judge_says(group, {"text": said} if said else {"status": 400, "body": {"error": {}}})
        message = group.say("Bob", "the press kit is finished on my side")
        found = decided(group, message)
        assert (found["reason"], found["verdict"]) == ("llm_judge", verdict), said
        assert found["respond"] == (verdict == "yes")
        if found["respond"]:
            group.settled(message)
        assert english in why(group)
        assert chinese in why(group, CHINESE)


def test_each_kind_of_silence_is_explained_in_a_conversation_and_outside(group: World) -> None:
    outside = group.say("Bob", "the press kit is finished on my side")
    assert decided(group, outside)["reason"] == "no_trigger"
    assert "wasn't part of the conversation" in why(group)
    assert "没有参与这里的对话" in why(group, CHINESE)

    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    for text, english, chinese in (
        ("great, thanks!", "the end of our exchange", "像是在结束对话"),
        ("anyone up for lunch?", "people talking to each other", "大家之间的聊天"),
    ):
        assert decided(group, group.say("Bob", text))["reason"] == "no_trigger"
        assert english in why(group)
        assert chinese in why(group, CHINESE)

    set_rule(group, "Alice", "/quiet")
    decided(group, group.say("Bob", "and what about Friday?"))
    assert "`/resume`" in why(group)
    assert "`/继续`" in why(group, CHINESE)


@pytest.mark.parametrize("mode", ["mention", "threads", "all"])
def test_a_mode_is_explained(group: World, mode: str) -> None:
    set_rule(group, "Alice", f"/mode {mode}")
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    said = group.say("Bob", "and what about Friday?")
    if decided(group, said)["respond"]:
        group.settled(said)
    assert "set to answer" in why(group)
    assert "群的设置是" in why(group, CHINESE)


def test_in_a_thread_it_is_the_decision_of_that_thread(group: World) -> None:
    first, _ = group.ask("Bob", "when do we launch?")
    group.settled(first)
    second, _ = group.ask("陈晨", "我们什么时候发布？")
    group.settled(second)
    assert "Bob's “" in why(group, root_id=first)
    assert "陈晨" in why(group)


def test_other_bots_are_explained(group: World) -> None:
    robot = group.platform.post("/people", name="Robo", kind="bot")["open_id"]
    group.platform.post("/join", chat_id=group.group, open_id=robot)
    group.people["Robo"] = robot
    decided(group, group.say("Robo", "build 17 is green"))
    assert "another bot" in why(group)
    assert "其他机器人" in why(group, CHINESE)


def test_in_p2p_there_is_nothing_to_explain(world: World) -> None:
    alice = world.people["Alice"]
    chats = world.platform.state()["chats"]
    p2p = next(c for c in chats if c["mode"] == "p2p" and alice in c["members"])["chat_id"]
    assert "answer every message" in why(world, chat=p2p)
