"""Who joined and who left a group, by the messages of the system. Pure.

These hold a template and names, no ids: “{from_user} invited {to_chatters} to this chat.” Feishu's
documents show this one alone; the others below are seen in practice, in English and in Chinese,
and some come without the names that they speak of. A template that nobody knows counts as joining
for all whom it names, so that they read less, and never more. Source: Feishu, "Receive message
content", system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.feishu.fields import as_dict, as_list, as_text
from memory.tables.imports import MembershipNotice
from memory.text import one_line, storable

NAMELESS = "…"  # who joined and is not told; nobody is known by it
_MOST_NAMES = 500
_LONGEST_NAME = 200
_FROM, _TO = "from_user", "to_chatters"
_SLOT = re.compile(r"\{(\w{0,40})\}")
_NO_NAMES = frozenset({"template", "divider_text", "i18n_text"})

_F, _T = r"\{from_user\}", r"\{to_chatters\}"
_ANY = r"\{\w+\}"
_REST = r"[^{}]*"


def _all(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns), re.IGNORECASE)


# Whoever stands in `from_user`, or in `to_chatters`, is out from then on.
_LEFT_FROM = _all(
    rf"{_F} (?:has )?left\b{_REST}", rf"{_F}\s*(?:已)?(?:主动)?(?:退出|离开)(?:了)?{_REST}"
)
_LEFT_TO = _all(
    rf"{_F} (?:has )?(?:removed|kicked)(?: out)? {_T}{_REST}",
    rf"{_F} (?:has )?(?:revoked|withdrew|cancell?ed) {_REST}invit{_REST}{_T}{_REST}",
    rf"{_T} (?:was|were|has been|have been) removed{_REST}(?:{_F}{_REST})?",
    rf"{_F}\s*(?:已)?(?:将|把)\s*{_T}\s*(?:移出|移除|踢出|请出)(?:了)?{_REST}",
    rf"{_F}\s*(?:移出|移除|踢出)了?\s*{_T}{_REST}",
    rf"{_F}\s*(?:撤回|撤销|取消)了?(?:对|给)?\s*{_T}\s*的?{_REST}邀请{_REST}",
)

# Who joined; nobody else named there did.
_JOINED_TO = _all(
    rf"{_F} (?:has )?(?:invited|added) {_T}(?! as ){_REST}",
    rf"{_T} joined {_REST}(?:{_F}{_REST})?",
    rf"{_F}\s*邀请了?\s*{_T}{_REST}",
    rf"{_F}\s*(?:将|把)\s*{_T}\s*(?:拉|添加|加入|邀请){_REST}",
    rf"{_T}\s*通过{_REST}(?:{_F}{_REST})?加入{_REST}",
)
_JOINED_FROM = _all(
    rf"{_F} (?:has )?joined {_REST}",
    rf"{_F} (?:started|created) (?:the|this|a) (?:group|chat){_REST}",
    rf"{_F}\s*(?:通过[^{{}}]*)?加入了?{_REST}",
    rf"{_F}\s*(?:创建|发起|新建)了?(?:群|本群|此群|会话){_REST}",
)

# Nobody joined or left.
_VERBS = (
    "renamed|updated|changed|edited|modified|set|reset|pinned|unpinned|recalled|transferred|enabled|"
    "disabled|turned|allowed|restricted|muted|unmuted|assigned|made|created an?|ended|started a|"
    "shared|sent|posted|published|deleted the|cleared|dissolved|upgraded|converted|is now|became|"
    "has become|synced|marked|bound|unbound"
)
_CHANGES = (
    "修改|更改|更新|变更|设置|置顶|取消置顶|撤回|转让|移交|开启|关闭|启用|禁用|禁言|解除|指定|任命|发布|"
    "分享|发送|清空|解散|升级|转为|成为|同步|标记|结束|预约|绑定"
)
_NOTHING = _all(
    rf"{_ANY}'?s? (?:{_VERBS})\b.*",
    rf"{_ANY}\s*(?:已)?(?:将|把)?(?:群|本群|此群)[^{{}}]{{0,12}}(?:{_CHANGES}).*",
    rf"{_ANY}\s*(?:已)?(?:将|把).*(?:{_CHANGES}).*",
    rf"{_ANY}\s*(?:已)?(?:{_CHANGES}).*",
    rf"{_F} added {_T} as .*",
    r"\{divider_text\}",
    rf"\{{\}}?\s*(?:{_CHANGES}).*",
    r"welcome to .*",
    r"欢迎.*",
)
_JOINING = _all(r"\b(?:joined|entered)\b", "加入|入群|进群")


def memberships(content: Mapping[str, Any], at_ms: int) -> tuple[MembershipNotice, ...]:
    """What the content of a system message says of joining and leaving at `at_ms`, ms since epoch.

    Who joined without being named is `NAMELESS`.
    """
    template = one_line(as_text(content.get("template")))
    if _LEFT_TO.fullmatch(template):
        return _told(_names(content, _TO), at_ms, has_joined=False)
    if _LEFT_FROM.fullmatch(template):
        return _told(_names(content, _FROM), at_ms, has_joined=False)
    if _JOINED_TO.fullmatch(template):
        return _told(_names(content, _TO) or [NAMELESS], at_ms, has_joined=True)
    if _JOINED_FROM.fullmatch(template):
        return _told(_names(content, _FROM) or [NAMELESS], at_ms, has_joined=True)
    if not template or (_NOTHING.fullmatch(template) and not _JOINING.search(template)):
        return ()
    return _told(_all_named(template, content), at_ms, has_joined=True)


def _all_named(template: str, content: Mapping[str, Any]) -> list[str]:
    """Everybody in a template that nobody knows; `NAMELESS` where it names somebody and does not
    tell whom."""
    names = [name for field in content if field not in _NO_NAMES for name in _names(content, field)]
    slots = set(_SLOT.findall(template)) - _NO_NAMES
    return names or ([NAMELESS] if slots else [])


def _names(content: Mapping[str, Any], field: str) -> list[str]:
    return [name for name in map(_name, _texts(content.get(field))) if name]


def _texts(value: object, depth: int = 3) -> Iterator[str]:
    """The texts in a value, however it is nested: a list in practice."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for inner in as_dict(value).values():
            yield from _texts(inner, depth - 1)
    elif depth:
        for inner in as_list(value):
            yield from _texts(inner, depth - 1)


def _name(text: str) -> str:
    return one_line(storable(text))[:_LONGEST_NAME]


def _told(names: Sequence[str], at_ms: int, *, has_joined: bool) -> tuple[MembershipNotice, ...]:
    """More names than one message can hold stand for somebody who is not told."""
    kept_names = list(dict.fromkeys(names))[:_MOST_NAMES]
    if has_joined and len(names) > _MOST_NAMES:
        kept_names.append(NAMELESS)
    return tuple(MembershipNotice(name, at_ms, has_joined) for name in kept_names)
