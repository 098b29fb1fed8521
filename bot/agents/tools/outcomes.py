"""What people are told of a tool's result when no language model says it. Pure.

Every sentence is read from the result itself, so nothing is claimed that it does not say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bot.agents.prompts.shown_notes import named_notes
from bot.agents.tools.confirming import FORGOTTEN, NOT_YET
from bot.agents.tools.notes import BY_ANOTHER, BY_MEANING, NOT_SHARED
from bot.features.reminders import outcomes as reminders
from bot.text.languages import Language

_IDS = re.compile(r" ?\(ID: [^()\s]*\)")
_CREATED = re.compile(r"Successfully created note .*\)(?: with tags: (.*))?\. Remember ", re.DOTALL)
_CHANGES = re.compile(r"Changes: (.*)\. Tags now: ", re.DOTALL)
_UNCHANGED = "nothing changed."
_ADDED = re.compile(r"added tags: (.*?)(?=; removed tags: |; title changed |; text replaced|$)")
_REMOVED = re.compile(r"removed tags: (.*?)(?=; title changed |; text replaced|$)")
_RENAMED = re.compile(r"title changed from \"(.*)\" to \"(.*)\"")
_READ = re.compile(
    r"Note \".*?\" \(ID: \S+\), tags: (?P<tags>.*?); last changed (?P<day>[\d-]+)\. "
    r"(?:Text:\n(?P<body>.*)|It has no text\.)",
    re.DOTALL,
)
_LISTED = re.compile(
    r"^\d+\. \"(?P<title>.{1,200}?)\" \(ID: note_\w+\), tags: (?P<tags>.*?)"
    rf"(?P<others>{BY_ANOTHER})?(?P<alike>{BY_MEANING})?$",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"^(?:Error: )?(.*?[.。!！])(?:\s|$)", re.DOTALL)

_WAITS: Mapping[Language, str] = {
    "zh": "还没有执行：按下面的按钮确认后才会执行。",
    "en": "Not done yet: it is done once you confirm it with the button below.",
}
# What a failure says to a model, and the same to people who read Chinese.
_REASONS_ZH = (
    ("no note", "没有找到这条笔记"),
    ("memory does not answer", "我的记忆现在没有响应"),
    ("can be used only by", "别人的笔记只有本人才能使用"),
    ("Only its owner", "只有笔记的主人才能分享它"),
    ("belongs to another person", "这份记忆属于别人，只有本人才能使用"),
    ("No fact of the person", "没有记下这样的内容"),
    ("changed only when they ask themselves", "关于一个人的记忆，只有本人才能更改"),
    ("working memory is full", "工作记忆已经满了"),
    ("title is empty", "标题是空的"),
    ("the title has", "标题太长（最多 200 个字符）"),
    ("the body has", "内容太长（最多 20000 个字符）"),
    ("a tag has more", "标签太长（最多 40 个字符）"),
    ("at most 20 are kept", "标签太多（一条笔记最多 20 个）"),
    ("already wait", "等待确认的操作太多了"),
    ("is in the past", "这个时间已经过去了"),
    ("no date and time that exists", "没有这样的日期或时间"),
    ("has no time of day", "还不知道是几点"),
    ("more than ten years away", "这个时间太远了（最多十年）"),
    ("Nobody called", "我不知道这是谁，请在消息里 @ 这个人"),
    ("Several people here", "有几个人叫这个名字，请在消息里 @ 你指的那一位"),
    ("as many as may be", "提醒已经太多了，请先取消一条"),
    ("only the person themselves can be reminded", "单聊里我只能提醒你自己"),
    ("Only who set a reminder", "只有设置提醒的人才能改它，被提醒的人和群管理员也可以取消"),
    ("No reminder", "没有找到这条提醒"),
    ("too long to be shown", "需要确认的内容太长，卡片上放不下"),
)


def told(tool: str, result: str, *, ok: bool, language: Language) -> str:
    """What came of a call of `tool`, in one or more sentences; ids stay between the models."""
    if not ok:
        return not_done(result, language)
    if result.startswith(NOT_YET):
        return _WAITS[language]
    say = _SAID.get(tool)
    return say(result, language) if say else _IDS.sub("", result)


def not_done(result: str, language: Language) -> str:
    """The first sentence of a failure; the rest speaks to the model."""
    match = _SENTENCE.match(result.strip())
    reason = match[1] if match else result
    if language == "en":
        return f"That was not done: {reason}"
    known = next((said for words, said in _REASONS_ZH if words in result), "")
    return f"这次没有做成：{known}。" if known else f"这次没有做成：{reason}"


def _created(result: str, language: Language) -> str:
    match = _CREATED.search(result)
    if not match:
        return _IDS.sub("", result)
    title, tags = _title(result), _tags(match[1] or "", language)
    if language == "zh":
        return f"好的，已创建笔记“{title}”" + (f"，标签：{tags}。" if tags else "。")
    return f'I created the note "{title}"' + (f" with tags: {tags}." if tags else ".")


def _updated(result: str, language: Language) -> str:
    title, changes = _title(result), _CHANGES.search(result)
    if not changes and _UNCHANGED in result:
        if language == "zh":
            return f"笔记“{title}”本来就是这样，没有改动。"
        return f'The note "{title}" is as asked already; nothing was changed.'
    if not changes:
        return _IDS.sub("", result)
    if language == "en":
        return f'I updated the note "{title}": {changes[1]}.'
    return f"已更新笔记“{title}”：{_changes_zh(changes[1])}。"


def _changes_zh(changes: str) -> str:
    said = []
    if added := _ADDED.search(changes):
        said.append(f"添加标签：{_tags(added[1], 'zh')}")
    if removed := _REMOVED.search(changes):
        said.append(f"移除标签：{_tags(removed[1], 'zh')}")
    if renamed := _RENAMED.search(changes):
        said.append(f"标题由“{renamed[1]}”改为“{renamed[2]}”")
    if changes.endswith("text replaced"):
        said.append("内容已替换")
    return "；".join(said)


def _deleted(result: str, language: Language) -> str:
    if not result.startswith("Successfully deleted"):
        return _IDS.sub("", result)
    title = _title(result)
    return f"已删除笔记“{title}”。" if language == "zh" else f'I deleted the note "{title}".'


def _shared(result: str, language: Language) -> str:
    if NOT_SHARED not in result:
        return _IDS.sub("", result)
    title = _title(result)
    if language == "zh":
        return f"笔记“{title}”不再共享：只有写下它的地方能看到；在单聊里写的，只有你能看到。"
    return (
        f'The note "{title}" is no longer shared: it is read only where it was written; what you '
        "wrote in our private chat, by you alone."
    )


def _read(result: str, language: Language) -> str:
    match = _READ.match(result)
    if not match:
        return _IDS.sub("", result)
    title, tags, body = _title(result), _tags(match["tags"], language), match["body"]
    if language == "zh":
        labelled = f"标签：{tags}" if tags else "没有标签"
        return f"笔记“{title}”，{labelled}。" + (f"\n\n{body}" if body else "它没有正文。")
    labelled = f"tags: {tags}" if tags else "no tags"
    return f'The note "{title}", {labelled}. ' + (f"\n\n{body}" if body else "It has no text.")


def tags_of(result: str, language: Language) -> str:
    """The answer to which tags a note has, from the result of reading it."""
    match = _READ.match(result)
    if not match:
        return _IDS.sub("", result)
    title, tags = _title(result), _tags(match["tags"], language)
    if language == "zh":
        return f"笔记“{title}”的标签：{tags}。" if tags else f"笔记“{title}”没有标签。"
    return f'The note "{title}" has {f"the tags: {tags}" if tags else "no tags"}.'


def _listed(result: str, language: Language) -> str:
    lines = [
        f"{number}. {_line(match, language)}"
        for number, match in enumerate(_LISTED.finditer(result), 1)
    ]
    if not lines:
        if language == "zh":
            return "没有找到符合的笔记。" if "match" in result else "还没有笔记。"
        return "No note matches." if "match" in result else "There are no notes yet."
    best = "best first" in result
    if language == "zh":
        intro = f"找到 {len(lines)} 条笔记：" if best else f"{len(lines)} 条笔记，按创建顺序："
    else:
        count = "1 note" if len(lines) == 1 else f"{len(lines)} notes"
        intro = f"{count} found:" if best else f"{count}, oldest first:"
    return "\n".join((intro, "", *lines))


def _line(match: re.Match[str], language: Language) -> str:
    tags = _tags(match["tags"], language)
    if language == "zh":
        others = "，别人写的" if match["others"] else ""
        alike = "，意思可能相近" if match["alike"] else ""
        return match["title"] + (f"（标签：{tags}）" if tags else "") + others + alike
    others = ", by another person" if match["others"] else ""
    alike = ", perhaps alike in meaning" if match["alike"] else ""
    return match["title"] + (f" (tags: {tags})" if tags else "") + others + alike


def _remembered(result: str, language: Language) -> str:
    if not result.startswith("Successfully updated"):
        return _IDS.sub("", result)
    return "工作记忆已更新。" if language == "zh" else "The working memory was updated."


def _forgotten(result: str, language: Language) -> str:
    if not result.startswith(FORGOTTEN):
        return _IDS.sub("", result)
    what = result.removeprefix(FORGOTTEN)
    if language == "zh":
        return f"已永久删除：{what}。它所出自的消息也从我的记忆里删除了。"
    return f"I deleted for good: {what}. The message it came from is gone from my memory too."


def _title(result: str) -> str:
    notes = named_notes(result)
    return notes[0][0] if notes else ""


def _tags(told: str, language: Language) -> str:
    if told == "none":
        return ""
    return told.replace(", ", "、") if language == "zh" else told


_SAID: Mapping[str, Callable[[str, Language], str]] = {
    "create_note": _created,
    "update_note": _updated,
    "delete_note": _deleted,
    "share_note": _shared,
    "get_note": _read,
    "list_notes": _listed,
    "search_notes": _listed,
    "update_working_memory": _remembered,
    "forget_fact": _forgotten,
    "set_reminder": reminders.done,
    "change_reminder": reminders.done,
    "cancel_reminder": reminders.done,
    "list_reminders": reminders.listed,
}
