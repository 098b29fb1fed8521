"""Normalises, cuts and simplifies Markdown until Feishu accepts and draws it. Pure, linear.

Sizes are bytes in the request body, where the card is JSON inside JSON (30 KB). Tables are
capped at four to an element in the documents, and three were seen (230099, ErrCode 11310). The
same text and refusal always give the same simpler text. Sources: Feishu, "Reply to a message",
"Rich text (Markdown)"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bot.feishu.errors import Action, FeishuError
from bot.feishu.html_tags import without_html
from bot.feishu.markup import code_text, name_mentions, without_images, without_links
from bot.text.markdown import FENCE, HEADING, ITEM, closes_fence

_TAB = 4
_DEEPEST = 8
_INDENT = re.compile(r"[ \t]*")

# Control characters, and those that Unicode never assigns: Feishu refuses or drops some of them.
_NO_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
_LANGUAGE = re.compile(r"[0-9A-Za-z_+#.-]{0,20}")

# 30 KB less room for the card around the text: buttons, note, summary, ids.
MAX_MARKDOWN_BYTES = 20_000
MAX_TABLES = 3
_SMALLEST = 400
_FENCE = re.compile(r" {0,3}(`{3,8}|~{3,8})([^`~]{0,40})")
_ADDRESS = re.compile(r"(?:[^\n<]{0,60}<at [^<>]{1,100}></at>[^\n<]{0,60}){1,5}\n?")
_QUOTED = re.compile(r" {0,3}> ?")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SLASHED, _BLANKS = b'"\\', b"\n\r\t\b\f"
_ESCAPED = _SLASHED + bytes(range(32))
_ATOM = re.compile(
    r"<at [^<>]{1,100}></at>"
    r"|&#?[0-9A-Za-z]{1,31};"
    r"|[ \t]{1,64}"
    r"|[0-9A-Za-z_]{1,64}"
    r"|[\U0001F1E6-\U0001F1FF]{2}"
    r"|(?s:.)(?:[\u0300-\u036f\ufe00-\ufe0f\u20e3\U0001F3FB-\U0001F3FF]|\u200d(?s:.)){0,16}"
)

# What Feishu names as the fault: too many tables, an image key, somebody who is not in the chat.
_NAMED_FAULTS: Mapping[int, int] = {11310: 0, 200570: 1, 100290: 2}


def normalised_markdown(text: str) -> str:
    """`text` without control characters, with `\\n` as its only line break, lists nested by four
    spaces, code blocks at the beginning of lines, in three backticks where these do, and closed.

    Normalising a normalised text changes nothing.
    """
    reader = _MarkdownReader()
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    for line in _NO_CHARACTERS.sub("", unified).split("\n"):
        reader.read(line)
    return "\n".join(reader.finished())


@dataclass
class _Fence:
    """A code block that is being read; `indent` columns are taken from each of its lines."""

    mark: str
    language: str
    indent: int
    body: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        plain = not any("```" in line for line in self.body)
        mark = "```" if plain else self.mark
        return [f"{mark}{self.language}", *self.body, mark]


class _MarkdownReader:
    """The lines so far. `_items` are the indents of the list items that are open; `_inside` is the
    indent of a code block that stood in a list and now stands before the rest of its item."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._items: list[int] = []
        self._inside = 0
        self._fence: _Fence | None = None

    def read(self, line: str) -> None:
        if self._fence:
            self._in_code(self._fence, line)
            return
        for one in without_html(line) if self._reads_html(line) else [line]:
            if one.strip():
                self._prose(one)
            else:
                self._lines.append(one)

    def _reads_html(self, line: str) -> bool:
        """False for indented code."""
        return bool(self._items or self._inside) or _indent_columns(line) < _TAB

    def finished(self) -> list[str]:
        if self._fence:
            self._close(self._fence)
        return self._lines

    def _prose(self, line: str) -> None:
        indent = _indent_columns(line)
        if indent == 0:
            self._inside = 0
        text = line.lstrip(" \t")
        if indent >= _TAB and not self._items and not self._inside:
            self._lines.append(line)  # indented code
        elif mark := FENCE.fullmatch(text):
            self._open(mark[1], mark[2].strip(), indent)
        elif ITEM.fullmatch(text):
            self._item(text, indent)
        else:
            self._text(line, text, indent)

    def _open(self, mark: str, info: str, indent: int) -> None:
        language = info.split(maxsplit=1)[0] if info else ""
        match = _LANGUAGE.fullmatch(language)
        self._fence = _Fence(mark, language if match else "", indent)

    def _in_code(self, fence: _Fence, line: str) -> None:
        if closes_fence(line, fence.mark):
            self._close(fence)
            return
        fence.body.append(_without_indent(line, fence.indent))

    def _close(self, fence: _Fence) -> None:
        self._lines += fence.lines()
        self._inside = fence.indent if self._items or self._inside else 0
        self._items.clear()
        self._fence = None

    def _item(self, text: str, indent: int) -> None:
        while self._items and indent < self._items[-1]:
            self._items.pop()
        if not self._items or indent > self._items[-1] + 1:
            self._items.append(indent)
        level = min(len(self._items) - 1, _DEEPEST)
        self._lines.append(" " * (_TAB * level) + text)

    def _text(self, line: str, text: str, indent: int) -> None:
        """What is no item: it goes on with one when it is indented, else it ends the list."""
        if self._items and indent > 0:
            level = min(len(self._items), _DEEPEST)
            self._lines.append(" " * (_TAB * level) + text)
            return
        after_blank = not self._lines or not self._lines[-1].strip()
        if indent == 0 and (after_blank or text.startswith(("#", ">", "|"))):
            self._items.clear()
        self._lines.append(text if self._inside else line)


