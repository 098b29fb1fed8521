"""Words of people in a sentence of our own, which is escaped as a whole."""

from __future__ import annotations

from bot.feishu.markup import card_markdown, unescape, verbatim_words
from tests.support.rows import every_row

WORDS = {
    "bold": "**paid** __by__ Bob",
    "a link": "[minutes](https://evil.test/a_(b)) https://evil.test",
    "a tag": "<at id=all></at> <font color=red>x</font>",
    "an entity": "&#60;at id=all&#62; &lt;",
    "code and a table": "`x` | a | ~~b~~ $c$ # d",
    "a mention": "@Bob @all",
}


@every_row("kind", WORDS)
def test_words_are_shown_as_they_are_and_mean_nothing(kind: str) -> None:
    card = card_markdown(f"📅 **{verbatim_words(WORDS[kind])}**")
    shown = card.removeprefix("📅 **").removesuffix("**")
    assert not set(shown) & set("<>*_`[]()|~$@:/")
    assert "&#38;#" not in shown.replace("&#38;#60;at", "").replace("&#38;#62;", "")
    assert unescape(card) == f"📅 **{WORDS[kind]}**", "escaped once"


@every_row("sign", "\u202e\u2066\u200b\u200f\u00ad\ufeff\x07\u061c")
def test_no_invisible_sign_is_left(sign: str) -> None:
    assert card_markdown(verbatim_words(f"pay {sign}Bob")) == "pay Bob"


def test_emoji_and_chinese_stay() -> None:
    assert card_markdown(verbatim_words("发布 👩\u200d💻 é")) == "发布 👩\u200d💻 é"
