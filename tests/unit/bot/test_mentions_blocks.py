"""An address never breaks the Markdown it stands before, and code addresses nobody."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mentions import (
    PLAIN,
    MentionTemplate,
    Person,
    Roster,
    add_auto_mention,
    address_reply,
    compose_reply,
    from_card,
    to_card,
)
from bot.text.markdown import opens_block
from tests.support.rows import every_row

ALICE = Person("ou_alice", "Alice")
BOB = Person("ou_bob", "Bob")
MEMO = Person("ou_bot", "Memo", is_bot=True)
TEAM = Roster((ALICE, BOB, MEMO))
TAG = "<at id=ou_bob></at>"

BLOCKS = {
    "heading": "# Plan\nfirst",
    "heading of six": "###### Plan",
    "underlined heading": "Plan\n====\ntext",
    "heading underlined with dashes": "The plan\nof all\n---\ntext",
    "bullets": "- one\n- two",
    "stars": "* one\n* two",
    "one bullet": "- one",
    "numbers": "1. one\n2. two",
    "numbers with brackets": "1) one\n2) two",
    "numbers that go on": "7. seven\n8. eight",
    "tasks": "- [ ] open\n- [x] done",
    "typed bullets": "• one\n• two",
    "Chinese numbers": "1、一\n2、二",
    "quote": "> said\n> so",
    "fence": "```py\nprint()\n```",
    "tilde fence": "~~~\ncode\n~~~",
    "indented code": "    print()\n    done()",
    "code indented by a tab": "\tprint()",
    "table": "| a | b |\n|---|:-:|\n| 1 | 2 |",
    "table without borders": "a | b\n--- | ---\n1 | 2",
    "rule": "---\ntext",
    "rule of stars": "* * *\ntext",
    "image": "![alt](img_v3_x) text",
    "tag": "<div>x</div>",
}
SENTENCES = [
    "hello",
    "**Plan:** see below\n\n- one",
    "#1 is the best",
    "-5 degrees",
    "1.5 metres",
    "2026 was good",
    "*yes* of course",
    "_yes_",
    "`ls` lists\n- one",
    "a | b are both fine",
    "~ five",
    "[link](https://x) there",
    "第一，看这里",
    "Here:\n\n| a |\n|---|\n| 1 |",
]


def reply(text: str | None, **options: object) -> str:
    return address_reply(text, sender=BOB, agent=MEMO, roster=TEAM, **options)


def card(text: str) -> str:
    return to_card(text, TEAM, escape=html.escape)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_before_a_block_the_address_is_a_paragraph_of_its_own(block: str):
    assert compose_reply(block, "human", "alice") == f"@human\n\n{block}"
    assert add_auto_mention(block, "human") == f"@human\n\n{block}"
    assert reply(block) == f"@Bob\n\n{block}"
    assert to_card(reply(block), TEAM, escape=str) == f"{TAG}\n\n{block}"


@every_row("sentence", SENTENCES)
def test_before_a_sentence_the_address_stands_in_its_line(sentence: str):
    assert compose_reply(sentence, "human", "alice") == f"@human {sentence}"


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_blocks_after_the_agent_itself_stay_whole(block: str):
    assert compose_reply(f"@alice\n\n{block}", "human", "alice") == f"@human\n\n{block}"


@every_row("address", ["@Bob", "@Bob,", "@Bob:", "@Alice @Bob"])
def test_a_block_after_an_address_that_was_written_is_set_apart(address: str):
    kept = address.rstrip(",:")
    for gap in ("\n", "\n\n"):
        text = reply(f"{address}{gap}# Plan")
        assert text.startswith(kept)
        assert text.endswith("\n\n# Plan")
    assert reply("@Bob 1. one\n2. two") == "@Bob\n\n1. one\n2. two"
    assert reply("@Bob\n---\ntext") == "@Bob\n\n---\ntext"


def test_a_dash_after_an_address_is_no_list():
    assert reply("@Bob - sure, why not") == "@Bob - sure, why not"


def test_nobody_is_put_before_a_block_in_p2p_or_with_mentions_off():
    assert reply("# Plan", chat_type="p2p") == "# Plan"
    assert reply("# Plan", auto_mention=False) == "# Plan"
    assert reply("    code()", auto_mention=False) == "    code()"


# Code addresses nobody

CODE = [
    "```\n@Alice\n```",
    "```py\n@Alice\ndef f(): ...\n```\nend",
    "~~~\n@Alice\n~~~",
    "text\n```\n@Alice\n```",
    "1. one\n   ```\n@Alice\n   ```",
    "- one\n\n      ```\n@Alice\n      ```",
    "> ```\n@Alice\n> ```",
    "- ```\n@Alice\n  ```",
    "see `a\n@Alice b` there",
    "see ``a ` b\n@Alice`` there",
    "see `a that goes\n@Alice on",
    "    code\n    @Alice",
    "    @Alice\n    def f(): ...",
    "\t@Alice",
    "text\n\n    @Alice",
    "```\nopen\n\n@Alice",
]


@pytest.mark.parametrize("text", CODE)
@pytest.mark.parametrize("options", [{}, {"auto_mention": False}], ids=["addressed", "silent"])
def test_a_name_in_code_is_never_pinged(text: str, options: dict[str, object]):
    sent = card(reply(text, **options))
    assert "ou_alice" not in sent
    assert "@Alice" in sent
    assert ("ou_bob" in sent) is (not options)


@every_row(
    "text",
    ["@Alice look", "one\n@Alice look", "a ` b\n\n@Alice look", "```\nx\n```\n@Alice look"],
)
def test_a_name_outside_of_code_still_is(text: str):
    assert "<at id=ou_alice></at> look" in card(reply(text))


# Templates

TEMPLATES = [
    "{at} ",
    "{at}",
    "{at}, ",
    "{at}：",
    "{at}\n",
    "Hi {at}! ",
    "回复 {at}：",
    "{at} please: ",
]


def test_the_template_stands_around_the_address():
    hello = {text: MentionTemplate.parse(text) for text in TEMPLATES}
    made = {text: reply("hello", template=template) for text, template in hello.items()}
    assert made == {
        "{at} ": "@Bob hello",
        "{at}": "@Bob hello",
        "{at}, ": "@Bob, hello",
        "{at}：": "@Bob：hello",
        "{at}\n": "@Bob\nhello",
        "Hi {at}! ": "Hi @Bob! hello",
        "回复 {at}：": "回复 @Bob：hello",
        "{at} please: ": "@Bob please: hello",
    }
    assert MentionTemplate.parse("{at} ") == PLAIN


@every_row("template", TEMPLATES)
def test_whatever_the_template_the_person_is_notified_once(template: str):
    shape = MentionTemplate.parse(template)
    for text in ("hello", "# Plan\n- one", "```\n@Bob\n```"):
        once = reply(text, template=shape)
        sent = to_card(once, TEAM, escape=html.escape, lead=shape.lead)
        assert sent.count(TAG) == 1
        assert reply(once, template=shape) == once
        assert from_card(sent, TEAM, unescape=html.unescape) == once
        assert not opens_block(text) or f"\n\n{text}" in once


UNFIT = ["", "hello", "{at}{at}", "# {at} ", "- {at}", ":{at}", "> {at}", "1. {at}", "x\n{at}"]
UNFIT += ["{at} @all ", "<b>{at}</b>", "`{at}` ", "{x}{at}", "|{at}|", "{at}&nbsp;"]
UNFIT += ["{at}" + "x" * 61, "{at}\x00", "    {at}\x1b"]


@every_row("template", UNFIT)
def test_a_template_that_would_break_the_address_is_refused(template: str):
    with pytest.raises(ValueError, match=r"it must|it may"):
        MentionTemplate.parse(template)


def parsed(text: str) -> MentionTemplate | None:
    try:
        return MentionTemplate.parse(text)
    except ValueError:
        return None


NAMES = ["alice", "Alice", "bob", "Ann", "Ann Lee", "王小", "王小明", "R&D", "x.y"]
signs = st.text(st.sampled_from("ab王 ,.-:：!?'’\n*~_#1()"), max_size=6)
templates = (
    st.builds(lambda lead, tail: f"{lead}{{at}}{tail}", signs, signs)
    .map(parsed)
    .filter(lambda found: found is not None)
) | st.just(PLAIN)
PIECES = ["@", " ", ", ", ":", "\n", "\n\n", "    ", "```\n", "`", "- ", "1. ", "# ", "> ", "---\n"]
PIECES += [*(f"@{name}" for name in NAMES), "| a |\n|---|\n", "hi", "Hi ", "你好"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text()
senders = st.sampled_from(NAMES) | st.text(min_size=1, max_size=8)


@given(texts, templates, senders, st.sampled_from(NAMES))
def test_every_rule_holds_for_every_template(text, template, sender, agent):
    once = compose_reply(text, sender, agent, template=template)
    assert compose_reply(once, sender, agent, template=template) == once
    assert (once == "") is (compose_reply(text, None, agent) == "")
    same = sender.casefold() == agent.casefold()
    assert not once or same or f"@{sender}".casefold() in once.casefold()
    assert compose_reply(text, None, agent, template=template) == compose_reply(text, None, agent)
    # A name that is known is read as a whole: "@Ann Lee" is not the agent "Ann" then.
    if f"@{sender}".casefold() not in text.casefold():
        assert compose_reply(text, sender, agent, sender_type="system", template=template) == (
            compose_reply(text, None, agent)
        )


@given(texts, templates)
def test_what_is_sent_notifies_the_sender_and_reads_back_for_every_template(text, template):
    known = TEAM.including(Person("ou_ann", "Ann"), Person("ou_lee", "Ann Lee"))
    once = address_reply(text, sender=BOB, agent=MEMO, roster=known, template=template)
    sent = to_card(once, known, escape=html.escape, preferred="ou_bob", lead=template.lead)
    assert not once or sent.count(TAG) >= 1
    assert from_card(sent, known, unescape=html.unescape).casefold() == once.casefold()
