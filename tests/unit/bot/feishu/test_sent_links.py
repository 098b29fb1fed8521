"""Of links only those that Feishu draws are sent: http and https; others stay readable words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.feishu.markup import card_markdown, model_text
from tests.support.rows import every_row


class Permissive(MarkdownIt):
    """CommonMark without the parser's own refusal of schemes."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 (the parser's name)
        return True


READER = Permissive("commonmark", {"html": False})

SCHEMES = ("mailto:", "tel:", "javascript:", "lark://", "ftp://", "file:///", "x:", "")
FORMS = (
    "[label]({0})",
    '[label]({0} "title")',
    "[label](<{0}>)",
    "[label](\n{0})",
    "[label]( {0} )",
    "[a [b] c]({0})",
    "[a\nb]({0})",
    "[`code`]({0})",
    "[label][ref]\n\n[ref]: {0}",
    "[ref]\n\n[ref]: {0} 'title'",
    "[ref][]\n\n[ref]:\n{0}",
    "> [ref]\n\n> [ref]: {0}",
    "- [ref]\n\n- [ref]: {0}",
    "[a\\]b]\n\n[a\\]b]: {0}",
    "[`a`]\n\n[`a`]: {0}",
    "<{0}>",
    "![label]({0})",
    "![label][ref]\n\n[ref]: {0}",
    "[![label]({0})]({0})",
    "[label]({0})[label]({0})",
)


def targets(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "link_open":
            yield str(token.attrs["href"])
        if token.type == "image":
            yield str(token.attrs["src"])
        yield from targets(token.children or [])


def drawn(text: str) -> list[str]:
    return list(targets(READER.parse(card_markdown(text))))


@every_row("form", FORMS)
@every_row("scheme", SCHEMES)
def test_no_form_of_link_leads_anywhere_else(form: str, scheme: str) -> None:
    text = form.format(f"{scheme}a@b.example")
    assert drawn(text) == []
    assert f"{scheme}a@b.example" in model_text(card_markdown(text), {}) or "![" in form


@every_row(
    "form", ["[label]({0})", '[label]({0} "title")', "[a][ref]\n\n[ref]: {0}", "![label]({0})"]
)
@every_row("address", ["https://x.example/a?b=1&c=2", "HTTP://x.example"])
def test_links_that_feishu_draws_stay(form: str, address: str) -> None:
    assert [one.lower() for one in drawn(form.format(address))] == [address.lower()]


def test_a_mail_address_stays_readable() -> None:
    assert card_markdown("write to [Bob](mailto:bob@x.example)") == (
        "write to Bob (mailto:bob@x.example)"
    )
    assert card_markdown("[a@b.c](a@b.c), a@b.c") == "a@b.c, a@b.c"


def test_a_colon_after_brackets_is_the_same_colon_for_the_model() -> None:
    text = "arr[0]: see [1](x:y) and [a]( b )"
    assert model_text(card_markdown(text), {}) == "arr[0]: see 1 (x:y) and [a]( b )"


pieces = st.sampled_from(
    ["[", "]", "(", ")", "![", "](", "]:", "[a]", "[a]: ", "[a](", "!", "<", ">", "\\", "`", "```",
     " ", "\n", "\n\n", "> ", "- ", "1. ", "    ", "\t", "\"t\"", "a", "#", "*", "|", "&#58;",
     "&#109;", "mailto:a@b.c", "javascript:x", "x:y", "tel:1", "https://x.example", "<mailto:a>"]
)  # fmt: skip


@given(st.lists(pieces | st.text(max_size=3), max_size=16).map("".join))
@example("- \\[[a]\n\n> [a]: #")
def test_in_any_text_every_link_is_one_that_feishu_draws(text: str) -> None:
    assert [one for one in drawn(text) if not re.match(r"https?://", one, re.I)] == []
