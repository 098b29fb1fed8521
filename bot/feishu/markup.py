"""Escapes what people and models wrote for card Markdown, and reads it back. Pure.

Feishu reads `<at …>`, `<font …>` and more inside card Markdown; its own escape is the numeric
entity. Inline code does not protect a tag; a plain fenced block does (seen in practice).
Sources: Feishu, "Rich text (Markdown)", JSON 2.0; AppLink protocol, “Open a chat page”."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from bot.text.languages import nest_quotations, shorten
from bot.text.markdown import certain_spans, code_starts
from memory.text import one_line, visible_line

_OPEN_ID = re.compile(r"ou_[0-9A-Za-z_-]{1,64}")
AT_TAG = re.compile(r"<at id=(all|ou_[0-9A-Za-z_-]{1,64})></at>")
_TAGS = "at|person|font|text_tag|link|local_datetime|number_tag|audio|video|img|br|hr|raw|highlight"

# `<` stays where no parser can see a tag: before a digit, `=`, `-`, `<`, or one space and a word
# that is no tag name.
_LESS = re.compile(rf"<(?![0-9=\-<]| (?!/?(?:{_TAGS})\b)[^\s/!?<])", re.IGNORECASE)

# Some readers take the entity of a `<` without its semicolon too.
_ENTITY = re.compile(r"&(?=#?[0-9A-Za-z]{1,31};|lt|#0*60(?!\d)|#x0*3c)", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)

# What stands for the marks of `verbatim` words until they are escaped: U+F000 and the ASCII mark.
_PRIVATE_MARKS = re.compile("[\uf021-\uf07e]")
_PRIVATE_AREA = 0xF000

# All that `card_markdown` looks at.
_TO_ESCAPE = re.compile(r"[<&\[\]\x00\ud800-\udfff\uf021-\uf07e]")
_FENCED_AT = re.compile(r"<(\u200b*)(?=/?(?:at|person)\b)", re.IGNORECASE)
_FENCED_AT_ESCAPED = re.compile(r"<\u200b(\u200b*)(?=/?(?:at|person)\b)", re.IGNORECASE)
_FENCE_LINE = re.compile(r"```[0-9A-Za-z_+#.-]{0,20}[ \t]*\r?")
_FENCE_END = re.compile(r"```[ \t]*\r?")
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,500})\]\(([^()\s]{0,2000})(?: \"[^\"\n]{0,200}\")?\)|!(?=\[)")

# A link as models write it, or what may begin one in a way that only a whole parser could follow.
_LINK = re.compile(
    r"(?<!!)\[([^\[\]\n]{0,500})\]\(([^()\s]{0,2000})(?: \"[^\"\n]{0,200}\")?\)"
    r"|\]\((?!https?://[^()\s\\]{1,2000}\))",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"\]:(?!\s*https?://)", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://[^\s\\]{1,2000}", re.IGNORECASE)
_DECORATION = re.compile(r"</?(?:font|text_tag|number_tag)(?:\s[^<>]{0,300})?>", re.IGNORECASE)
_MARK = re.compile(r"[<>&~!*/\\\[\]()#:+\"`$_|@]")
_SPECIAL = re.compile(r"[<>&~!*/\\\[\]()#:+\"`$_|]")
_OPENABLE = re.compile(r"(https?://[0-9A-Za-z./?=%&#_-]{1,2000})")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ANCHOR = re.compile(
    r"<(a|link)\s[^<>]{0,300}?\b(?:href|url)\s*=\s*[\"']?([^\"'\s<>]{1,2000})[^<>]{0,300}>([^<>]*)</\1>",
    re.IGNORECASE,
)

# What may change how a paragraph reads that stands further up or down: fences, and the definition
# of a link, whose address may stand in another line.
_FAR_REACHING = re.compile(r"```|~~~|\]:")


def at_tag(open_id: str) -> str:
    """The tag that notifies a person. Raises ValueError for what is not an open_id."""
    if not _OPEN_ID.fullmatch(open_id):
        raise ValueError(f"{open_id!r} is no open_id; mention people by their ou_… id.")
    return f"<at id={open_id}></at>"


def escape(text: str) -> str:
    """`text` with every card tag in it inert; other Markdown keeps its meaning.

    `unescape` gives the text back (lone surrogates and NUL excepted, which become U+FFFD). Not
    idempotent: escape once, before at-tags are put in.
    """
    return _by_region(_storable(text).replace("\x00", "\ufffd"), _escape_prose, _escape_code)


def _storable(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unescape(markdown: str) -> str:
    """The text that `escape` was given, for showing history to the model."""
    if "&" not in markdown and "<" not in markdown:
        return markdown
    return _by_region(
        markdown,
        lambda prose: _ESCAPED.sub(lambda match: html.unescape(match.group()), prose),
        lambda code: _FENCED_AT_ESCAPED.sub(r"<\1", code),
    )


def without_decoration(markdown: str) -> str:
    """Card Markdown of others without tags for colours and the like; links as Markdown has them."""

    def plain(prose: str) -> str:
        with_links = _ANCHOR.sub(lambda link: f"[{link[3] or link[2]}]({link[2]})", prose)
        return _BREAK.sub("\n", _DECORATION.sub("", with_links))

    return _by_region(markdown, plain, str) if "<" in markdown else markdown


def _escape_prose(prose: str) -> str:
    escaped_text = _LESS.sub("&#60;", _ENTITY.sub("&#38;", prose))
    return _PRIVATE_MARKS.sub(lambda sign: f"&#{ord(sign[0]) - _PRIVATE_AREA};", escaped_text)


def _escape_code(code: str) -> str:
    """In code only mentions are broken, by an invisible space: a ping must not hang on whether
    Feishu sees the fence as we do."""
    return _FENCED_AT.sub("<\u200b\\1", code)


def inert_images(markdown: str) -> str:
    """Returns escaped `markdown` whose images are links, or their alt text: one unknown image key
    makes Feishu refuse the whole card (200570)."""
    return _outside_code(markdown, lambda prose: _IMAGE.sub(_instead_of_image, prose))


def without_images(markdown: str) -> str:
    """Escaped `markdown` with no image left, not even in inline code."""
    return _by_region(markdown, lambda prose: _IMAGE.sub(_instead_of_image, prose), str)


def _instead_of_image(match: re.Match[str]) -> str:
    alt, target = match.groups()
    if target is None:
        return "&#33;"
    return f"[{alt or target}]({target})" if _ADDRESS.fullmatch(target) else alt or "(image)"


def plain_words(text: str) -> str:
    """`text` as one line of plain words in card Markdown: nothing in it is a mark or a tag.

    Source: Feishu, "Rich text (Markdown)", the characters that an entity stands for.
    """
    return _SPECIAL.sub(lambda sign: f"&#{ord(sign[0])};", one_line(_storable(text)))


def verbatim_words(text: str) -> str:
    """`text` as one line of plain words in what `escape` is given later, with everything around it:
    then no mark, tag, link or mention is in it."""
    return _without_marks(visible_line(_storable(text)))


def quotable(words: str, most: int = 300) -> str:
    """What a person wrote, for quotation marks in what `escape` is given later: like
    `verbatim_words`, cut after `most` characters. Plain web addresses can still be opened."""
    line = nest_quotations(shorten(visible_line(_storable(words)), most))
    parts = _OPENABLE.split(line)
    return "".join(part if n % 2 else _without_marks(part) for n, part in enumerate(parts))


def _without_marks(text: str) -> str:
    return _MARK.sub(lambda sign: chr(_PRIVATE_AREA + ord(sign[0])), text)


def with_marks(text: str) -> str:
    """What the `verbatim_words` in `text` stand for, where nothing is read as a mark."""
    return _PRIVATE_MARKS.sub(lambda sign: chr(ord(sign[0]) - _PRIVATE_AREA), text)


def safe_links(markdown: str) -> str:
    """Escaped `markdown` whose links lead to http or https; others become words.

    Source: Feishu, "Rich text (Markdown)": only links of these two schemes are drawn.
    """

    def replace(match: re.Match[str]) -> str:
        label, target = match.groups()
        if target is None:
            return "]&#40;"
        return match.group() if _ADDRESS.fullmatch(target) else _words_apart(match, label, target)

    return _outside_code(
        markdown, lambda prose: _DEFINITION.sub("]&#58;", _LINK.sub(replace, prose))
    )


def without_links(markdown: str) -> str:
    """Escaped `markdown` with its links as words and addresses in brackets."""

    def replace(match: re.Match[str]) -> str:
        label, target = match.groups()
        return "]&#40;" if target is None else _words_apart(match, label, target)

    return _outside_code(markdown, lambda prose: _LINK.sub(replace, prose))


def _words_apart(link: re.Match[str], label: str, target: str) -> str:
    """The link as words, which must not grow together with a name before it."""
    before = link.string[: link.start()][-1:]
    return f"{' ' if before.isalnum() else ''}{_as_words(label, target)}"


def _as_words(label: str, target: str) -> str:
    return f"{label} ({target})" if label and target and label != target else label or target


def code_text(markdown: str) -> str:
    """Card Markdown as the inside of a plain fence, where entities are shown as they are."""
    return _FENCED_AT.sub("<\u200b\\1", unescape(markdown)).replace("```", "`\u200b`\u200b`")


def card_markdown(text: str) -> str:
    """Text of a person or model as Markdown that is safe in a card; at-tags are added after."""
    if not _TO_ESCAPE.search(text):  # names, mostly
        return text
    return safe_links(inert_images(escape(text)))


def name_mentions(markdown: str, names: Mapping[str, str]) -> str:
    """`markdown` with our at-tags as @Name (escaped); people without a name lose the tag."""

    def name_of(match: re.Match[str]) -> str:
        name = "all" if match.group(1) == "all" else names.get(match.group(1), "")
        return f"@{escape(name)}" if name else ""

    return AT_TAG.sub(name_of, markdown)


def model_text(markdown: str, names: Mapping[str, str]) -> str:
    """A stored card's Markdown as the model should read it: @Name for tags, nothing escaped."""
    return unescape(name_mentions(markdown, names))


