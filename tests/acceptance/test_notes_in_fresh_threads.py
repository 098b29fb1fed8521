"""“That note” in a fresh thread, which every mention in the main chat opens, in both languages."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    # nothing but the registry tells a thread of another one
    return {"OPENAI_API_KEY": "", "FOLLOWUP_WINDOW_SECONDS": "1"}


@pytest.fixture
def chat(world: World) -> World:
    return world.in_a_new_group()


def done(chat: World, text: str, who: str = "Alice") -> str:
    """The answer to a message in the main chat, stored."""
    question, shown = chat.ask(who, text)
    chat.settled(question)
    return shown


def tags(chat: World) -> dict[str, list[str]]:
    rows = chat.rows("select title, tags from agent_notes where chat_id = %s", chat.group)
    return {row["title"].lower(): row["tags"] for row in rows}


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (
            ("create a note about pasta with tags dinner", "create a note about soup"),
            "add the tag 'quick' to that note",
        ),
        (
            ("创建一条关于pasta的笔记，标签：dinner", "创建一条关于soup的笔记"),
            "给那条笔记加上标签quick",
        ),
    ],
)
def test_that_note_is_the_one_used_last_in_the_chat(
    chat: World, made: tuple[str, str], asked: str
) -> None:
    for text in made:
        done(chat, text)

    done(chat, asked)

    assert tags(chat) == {"pasta": ["dinner"], "soup": ["quick"]}
    assert "quick" not in done(chat, asked.replace("quick", "slow"), who="Bob"), "it is not Bob's"
    assert tags(chat) == {"pasta": ["dinner"], "soup": ["quick"]}


@pytest.mark.parametrize(
    ("listing", "asked"),
    [
        ("list my notes", "add the tag 'quick' to the second note"),
        ("列出我的笔记", "给第二条笔记加上标签quick"),
    ],
)
def test_the_second_note_counts_in_the_list_that_a_card_showed_last(
    chat: World, listing: str, asked: str
) -> None:
    for title in ("pasta", "soup", "salad"):
        done(chat, f"create a note about {title} with tags dinner")
    assert "salad" in done(chat, listing).lower()

    done(chat, asked)

    assert {title for title, held in tags(chat).items() if "quick" in held} == {"soup"}
