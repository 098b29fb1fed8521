"""Three discussions in one chat, in Chinese: a question gets the one it is about."""

from __future__ import annotations

import json

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World

# Who says it, on what: offsite, database, laptops.
TALK = (
    ("Alice", 0, "周五团建的场地最后定在哪里？"),
    ("Bob", 1, "测试环境的数据库连不上了，谁知道原因？"),
    ("陈晨", 0, "团建场地我订了西山农家院，人均一百五"),
    ("Bob", 1, "数据库的报错是连接超时，端口五四三二"),
    ("Alice", 2, "新员工入职的电脑什么时候到货？"),
    ("陈晨", 2, "电脑供应商说下周三到货，一共八台"),
    ("Bob", 1, "原来是防火墙规则昨晚改了，数据库端口被拦了"),
    ("陈晨", 0, "农家院的停车场能停二十辆车"),
    ("Alice", 2, "入职的有十个人，八台电脑不够"),
    ("Bob", 1, "防火墙规则我下午回滚"),
)
QUESTIONS = (
    ("陈晨", "农家院的团建场地能停多少辆车？", 0),
    ("Bob", "数据库的端口为什么被防火墙拦了？", 1),
    ("Alice", "入职的电脑还差几台？", 2),
)


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    """The bot only listens to the talk: what it answers is not part of a discussion of others."""
    return {"CONVERSATION_TIMEOUT_SECONDS": "600", "CHAT_MODE": "mention"}


def prompt_for(world: World, who: str, text: str, **more: object) -> str:
    """What the model is told when that is asked."""
    world.model.forget()
    world.ask(who, text, **more)
    (request,) = world.model.requests()
    return json.dumps(request["body"], ensure_ascii=False)


def talked(world: World) -> tuple[World, list[str]]:
    """A group in which all of it was said, one after the other; and the messages."""
    here = world.in_a_new_group()
    here.ask("Alice", "你好")
    active = "select 1 from chat_conversations where chat_id = %s and active"
    eventually(lambda: here.rows(active, here.group), what="a conversation")
    heard = "select 1 from agent_decisions where message_id = %s"
    messages = []
    for who, _, text in TALK:
        messages.append(here.say(who, text))
        eventually(lambda: here.rows(heard, messages[-1]), what="the message is heard")
    return here, messages


def test_each_question_gets_its_own_discussion(world: World) -> None:
    here, _ = talked(world)
    for who, question, part in QUESTIONS:
        prompt = prompt_for(here, who, question)
        for _, about, text in TALK:
            assert (text in prompt) == (about == part), (question, text)

    rows = here.rows(
        "select t.content, s.topic from chat_transcript t join chat_topics s using"
        " (tenant_key, chat_id, message_id) where t.chat_id = %s", here.group,
    )  # fmt: skip
    topics = {row["content"]: row["topic"] for row in rows}
    parts = [{topics[text] for _, about, text in TALK if about == part} for part in range(3)]
    assert [len(part) for part in parts] == [1, 1, 1]
    assert len(set.union(*parts)) == 3


def test_a_question_about_everything_gets_everything(world: World) -> None:
    here, _ = talked(world)
    prompt = prompt_for(here, "Bob", "总结一下大家刚才讨论的内容")
    assert all(text in prompt for _, _, text in TALK)


def test_a_quoted_message_says_what_the_question_is_about(world: World) -> None:
    here, ids = talked(world)
    prompt = prompt_for(here, "Bob", "这个现在怎么样了？", reply_to=ids[2], quote=True)
    assert "农家院的停车场能停二十辆车" in prompt
    assert "防火墙规则我下午回滚" not in prompt
