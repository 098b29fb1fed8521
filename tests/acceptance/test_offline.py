"""The offline model through the real processes: whole conversations, in both languages."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pytest

from bot.text.languages import own_language
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_commands import click
from tests.acceptance.test_own_memory import after, private_chat
from tests.acceptance.test_private_answers import (
    answered,
    button_of,
    offered,
    press,
    shown_after,
    tell,
)
from tests.acceptance.test_taking_back import where
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


@dataclass
class Thread:
    """What one person says to the bot under one message of theirs."""

    world: World
    root: str = ""
    who: str = "Alice"

    def ask(self, text: str) -> str:
        """The answer's text, without the address in front."""
        more = {"root_id": self.root} if self.root else {}
        question, shown = self.world.ask(self.who, text, **more)
        self.root = self.root or question
        rows = self.world.settled(question)
        assert [row["content"] for row in rows] in ([shown], [])  # none where something was deleted
        assert "OPENAI_API_KEY" not in shown, "the notice stands on the page"
        return shown.partition("</at>")[2].strip()

    def notes(self) -> dict[str, list[str]]:
        """Title → tags, in order of creation."""
        rows = self.world.rows(
            "select title, tags from agent_notes where chat_id = %s order by created_at",
            self.world.group,
        )
        return {row["title"]: row["tags"] for row in rows}


@pytest.fixture
def thread(world: World) -> Thread:
    return Thread(world)


def test_a_chinese_conversation_about_notes(thread: Thread) -> None:
    made = thread.ask("建一条笔记，标题是意面，标签是意大利菜、晚餐")
    assert made == "好的，已创建笔记“意面”，标签：意大利菜、晚餐。"
    assert thread.notes() == {"意面": ["意大利菜", "晚餐"]}
    assert thread.ask("把那条笔记的晚餐标签去掉") == "已更新笔记“意面”：去掉了标签“晚餐”。"
    assert thread.notes() == {"意面": ["意大利菜"]}
    assert thread.ask("第一条笔记现在有什么标签？") == "笔记“意面”的标签：意大利菜。"

    thread.ask("记一条笔记：晚餐要买的菜")
    thread.ask("给意面那条笔记加上标签晚餐")
    assert thread.ask("搜索笔记 晚餐").splitlines()[-2:] == [
        "1. “意面”（标签：意大利菜、晚餐）",
        "2. “晚餐要买的菜”",
    ]
    assert thread.ask("把第二条的标题改成买菜") == "已更新笔记“晚餐要买的菜”：标题改为“买菜”。"
    assert "没有改动" in thread.ask("删除所有笔记")
    assert "没有改动" in thread.ask("删除第一条和第九条笔记")
    assert thread.ask("删除第二条") == "已删除笔记“买菜”。"
    assert thread.notes() == {"意面": ["意大利菜", "晚餐"]}
    assert "没能完成" in thread.ask("给第一条加上标签" + "长" * 41)
    assert thread.notes() == {"意面": ["意大利菜", "晚餐"]}


def test_an_english_conversation_about_notes(world: World) -> None:
    thread = Thread(world, who="Bob")
    made = thread.ask("create a note about pasta with tags italian, dinner")
    assert made == "I created the note “Pasta” (tags: italian, dinner)."
    untagged = thread.ask("remove the dinner tag from that note")
    assert untagged == "I updated the note “Pasta”: removed the tag “dinner”."
    told = thread.ask("what tags does the first note have now?")
    assert told == "Tags on “Pasta”: italian."
    again = thread.ask("remove the dinner tag from that note")
    assert again == "The note “Pasta” is already like that, so nothing was changed."

    thread.ask("create a note about pizza with tags italian")
    assert thread.ask("list my notes").endswith(
        "1. “Pasta” (tags: italian)\n2. “Pizza” (tags: italian)"
    )
    assert "nothing was changed" in thread.ask("delete all my notes")
    assert "I haven't changed anything yet" in thread.ask("delete notes 1 and 9")
    assert thread.ask("delete the second one").startswith("I deleted the note “Pizza”.")
    assert thread.notes() == {"Pasta": ["italian"]}


@pytest.mark.parametrize(
    ("told", "kept", "asked", "answer"),
    [
        ("我叫小明，记住", "好的，记住了：“我叫小明”", "我叫什么？", "你叫小明。"),
        (
            "my name is Alice, remember that",
            "Got it, I'll remember: “my name is Alice”",
            "what is my name?",
            "Your name is Alice.",
        ),
    ],
)
def test_a_name_is_remembered(
    thread: Thread, told: str, kept: str, asked: str, answer: str
) -> None:
    assert thread.ask(told) == kept
    memory = thread.world.rows(
        "select content from agent_working_memory where chat_id = %s", thread.world.group
    )
    assert [list(row["content"]) for row in memory] == [["name"]]
    assert thread.ask(asked) == answer


