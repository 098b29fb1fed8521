"""Addressing people: the 23 agreed cases, then names as they are in the real world."""

import html

from bot.mentions import (
    Person,
    Roster,
    add_auto_mention,
    address_reply,
    compose_reply,
    extract_paragraph_beginning_mentions,
    from_card,
    remove_self_mentions,
    to_card,
)
from tests.support.rows import every_row

ALICE = Person("ou_alice", "Alice")
BOB = Person("ou_bob", "Bob")
CHEN = Person("ou_chen", "陈晨")
MEMO = Person("ou_bot", "Memo", is_bot=True)
TEAM = Roster((ALICE, BOB, CHEN, MEMO))


def card(text: str, roster: Roster = TEAM, **options: object) -> str:
    return to_card(text, roster, escape=html.escape, **options)


def reply(response: str | None, sender: Person | None = BOB, **options: object) -> str:
    return address_reply(response, sender=sender, agent=MEMO, roster=TEAM, **options)


# The agreed cases, and names as they are in the real world

COMPOSED = [
    ("TC01 a reply to a human addresses them", "hello", "human", "alice", "@human hello"),
    ("TC04 a mention already there is not doubled", "@human hello", "human", "alice",
     "@human hello"),
    ("TC05 a mention in the middle does not count", "hello @human there", "human", "alice",
     "@human hello @human there"),
    ("TC06 a name that only begins like the sender does not count", "@humanity hello", "human",
     "alice", "@human @humanity hello"),
    ("TC07 a mention in another case counts", "@Human hello", "human", "alice", "@Human hello"),
    ("TC08 a self-mention at the start goes", "@alice hello", "human", "alice", "@human hello"),
    ("TC22, TC23 what is published may differ from what the model wrote, not from what is stored",
     "@Alice, hi", "human", "alice", "@human hi"),
    ("TC11 the mention after a self-mention stays", "@alice @bob hello", "human", "alice",
     "@human @bob hello"),
    ("TC14 an empty response gives nothing", "", "human", "alice", ""),
    ("TC14 and so does none", None, "human", "alice", ""),
    ("TC15 and white space", " \n\t ", "human", "alice", ""),
    ("TC16 only the sender is not doubled", "@human", "human", "alice", "@human"),
    ("TC17 without a sender nobody is addressed", "hello", None, "alice", "hello"),
    ("TC18 the agent itself is never addressed", "hello", "alice", "alice", "hello"),
    ("TC18 in whatever case", "hello", "ALICE", "alice", "hello"),
    ("TC19 a reply is trimmed", "  @sender hello", "sender", "alice", "@sender hello"),
    ("TC20 the case that was written is kept", "@SENDER hello", "sender", "alice",
     "@SENDER hello"),
    ("a Chinese name is not found in a longer one without a roster", "@王小明 在吗", "王小", "助手",
     "@王小 @王小明 在吗"),
    ("a Latin name ends where Chinese begins", "@Memo:@Memo，你好", "陈晨", "Memo", "@陈晨 你好"),
    ("the sender may stand behind another", "@bob @human hello", "human", "alice",
     "@bob @human hello"),
    ("repeated addresses are dropped", "@Human, @human @bob @BOB hello", "human", "alice",
     "@Human @bob hello"),
    ("a response that only addresses the agent is empty", "@alice ", "human", "alice", ""),
    ("separators in front of an address do not hide it", ", @alice hello", "alice", "memo",
     "@alice hello"),
    ("what stands behind an address of the agent is tidied too", "@alice\n\n    @alice", "alice",
     "alice", ""),
]  # fmt: skip


@every_row(("why", "response", "sender", "agent", "composed"), COMPOSED)
def test_a_reply_is_addressed_as_agreed(
    why: str, response: str | None, sender: str | None, agent: str, composed: str
):
    assert compose_reply(response, sender, agent) == composed
    assert compose_reply(composed, sender, agent) == composed, "once more changes nothing"


def test_a_person_is_known_by_each_of_their_names():
    also_ally = Roster((*TEAM.people, Person("ou_alice", "Ally")))
    assert address_reply("@Ally hello", sender=ALICE, agent=MEMO, roster=also_ally) == "@Ally hello"


def test_an_address_of_the_bot_is_taken_away_though_it_is_indented_as_code():
    assert reply("    @Memo hello") == "@Bob hello"


@every_row("sender_type", ["user", "bot", "app"])
def test_tc02_people_and_bots_are_addressed(sender_type: str):
    assert compose_reply("hello", "bob", "alice", sender_type=sender_type) == "@bob hello"


@every_row("sender_type", ["system", "anonymous", "unknown", ""])
def test_tc03_nobody_else_is_addressed(sender_type: str):
    assert compose_reply("hello", "bob", "alice", sender_type=sender_type) == "hello"


