"""Card Markdown cut into pieces that Feishu accepts, and simplified when it does not.

Sizes are bytes in the request body, where the card is JSON inside JSON. All functions take linear
time. Source: Feishu, "Reply to a message" (30 KB of request body); the cap on Markdown tables is
not documented and was seen in practice (230099 with ErrCode 11310).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.feishu.errors import FeishuError
from bot.feishu.markup import inert_images, name_mentions

# 30 KB less room for the card around the text: buttons, note, summary, ids.
MAX_MARKDOWN_BYTES = 20_000
MAX_TABLES = 3
_SMALLEST = 400

_FENCE = re.compile(r" {0,3}(`{3,8}|~{3,8})([^`~]{0,40})")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_ATOM = re.compile(
    r"<at [^<>]{1,100}></at>"
    r"|&#?[0-9A-Za-z]{1,31};"
    r"|[ \t]{1,64}"
    r"|[0-9A-Za-z_]{1,64}"
    r"|[\U0001F1E6-\U0001F1FF]{2}"
    r"|(?s:.)(?:[\u0300-\u036f\ufe00-\ufe0f\u20e3\U0001F3FB-\U0001F3FF]|\u200d(?s:.)){0,16}"
)


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines (with their newlines) that belong together. `opening` is repeated before, `closing`
    after each part when the block must be cut."""

    lines: tuple[str, ...]
    opening: str = ""
    closing: str = ""
    is_table: bool = False

    @property
    def size(self) -> int:
        return sum(map(encoded_size, (self.opening, *self.lines, self.closing)))

    @property
    def text(self) -> str:
        return self.opening + "".join(self.lines) + self.closing


def encoded_size(text: str) -> int:
    """Bytes `text` takes in the request body, where it is a JSON string within a JSON string."""
    size = len(text.encode("utf-8", "surrogatepass"))
    size += 3 * (text.count('"') + text.count("\\"))
    size += 2 * sum(text.count(blank) for blank in "\n\r\t\b\f")
    return size + 6 * len(_CONTROL.findall(text))


def split_markdown(
    markdown: str, max_bytes: int = MAX_MARKDOWN_BYTES, max_tables: int = MAX_TABLES
) -> list[str]:
    """Pieces of at most `max_bytes` (encoded) and `max_tables` tables, in order; all words kept.

    Cuts between paragraphs, else lines, else words; fences are closed and opened again, table
    headers repeated. Text that fits comes back as it is, in one piece.
    """
    if max_bytes < _SMALLEST or max_tables < 1:
        raise ValueError(f"A piece needs at least {_SMALLEST} bytes and one table.")
    blocks = list(_blocks(markdown))
    tables = sum(block.is_table for block in blocks)
    if encoded_size(markdown) <= max_bytes and tables <= max_tables:
        return [markdown]
    parts = (part for block in blocks for part in _fitting(block, max_bytes))
    pieces = _packed(parts, max_bytes, max_tables)
    return [piece for piece in pieces if piece.strip()] or [""]


def _packed(parts: Iterable[_Block], max_bytes: int, max_tables: int) -> Iterator[str]:
    piece: list[str] = []
    size = tables = 0
    for part in parts:
        cost = part.size
        if piece and (size + cost > max_bytes or tables + part.is_table > max_tables):
            yield _joined(piece)
            piece, size, tables = [], 0, 0
        piece.append(part.text)
        size += cost
        tables += part.is_table
    yield _joined(piece)


def _joined(piece: list[str]) -> str:
    return "".join(piece).strip("\r\n")


def _fitting(block: _Block, max_bytes: int) -> Iterator[_Block]:
    """`block`, or parts of it that fit into one piece each."""
    if block.size <= max_bytes:
        yield block
        return
    frame = encoded_size(block.opening) + encoded_size(block.closing)
    if frame > max_bytes // 2:
        block = _Block((*_LINE.findall(block.opening), *block.lines))
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


def _part(block: _Block, lines: list[str]) -> _Block:
    if block.opening and not lines[-1].endswith("\n"):
        lines = [*lines[:-1], lines[-1] + "\n"]
    return _Block(tuple(lines), block.opening, block.closing, block.is_table)


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


def _blocks(markdown: str) -> Iterator[_Block]:
    """Paragraphs (with the blank lines after them), fences and tables."""
    lines = _LINE.findall(markdown)
    at = 0
    while at < len(lines):
        block, at = _next_block(lines, at)
        yield block


def _next_block(lines: list[str], at: int) -> tuple[_Block, int]:
    fence = _FENCE.fullmatch(lines[at].rstrip("\r\n"))
    if fence:
        return _fence(lines, at, fence.group(1))
    if _is_table(lines, at):
        return _table(lines, at)
    end = at + 1
    while end < len(lines) and not _starts_block(lines, end):
        end += 1
    return _Block(tuple(lines[at:end])), end


def _starts_block(lines: list[str], at: int) -> bool:
    after_blank = not lines[at - 1].strip() and bool(lines[at].strip())
    return after_blank or bool(_FENCE.fullmatch(lines[at].rstrip("\r\n"))) or _is_table(lines, at)


def _fence(lines: list[str], at: int, mark: str) -> tuple[_Block, int]:
    end = at + 1
    while end < len(lines) and not _closes(lines[end], mark):
        end += 1
    closed = lines[end] if end < len(lines) else f"{mark}\n"
    opening = lines[at] if lines[at].endswith("\n") else lines[at] + "\n"
    inner = [line if line.endswith("\n") else line + "\n" for line in lines[at + 1 : end]]
    return _Block(tuple(inner), opening, closed), end + 1


def _closes(line: str, mark: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and not text.strip(mark[0])


def _is_table(lines: list[str], at: int) -> bool:
    if at + 1 >= len(lines) or "|" not in lines[at]:
        return False
    cells = [cell.strip() for cell in lines[at + 1].strip().strip("|").split("|")]
    return all("-" in cell and not cell.strip(":").strip("-") for cell in cells)


def _table(lines: list[str], at: int) -> tuple[_Block, int]:
    end = at + 2
    while end < len(lines) and "|" in lines[end] and not _FENCE.match(lines[end]):
        end += 1
    return _Block(tuple(lines[at + 2 : end]), "".join(lines[at : at + 2]), "", True), end


def degrade(
    markdown: str, error: FeishuError, names: Mapping[str, str] | None = None
) -> str | None:
    """What to put into the card after a 230099, or None when only a post or text is left.

    11310: tables become code; 100290 (someone in an at-tag is not in the chat): tags become
    names; 200570: images become links. `names` are by open_id.
    """
    match error.sub_code:
        case 11310:
            simpler = _tables_as_code(markdown, names or {})
        case 100290:
            simpler = name_mentions(markdown, names or {})
        case 200570:
            simpler = inert_images(markdown)
        case _:
            return None
    return simpler if simpler != markdown else None


def _tables_as_code(markdown: str, names: Mapping[str, str]) -> str:
    def rendered(block: _Block) -> str:
        if not block.is_table:
            return "".join([block.opening, *block.lines, block.closing])
        table = name_mentions(block.text, names).rstrip("\n")
        return f"```\n{table}\n```\n"

    return "".join(rendered(block) for block in _blocks(markdown)).rstrip("\n")
