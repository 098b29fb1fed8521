"""Messages of the long connection that come in several frames. Pure."""

from __future__ import annotations

from collections.abc import Callable

from bot.feishu.connection.frames import Frame, MalformedFrame

# The parts of a message follow each other closely; lark-oapi waits for five seconds too.
_PARTS_LIVE_S = 5.0
_MAX_PARTS = 64
_MAX_UNFINISHED = 64


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
        total, number = _count(frame, "sum", 1), _count(frame, "seq", 0)
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
        if all(wanted in parts for wanted in range(total)):
            return b"".join(parts[wanted] for wanted in range(total))
        self._unfinished[message_id] = (self._clock(), parts)
        return None

    def _forget_old(self) -> None:
        oldest = self._clock() - _PARTS_LIVE_S
        fresh = [item for item in self._unfinished.items() if item[1][0] > oldest]
        self._unfinished = dict(fresh[-_MAX_UNFINISHED:])


def _count(frame: Frame, key: str, otherwise: int) -> int:
    text = frame.header(key) or str(otherwise)
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise MalformedFrame(f"header {key} is not a number")
    return int(text)
