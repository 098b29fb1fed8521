"""Where an import has got to in a chat or thread, as the text that is stored. Pure.

Feishu's page tokens may expire. Then a chat is read on from the second of the last message, a
thread, which knows no times, from its beginning: the same messages change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.feishu.fields import as_text
from bot.feishu.models import HistoryPage, RawMessage

_LONGEST_TOKEN = 800
_MOST_RESTARTS = 3


class Astray(Exception):
    """Feishu's pages do not lead on: one names itself as the next, or none of its tokens works."""


@dataclass(frozen=True, slots=True)
class PagePlace:
    """The next page to ask for: `token`, "" the first from `start_s` on (None: from the beginning).
    `last_s` is the second of the latest message so far, `restarts` how often it was begun again
    without getting on."""

    token: str = ""
    start_s: int | None = None
    last_s: int | None = None
    restarts: int = 0

    @property
    def text(self) -> str:
        return json.dumps([self.token, self.start_s, self.last_s, self.restarts])

    def again(self, *, by_time: bool) -> PagePlace:
        """Where to go on without the token. Raises `Astray` when that did not help before."""
        if self.restarts >= _MOST_RESTARTS:
            raise Astray
        start_s = self.start_s
        if by_time and self.last_s is not None:
            start_s = self.last_s
        return replace(self, token="", start_s=start_s, restarts=self.restarts + 1)

    def after(self, page: HistoryPage, *, by_time: bool) -> PagePlace | None:
        """The place of the page that follows; None: there is none. Raises `Astray`."""
        if not page.next_token:
            return None
        if page.next_token == self.token:
            raise Astray
        last_s = _latest_s(page.messages, self.last_s)
        has_moved = by_time and last_s != self.last_s
        following = PagePlace(
            page.next_token, self.start_s, last_s, 0 if has_moved else self.restarts
        )
        if len(page.next_token) <= _LONGEST_TOKEN:
            return following
        if not has_moved:
            raise Astray
        return replace(following, token="", start_s=last_s)


def place_of(text: str, start_s: int | None) -> PagePlace:
    """The place that `text` tells of; "" is the beginning, at `start_s`."""
    if not text:
        return PagePlace(start_s=start_s)
    try:
        token, since, last, restarts = json.loads(text)
    except (ValueError, TypeError):
        return PagePlace(start_s=start_s)
    return PagePlace(as_text(token), _number(since), _number(last), _number(restarts) or 0)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _latest_s(messages: Sequence[RawMessage], before: int | None) -> int | None:
    times = [one.create_time_ms // 1000 for one in messages if one.create_time_ms]
    return max([*times, *([] if before is None else [before])], default=None)
