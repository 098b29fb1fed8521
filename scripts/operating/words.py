"""The words of operators' scripts: titles and columns in Chinese, and counts in English."""

from __future__ import annotations

from collections.abc import Mapping

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
    "status": "状态",
    "turn": "一轮问答",
    "tools": "工具",
    "text": "文本",
}


def counted(number: int, noun: str) -> str:
    """English: “1 row”, “2 rows”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