def plain_text(markdown: str, names: Mapping[str, str]) -> str:
    """For a text message, where entities are not decoded and `<at` and `<b>` are tags: a `<` that
    could open one is written as the full-width ＜."""
    return _LESS.sub("＜", model_text(markdown, names))


def _by_region(text: str, prose: Callable[[str], str], code: Callable[[str], str]) -> str:
    return "".join(code(part) if is_code else prose(part) for is_code, part in _regions(text))


def _outside_code(text: str, prose: Callable[[str], str]) -> str:
    """`prose` for what is neither in a plain fence nor certainly inline code. All that is looked
    for there has a bracket."""
    if "[" not in text and "]" not in text:
        return text

    def line(text: str) -> str:
        parts, position = [], 0
        for span in certain_spans(text):
            parts += [prose(text[position : span.start]), text[span.start : span.end]]
            position = span.end
        return "".join(parts) + prose(text[position:])

    def lines(text: str) -> str:
        if "`" not in text:
            return prose(text)
        all_lines = text.split("\n")
        starts = code_starts(["" if one.startswith("```") else one for one in all_lines])
        return "\n".join(
            prose(one) if within else line(one)
            for one, within in zip(all_lines, starts, strict=True)
        )

    return _by_region(text, lines, str)


def _regions(text: str) -> Iterator[tuple[bool, str]]:
    """(is code, text) in order. Code is what stands in plain fences: three backticks at the start
    of a line, closed, and nothing else in the text that any parser might take for a fence."""
    lines = text.split("\n")
    marks = _plain_fences(text, lines)
    start = 0
    for opening, closing in marks:
        yield False, "".join(f"{line}\n" for line in lines[start : opening + 1])
        yield True, "".join(f"{line}\n" for line in lines[opening + 1 : closing])
        start = closing
    yield False, "\n".join(lines[start:])


