"""The words of operators' scripts: titles and columns in Chinese, and counts in English."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.text.languages import Language

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")

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
    "Given up": "已放弃",
    "Waiting or under way": "等待或进行中",
    "What happened": "经过",
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
    "reference": "编号",
    "failed": "放弃时间",
    "attempts": "尝试次数",
    "told": "已告知提问者",
    "since": "开始时间",
    "field": "字段",
    "value": "值",
    # the queue's
    "yes": "是",
    "no": "否",
    "under way": "进行中",
    "waiting": "等待中",
    "none": "无",
    "retried": "已重试",
    "dropped": "已删除",
    "queued": "进入队列",
    "put_back": "放回重试",
    "handed_back": "工作进程中断，放回",
    "kind": "类型",
    "conversation_id": "对话",
    "message_id": "消息",
    "asked_at": "提问时间",
    "failed_at": "放弃时间",
    "excused": "已告知提问者",
    # what scripts/check_memory finds
    "id format": "编号格式",
    "delivery": "送达",
    "orphans": "孤立的行",
    "audience": "可见范围",
    "row-level security": "行级安全",
    "sent text": "已发送的文本",
    "live probe": "实际探测",
    "the id is not feishu:oc_…:om_… or …:main": "编号不是 feishu:oc_…:om_… 或 …:main",
    "the id does not name the row's chat and root": "编号与该行的会话和话题不一致",
    "the person is not an open_id (ou_…)": "成员不是 open_id（ou_…）",
    "the question was never answered": "提问一直没有得到回答",
    "another turn stands between its messages": "它的消息之间夹着另一轮问答",
    "it is switched off": "没有开启",
    "it is switched off in the queue's schema": "在队列的 schema 中没有开启",
    "the table has no policy": "该表没有策略",
    "it is marked sent without a message_id": "标为已发送，却没有 message_id",
    "it has been pending for {} min": "已等待 {} 分钟",
    "its turn is missing": "所属的问答不存在",
    "its author is not known": "作者未知",
    "its author is not that of the turn": "作者与所属的问答不一致",
    "it does not lie in its chat": "不在它的会话中",
    "its conversation is missing": "所属的对话不存在",
    "its conversation never had a message": "所属的对话从未有过消息",
    "its kind is not the one Feishu gave its chat": "类型与飞书给出的会话类型不一致",
    "its place is not that of the message": "位置与消息不一致",
    "somebody else is its subject though the chat is p2p": "单聊中却以别人为对象",
    "{} rows": "{} 行",
    "{} row": "{} 行",
    "Feishu does not know the message": "飞书上没有这条消息",
    "Feishu shows {} characters that differ from the {} stored": (
        "飞书显示的 {} 个字符与保存的 {} 个不同"
    ),
    "the comment in Feishu differs from what is stored": "飞书里的评论与保存的内容不同",
    "another program wrote it: scripts/memory forget --conversation deletes it": (
        "由其他程序写入：scripts/memory forget --conversation 可删除"
    ),
    "scripts/check_memory --conversation … --messages shows it, scripts/queue list says what was "
    "given up": (
        "scripts/check_memory --conversation … --messages 可查看，"
        "scripts/queue list 列出已放弃的任务"
    ),
    "scripts/queue list says why it waits; if it was given up, retry sends it and drop deletes "
    "it": "scripts/queue list 说明等待的原因；如果已放弃，retry 重新发送，drop 删除",
    "something else deleted what it hung on: restore the latest backup, or delete the row": (
        "它所依附的内容被别的程序删除：请恢复最近的备份，或删除该行"
    ),
    "stop the bot: people may read what is not for them; restore the latest backup, or delete the "
    "rows": "请停止机器人：有人可能读到不该看的内容；请恢复最近的备份，或删除这些行",
    "stop the bot, switch it on as sql/schema.sql has it, start the bot": (
        "请停止机器人，按 sql/schema.sql 开启，再启动机器人"
    ),
    "stop the bot: compare policies and functions with sql/schema.sql": (
        "请停止机器人，对照 sql/schema.sql 检查策略和函数"
    ),
    "the card was changed outside of the bot: take it back in Feishu, or correct what is stored in "
    "the console": "卡片在机器人之外被修改：请在飞书撤回，或在控制台更正保存的内容",
    "--verify-sent was not given": "没有使用 --verify-sent",
    "--no-probe was given": "使用了 --no-probe",
    "not stored yet": "尚未写入",
    "RLS is off": "未开启 RLS",
    # of timers
    "everybody": "所有人",
    "once": "一次",
    "daily": "每天",
    "weekdays": "工作日",
    "weekly": "每周",
    "monthly": "每月",
    "active": "待触发",
    "done": "已完成",
    "cancelled": "已取消",
    "Imports": "历史导入",
    # of an earlier question asked again
    "as it was": "原来",
    "as it would be": "现在",
    "model, s": "模型（秒）",
    "the same answer": "回答相同",
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
    """A title, the name of a column or figure, or a finding with its numbers, in the language."""
    if language == "en":
        return words
    if exact := WORDS.get(words):
        return exact
    if numbered := WORDS.get(_NUMBER.sub("{}", words)):
        return numbered.format(*_NUMBER.findall(words))
    count, colon, problem = words.partition(": ")
    return f"{said_in(language, count)}：{WORDS[problem]}" if colon and problem in WORDS else words


def counted(number: int, noun: str) -> str:
    """English: “1 row”, “2 rows”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
