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


# The agreed cases


def test_tc01_a_reply_to_a_human_addresses_them():
    assert compose_reply("hello", "human", "alice") == "@human hello"


def test_tc02_a_reply_to_another_bot_addresses_it():
    assert compose_reply("hello", "bob", "alice", sender_type="bot") == "@bob hello"


def test_tc03_a_reply_to_the_system_addresses_nobody():
    assert compose_reply("hello", "system", "alice", sender_type="system") == "hello"


def test_tc04_a_mention_already_there_is_not_doubled():
    assert compose_reply("@human hello", "human", "alice") == "@human hello"


def test_tc05_a_mention_in_the_middle_does_not_count():
    assert compose_reply("hello @human there", "human", "alice") == "@human hello @human there"


def test_tc06_a_name_that_only_begins_like_the_sender_does_not_count():
    assert compose_reply("@humanity hello", "human", "alice") == "@human @humanity hello"


def test_tc07_a_mention_in_another_case_counts():
    assert compose_reply("@Human hello", "human", "alice") == "@Human hello"


def test_tc08_a_self_mention_at_the_start_goes():
    assert remove_self_mentions("@alice hello", "alice") == "hello"
    assert compose_reply("@alice hello", "human", "alice") == "@human hello"


def test_tc09_several_self_mentions_at_the_start_go():
    assert remove_self_mentions("@alice @alice,\t@alice\n hello", "alice") == "hello"


def test_tc10_self_mentions_of_mixed_case_go():
    assert remove_self_mentions("@Alice @ALICE @alice hello", "alice") == "hello"


def test_tc11_the_mention_after_a_self_mention_stays():
    assert remove_self_mentions("@alice @bob hello", "alice") == "@bob hello"
    assert compose_reply("@alice @bob hello", "human", "alice") == "@human @bob hello"


def test_tc12_a_self_mention_in_the_middle_stays():
    assert remove_self_mentions("I am @alice here", "alice") == "I am @alice here"
    assert remove_self_mentions("goodbye from @alice", "alice") == "goodbye from @alice"


def test_tc13_a_self_mention_in_quotes_stays():
    assert remove_self_mentions('"@alice hello" is what he said', "alice") == (
        '"@alice hello" is what he said'
    )


@every_row("response", ["", None])
def test_tc14_an_empty_response_gives_nothing(response: str | None):
    assert compose_reply(response, "human", "alice") == ""


def test_tc15_a_white_space_response_gives_nothing():
    assert compose_reply(" \n\t ", "human", "alice") == ""


def test_tc16_only_the_sender_is_not_doubled():
    assert compose_reply("@human", "human", "alice") == "@human"


def test_tc17_without_a_sender_nobody_is_addressed():
    assert compose_reply("hello", None, "alice") == "hello"


@every_row("sender", ["alice", "ALICE"])
def test_tc18_the_agent_itself_is_never_addressed(sender: str):
    assert compose_reply("hello", sender, "alice") == "hello"


def test_tc19_a_reply_is_trimmed():
    assert compose_reply("  @sender hello", "sender", "alice") == "@sender hello"


def test_tc20_the_case_that_was_written_is_kept():
    assert compose_reply("@SENDER hello", "sender", "alice") == "@SENDER hello"


def test_tc21_the_published_text_is_what_compose_gives():
    composed = compose_reply("  @alice hello ", "human", "alice")
    assert from_card(card(composed), {}, unescape=html.unescape) == composed


def test_tc22_the_stored_text_never_differs_from_the_published_one():
    published = compose_reply("@Alice, hi", "human", "alice")
    assert compose_reply(published, "human", "alice") == published


def test_tc23_the_model_output_may_differ_from_both():
    output = "@alice hello"
    assert compose_reply(output, "human", "alice") != output


# Names at the beginning of lines


def test_names_that_begin_lines_are_found_in_order_and_lower_case():
    text = "@Bob please look\n\n  @alice-2 you too\nand @carol not"
    assert extract_paragraph_beginning_mentions(text) == ["bob", "alice-2"]


def test_a_name_ends_before_the_full_stop_after_it():
    assert extract_paragraph_beginning_mentions("@v.lee. Thanks") == ["v.lee"]


def test_a_possessive_is_no_address():
    assert extract_paragraph_beginning_mentions("@alice's idea is good") == []
    assert remove_self_mentions("@alice's idea", "alice") == "@alice's idea"


def test_known_names_end_where_chinese_talk_begins():
    assert extract_paragraph_beginning_mentions("@王小明你好") == ["王小明你好"]
    assert extract_paragraph_beginning_mentions("@王小明你好", names=["王小", "王小明"]) == [
        "王小明"
    ]


@every_row("text", ["@alicesmith hi", "@alice-b hi", "@alice.b hi", "@alice_b hi"])
def test_a_longer_name_is_never_eaten(text: str):
    assert remove_self_mentions(text, "alice") == text
    assert add_auto_mention(text, "alice") == f"@alice {text}"


def test_a_chinese_name_is_not_found_in_a_longer_one_without_a_roster():
    assert remove_self_mentions("@小明明 在吗", "小明") == "@小明明 在吗"
    assert compose_reply("@王小明 在吗", "王小", "助手") == "@王小 @王小明 在吗"


def test_a_latin_name_ends_where_chinese_begins():
    assert remove_self_mentions("@Memo你好", "memo") == "你好"
    assert compose_reply("@Memo:@Memo，你好", "陈晨", "Memo") == "@陈晨 你好"


def test_a_name_with_spaces_is_matched_literally():
    assert add_auto_mention("@Ann Lee hi", "Ann Lee") == "@Ann Lee hi"
    assert remove_self_mentions("@ann lee, @Ann Lee hi", "Ann Lee") == "hi"


