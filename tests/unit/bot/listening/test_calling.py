"""Who is called by name, as people write names in a hurry."""

from bot.listening.decisions import IncomingMessage, exchange_at
from bot.listening.replies import ends_with_name, names_a_person, speaks_of
from bot.listening.transcript import MessageRecord
from tests.support.rows import every_row


@every_row(
    ("text", "name"),
    [
        ("that's tight dario", "Dario"),
        ("has ROBERT seen it?", "Robert"),
        ("ask dunn first", "Cllr_Dunn"),
        ("给小夏发一份", "女高小夏"),
        ("建国说可以", "王建国"),
    ],
)
def test_a_colleague_is_spoken_of_in_small_letters_and_by_a_part_of_the_name(text, name):
    assert speaks_of(text, [name])


@every_row(
    ("text", "name"),
    [("will it rain", "Will"), ("also the second", "Al"), ("may I", "May"), ("好的", "女高小夏")],
)
def test_a_word_is_no_name(text, name):
    assert not speaks_of(text, [name])
    assert not names_a_person(text, [name])


def test_a_name_in_small_letters_calls_at_the_beginning_and_at_the_end():
    assert names_a_person("gerald the quote came in", ["Gerald"])
    assert not names_a_person("geraldine was there", ["Gerald"])
    assert ends_with_name("move your van tonight lenny!", ["Lenny"])
    assert not ends_with_name("lenny has it", ["Lenny"])


def test_nobody_is_called_by_a_name_without_end():
    name = "An" * 10_000
    assert not names_a_person(f"{name}, when?", [name])
    assert not speaks_of(f"ask {name}", [name])


def test_an_exchange_knows_whom_the_bot_answered_before():
    def said(author: str, at: int, *, answered: bool = False) -> MessageRecord:
        bot = author == "Memo"
        return MessageRecord(author, author, "…", at, bot, f"om_{at}", ours=bot, answered=answered)

    talk = [
        said("Ann", 1, answered=True),
        said("Memo", 2),
        said("Bo", 3),
        said("Cy", 4, answered=True),
        said("Memo", 5),
    ]
    message = IncomingMessage("om_6", "Bo", "Bo", "and in June?", 6)

    around, _ = exchange_at(message, talk, "ou_bot")

    assert around.asker == "Cy"
    assert around.answered_ids == {"Ann"}
