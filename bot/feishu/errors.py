"""Feishu's error codes as data: what a code asks the caller to do. `Denials` remembers what Feishu
refused for want of a scope: it is not asked again there for a while.

    FeishuFailure
    ├── FeishuError       Feishu answered with a code; `action` says what to do
    ├── Unreachable       no usable answer: the outcome is unknown, repeat with the same uuid
    │   └── Unintelligible    an answer that is not of the documented shape
    └── ResourceTooLarge  a download is larger than was asked for

A refusal holds for one API, and for one kind of chat where Feishu says so: messages of groups need
im:message.group_msg (230027), those of p2p chats do not.

Source: the error tables of Feishu's API pages, and "Generic error codes".
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from bot.feishu.client import FeishuClient


class Action(StrEnum):
    """What the caller does about an error code."""

    RETRY = "retry"
    IN_FLIGHT = "in_flight"
    REFRESH_TOKEN = "refresh_token"  # noqa: S105 - the name of an action
    DEGRADE = "degrade"
    SPLIT = "split"
    NEUTRAL_TEXT = "neutral_text"
    WITHOUT_THREAD = "without_thread"
    TERMINAL_MESSAGE = "terminal_message"
    TERMINAL_CHAT = "terminal_chat"
    TERMINAL_USER = "terminal_user"
    CARD_CLOSED = "card_closed"
    CARD_GONE = "card_gone"
    OUT_OF_SEQUENCE = "out_of_sequence"
    DUPLICATE = "duplicate"
    UNSUPPORTED = "unsupported"
    REJECTED = "rejected"
    ALERT = "alert"

    @property
    def may_pass(self) -> bool:
        """Whether the same call can succeed later, without anything else being done here."""
        return self in (Action.RETRY, Action.IN_FLIGHT, Action.ALERT, Action.REFRESH_TOKEN)

    @property
    def passes_by_itself(self) -> bool:
        """As `may_pass`, without anybody having to mend anything."""
        return self.may_pass and self is not Action.ALERT

    @property
    def is_final_here(self) -> bool:
        """Whether nothing more can be sent there: to the message, the chat or the person."""
        return self in (Action.TERMINAL_MESSAGE, Action.TERMINAL_CHAT, Action.TERMINAL_USER)

    @property
    def is_of_one_call(self) -> bool:
        """Whether it says nothing of other calls: it is of this moment, message, chat or person."""
        return self in _OF_ONE_CALL


_OF_ONE_CALL = frozenset(
    {
        Action.RETRY,
        Action.IN_FLIGHT,
        Action.REFRESH_TOKEN,
        Action.WITHOUT_THREAD,
        Action.TERMINAL_MESSAGE,
        Action.TERMINAL_CHAT,
        Action.TERMINAL_USER,
        Action.UNSUPPORTED,
    }
)

NEXT_STEP: Mapping[Action, str] = {
    Action.RETRY: "wait and try again",
    Action.IN_FLIGHT: "wait and repeat with the same uuid",
    Action.REFRESH_TOKEN: "fetch a new tenant token and try once more",
    Action.DEGRADE: "send a simpler card, then a post, then text",
    Action.SPLIT: "send it in smaller pieces",
    Action.NEUTRAL_TEXT: "send a neutral message instead",
    Action.WITHOUT_THREAD: "reply without a thread",
    Action.TERMINAL_MESSAGE: "drop this reply: its message is gone",
    Action.TERMINAL_CHAT: "stop sending to this chat until it changes",
    Action.TERMINAL_USER: "stop sending to this person",
    Action.CARD_CLOSED: "open streaming again or update the whole card",
    Action.CARD_GONE: "send a new card",
    Action.OUT_OF_SEQUENCE: "use a larger sequence number",
    Action.DUPLICATE: "go on: this operation has already been done",
    Action.UNSUPPORTED: "go on without it: Feishu does not offer this here",
    Action.REJECTED: "check the request against Feishu's documentation",
    Action.ALERT: "tell the operator: check credentials, scopes, quota and IP list in the console",
}

ACTIONS: Mapping[int, Action] = {
    **dict.fromkeys((99991400, 230020, 11232, 11233, 11247), Action.RETRY),
    **dict.fromkeys((200810, 300120), Action.RETRY),
    **dict.fromkeys((90217, 1063006, 1254290, 1277001), Action.RETRY),  # documents, too fast
    **dict.fromkeys((1069301, 1069399, 1064230), Action.RETRY),  # comments: failed, being moved
    **dict.fromkeys((190004, 190005, 190010, 1470422), Action.RETRY),  # calendar and tasks
    1470500: Action.UNSUPPORTED,  # a task with a member that Feishu does not take, under HTTP 500
    2889925: Action.UNSUPPORTED,  # a document too large to be exported, under HTTP 500
    1040102: Action.RETRY,  # of the speech recognition, a trouble of its own
    230049: Action.IN_FLIGHT,
    99991663: Action.REFRESH_TOKEN,
    **dict.fromkeys((99991661, 99991664, 99991665, 99991668, 99991671, 99991677), Action.ALERT),
    **dict.fromkeys((99991543, 10003, 10014, 10015, 99991662, 99991673), Action.ALERT),
    **dict.fromkeys((99991672, 99991403, 99991401, 230027, 232025, 232034), Action.ALERT),
    **dict.fromkeys((230011, 230110, 231003, 230050, 230111), Action.TERMINAL_MESSAGE),
    **dict.fromkeys((230009, 230026, 230031), Action.TERMINAL_MESSAGE),
    **dict.fromkeys((230002, 232006, 232009, 232011, 230006, 10002), Action.TERMINAL_CHAT),
    **dict.fromkeys((230018, 230035, 230075), Action.TERMINAL_CHAT),
    **dict.fromkeys((230013, 230029, 230053, 230038), Action.TERMINAL_USER),
    **dict.fromkeys((230019, 230071, 230072, 230073), Action.WITHOUT_THREAD),
    **dict.fromkeys((230022, 230028), Action.NEUTRAL_TEXT),
    **dict.fromkeys((230025, 200860), Action.SPLIT),
    11235: Action.DEGRADE,  # only its owner and administrators mention everybody there
    **dict.fromkeys((230099, 230054, 200220, 300301, 300302, 300303, 300305), Action.DEGRADE),
    **dict.fromkeys((300307, 300310, 300313), Action.DEGRADE),
    **dict.fromkeys((200850, 300309), Action.CARD_CLOSED),
    **dict.fromkeys((200740, 200750, 300311), Action.CARD_GONE),
    300317: Action.OUT_OF_SEQUENCE,
    200770: Action.DUPLICATE,
    **dict.fromkeys((231203, 231204, 18053), Action.UNSUPPORTED),
    **dict.fromkeys((234003, 234004, 234009, 234037, 234038), Action.UNSUPPORTED),
    **dict.fromkeys((234040, 234041, 234042, 234043), Action.UNSUPPORTED),
}

# A scope that only this kind of chat needs is missing; the text names it (im-v1/message/list).
SCOPE_OF_CHAT = 230027
_NAMING_SCOPES = (SCOPE_OF_CHAT, 99991672)

# The bot is out of the chat, or the chat is no more.
OUT_OF_CHAT = frozenset({230002, 232006, 232009, 232011})

_SUB_CODE = re.compile(r"ErrCode:\s*(\d{1,9})")
_SCOPE = re.compile(r"\b[a-z_]+(?::[a-z][\w.]*)+(?<!\.)")
_URL = re.compile(r"https?://[^\s\"'<>]{1,500}")


class FeishuFailure(Exception):
    """Feishu did not do what was asked; or, with `maybe_done`, nobody knows whether it did."""

    maybe_done = False


class Unreachable(FeishuFailure):
    """No usable answer came, so the outcome is unknown; repeat with the same uuid.

    `retry_after_s` is Feishu's own wish, in seconds, or None. Without `maybe_done` the request
    never reached Feishu.
    """

    def __init__(
        self, reason: str, retry_after_s: float | None = None, *, maybe_done: bool = True
    ) -> None:
        super().__init__(f"No usable answer from Feishu: {reason}. Repeat with the same uuid.")
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.maybe_done = maybe_done


class Unintelligible(Unreachable):
    """Feishu answered without what its documentation promises; `reason` says what is missing."""


class ResourceTooLarge(FeishuFailure):
    """The resource is larger than the limit given; raise the limit or say so to the sender."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"The resource is larger than {max_bytes} bytes; tell the sender.")
        self.max_bytes = max_bytes


