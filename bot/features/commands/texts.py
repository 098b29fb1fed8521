"""The texts of the commands' answers, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo

from bot.text.languages import Language
from memory.kept.notes import Note
from memory.models import Overview
from memory.text import one_line

_VALUE_CHARS = 200
_MESSAGE_CHARS = 120
_MESSAGES_SHOWN = 6

Texts = Mapping[Language, str]

HELP_BUTTONS: Mapping[Language, Sequence[str]] = {
    "zh": ("/记忆", "/笔记", "/新对话"),
    "en": ("/memory", "/notes", "/new"),
}
AFRESH: Texts = {
    "zh": "好的，从这里重新开始。这个话题之前的对话我不再读取，但仍然保存着；要删除请用 `/忘记`。",
    "en": "Starting afresh. I no longer read what was said in this thread before, but it is still "
    "stored; use `/forget` to delete it.",
}
QUIET: Texts = {
    "zh": "好的，我安静下来：在这个群里只有 @我 时才回答。用 `/继续` 恢复。",
    "en": "I will be quiet: in this group I only answer when I am mentioned. `/resume` ends this.",
}
QUIET_IN_P2P: Texts = {
    "zh": "单聊里我只在你发消息时回答，没有需要安静的时候。",
    "en": "Here I only ever answer your messages, so there is nothing to be quiet about.",
}
RESUMED: Texts = {
    "zh": "好的，我又开始留意大家的讨论了。",
    "en": "I am following the discussion again.",
}
RESUMED_ON_MENTION: Texts = {
    "zh": "好的，不再安静了。不过这里的设置是只在被 @ 或被回复时回答；用 `/模式` 可以更改。",
    "en": "I am no longer quiet. By the settings here I still answer only when I am mentioned or "
    "replied to; `/mode` changes that.",
}
STOPPING: Texts = {
    "zh": "好的，正在停止。写到哪里就到哪里，已经做了的会列在那张卡片上。",
    "en": "Stopping. The answer ends where it is; what was done already is listed in its card.",
}
NOTHING_RUNS: Texts = {
    "zh": "现在没有正在为你写的回答。",
    "en": "I am not writing an answer for you right now.",
}
ONLY_YOURSELF: Texts = {
    "zh": "这个命令只能用于你自己的记忆：请不要在命令里 @别人。",
    "en": "This command works on your own memory only: please use it without mentioning others.",
}
MEMORY_AWAY: Texts = {
    "zh": "我的记忆现在连不上，什么都没有改动。请稍后再试。",
    "en": "My memory cannot be reached right now; nothing was changed. Please try again later.",
}

FORGETS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "forget.thread": "忘记这个话题：我和你在这里的全部对话和工作记忆。你的笔记会保留。",
        "forget.person": "忘记关于你的一切：所有话题里的对话、工作记忆和全部笔记。",
    },
    "en": {
        "forget.thread": "Forget this thread: everything you and I said here, and its working "
        "memory. Your notes stay.",
        "forget.person": "Forget everything about you: every thread, all working memory and all "
        "notes.",
    },
}
FORGET_CHOICES: Mapping[Language, Mapping[str, str]] = {
    "zh": {"forget.thread": "忘记这个话题", "forget.person": "忘记关于我的一切"},
    "en": {"forget.thread": "This thread", "forget.person": "Everything about me"},
}
_FORGET: Texts = {
    "zh": "请用按钮确认，此操作无法撤销：",
    "en": "Please confirm with a button; this cannot be undone:",
}
FORGETTING: Texts = {"zh": "正在删除…", "en": "Forgetting …"}
FORGOTTEN: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "forget.thread": "已删除：我不再记得你在这个话题里的任何内容。",
        "forget.person": "已删除：我不再记得关于你的任何内容。",
    },
    "en": {
        "forget.thread": "Done: I remember nothing of what you said in this thread.",
        "forget.person": "Done: I remember nothing about you.",
    },
}
CANCELLED: Texts = {
    "zh": "已取消，什么都没有做。",
    "en": "Cancelled; nothing was done.",
}
NO_SUCH_ACTION: Texts = {
    "zh": "这个操作现在不可用，什么都没有做。",
    "en": "This action is not available any more; nothing was done.",
}
INTERRUPTED: Texts = {
    "zh": "执行时中断了，我不能确定是否已经完成。请先检查结果；我不会自己重试。",
    "en": "I was interrupted and cannot tell whether it was done. Please check the result; I will "
    "not repeat it by myself.",
}
_DONE: Texts = {"zh": "已执行：", "en": "Done: "}
_FAILED: Texts = {"zh": "没有成功：", "en": "That failed: "}

_MEMORY: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "intro": "这是我在这里记住的关于你的内容。",
        "counts": "本话题 {here} 条消息；总共 {conversations} 个话题、{messages} 条消息、"
        "{notes} 条笔记{since}。",
        "since": "（自 {}）",
        "last": "**本话题最近的消息**",
        "you": "你",
        "me": "我",
        "colon": "：",
    },
    "en": {
        "intro": "This is what I hold about you here.",
        "counts": "Messages: {here} in this thread, {messages} in all; threads: {conversations}; "
        "notes: {notes}.{since}",
        "since": " The oldest is of {}.",
        "last": "**The latest messages of this thread**",
        "you": "You",
        "me": "I",
        "colon": ": ",
    },
}
_NOTES: Texts = {"zh": "你的笔记，按创建顺序：", "en": "Your notes, in order of creation:"}
_NO_NOTES: Texts = {
    "zh": "你还没有笔记。可以说“建一条笔记：发布清单”。",
    "en": "You have no notes yet. Try “create a note: release checklist”.",
}
_NO_NOTES_HERE: Texts = {
    "zh": "你在这个群里还没有笔记。可以说“建一条笔记：发布清单”。"
    "在别处建的笔记不在群里显示，请在单聊里查看。",
    "en": "You have no notes in this group yet. Try “create a note: release checklist”. Notes that "
    "you made elsewhere are not shown in a group: ask me for them in our private chat.",
}


def forget(choices: Iterable[str], language: Language) -> str:
    """What would be forgotten, before anything is."""
    lines = [f"- {FORGETS[language][tool]}" for tool in choices]
    return "\n".join((_FORGET[language], "", *lines))


def memory(
    overview: Overview,
    said: Sequence[tuple[str, str]],
    language: Language,
    zone: tzinfo,
) -> str:
    """Counts, and the latest messages as (role, text); days are those of `zone`."""
    words = _MEMORY[language]
    counts = words["counts"].format(
        here=overview.messages_here,
        conversations=overview.conversations,
        messages=overview.messages,
        notes=overview.notes,
        since=words["since"].format(_day(overview.since, zone)) if overview.since else "",
    )
    with_text = [line for line in said if line[1].strip()]
    latest = [
        f"- {words['me' if role == 'assistant' else 'you']}{words['colon']}"
        f"{_one_line(text, _MESSAGE_CHARS)}"
        for role, text in with_text[-_MESSAGES_SHOWN:]
    ]
    parts = [
        f"{words['intro']}\n{counts}",
        "\n".join((words["last"], *latest)) if latest else "",
    ]
    return "\n\n".join(part for part in parts if part)


def notes(found: Sequence[Note], language: Language, *, in_group: bool = False) -> str:
    """Titles and tags, numbered in order of creation."""
    lines = [
        f"{number}. {_one_line(note.title, _VALUE_CHARS)}"
        + "".join(f" #{_one_line(tag, 40)}" for tag in note.tags)
        for number, note in enumerate(found, 1)
    ]
    if not lines:
        return (_NO_NOTES_HERE if in_group else _NO_NOTES)[language]
    return "\n".join((_NOTES[language], "", *lines))


def result(text: str, *, done: bool, language: Language) -> str:
    """What a confirmed action answered."""
    return f"{(_DONE if done else _FAILED)[language]}{text}"


def _day(at: str, zone: tzinfo) -> str:
    return f"{datetime.fromisoformat(at).astimezone(zone):%Y-%m-%d}"


def _one_line(text: str, limit: int) -> str:
    """`text` on one line, without marks that would open code in the card."""
    line = one_line(text).replace("`", "'")
    return line if len(line) <= limit else line[: limit - 1] + "…"
