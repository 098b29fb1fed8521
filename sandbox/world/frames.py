"""Frames of the long connection (proto2, pbbp2.Frame) as bytes and back. Pure.

1 SeqID uint64, 2 LogID uint64, 3 service int32, 4 method int32: required
5 headers, repeated {1 key, 2 value}; 8 payload
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

CONTROL, DATA = 0, 1
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True)
class GatewayFrame:
    """`method` is CONTROL or DATA; `service` is the connection's."""

    method: int
    service: int
    headers: Mapping[str, str] = field(default_factory=dict)
    payload: bytes = b""


def encode(frame: GatewayFrame) -> bytes:
    """The frame as it travels."""
    parts = [
        _varint(number << 3) + _varint(value)
        for number, value in enumerate((0, 0, frame.service, frame.method), 1)
    ]
    for key, value in frame.headers.items():
        parts.append(_sized(5, _sized(1, key.encode()) + _sized(2, value.encode())))
    return b"".join([*parts, _sized(8, frame.payload)])


def decode(raw: bytes) -> GatewayFrame:
    """The frame in `raw`. Raises ValueError."""
    numbers: dict[int, int] = {}
    headers: dict[str, str] = {}
    payload = b""
    for number, value in _fields(raw):
        if isinstance(value, int):
            numbers[number] = value
        elif number == 5:
            pair = dict(_fields(value))
            headers[_text(pair.get(1))] = _text(pair.get(2))
        elif number == 8:
            payload = value
    return GatewayFrame(numbers.get(4, CONTROL), numbers.get(3, 0), headers, payload)


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        value, at = _read_varint(raw, at)
        if tag & 7 == _VARINT:
            yield tag >> 3, value
        elif tag & 7 == _BYTES and at + value <= len(raw):
            yield tag >> 3, raw[at : at + value]
            at += value
        else:
            raise ValueError("not a frame")


def _text(value: int | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift < 70:
        value |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 0x80:
            return value, at
    raise ValueError("a number does not end")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _sized(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value
