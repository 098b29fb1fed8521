"""The operators' titles and columns in Chinese, by their English."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    # what is looked at
    "memory": "记忆",
    "isolation": "隔离",
    "decisions": "决定",
    "monitor": "监控",
    # titles
    "Conversations (Q question, A card, … pending, x failed)": (
        "会话（Q 问题，A 卡片，… 待发送，x 失败）"
    ),
    "Tables": "数据表",
    "Findings": "发现的问题",
    "Not checked": "未检查",
    "Working memory": "工作记忆",
    "Changes": "变更",
    "Rows stored": "已存储的行数",
    "Deleted": "已删除",
    "Decisions": "决定",
    "By reason": "按原因",
    "People": "成员",
    # columns
    "conversation": "会话",
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
    "what": "内容",
    "why": "原因",
    "scope": "范围",
    "changed": "修改于",
    "content": "内容",
    "time": "时间",
    "by": "操作者",
    "was": "原值",
    "became": "新值",
    "chat": "群聊",
    "message": "消息",
    "answered": "已回答",
    "reason": "原因",
    "tier": "层级",
    "cue": "线索",
    "s since bot": "距上次发言（秒）",
    "judge": "裁判模型",
    "count": "次数",
    "id": "编号",
    "role": "角色",
    "status": "状态",
    "turn": "轮次",
    "tools": "工具",
    "text": "文本",
}