@every_row(
    ("why", "response", "agent", "left"),
    [
        ("TC08 a self-mention at the start goes", "@alice hello", "alice", "hello"),
        ("TC09 several go", "@alice @alice,\t@alice\n hello", "alice", "hello"),
        ("TC10 of mixed case", "@Alice @ALICE @alice hello", "alice", "hello"),
        ("TC11 the mention after it stays", "@alice @bob hello", "alice", "@bob hello"),
        ("TC12 one in the middle stays", "I am @alice here", "alice", "I am @alice here"),
        ("TC12 and at the end", "goodbye from @alice", "alice", "goodbye from @alice"),
        ("TC13 and in quotes", '"@alice hello" is what he said', "alice",
         '"@alice hello" is what he said'),
        ("a possessive is no address", "@alice's idea", "alice", "@alice's idea"),
        ("a Chinese name is not found in a longer one", "@小明明 在吗", "小明", "@小明明 在吗"),
        ("a Latin name ends where Chinese begins", "@Memo你好", "memo", "你好"),
        ("a name with spaces is matched literally", "@ann lee, @Ann Lee hi", "Ann Lee", "hi"),
    ],
)  # fmt: skip
def test_of_self_mentions_those_at_the_start_go(why: str, response: str, agent: str, left: str):
    assert remove_self_mentions(response, agent) == left


def test_tc21_the_published_text_is_what_compose_gives():
    composed = compose_reply("  @alice hello ", "human", "alice")
    assert from_card(card(composed), {}, unescape=html.unescape) == composed


@every_row(
    ("why", "text", "names", "found"),
    [
        ("in order and in lower case", "@Bob please look\n\n  @alice-2 you too\nand @carol not", [],
         ["bob", "alice-2"]),
        ("a name ends before the full stop after it", "@v.lee. Thanks", [], ["v.lee"]),
        ("a possessive is no address", "@alice's idea is good", [], []),
        ("an unknown name goes on in Chinese", "@王小明你好", [], ["王小明你好"]),
        ("a known one ends", "@王小明你好", ["王小", "王小明"], ["王小明"]),
    ],
)  # fmt: skip
def test_names_that_begin_lines_are_found(why: str, text: str, names: list[str], found: list[str]):
    assert extract_paragraph_beginning_mentions(text, names=names) == found


@every_row("text", ["@alicesmith hi", "@alice-b hi", "@alice.b hi", "@alice_b hi"])
def test_a_longer_name_is_never_eaten(text: str):
    assert remove_self_mentions(text, "alice") == text
    assert add_auto_mention(text, "alice") == f"@alice {text}"


def test_a_name_with_spaces_that_is_there_is_not_doubled():
    assert add_auto_mention("@Ann Lee hi", "Ann Lee") == "@Ann Lee hi"


# The reply of a turn, by open_id

TWIN = Person("ou_twin", "memo")


@every_row(
    ("why", "response", "options", "said"),
    [
        ("the sender is put in front", "hello", {}, "@Bob hello"),
        ("in Chinese too", "你好", {"sender": CHEN}, "@陈晨 你好"),
        ("and is recognised without a space", "@陈晨你好", {"sender": CHEN}, "@陈晨你好"),
        ("the agent never addresses itself", "hello", {"sender": MEMO}, "hello"),
        ("not even after others", "@Memo @Bob @memo hello", {}, "@Bob hello"),
        ("a sender named like the agent is addressed", "hello", {"sender": TWIN}, "@memo hello"),
        ("and recognised", "@Memo hello", {"sender": TWIN}, "@Memo hello"),
        ("in p2p nobody is addressed", "hello", {"chat_type": "p2p"}, "hello"),
        ("nor by the model", "@Bob, @Memo hello", {"chat_type": "p2p"}, "hello"),
        ("but in passing", "see @Bob", {"chat_type": "p2p"}, "see @Bob"),
        ("without addresses self-mentions still go", "@Memo hello", {"auto_mention": False},
         "hello"),
        ("system senders are not addressed", "hello", {"sender_type": "system"}, "hello"),
        ("nothing stays nothing", None, {}, ""),
        ("", "", {}, ""),
        ("", "  ", {}, ""),
        ("and so does the agent's name alone", "@Memo", {}, ""),
    ],
)  # fmt: skip
def test_the_reply_of_a_turn_addresses_the_sender(
    why: str, response: str | None, options: dict[str, object], said: str
):
    assert reply(response, **options) == said


def test_a_name_cannot_bring_its_own_lines():
    assert reply("hi", sender=Person("ou_x", "Eve\n@Bob")) == "@Eve @Bob hi"


def test_two_people_of_one_name_count_as_the_sender():
    other = Roster((BOB, Person("ou_bob2", "bob"), MEMO))
    assert address_reply("@Bob hi", sender=BOB, agent=MEMO, roster=other) == "@Bob hi"