def _plain_fences(text: str, lines: list[str]) -> list[tuple[int, int]]:
    """(opening, closing) line numbers; none as soon as one fence is doubtful."""
    if "```" not in text or "~~~" in text:
        return []
    marks = [number for number, line in enumerate(lines) if "```" in line]
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    plain = all(
        _FENCE_LINE.fullmatch(lines[opening]) and _FENCE_END.fullmatch(lines[closing])
        for opening, closing in pairs
    )
    return pairs if plain and len(marks) % 2 == 0 else []


class IncrementalMarkdown:
    """`card_markdown`, for one text that comes again and again as it grows: its first paragraphs,
    as far as nothing in them reaches further, are escaped once."""

    def __init__(self) -> None:
        self._text = ""
        self._markdown = ""

    def __call__(self, text: str) -> str:
        if "\n\n" not in text:  # a name, or a text that has just begun
            return card_markdown(text)
        if not text.startswith(self._text):
            self._text = self._markdown = ""
        start = len(self._text)
        end = _end_of_complete(text, start)
        self._markdown += card_markdown(text[start:end])
        self._text = text[:end]
        return self._markdown + card_markdown(text[end:])


def _end_of_complete(text: str, start: int) -> int:
    """Where the paragraphs end that are complete and stand for themselves; at least `start`."""
    reaching = _FAR_REACHING.search(text, start)
    end = text.rfind("\n\n", start, reaching.start() if reaching else len(text))
    return start if end < 0 else end + 2


def applink_base(feishu_domain: str) -> str:
    """Where links to chats begin."""
    lark = "larksuite" in feishu_domain
    return f"https://applink.{'larksuite.com' if lark else 'feishu.cn'}/client/chat/open"


def chat_link(applink: str, chat_id: str, position: int = 0) -> str:
    """The link to a chat, at its message of that `position`; `applink` as above."""
    at = f"&position={position}" if position > 0 else ""
    return f"{applink}?openChatId={quote(chat_id, safe='')}{at}"
