"""The words of operators' scripts: titles and columns in Chinese, and counts in English."""

from __future__ import annotations

from collections.abc import Mapping

from bot.text.languages import Language

WORDS: Mapping[str, str] = {
    # what is looked at
    "memory": "记忆",
    "isolation": "隔离",
    "decisions": "决定",
    "monitor": "监控",
    "timers": "定时事项",
    # titles
    "Conversations (Q question, A card, … pending, x failed)": (
        "对话（Q 问题，A 卡片，… 待发送，x 失败）"
    ),
    "Conversations": "会话",
    "Tables": "数据表",
    "Health": "运行状况",
    "next": "下一步",
    "Findings": "发现的问题",
    "Not checked": "未检查",
    "Working memory": "工作记忆",
    "Changes": "变更",
    "Rows stored": "已存储的行数",
    "Deleted": "已删除",
    "Decisions": "决定",
    "Timers": "定时事项",
    "By reason": "按原因",
    # columns
    "conversation": "对话",
    "person": "成员",
    "name": "姓名",
    "messages": "消息数",
    "first": "最早",
    "last": "最近",
    "sequence": "顺序",
    "table": "表",
    "rows": "行数",
    "24 h": "24 小时",
    "7 d": "7 天",
    "size": "大小",
    "policies": "策略",
    "check": "检查",
    "where": "位置",
    "next step": "下一步",
    "what": "内容",
    "why": "原因",
    "scope": "范围",
    "changed": "修改于",
    "content": "内容",
    "time": "时间",
    "by": "操作者",
    "was": "原值",
    "became": "新值",
    "chat": "会话",
    "message": "消息",
    "answered": "已回答",
    "reason": "原因",
    "tier": "层级",
    "cue": "线索",
    "s since bot": "距上次发言（秒）",
    "judge": "判断模型",
    "count": "次数",
    "id": "编号",
    "due": "时间",
    "repeats": "重复",
    "state": "状态",
    "author": "设置人",
    "for": "提醒谁",
    "timer": "编号",
    "role": "角色",
    # the monitor's
    "now": "现在",
    "stage": "阶段",
    "n": "次数",
    "p50 s": "中位数（秒）",
    "p95 s": "95 分位（秒）",
    "outcome": "结果",
    "decision": "决定",
    "error": "错误",
    "warning": "警告",
    "Latency": "耗时",
    "Events": "事件",
    "Turns": "问答",
    "Errors": "错误",
    "Warnings": "警告",
    "Queue and tables": "队列和数据表",
    "turns in flight": "进行中的问答",
    "tokens in": "输入 token",
    "tokens out": "输出 token",
    "retries": "重试",
    "answers without memory": "没有记忆的回答",
    "lines that are no log entries": "不是日志的行",
    "ack": "确认",
    "memory load": "读取记忆",
    "model": "模型",
    "memory save": "写入记忆",
    "send": "发送",
    "total": "合计",
    "jobs waiting": "等待的任务",
    "jobs running": "进行中的任务",
    "jobs failed": "失败的任务",
    "turns waiting for the memory": "等待写入记忆的问答",
    "oldest waiting job": "等待最久的任务",
    "waits longest for the memory": "等待记忆最久",
    "turns unfinished": "未完成的问答",
    "repeated attempts": "重复尝试",
    "oldest unfinished turn": "最早的未完成问答",
    "p50 of the answers": "回答耗时中位数",
    "p95 of the answers": "回答耗时 95 分位",
    "status": "状态",
    "turn": "一轮问答",
    "tools": "工具",
    "text": "文本",
}


def said_in(language: Language, words: str) -> str:
    """A title, or the name of a column or figure, in the language."""
    return WORDS.get(words, words) if language == "zh" else words


def counted(number: int, noun: str) -> str:
    """English: “1 row”, “2 rows”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