def _indent_columns(line: str) -> int:
    indent = _INDENT.match(line)
    return len(indent[0].expandtabs(_TAB)) if indent else 0


def _without_indent(line: str, columns: int) -> str:
    """`line` with at most that many columns of its indentation gone."""
    if not columns:
        return line
    indent = _indent_columns(line)
    return " " * max(indent - columns, 0) + line.lstrip(" \t")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines (with their newlines) that belong together. `opening` is repeated before, `closing`
    after each part when the block must be cut."""

    lines: tuple[str, ...]
    opening: str = ""
    closing: str = ""
    is_table: bool = False

    @property
    def size(self) -> int:
        return encoded_size(self.text)

    @property
    def introduces(self) -> bool:
        """A heading, or an address in a paragraph of its own: it stands with what follows."""
        first = self.lines[0] if self.lines and not self.opening else ""
        is_only_line = not any(line.strip() for line in self.lines[1:])
        return is_only_line and bool(HEADING.match(first) or _ADDRESS.fullmatch(first))

    @property
    def is_quote(self) -> bool:
        text_lines = [line for line in self.lines if line.strip()]
        return bool(text_lines) and not self.opening and all(map(_QUOTED.match, text_lines))

    @property
    def text(self) -> str:
        return self.opening + "".join(self.lines) + self.closing


def encoded_size(text: str) -> int:
    """Bytes `text` takes in the request body, where it is a JSON string within a JSON string."""
    raw = text.encode("utf-8", "surrogatepass")
    escape_count = _count(raw, _ESCAPED)
    if not escape_count:
        return len(raw)
    slash_count, blanks = _count(raw, _SLASHED), _count(raw, _BLANKS)
    return len(raw) + 3 * slash_count + 2 * blanks + 6 * (escape_count - slash_count - blanks)


def _count(raw: bytes, kinds: bytes) -> int:
    """How many bytes of `raw` are among `kinds`."""
    return len(raw) - len(raw.translate(None, kinds))


def split_markdown(
    markdown: str, max_bytes: int = MAX_MARKDOWN_BYTES, max_tables: int = MAX_TABLES
) -> list[str]:
    """Pieces of at most `max_bytes` (encoded) and `max_tables` tables, in order; all words kept.

    Cuts between paragraphs, else lines, else words; fences are closed and opened again, table
    headers repeated. Text that fits comes back as it is, in one piece.
    """
    if max_bytes < _SMALLEST or max_tables < 1:
        raise ValueError(f"A piece needs at least {_SMALLEST} bytes and one table.")
    blocks = list(blocks_of(markdown))
    tables = sum(block.is_table for block in blocks)
    if encoded_size(markdown) <= max_bytes and tables <= max_tables:
        return [markdown]
    room = _room_for_part(blocks, max_bytes)
    parts = (part for block in blocks for part in _parts_that_fit(block, room))
    pieces = _packed_pieces(parts, max_bytes, max_tables)
    return [piece for piece in pieces if piece.strip()] or [""]


def _room_for_part(blocks: Sequence[Block], max_bytes: int) -> int:
    """Bytes for a part of a block, so that what introduces one is never alone in a piece."""
    introducing = max((b.size for b in blocks if b.introduces), default=0)
    return max_bytes - introducing if introducing <= max_bytes // 4 else max_bytes


def _packed_pieces(parts: Iterable[Block], max_bytes: int, max_tables: int) -> Iterator[str]:
    piece: list[Block] = []
    size = tables = 0
    for part in parts:
        cost = part.size
        if piece and (size + cost > max_bytes or tables + part.is_table > max_tables):
            moves = piece[-1].introduces and cost + piece[-1].size <= max_bytes
            moved_blocks = [piece.pop()] if moves else []
            yield _joined_parts(piece)
            piece, size, tables = moved_blocks, sum(one.size for one in moved_blocks), 0
        piece.append(part)
        size += cost
        tables += part.is_table
    yield _joined_parts(piece)


def _joined_parts(piece: Sequence[Block]) -> str:
    return "".join(part.text for part in piece).strip("\r\n")


def _parts_that_fit(block: Block, max_bytes: int) -> Iterator[Block]:
    """`block`, or parts of it that fit into one piece each."""
    if block.size <= max_bytes:
        yield block
        return
    if max_bytes >= 2 * _SMALLEST and block.is_quote:
        yield from _quotes(block, max_bytes)
        return
    frame = encoded_size(block.opening) + encoded_size(block.closing)
    if frame > max_bytes // 2:
        block = Block((*_LINE.findall(block.opening), *block.lines))
        frame = 0
    # A part may gain a line break (three bytes) where a long line was cut.
    room = max_bytes - frame - 3
    lines: list[str] = []
    size = 0
    for line in (part for whole in block.lines for part in _cut_line(whole, room)):
        cost = encoded_size(line)
        if lines and size + cost > room:
            yield _part(block, lines)
            lines, size = [], 0
        lines.append(line)
        size += cost
    if lines:
        yield _part(block, lines)


def _quotes(block: Block, max_bytes: int) -> Iterator[Block]:
    """A quote in several: what it quotes is cut between its own blocks. A line may be as short as
    the mark before it, which at most doubles the size."""
    inside = "".join(_QUOTED.sub("", line, count=1) for line in block.lines)
    parts = (p for one in blocks_of(inside) for p in _parts_that_fit(one, max_bytes // 2 - 10))
    for piece in _packed_pieces(parts, max_bytes // 2 - 10, MAX_TABLES):
        yield Block((*(f"> {line}\n" for line in piece.split("\n")), "\n"))


def _part(block: Block, lines: list[str]) -> Block:
    if block.opening and not lines[-1].endswith("\n"):
        lines = [*lines[:-1], lines[-1] + "\n"]
    return Block(tuple(lines), block.opening, block.closing, block.is_table)


def _cut_line(line: str, room: int) -> Iterator[str]:
    """`line` in parts of at most `room` bytes, between words where there are any."""
    if encoded_size(line) <= room:
        yield line
        return
    part: list[str] = []
    size = 0
    for atom in _ATOM.findall(line):
        cost = encoded_size(atom)
        if part and size + cost > room:
            yield "".join(part)
            part, size = [], 0
        part.append(atom)
        size += cost
    yield "".join(part)


def blocks_of(markdown: str) -> Iterator[Block]:
    """Paragraphs (with the blank lines after them), fences and tables."""
    lines = _LINE.findall(markdown)
    at = 0
    while at < len(lines):
        block, at = _next_block(lines, at)
        yield block


def _next_block(lines: list[str], at: int) -> tuple[Block, int]:
    fence = _FENCE.fullmatch(lines[at].rstrip("\r\n"))
    if fence:
        return _fence(lines, at, fence.group(1))
    if _is_table(lines, at):
        return _table(lines, at)
    end = at + 1
    while end < len(lines) and not _starts_block(lines, end):
        end += 1
    return Block(tuple(lines[at:end])), end


def _starts_block(lines: list[str], at: int) -> bool:
    after_blank = not lines[at - 1].strip() and bool(lines[at].strip())
    return after_blank or bool(_FENCE.fullmatch(lines[at].rstrip("\r\n"))) or _is_table(lines, at)


def _fence(lines: list[str], at: int, mark: str) -> tuple[Block, int]:
    end = at + 1
    while end < len(lines) and not closes_fence(lines[end], mark):
        end += 1
    closing = lines[end] if end < len(lines) else f"{mark}\n"
    opening = lines[at] if lines[at].endswith("\n") else lines[at] + "\n"
    inner = [line if line.endswith("\n") else line + "\n" for line in lines[at + 1 : end]]
    return Block(tuple(inner), opening, closing), end + 1


def _is_table(lines: list[str], at: int) -> bool:
    if at + 1 >= len(lines) or "|" not in lines[at]:
        return False
    cells = [cell.strip() for cell in lines[at + 1].strip().strip("|").split("|")]
    return all("-" in cell and not cell.strip(":").strip("-") for cell in cells)


def _table(lines: list[str], at: int) -> tuple[Block, int]:
    """To the last row. A second header ends it, because it counts as a table of its own."""
    end = at + 2
    while end < len(lines) and "|" in lines[end] and not _FENCE.match(lines[end]):
        if _is_table(lines, end):
            break
        end += 1
    return Block(tuple(lines[at + 2 : end]), "".join(lines[at : at + 2]), "", True), end


def should_drop_foot(error: FeishuError) -> bool:
    """Whether what stands around the answer goes before anything of the answer itself: it does
    unless Feishu names something in the words as the fault."""
    of_the_card = error.action in (Action.DEGRADE, Action.SPLIT, Action.REJECTED)
    return of_the_card and (error.sub_code or error.code) not in _NAMED_FAULTS


def simpler_markdown(
    markdown: str, error: FeishuError, names: Mapping[str, str] | None = None
) -> str | None:
    """The next simpler Markdown after a refusal, or None when only plain text is left.

    What Feishu complains of goes first; else tables become code, then images words, at-tags names
    and links words, one feature a step. `names` are by open_id. A text that is too long gets no
    shorter by this.
    """
    if error.action is Action.SPLIT:
        return None
    steps = _simplifying_steps(names or {})
    step_name = _NAMED_FAULTS.get(error.sub_code or 0)
    if step_name is not None:
        steps.insert(0, steps.pop(step_name))
    return next((simpler for step in steps if (simpler := step(markdown)) != markdown), None)


def _simplifying_steps(names: Mapping[str, str]) -> list[Callable[[str], str]]:
    return [
        lambda markdown: _tables_as_code(markdown, names),
        without_images,
        lambda markdown: name_mentions(markdown, names),
        without_links,
    ]


def _tables_as_code(markdown: str, names: Mapping[str, str]) -> str:
    blocks = list(blocks_of(markdown))
    if not any(block.is_table for block in blocks):
        return markdown
    texts = (_as_code(b.text, names) if b.is_table else b.text for b in blocks)
    return "".join(texts).rstrip("\n")


def _as_code(table: str, names: Mapping[str, str]) -> str:
    code = code_text(name_mentions(table, names).rstrip("\n"))
    return f"```\n{code}\n```\n"
