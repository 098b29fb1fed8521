"""Encodes and decodes the frames of the long connection, and joins messages of several. Pure.

A frame is a protobuf message (pbbp2.Frame): 1 SeqID, 2 LogID, 3 service, 4 method; 5 headers, 6
payload_encoding, 7 payload_type, 8 payload, 9 LogIDNew. This codec stands in for lark-oapi's,
whose import costs 170 MB; a test holds the two against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

CONTROL_METHOD = 0
DATA_METHOD = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WORD = (1 << 64) - 1

# The parts of a message follow each other closely; lark-oapi waits for five seconds too.
_PARTS_LIVE_S = 5.0
_MAX_PARTS = 64
_MAX_UNFINISHED = 64


class MalformedFrame(Exception):
    """The bytes are not a frame, or its headers make no sense: drop it, Feishu pushes again."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`method` is CONTROL or DATA. An optional field that is absent is None, not empty."""

    method: int
    service: int
    seq_id: int = 0
    log_id: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    payload_encoding: str | None = None
    payload_type: str | None = None
    payload: bytes | None = None
    log_id_new: str | None = None

    def header(self, key: str) -> str:
        """The value of the first header `key`, "" where there is none."""
        return next((value for name, value in self.headers if name == key), "")


def encode_frame(frame: Frame) -> bytes:
    """The frame as it travels, fields in the order of their numbers."""
    numbers = (frame.seq_id, frame.log_id, frame.service, frame.method)
    parts = [_varint(number << 3) + _varint(value) for number, value in enumerate(numbers, 1)]
    for key, value in frame.headers:
        parts.append(
            _sized_field(5, _sized_field(1, key.encode()) + _sized_field(2, value.encode()))
        )
    for number, text in ((6, frame.payload_encoding), (7, frame.payload_type)):
        parts.append(b"" if text is None else _sized_field(number, text.encode()))
    parts.append(b"" if frame.payload is None else _sized_field(8, frame.payload))
    parts.append(b"" if frame.log_id_new is None else _sized_field(9, frame.log_id_new.encode()))
    return b"".join(parts)


def decode_frame(raw: bytes) -> Frame:
    """The frame in `raw`; fields unknown here are skipped. Raises `MalformedFrame`."""
    numbers: dict[int, int] = {}
    fields_by_number: dict[int, bytes] = {}
    headers: list[tuple[str, str]] = []
    for number, value in _fields(raw):
        if isinstance(value, int):
            numbers[number] = value
        elif number == 5:
            headers.append(_header(value))
        else:
            fields_by_number[number] = value
    if missing := {1, 2, 3, 4} - numbers.keys():
        raise MalformedFrame(f"field {min(missing)} is missing")
    return Frame(
        method=_int32(numbers[4]),
        service=_int32(numbers[3]),
        seq_id=numbers[1],
        log_id=numbers[2],
        headers=tuple(headers),
        payload_encoding=_optional(fields_by_number.get(6)),
        payload_type=_optional(fields_by_number.get(7)),
        payload=fields_by_number.get(8),
        log_id_new=_optional(fields_by_number.get(9)),
    )


def _header(raw: bytes) -> tuple[str, str]:
    values = {number: value for number, value in _fields(raw) if isinstance(value, bytes)}
    if not {1, 2} <= values.keys():
        raise MalformedFrame("a header lacks its key or value")
    return _text(values[1]), _text(values[2])


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: varints as they are, what has a length as bytes."""
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(raw, at)
            yield number, value
            continue
        size, at = _size(raw, at, kind)
        if at + size > len(raw):
            raise MalformedFrame("it ends within a field")
        if kind == _BYTES:
            yield number, raw[at : at + size]
        at += size


def _size(raw: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind == _BYTES:
        return _read_varint(raw, at)
    if kind in (_FIXED64, _FIXED32):
        return (8 if kind == _FIXED64 else 4), at
    raise MalformedFrame(f"wire type {kind} is not used here")


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            break
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _WORD, at
    raise MalformedFrame("a number does not end")


def _varint(value: int) -> bytes:
    rest, out = value & _WORD, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _int32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _optional(raw: bytes | None) -> str | None:
    return None if raw is None else _text(raw)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        raise MalformedFrame("a text is not UTF-8") from exc


class FrameAssembly:
    """Puts messages together whose frames say so (headers message_id, sum, seq from 0).

    `clock` is monotonic seconds. What stays unfinished is dropped after five seconds, the oldest
    first where there is too much of it: it was not acknowledged, so Feishu pushes it again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._unfinished: dict[str, tuple[float, dict[int, bytes]]] = {}

    def whole(self, frame: Frame) -> bytes | None:
        """The message that `frame` completes, None while parts are missing.

        Raises `MalformedFrame`.
        """
        total, number = _header_number(frame, "sum", 1), _header_number(frame, "seq", 0)
        payload = frame.payload or b""
        if total <= 1:
            return payload
        if total > _MAX_PARTS or number >= total:
            raise MalformedFrame(f"part {number} of {total}")
        return self._add(frame.header("message_id"), total, number, payload)

    def _add(self, message_id: str, total: int, number: int, payload: bytes) -> bytes | None:
        self._forget_old()
        _, parts = self._unfinished.pop(message_id, (0.0, {}))
        parts[number] = payload
        if all(number in parts for number in range(total)):
            return b"".join(parts[number] for number in range(total))
        self._unfinished[message_id] = (self._clock(), parts)
        return None

    def _forget_old(self) -> None:
        oldest = self._clock() - _PARTS_LIVE_S
        fresh = [item for item in self._unfinished.items() if item[1][0] > oldest]
        self._unfinished = dict(fresh[-_MAX_UNFINISHED:])


def _header_number(frame: Frame, key: str, otherwise: int) -> int:
    text = frame.header(key) or str(otherwise)
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise MalformedFrame(f"header {key} is not a number")
    return int(text)