def test_a_sender_that_begins_another_name_is_set_apart():
    ann, lee = Person("ou_ann", "Ann"), Person("ou_annlee", "Ann Lee")
    text = address_reply("Lee is right", sender=ann, agent=MEMO, roster=Roster((ann, lee)))
    assert text == "@Ann, Lee is right"
    assert card(text, Roster((ann, lee))) == "<at id=ou_ann></at>, Lee is right"


def test_a_sender_without_a_name_is_addressed_by_the_end_of_the_id():
    nameless = Person("ou_1234567890abcdef", " ")
    text = reply("hello", sender=nameless)
    assert text == "@user-abcdef hello"
    assert card(text, TEAM.including(nameless)) == "<at id=ou_1234567890abcdef></at> hello"


# Into the card and back

ANNS = Roster((Person("ou_a", "Ann"), Person("ou_al", "Ann Lee"), Person("ou_w", "王小")))
WITH_MING = ANNS.including(Person("ou_wm", "王小明"))


@every_row(
    ("why", "text", "roster", "shown"),
    [
        ("addresses become tags", "@Bob hello\n\n@alice @陈晨你们看", TEAM,
         "<at id=ou_bob></at> hello\n\n<at id=ou_alice></at> <at id=ou_chen></at>你们看"),
        ("mentions in passing stay plain", "ask @Bob or\n- @Alice", TEAM,
         "ask @Bob or\n- @Alice"),
        ("people outside the roster too, and the next one is still addressed", "@carol @Bob hi",
         TEAM, "@carol <at id=ou_bob></at> hi"),
        ("the longest name wins", "@ann lee hi", ANNS, "<at id=ou_al></at> hi"),
        ("and the shorter is one", "@Ann hi", ANNS, "<at id=ou_a></at> hi"),
        ("", "@王小 hi", WITH_MING, "<at id=ou_w></at> hi"),
        ("", "@王小明在", WITH_MING, "<at id=ou_wm></at>在"),
        ("an unclosed fence reaches to the end", "```\ncode\n\n@Bob", TEAM,
         "```\ncode\n\n@Bob"),
        ("written tags stay inert", "@Bob <at id=all></at>", TEAM,
         "<at id=ou_bob></at> &lt;at id=all&gt;&lt;/at&gt;"),
        ("names are found in their escaped form", "@R&D <Tom> hi",
         Roster((Person("ou_x", "R&D <Tom>"),)), "<at id=ou_x></at> hi"),
    ],
)  # fmt: skip
def test_a_card_notifies_whom_the_text_addresses(why: str, text: str, roster: Roster, shown: str):
    assert card(text, roster) == shown


def test_a_shared_name_is_the_preferred_person_or_nobody():
    roster = Roster((BOB, Person("ou_bob2", "Bob")))
    assert card("@Bob hi", roster) == "@Bob hi"
    assert card("@Bob hi", roster, preferred="ou_bob2") == "<at id=ou_bob2></at> hi"
    assert card("@Bob hi", roster, preferred="ou_alice") == "@Bob hi"


@every_row("name", ["all", "everyone", "所有人", "ALL"])
def test_nobody_can_call_everybody_unless_allowed(name: str):
    assert card(f"@{name} look") == f"@{name} look"
    assert card(f"@{name} look", allow_all=True) == "<at id=all></at> look"
    assert card(f"see @{name}", allow_all=True) == f"see @{name}"


def test_a_person_named_all_is_a_person():
    assert card("@all hi", Roster((Person("ou_x", "all"),)), allow_all=True) == (
        "<at id=ou_x></at> hi"
    )


@every_row("bad", ["all", "ou_", "ou_x></at><at id=all", "ou_x\n", "on_x", ""])
def test_an_id_that_is_no_open_id_stays_plain(bad: str):
    assert card("@Eve hi", Roster((Person(bad, "Eve"),))) == "@Eve hi"


def test_code_is_left_alone():
    text = "```py\n@Bob\n``\n```\n@Bob\n~~~\n@Bob\n```\n~~~~\n    @Bob\n``` x ```\n@Bob"
    tag = "<at id=ou_bob></at>"
    assert card(text) == text.replace("```\n@Bob\n~~~", f"```\n{tag}\n~~~")[:-4] + tag


def test_a_card_reads_as_the_text_it_was_made_from():
    text = "@Bob 1 < 2\n@陈晨你好 & bye"
    assert from_card(card(text), TEAM, unescape=html.unescape) == text


def test_an_unknown_tag_reads_as_someone():
    assert from_card('<at id="ou_gone"></at> hi', {}, unescape=html.unescape) == "@someone hi"
    assert from_card("<at id=all></at> hi", {}, unescape=html.unescape) == "@all hi"
