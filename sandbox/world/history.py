"""What a chat or a thread holds, page by page, as `GET /im/v1/messages` lists it. Raises ApiError.

Source: open.feishu.cn, im-v1/message/list, and im-v1/message/message-content-description for
messages of the kind `system`. What its pages leave open and apps report: a system message has an
empty sender, `start_time` is inclusive, a thread without a time range is whole.
"""

import base64
import json
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field, replace

from sandbox.errors import invalid
from sandbox.world.entities import SandboxMessage

MAX_PAGE = 50
_ORDERS = ("ByCreateTimeAsc", "ByCreateTimeDesc")
_NO_END = 1 << 40

Entry = tuple[int, int, str]  # ms since the epoch, position, message id


@dataclass(slots=True)
class Container:
    """The messages of one chat or thread by their time; what is added last is mostly the newest."""

    entries: list[Entry] = field(default_factory=list)

    def add(self, message: SandboxMessage) -> None:
        """Adds a message that is not there yet."""
        insort(self.entries, (message.create_ms, message.position, message.message_id))

    def number_of(self, message: SandboxMessage) -> int:
        """The place of one of its messages among them, from 1 on."""
        entry = (message.create_ms, message.position, message.message_id)
        return bisect_left(self.entries, entry) + 1

    def page(self, asked: "HistoryQuery") -> tuple[list[str], str]:
        """The ids of one page, and the token of the next, "" at the end."""
        low = bisect_left(self.entries, (asked.since_ms,))
        high = bisect_left(self.entries, (asked.until_ms,))
        if asked.descending:
            if asked.after:
                high = min(high, bisect_left(self.entries, asked.after))
            first = max(low, high - asked.size)
            found, more = self.entries[first:high][::-1], first > low
        else:
            if asked.after:
                low = max(low, bisect_right(self.entries, (*asked.after, "~")))
            found, more = self.entries[low : min(high, low + asked.size)], high > low + asked.size
        token = asked.token_after(found[-1]) if more and found else ""
        return [one[2] for one in found], token


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A request, checked. Times are ms since the epoch, half open; `after` is where the page before
    it ended: ms and position."""

    kind: str
    container_id: str
    size: int
    descending: bool
    since_ms: int
    until_ms: int
    after: tuple[int, int] | None = None

    def token_after(self, last: Entry) -> str:
        """What asks for the page after `last`. It is good for this request alone."""
        return base64.urlsafe_b64encode(json.dumps([*self._same(), *last[:2]]).encode()).decode()

    def continued(self, token: str) -> "HistoryQuery":
        """The request with its page_token. Raises ApiError for a token of another request."""
        try:
            told = json.loads(base64.urlsafe_b64decode(token.encode()))
            *same, at, position = told
            after = int(at), int(position)
        except (ValueError, TypeError):
            raise invalid("page_token is invalid") from None
        if same != self._same():
            raise invalid("page_token is of another request")
        return replace(self, after=after)

    def _same(self) -> list[str | bool]:
        return [self.container_id, self.descending]


def read_query(query: dict[str, str]) -> HistoryQuery:
    """The parameters of the request. Raises ApiError 230001."""
    kind = query.get("container_id_type", "")
    if kind not in ("chat", "thread"):
        raise invalid("container_id_type must be chat or thread")
    if kind == "thread" and (query.get("start_time") or query.get("end_time")):
        raise invalid("a thread is not listed by time")
    order = query.get("sort_type") or _ORDERS[0]
    if order not in _ORDERS:
        raise invalid("sort_type is unknown")
    size = _number(query, "page_size", 20)
    if not 1 <= size <= MAX_PAGE:
        raise invalid("page_size must lie between 1 and 50")
    since_s, until_s = _number(query, "start_time", 0), _number(query, "end_time", _NO_END)
    asked = HistoryQuery(
        kind,
        query.get("container_id", ""),
        size,
        order == _ORDERS[1],
        since_s * 1000,
        (until_s + 1) * 1000,
    )
    token = query.get("page_token", "")
    return asked.continued(token) if token else asked


def _number(query: dict[str, str], name: str, default: int) -> int:
    try:
        return int(query.get(name) or default)
    except ValueError:
        raise invalid(f"{name} is not a number") from None