class FeishuError(FeishuFailure):
    """Feishu answered with an error code.

    `msg` is Feishu's text without the value it quotes; `sub_code` is the ErrCode inside a 230099;
    `retry_after_s` comes from `x-ogw-ratelimit-reset`; `scopes` and `permission_url` say what an
    operator must grant.
    """

    def __init__(
        self,
        code: int,
        msg: str = "",
        *,
        http_status: int = 400,
        log_id: str = "",
        action: Action | None = None,
        sub_code: int | None = None,
        retry_after_s: float | None = None,
        permission_url: str | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        self.code = code
        self.msg = msg
        self.http_status = http_status
        self.log_id = log_id
        self.action = action or ACTIONS.get(code, Action.REJECTED)
        self.sub_code = sub_code
        self.retry_after_s = retry_after_s
        self.permission_url = permission_url
        self.scopes = scopes
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        sub = f"/{self.sub_code}" if self.sub_code else ""
        grant = f" Scopes: {', '.join(self.scopes)}." if self.scopes else ""
        return (
            f"Feishu answered {self.code}{sub} (HTTP {self.http_status}, "
            f"log id {self.log_id or 'none'}): {self.msg or 'no text'}.{grant}"
            f" Next: {NEXT_STEP[self.action]}."
        )


def classify(http_status: int, headers: Mapping[str, str], body: bytes) -> FeishuFailure | None:
    """None for success (code 0 under HTTP 2xx), else what went wrong, ready to raise."""
    lower_headers = {name.lower(): value for name, value in headers.items()}
    wait = _seconds(lower_headers.get("x-ogw-ratelimit-reset") or lower_headers.get("retry-after"))
    payload = _object(body)
    code = payload.get("code") if payload is not None else None
    if payload is None or not isinstance(code, int):
        return Unreachable(f"HTTP {http_status} without Feishu's JSON", wait)
    if code == 0 and 200 <= http_status < 300:
        return None
    if code not in ACTIONS and (http_status >= 500 or code == 0):
        return Unreachable(f"HTTP {http_status} with code {code}", wait)
    return _error(http_status, lower_headers, payload, wait)


def _error(
    http_status: int, headers: Mapping[str, str], payload: dict[str, Any], wait: float | None
) -> FeishuError:
    code, full = int(payload["code"]), str(payload.get("msg") or "")
    detail = payload.get("error")
    detail = detail if isinstance(detail, dict) else {}
    sub, url = _SUB_CODE.search(full), _URL.search(full)
    return FeishuError(
        code,
        _without_quoted_value(full),
        http_status=http_status,
        log_id=headers.get("x-tt-logid") or str(detail.get("log_id") or ""),
        action=_action(code, full, http_status),
        sub_code=int(sub.group(1)) if sub else None,
        retry_after_s=wait,
        permission_url=url.group() if url and code == 99991672 else None,
        scopes=_scopes(detail) or (_named_scopes(full) if code in _NAMING_SCOPES else ()),
    )


def _action(code: int, msg: str, http_status: int) -> Action:
    # CardKit uses 10002 for a wrong parameter, the older message API for a chat without the bot.
    if code == 10002 and "parameter" in msg:
        return Action.REJECTED
    if code not in ACTIONS and http_status == 429:
        return Action.RETRY
    return ACTIONS.get(code, Action.REJECTED)


def _without_quoted_value(msg: str) -> str:
    """Feishu quotes the offending part of a card after "ErrorValue": that is message text."""
    return msg.partition("ErrorValue")[0].strip(" ;.,")[:300]


def _scopes(detail: dict[str, Any]) -> tuple[str, ...]:
    violations = detail.get("permission_violations")
    entries = violations if isinstance(violations, list) else []
    return tuple(str(entry.get("subject", "")) for entry in entries if isinstance(entry, dict))


def _named_scopes(msg: str) -> tuple[str, ...]:
    """Scopes as a text names them: “need scope: im:message.group_msg”."""
    return tuple(dict.fromkeys(_SCOPE.findall(_URL.sub("", msg))))


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _seconds(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None


log = structlog.get_logger()

_STANDS_S = 600.0
_LOOKED_UP_S = 60.0  # how long a list of granted scopes counts as new
_LOOKED_UP_WHERE_REFUSED_S = 5.0  # the same where somebody is waiting for what was refused
_LOOK_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    until: float
    scopes: tuple[str, ...]


class Denials:
    """The refusals that this process met, and the scopes that Feishu listed. `clock` is monotonic
    seconds; a refusal stands for `stands_s`."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, stands_s: float = _STANDS_S
    ) -> None:
        self._clock = clock
        self._stands_s = stands_s
        self._refused: dict[tuple[str, str], _Refusal] = {}
        self._granted: Collection[str] | None = None
        self._looked_up = -_LOOKED_UP_S

    def stands(self, api: str, chat_type: str = "") -> bool:
        """Whether `api` was refused lately, everywhere or in this kind of chat."""
        refusals = [self._refused.get((api, "")), self._refused.get((api, chat_type))]
        return any(one and self._clock() < one.until for one in filter(None, refusals))

    def note(self, api: str, chat_type: str = "", error: FeishuError | None = None) -> None:
        """`api` was refused just now. A refusal that names no scope of a kind of chat is of one
        chat alone, such as an external group, and is not remembered."""
        scopes = error.scopes if error else ()
        of_chat = error is not None and error.code == SCOPE_OF_CHAT
        if of_chat and (chat_type == "p2p" or not scopes):
            return
        key = (api, chat_type if of_chat else "")
        if error and scopes and key not in self._refused:
            log.error(
                "feishu.scope_missing",
                api=api,
                chat_type=key[1],
                code=error.code,
                scopes=scopes,
                next_step="grant one of these scopes and publish a version; see scripts/doctor",
            )
        self._refused[key] = _Refusal(self._clock() + self._stands_s, scopes)

    def allow(self, api: str, chat_type: str = "") -> None:
        """`api` works. What had refused it is granted, so other APIs may be asked again too."""
        refusals = [self._refused.pop((api, kind), None) for kind in {"", chat_type}]
        granted_scopes = {scope for one in refusals if one for scope in one.scopes}
        if granted_scopes:
            self._forget(granted_scopes)
            self._granted = None

    def learn(self, granted_scopes: Collection[str]) -> None:
        """Feishu lists these scopes as granted."""
        self._granted = granted_scopes
        self._forget(granted_scopes)

    def lacks(self, scope: str) -> bool:
        """Whether the app is known to lack it."""
        is_missing = self._granted is not None and scope not in self._granted
        return is_missing or any(
            scope in one.scopes and self._clock() < one.until for one in self._refused.values()
        )

    def take_look_up(self, every_s: float) -> bool:
        """Whether the granted scopes were not looked up lately. Then the caller does it now."""
        now = self._clock()
        is_due = now - self._looked_up >= every_s
        if is_due:
            self._looked_up = now
        return is_due

    def _forget(self, granted_scopes: Collection[str]) -> None:
        refusals_left = {
            key: one
            for key, one in self._refused.items()
            if not any(scope in granted_scopes for scope in one.scopes)
        }
        if len(refusals_left) < len(self._refused):
            log.info("feishu.scope_granted", scopes=sorted(granted_scopes))
        self._refused = refusals_left


async def lacks_scope(feishu: FeishuClient, denials: Denials, scope: str) -> bool:
    """Whether the app lacks the scope, as Feishu lists it now; as far as it is known where Feishu
    does not answer."""
    await _look_up(feishu, denials, _LOOKED_UP_S)
    return denials.lacks(scope)


async def is_still_refused(
    feishu: FeishuClient, denials: Denials, api: str, chat_type: str = ""
) -> bool:
    """Whether the refusal of `api` still stands: not once Feishu lists what was missing."""
    if denials.stands(api, chat_type):
        await _look_up(feishu, denials, _LOOKED_UP_WHERE_REFUSED_S)
    return denials.stands(api, chat_type)


async def _look_up(feishu: FeishuClient, denials: Denials, every_s: float) -> None:
    if not denials.take_look_up(every_s):
        return
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            denials.learn(await feishu.granted_scopes())
    except (TimeoutError, FeishuFailure) as exc:
        log.info("feishu.scopes_unknown", error=type(exc).__name__)
