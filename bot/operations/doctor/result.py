"""What a check found: a state, one sentence in both languages, one link or command. Pure.

The start, `/readyz`, `scripts/doctor` and whatever else shows the state of the bot speak from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.text.languages import Sentence

# unknown: it could not be looked at, or nothing proves it yet; that is no finding.
State = Literal["ok", "warn", "fail", "unknown"]
_FINDINGS: tuple[State, ...] = ("fail", "warn")
_IN_CHINESE: Mapping[str, str] = {
    "accounts": "账号",
    "answers": "回答", "bot": "机器人", "clicks": "点击", "clock": "时钟", "connection": "长连接",
    "event loop": "事件循环",
    "connections": "连接", "credentials": "凭证", "database": "数据库", "deliveries": "送达",
    "disk": "磁盘", "feishu": "飞书", "memory": "记忆", "readiness": "就绪状态",
    "undelivered": "未送达的回答",
    "embeddings": "向量", "events": "事件", "fallback": "备用模型", "isolation": "隔离",
    "memory away": "记忆", "messages": "消息", "migrations": "数据库迁移", "model": "模型",
    "pictures": "图片", "proxy": "代理",
    "queue": "队列", "scope": "权限", "scopes": "权限", "settings": "设置", "speed": "速度",
    "streaming": "流式输出", "supabase": "Supabase", "time zone": "时区", "tools": "工具",
    "vectors": "已存向量", "webhook": "Webhook",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One line. `link` is a page to open, `command` what to run; at most one of them is given.

    `passing`: it may be over at the next look, without anybody doing anything.
    """

    name: str
    state: State
    sentence: Sentence
    link: str = ""
    command: str = ""
    passing: bool = False

    @property
    def title(self) -> Sentence:
        """Its name in both languages."""
        return Sentence(self.name, _IN_CHINESE.get(self.name, self.name))

    @property
    def next_step(self) -> str:
        return self.link or self.command

    def as_json(self) -> dict[str, Any]:
        """For other programs; `en` and `zh` are the sentence."""
        return {
            "name": self.name,
            "state": self.state,
            "en": self.sentence.en,
            "zh": self.sentence.zh,
            "link": self.link,
            "command": self.command,
        }


def ok(name: str, en: str, zh: str) -> Check:
    return Check(name, "ok", Sentence(en, zh))


def warn(name: str, en: str, zh: str, *, link: str = "", command: str = "") -> Check:
    return Check(name, "warn", Sentence(en, zh), link, command)


def fail(name: str, en: str, zh: str, *, link: str = "", command: str = "") -> Check:
    return Check(name, "fail", Sentence(en, zh), link, command)


def unknown(name: str, en: str, zh: str, *, link: str = "", command: str = "") -> Check:
    return Check(name, "unknown", Sentence(en, zh), link, command)


def findings(checks: Iterable[Check]) -> list[Check]:
    """What somebody should do something about, the worst first."""
    failing_checks = [check for check in checks if check.state in _FINDINGS]
    return sorted(failing_checks, key=lambda check: _FINDINGS.index(check.state))


def without_repetition(checks: Sequence[Check]) -> list[Check]:
    """The same checks; a link that several have stays with the last of them."""
    last = {check.link: number for number, check in enumerate(checks)}
    return [
        check if last[check.link] == number else replace(check, link="")
        for number, check in enumerate(checks)
    ]


def verdict(checks: Iterable[Check]) -> Sentence:
    """All of it in one sentence."""
    states = [check.state for check in checks]
    wrong, doubtful = states.count("fail"), states.count("warn")
    if wrong:
        more = f", {doubtful} to check" if doubtful else ""
        more_zh = f"，{doubtful} 项需要留意" if doubtful else ""
        return Sentence(f"{wrong} to fix{more}", f"{wrong} 项需要修复{more_zh}")
    if doubtful:
        return Sentence(f"nothing to fix, {doubtful} to check", f"可以运行，{doubtful} 项需要留意")
    return Sentence("everything is OK", "一切正常")
