"""A slash word that is no command is said to be none, with the one that was meant."""

from bot.features.help import answer_unknown, nearest_command
from bot.text.slash_commands import COMMAND_WORDS, CommandName, parse_command
from tests.support.rows import every_row


@every_row(
    ("text", "meant"),
    [
        ("/reminder", "reminders"),
        ("/remind me tomorrow to call", "reminders"),
        ("/hlep", "help"),
        ("/HLEP", "help"),
        ("/note", "notes"),
        ("/setings mode", "settings"),
        ("/帮帮", "帮助"),
        ("/提醒我 明天", "提醒"),
        ("／设定", "设置"),
    ],
)
def test_the_nearest_command_is_offered(text: str, meant: str) -> None:
    word = text.split()[0][1:].lower()
    assert answer_unknown(text, "en") == (
        f"There's no command `/{word}`. Did you mean `/{meant}`? `/help` lists them all."
    )
    assert answer_unknown(text, "zh") == (
        f"没有 `/{word}` 这个命令，你是想用 `/{meant}` 吗？`/帮助` 可以查看全部命令。"
    )


def test_a_word_like_no_command_is_said_to_be_none() -> None:
    assert answer_unknown("/foobar", "en") == (
        "There's no command `/foobar`. `/help` lists them all."
    )
    assert answer_unknown("／资料", "zh") == "没有 `/资料` 这个命令。`/帮助` 可以查看全部命令。"


@every_row(
    "text",
    [
        "",
        "/",
        "/ 3",
        "/3",
        "/etc/hosts",
        "/etc/hosts is gone",
        "/tmp is full, what now?",
        "/login gives 404",
        "/index.html",
        "//",
        "/a-b",
        "1/2 or /help?",
        "他/她",
        *(f"/{word}" for word in COMMAND_WORDS),
    ],
)
def test_paths_numbers_and_commands_are_not_answered_so(text: str) -> None:
    assert answer_unknown(text, "en") == ""


def test_full_width_letters_are_letters() -> None:
    command = parse_command("／ｈｅｌｐ")
    assert command is not None
    assert command.name == CommandName.HELP


def test_every_command_is_nearest_to_itself() -> None:
    assert {word: nearest_command(word) for word in COMMAND_WORDS} == {
        word: word for word in COMMAND_WORDS
    }
