"""Which texts are commands, and what their answers say."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from bot.features import commands
from bot.feishu.markup import with_marks
from bot.text.languages import Language
from bot.text.meant_commands import asks_for_quiet, command_meant
from bot.text.slash_commands import (
    Command,
    CommandName,
    may_be_stop_word,
    means_everything,
    means_thread,
    parse_command,
)
from memory.models import MemoryOverview
from memory.tables.notes import Note
from tests.support.rows import every_row


@every_row(
    ("text", "name"),
    [
        ("/help", CommandName.HELP),
        ("／help", CommandName.HELP),
        ("/帮助", CommandName.HELP),
        ("帮助", CommandName.HELP),
        ("Help!", CommandName.HELP),
        ("/new", CommandName.NEW),
        ("/新对话", CommandName.NEW),
        ("新对话", CommandName.NEW),
        ("/memory", CommandName.MEMORY),
        ("/记忆", CommandName.MEMORY),
        ("/forget", CommandName.FORGET),
        ("/忘记", CommandName.FORGET),
        ("/quiet", CommandName.QUIET),
        ("  /QUIET  ", CommandName.QUIET),
        ("quiet", CommandName.QUIET),
        ("安静。", CommandName.QUIET),
        ("/安静", CommandName.QUIET),
        ("/resume", CommandName.RESUME),
        ("/继续", CommandName.RESUME),
        ("/notes", "notes"),
        ("/笔记", "notes"),
        ("/proactive on", "proactive"),
        ("/主动 开", "proactive"),
    ],
)
def test_a_command_is_known_in_both_languages(text: str, name: str) -> None:
    command = parse_command(text)

    assert command is not None
    assert command.name == name
    assert not command.only_when_quiet


@every_row("text", ["stop", "Stop it!", "please  stop.", "停", "停止", "停一下。", "不用了"])
def test_a_plain_word_stops_only_what_runs(text: str) -> None:
    command = parse_command(text)

    assert command is not None
    assert (command.name, command.only_when_running) == (CommandName.STOP, True)
    assert may_be_stop_word(text)


@every_row("text", ["stop by my desk", "停车", "don't stop", "/stop", "停电了"])
def test_peoples_own_talk_is_no_such_word(text: str) -> None:
    assert not may_be_stop_word(text)


@every_row(
    "text",
    [
        "",
        "   ",
        "/",
        "//help",
        "/helpme",
        "/quietly",
        "/忘记我说的话",
        "help me with this",
        "please be quiet",
        "quiet please",
        "安静一下",
        "what does /quiet do?",
        "@Bob /forget all",
        "forget it",
        "忘记",
        "笔记",
        "notes",
        "new",
        "/usr/bin/help",
    ],
)
def test_everything_else_is_for_the_model(text: str) -> None:
    assert parse_command(text) is None


@every_row("text", ["继续", "resume", "继续！"])
def test_the_plain_word_for_going_on_is_a_command_only_in_a_quiet_chat(text: str) -> None:
    command = parse_command(text)

    assert command is not None
    assert command.only_when_quiet


@every_row(
    ("text", "everything", "thread"),
    [
        ("/forget", False, False),
        ("/forget all", True, False),
        ("/forget  ALL. ", True, False),
        ("/忘记 全部", True, False),
        ("/忘记：全部", True, False),
        ("/forget this thread", False, True),
        ("/忘记 这个话题", False, True),
        ("/forget what I said", False, False),
    ],
)
def test_forget_can_say_what(text: str, everything: bool, thread: bool) -> None:
    command = parse_command(text)

    assert command is not None
    assert (means_everything(command), means_thread(command)) == (everything, thread)


def test_the_language_is_that_of_the_command() -> None:
    assert parse_command("/help") == Command(CommandName.HELP, "", "en")
    assert parse_command("/帮助") == Command(CommandName.HELP, "", "zh")
    assert parse_command("/forget 全部") == Command(CommandName.FORGET, "全部", "zh", words="全部")


@given(st.text(max_size=300))
def test_any_text_can_be_asked(text: str) -> None:
    command = parse_command(text) or command_meant(text)

    assert asks_for_quiet(text) == (command is not None and command.name == CommandName.QUIET)


def test_memory_is_told_with_counts_and_the_latest_messages() -> None:
    told = commands.memory_overview(
        MemoryOverview(
            messages_here=2, messages=5, conversations=3, notes=1, since="2026-03-02T18:00Z"
        ),
        [("user", "one\ntwo"), ("assistant", "`code`")],
        "en",
        datetime(2026, 4, 1, tzinfo=ZoneInfo("Asia/Shanghai")),
    )

    assert "Messages: 2 in this thread, 5 in total · Threads: 3 · Notes: 1 · Since 3 Mar" in told
    assert with_marks(told).endswith("- You: “one two”\n- Me: “`code`”")


def test_notes_are_numbered_in_order_of_creation() -> None:
    def note(title: str, *tags: str) -> Note:
        return Note("note_x", "ou_a", title, "", tags, None, "", "")

    assert commands.note_list([note("Pasta", "italian"), note("Pizza")], "en").endswith(
        "1. “Pasta” #italian\n2. “Pizza”"
    )
    assert "还没有笔记" in commands.note_list([], "zh")


@every_row("language", ["zh", "en"])
def test_a_group_without_notes_does_not_say_that_the_person_has_none(language: Language) -> None:
    here = commands.note_list([], language, in_group=True)

    assert commands.note_list([], language) not in here
    assert ("在这个群里" if language == "zh" else "in this group") in here