def test_the_sender_anywhere_among_the_first_addresses_is_not_doubled():
    assert compose_reply("@bob @human hello", "human", "alice") == "@bob @human hello"


def test_repeated_addresses_are_dropped():
    assert compose_reply("@Human, @human @bob @BOB hello", "human", "alice") == "@Human @bob hello"


def test_a_response_that_only_addresses_the_agent_is_empty():
    assert compose_reply("@alice ", "human", "alice") == ""


# The reply of a turn, by open_id


def test_the_sender_is_put_in_front():
    assert reply("hello") == "@Bob hello"
    assert reply("你好", sender=CHEN) == "@陈晨 你好"


def test_the_sender_is_recognised_without_a_space_after_the_name():
    assert reply("@陈晨你好", sender=CHEN) == "@陈晨你好"


def test_the_agent_never_addresses_itself_not_even_after_others():
    assert reply("@Memo @Bob @memo hello") == "@Bob hello"
    assert reply("hello", sender=MEMO) == "hello"


def test_a_sender_named_like_the_agent_is_addressed():
    twin = Person("ou_twin", "memo")
    assert reply("hello", sender=twin) == "@memo hello"
    assert reply("@Memo hello", sender=twin) == "@Memo hello"


def test_two_people_of_one_name_count_as_the_sender():
    other = Roster((BOB, Person("ou_bob2", "bob"), MEMO))
    assert address_reply("@Bob hi", sender=BOB, agent=MEMO, roster=other) == "@Bob hi"


def test_a_sender_that_begins_another_name_is_set_apart():
    ann, lee = Person("ou_ann", "Ann"), Person("ou_annlee", "Ann Lee")
    text = address_reply("Lee is right", sender=ann, agent=MEMO, roster=Roster((ann, lee)))
    assert text == "@Ann, Lee is right"
    assert card(text, Roster((ann, lee))) == "<at id=ou_ann></at>, Lee is right"


def test_in_p2p_nobody_is_addressed():
    assert reply("hello", chat_type="p2p") == "hello"
    assert reply("@Bob, @Memo hello", chat_type="p2p") == "hello"
    assert reply("see @Bob", chat_type="p2p") == "see @Bob"


def test_auto_mention_can_be_off_and_self_mentions_still_go():
    assert reply("@Memo hello", auto_mention=False) == "hello"


def test_system_senders_are_not_addressed():
    assert reply("hello", sender_type="system") == "hello"


@every_row("response", [None, "", "  ", "@Memo"])
def test_an_empty_reply_stays_empty(response: str | None):
    assert reply(response) == ""


def test_a_sender_without_a_name_is_addressed_by_the_end_of_the_id():
    nameless = Person("ou_1234567890abcdef", " ")
    text = reply("hello", sender=nameless)
    assert text == "@user-abcdef hello"
    assert card(text, TEAM.including(nameless)) == "<at id=ou_1234567890abcdef></at> hello"


def test_a_name_cannot_bring_its_own_lines():
    assert reply("hi", sender=Person("ou_x", "Eve\n@Bob")) == "@Eve @Bob hi"


# Into the card and back


def test_addresses_become_at_tags():
    assert card("@Bob hello\n\n@alice @陈晨你们看") == (
        "<at id=ou_bob></at> hello\n\n<at id=ou_alice></at> <at id=ou_chen></at>你们看"
    )


def test_mentions_in_passing_stay_plain():
    assert card("ask @Bob or\n- @Alice") == "ask @Bob or\n- @Alice"


def test_people_outside_the_roster_stay_plain_and_the_next_one_is_still_addressed():
    assert card("@carol @Bob hi") == "@carol <at id=ou_bob></at> hi"


def test_the_longest_name_wins():
    roster = Roster((Person("ou_a", "Ann"), Person("ou_al", "Ann Lee"), Person("ou_w", "王小")))
    assert card("@ann lee hi", roster) == "<at id=ou_al></at> hi"
    assert card("@Ann hi", roster) == "<at id=ou_a></at> hi"
    assert card("@王小 hi", roster.including(Person("ou_wm", "王小明"))) == "<at id=ou_w></at> hi"
    assert card("@王小明在", roster.including(Person("ou_wm", "王小明"))) == "<at id=ou_wm></at>在"


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


def test_an_unclosed_fence_reaches_to_the_end():
    assert card("```\ncode\n\n@Bob") == "```\ncode\n\n@Bob"


def test_written_tags_stay_inert():
    assert card("@Bob <at id=all></at>") == "<at id=ou_bob></at> &lt;at id=all&gt;&lt;/at&gt;"


def test_names_are_found_in_their_escaped_form():
    roster = Roster((Person("ou_x", "R&D <Tom>"),))
    assert card("@R&D <Tom> hi", roster) == "<at id=ou_x></at> hi"


def test_a_card_reads_as_the_text_it_was_made_from():
    text = "@Bob 1 < 2\n@陈晨你好 & bye"
    assert from_card(card(text), TEAM, unescape=html.unescape) == text


def test_an_unknown_tag_reads_as_someone():
    assert from_card('<at id="ou_gone"></at> hi', {}, unescape=html.unescape) == "@someone hi"
    assert from_card("<at id=all></at> hi", {}, unescape=html.unescape) == "@all hi"


def test_separators_in_front_of_an_address_do_not_hide_it() -> None:
    assert compose_reply(", @alice hello", "alice", "memo") == "@alice hello"


def test_what_stands_behind_an_address_of_the_agent_is_tidied_too() -> None:
    once = compose_reply("@alice\n\n    @alice", "alice", "alice")
    assert compose_reply(once, "alice", "alice") == once == ""
