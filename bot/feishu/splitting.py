"""Card Markdown cut into pieces that Feishu accepts.

Sizes are bytes in the request body, where the card is JSON inside JSON. All functions take linear
time. Source: Feishu, "Reply to a message" (30 KB of request body); the cap on Markdown tables is
four to an element in the documents and was seen to be three (230099 with ErrCode 11310).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.text.markdown import HEADING

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
        alone = not any(line.strip() for line in self.lines[1:])
        return alone and bool(HEADING.match(first) or _ADDRESS.fullmatch(first))

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
    room = _room(blocks, max_bytes)
    parts = (part for block in blocks for part in _fitting(block, room))
    pieces = _packed(parts, max_bytes, max_tables)
    return [piece for piece in pieces if piece.strip()] or [""]


def _room(blocks: Sequence[Block], max_bytes: int) -> int:
    """Bytes for a part of a block, so that what introduces one is never alone in a piece."""
    introducing = max((b.size for b in blocks if b.introduces), default=0)
    return max_bytes - introducing if introducing <= max_bytes // 4 else max_bytes


def _packed(parts: Iterable[Block], max_bytes: int, max_tables: int) -> Iterator[str]:
    piece: list[Block] = []
    size = tables = 0
    for part in parts:
        cost = part.size
        if piece and (size + cost > max_bytes or tables + part.is_table > max_tables):
            moves = piece[-1].introduces and cost + piece[-1].size <= max_bytes
            moved_blocks = [piece.pop()] if moves else []
            yield _joined(piece)
            piece, size, tables = moved_blocks, sum(one.size for one in moved_blocks), 0
        piece.append(part)
        size += cost
        tables += part.is_table
    yield _joined(piece)


def _joined(piece: Sequence[Block]) -> str:
    return "".join(part.text for part in piece).strip("\r\n")


def _fitting(block: Block, max_bytes: int) -> Iterator[Block]:
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
    for line in (part for whole in block.lines for part in _cut(whole, room)):
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
    parts = (p for one in blocks_of(inside) for p in _fitting(one, max_bytes // 2 - 10))
    for piece in _packed(parts, max_bytes // 2 - 10, MAX_TABLES):
        yield Block((*(f"> {line}\n" for line in piece.split("\n")), "\n"))


def _part(block: Block, lines: list[str]) -> Block:
    if block.opening and not lines[-1].endswith("\n"):
        lines = [*lines[:-1], lines[-1] + "\n"]
    return Block(tuple(lines), block.opening, block.closing, block.is_table)


def _cut(line: str, room: int) -> Iterator[str]:
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
    while end < len(lines) and not _closes(lines[end], mark):
        end += 1
    closing = lines[end] if end < len(lines) else f"{mark}\n"
    opening = lines[at] if lines[at].endswith("\n") else lines[at] + "\n"
    inner = [line if line.endswith("\n") else line + "\n" for line in lines[at + 1 : end]]
    return Block(tuple(inner), opening, closing), end + 1


def _closes(line: str, mark: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and not text.strip(mark[0])


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
