"""What the console says, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from bot.languages import Language

_WORDS: Mapping[str, tuple[str, str]] = {
    "console": ("Console", "控制台"),
    "skip": ("Skip to the page", "跳到正文"),
    "pages": ("Pages", "页面"),
    "now": ("Now", "现状"),
    "queue": ("Queue", "队列"),
    "setup": ("Set-up", "配置检查"),
    "audit": ("Audit", "审计"),
    "signed_in_as": ("Signed in as {name}", "已登录：{name}"),
    "sign_out": ("Sign out", "退出"),
    "language": ("Language", "语言"),
    "look": ("Appearance", "外观"),
    "auto": ("As the system", "跟随系统"),
    "light": ("Light", "浅色"),
    "dark": ("Dark", "深色"),
    "apply": ("Apply", "应用"),
    "settings": ("Display", "显示"),
    # signed out, trouble
    "signed_out": ("You are not signed in", "尚未登录"),
    "link_used": (
        "This link was used already, or is older than ten minutes.",
        "该链接已被使用，或已超过十分钟。",
    ),
    "how_to_sign_in": (
        "On the machine of the bot, run this and open the link that it prints. It works once, for "
        "ten minutes.",
        "请在机器人所在的机器上运行下面的命令，并打开它输出的链接。链接十分钟内有效，只能用一次。",
    ),
    "away": ("The database does not answer", "数据库没有响应"),
    "away_next": (
        "The page comes back by itself when you load it again. See DATABASE_URL, and the log.",
        "恢复后重新加载即可。请检查 DATABASE_URL 和日志。",
    ),
    "missing": ("There is no such page", "没有这个页面"),
    "refused": ("That cannot be done", "无法执行"),
    "to_start": ("To the first page", "回到首页"),
    # now
    "needs_look": ("To look at", "需要处理"),
    "all_well": ("Nothing needs you.", "一切正常，无需处理。"),
    "in_15_minutes": ("in the last 15 minutes", "最近 15 分钟"),
    "answers": ("Answers", "回答"),
    "median": ("Median time", "中位耗时"),
    "p95": ("95th percentile", "95 分位耗时"),
    "failures": ("Failures", "失败"),
    "waiting": ("Waiting", "等待"),
    "running": ("At work", "处理中"),
    "given_up": ("Given up", "已放弃"),
    "spooled": ("Waiting for the memory", "等待记忆服务"),
    "stayed_silent": ("Stayed silent", "保持沉默"),
    "oldest": ("oldest {age}", "最久 {age}"),
    "none_yet": ("none yet", "暂无"),
    "answers_per": ("Answers in two minutes, last hour", "每两分钟的回答数（最近一小时）"),
    "seconds_to": ("Seconds to the answer, last hour", "回答耗时（秒，最近一小时）"),
    "as_table": ("As a table", "以表格显示"),
    "time": ("Time", "时间"),
    "failed": ("Failed", "失败"),
    "errors_by_kind": ("Errors by kind, last 24 hours", "按类型统计的错误（最近 24 小时）"),
    "kind": ("Kind", "类型"),
    "where": ("Where", "位置"),
    "times": ("Times", "次数"),
    "last": ("Last", "最近一次"),
    "no_errors": ("No errors.", "没有错误。"),
    "in_queue": ("given up in the queue", "队列中已放弃"),
    "to_feishu": ("not delivered to Feishu", "未能送达飞书"),
    "see": ("See", "查看"),
    # set-up
    "setup_intro": (
        "What the doctor finds with the settings as they are; looked at again every half minute.",
        "按当前设置进行的检查，每半分钟重新检查一次。",
    ),
    "checking": ("Looking …", "正在检查……"),
    "check_again": ("Check everything now", "立即全面检查"),
    "state_ok": ("fine", "正常"),
    "state_warn": ("look at it", "留意"),
    "state_fail": ("fix it", "需修复"),
    "state_unknown": ("not known", "未知"),
    "run": ("run", "运行"),
    "open": ("open", "打开"),
    # queue
    "what_failed": ("Given up", "已放弃"),
    "nothing_failed": ("Nothing was given up.", "没有已放弃的任务。"),
    "nothing_waits": ("Nothing waits.", "没有等待中的任务。"),
    "what_waits": ("Waiting and at work", "等待和处理中"),
    "reference": ("Reference", "编号"),
    "why": ("Why", "原因"),
    "attempts": ("Attempts", "尝试次数"),
    "person": ("Person", "人员"),
    "chat": ("Chat", "会话"),
    "since": ("Since", "开始时间"),
    "task": ("Task", "任务"),
    "actions": ("Actions", "操作"),
    "retry": ("Try again", "重试"),
    "retry_all": ("Try all again", "全部重试"),
    "drop": ("Delete", "删除"),
    "cancel": ("Cancel", "取消"),
    "not_sent": ("I have looked: its card is not in the chat", "我已确认：会话中没有这张卡片"),
    "was_told": ("was told that there is no answer", "已告知提问者没有回答"),
    "sure_drop": ("Delete it for good? It cannot be tried again.", "永久删除？之后无法再重试。"),
    "sure_cancel": ("Cancel it? Who asked gets no answer.", "取消？提问者将得不到回答。"),
    "retried": ("{about} is tried again.", "{about} 正在重试。"),
    "retried_all": ("{about} are tried again.", "{about} 项正在重试。"),
    "dropped": ("{about} was deleted.", "{about} 已删除。"),
    "cancelled": ("{about} was cancelled.", "{about} 已取消。"),
    "not_there": (
        "{about} is not there any more, or a worker has it in hand.",
        "{about} 已不存在，或正由工作进程处理。",
    ),
    "task_event": ("message or click", "消息或点击"),
    "task_tending": ("summaries and vectors", "摘要和向量"),
    "task_private": ("private look-up", "私下查找"),
    "unknown_person": ("unknown person", "未知人员"),
    "unknown_chat": ("unknown chat", "未知会话"),
    "private_chat": ("private chat", "单聊"),
    # audit
    "audit_intro": (
        "Every look at what people wrote, and everything that was done here.",
        "每一次查看聊天内容，以及在这里执行的每一项操作。",
    ),
    "who": ("Who", "人员"),
    "did": ("Did", "操作"),
    "about": ("About", "对象"),
    "older": ("Older", "更早"),
    "nothing_yet": ("Nothing yet.", "暂无记录。"),
}  # fmt: skip


def said(key: str, language: Language) -> str:
    """The words of a key. Raises `KeyError`."""
    return _WORDS[key][1 if language == "zh" else 0]


def has(key: str) -> bool:
    return key in _WORDS
