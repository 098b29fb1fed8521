"""Markdown as models write it, in the form in which Feishu draws it."""

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.drawable_markdown import normalised_markdown
from tests.support.rows import every_row

LINES = [
    "- a",
    "  - b",
    "    - c",
    "1. a",
    "   2) b",
    "\t* x",
    "text",
    "  text",
    "      code",
    "> q",
]
LINES += ["```", "```py", "   ```", "~~~", "  ~~~js", "````", "    ```", "# T", "| a |", "|-|", ""]
OTHER = ["", "hello", "a\n    b", "    code\n    - no list", "> - q\n>   - r", "a - b\n---\n* * *"]
OTHER += [
    "```\n  - x\n\ty\n```",
    "| a |\n|---|\n| 1 |",
    "text\n\n    code\n\ntext",
    "2026. was good",
]
lines = st.sampled_from(LINES)


@every_row(
    ("written", "drawn"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("- a\n  - b\n    - c\n- d", "- a\n    - b\n        - c\n- d"),
        ("1. a\n   - b\n   - c\n2. d", "1. a\n    - b\n    - c\n2. d"),
        ("* a\n\t* b", "* a\n    * b"),
        ("- a\n\n  more of a\n- b", "- a\n\n    more of a\n- b"),
        ("- [ ] a\n  - [x] b", "- [ ] a\n    - [x] b"),
        ("1. a\n   ```py\n   x\n     y\n   ```\n2. b", "1. a\n```py\nx\n  y\n```\n2. b"),
        ("- a\n  ```\n  x\n  ```\n  more\n  - b", "- a\n```\nx\n```\nmore\n- b"),
        ("~~~js\nx\n~~~", "```js\nx\n```"),
        ("~~~\n```\n~~~", "~~~\n```\n~~~"),
        ('```py title="x"\nx\n```', "```py\nx\n```"),
        ("see\n```py\nopen", "see\n```py\nopen\n```"),
        ("````md\n```\nx\n```\n````", "````md\n```\nx\n```\n````"),
    ],
)
def test_lists_and_code_are_written_as_feishu_reads_them(written: str, drawn: str):
    assert normalised_markdown(written) == drawn


@every_row(
    ("written", "drawn"),
    [
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        (
            "| 步骤 | 说明 |\n|-|-|\n| 一 | 打开<br>保存 |",
            "| 步骤 | 说明 |\n|-|-|\n| 一 | 打开；保存 |",
        ),
        ("| a |\n|-|\n| - x <br/>- y |", "| a |\n|-|\n| - x; - y |"),
        ("- a<br>b\n- c", "- a\n    b\n- c"),
        ("a <b>bold</b> <strong>word</strong>, <em>it</em>", "a **bold** **word**, *it*"),
        ("H<sub>2</sub>O and <u>x</u> and <del>gone</del>", "H2O and x and ~~gone~~"),
        ("<p align='center'>Hi <b>you</b></p>", "Hi **you**"),
        ("<details><summary>More</summary>", "**More**"),
        ("a&nbsp;b <!-- note -->", "a b "),
        ("`<br>` and <br> tags", "`<br>` and <br> tags"),
        ("List<String> x < b and <b> alone", "List<String> x < b and <b> alone"),
        ("```html\n<b>x</b><br>\n```", "```html\n<b>x</b><br>\n```"),
        ("    <b>code</b>", "    <b>code</b>"),
        ("<<b></b>at id=all></at>", "<<b></b>at id=all></at>"),
    ],
)
def test_html_that_decorates_becomes_markdown(written: str, drawn: str):
    assert normalised_markdown(written) == drawn
    assert normalised_markdown(drawn) == drawn


@every_row("text", OTHER)
def test_other_text_stays_as_it_is(text: str):
    assert normalised_markdown(text) == text


@given(st.lists(lines, max_size=14).map("\n".join))
def test_once_is_enough_and_no_word_is_lost(text: str):
    once = normalised_markdown(text)
    assert normalised_markdown(once) == once
    kept = [line.strip() for line in once.split("\n") if line.strip(" \t`~")]
    assert [one.split(maxsplit=1)[-1] for one in kept if "```" not in one and "~~~" not in one] == [
        line.strip().split(maxsplit=1)[-1]
        for line in text.split("\n")
        if line.strip(" \t`~") and "```" not in line and "~~~" not in line
    ]


@every_row("sign", "\x00\x01\x0b\x0c\x1b\x7f\x85\x9f\ufdd0\ufffe\uffff\U0001fffe\U0010ffff")
def test_what_is_no_character_goes(sign: str) -> None:
    assert normalised_markdown(f"a{sign}b\n```\nc{sign}\n```") == "ab\n```\nc\n```"


@every_row("text", ["a\tb", "\u200d\u200c", "👨\u200d👩", "\ufffd", "\ue000", "\u00a0é"])
def test_what_is_a_character_stays(text: str) -> None:
    assert normalised_markdown(text) == text