@pytest.mark.parametrize(
    ("told", "changed", "receipt", "forget", "gone"),
    [
        (
            "remember that the launch code is quincefruit",
            "no, it is now medlarfruit",
            "Got it, corrected. Before: “the launch code is quincefruit”. Now: “the launch code is "
            "medlarfruit”",
            "forget that the launch code is medlarfruit",
            "Deleted: 1 fact",
        ),
        (
            "记住启动密码是榅桲果子",
            "不对，现在是枇杷果子",
            "好的，已更正：原来是“启动密码是榅桲果子”，现在是“启动密码是枇杷果子”",
            "忘掉启动密码",
            "已删除：1 条事实",
        ),
    ],
)
def test_a_fact_is_corrected_and_forgotten(
    thread: Thread, told: str, changed: str, receipt: str, forget: str, gone: str
) -> None:
    thread.ask(told)
    assert thread.ask(changed) == receipt
    thread.ask(forget)
    world = thread.world
    card = world.under(thread.root)[-1]
    deleted = after(world, world.group, lambda: click(world, "Alice", card, index=0, form={}))
    assert gone in markdown(deleted)
    eventually(
        lambda: (
            not any(
                where(thread.world, word)
                for word in ("quincefruit", "medlarfruit", "榅桲果子", "枇杷果子")
            )
        ),
        what="it is gone everywhere",
    )


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("你能做什么？", "我没有接入大模型"),
        ("what can you do?", "I'm running without a language model"),
    ],
)
def test_it_says_what_it_can_do(world: World, question: str, says: str) -> None:
    _, shown = world.ask("Alice", question)
    assert says in shown


def test_a_name_in_another_script_is_reminded_and_changes_no_language(world: World) -> None:
    world.ask("Alice", "hello")
    said = world.say("陈晨", "早")
    heard = "select 1 from chat_transcript where message_id = %s"
    eventually(lambda: world.rows(heard, said), what="it is heard")

    _, shown = world.ask("Alice", "remind 陈晨 tomorrow at 9 to call the bank")
    (timer,) = world.rows(
        "select content, language, for_people from agent_timers where chat_id = %s", world.group
    )
    _, told = world.ask("Alice", "/HELP")

    assert timer == {
        "content": "call the bank", "language": "en", "for_people": [world.people["陈晨"]],
    }  # fmt: skip
    assert "call the bank" in shown
    assert own_language(told) == "en"


def test_everyday_messages_in_private_have_answers_of_their_own(world: World) -> None:
    chat = private_chat(world, "Bob")

    def shown(text: str, **more: object) -> str:
        return world.answer(world.say("Bob", text, chat=chat, **more), chat=chat)

    assert shown("hello").startswith("Hi! I'm running without a language model")
    assert shown("thanks") == "You're welcome!"
    file = {"message_type": "file", "file_name": "prices.csv"}
    table = base64.b64encode(b"fruit,price\napple,3 euros\npear,4 euros").decode()
    assert shown("", file_base64=table, **file).startswith("I've read prices.csv.")
    assert shown("what does an apple cost?") == "From prices.csv:\n\n- apple,3 euros"


def test_a_note_is_given_a_text_and_shown(world: World) -> None:
    thread = Thread(world.in_a_new_group())
    thread.ask("create a note about pasta")
    assert thread.ask("what does that note say?").endswith("has no text yet.")
    assert "changed its text" in thread.ask("change its text to boil the water first")
    assert thread.ask("show the note Pasta").endswith("boil the water first")


def test_what_was_told_elsewhere_is_offered_shown_and_shared(world: World) -> None:
    tell(world, "Alice", "记住，柏林办公室的无线密码是hunter2")
    question, _ = world.ask("Alice", "柏林办公室的无线密码是什么？")
    offer = offered(world, "Alice", question)
    assert button_of(offer)["text"]["content"] == "查看"
    press(world, "Alice", offer)
    answered(world, offer)
    card = shown_after(world, "Alice", offer)
    assert "hunter2" in markdown(card)

    press(world, "Alice", card)
    (sent,) = world.answers(answered(world, card))
    assert markdown(sent) == markdown(card)
