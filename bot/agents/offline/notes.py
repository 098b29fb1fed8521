"""How the offline model carries out commands about notes. Pure.

All it knows of notes it reads in its prompt: the registry, earlier tool contexts, and the results
of this turn's own calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.agents.offline.commands import Command
from bot.agents.prompt import REGISTRY
from memory.kept.notes import search_terms

_NOTE = re.compile(r"\"([^\"\n]{1,200})\" \(ID: (note_[a-z2-7]+)\)")
_ROW = re.compile(
    r"^\|\s*(\d+)\s*\|([^|\n]*)\|\s*(note_[a-z2-7]+)\s*\|[^\n]*\|\s*(\d+|-)\s*\|$",
    re.MULTILINE,
)
_SHOWN = re.compile(r"(?<=[:,] )(\d+)\. (note_[a-z2-7]+)(?=,|$)", re.MULTILINE)
_DELETED = "deleted note "
_TO_SHARE_ZH = "按下面的按钮确认后，这个会话里的所有人都能读到这条笔记。"
_TO_SHARE_EN = (
    "Once you confirm it with the button below, everyone in this chat can read that note."
)
_IDS = re.compile(r" \(ID: [^()\s]*\)")
_POSITIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:first|1st)\b|第一",
        r"\b(?:second|2nd)\b|第二",
        r"\b(?:third|3rd)\b|第三",
        r"\b(?:fourth|4th)\b|第四",
    )
)
_LAST = re.compile(r"\b(?:last|latest|newest)\b|最后|最新", re.IGNORECASE)
_POINTING = re.compile(
    r"\b(?:that|this|the|my|it|one|notes?)\b|第[一二三四]|[那这该它我]|[条个篇份]|的?(?:笔记|便签)",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"Changes: (.*)\. Tags now: ", re.DOTALL)
_CHANGES_ZH = (
    ("added tags: ", "添加标签："),
    ("removed tags: ", "移除标签："),
    ("title changed from ", "标题由"),
    (" to ", "改为"),
    ("text replaced", "内容已替换"),
    ("; ", "；"),
)


@dataclass(frozen=True, slots=True)
class KnownNote:
    """A note the prompt speaks of. `recency` 1 was used last; 0: it was only listed.

    `shown` is its place in the list that a card showed last; 0: it was not in it.
    """

    id: str
    title: str
    ordinal: int
    recency: int
    shown: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call next."""

    tool: str
    arguments: dict[str, Any]


def known_notes(instructions: str, said: Iterable[str]) -> tuple[KnownNote, ...]:
    """The notes of the registry; without one, those of the tool contexts in earlier answers."""
    _, _, after = instructions.partition(REGISTRY)
    rows = _ROW.findall(after)
    if rows:
        shown = {id: int(place) for place, id in _SHOWN.findall(after)}
        return tuple(
            KnownNote(
                id,
                title.strip(),
                int(ordinal),
                0 if recency == "-" else int(recency),
                shown.get(id, 0),
            )
            for ordinal, title, id, recency in rows
        )
    return _from_contexts(said)


def found_notes(result: str) -> tuple[KnownNote, ...]:
    """The notes of a search result, best first."""
    found = enumerate(_NOTE.findall(result), start=1)
    return tuple(KnownNote(id, title, place, place) for place, (title, id) in found)


def next_call(asked: Command, known: Sequence[KnownNote], *, searched: bool) -> Call | None:
    """The call that carries out `asked`; None when nothing that is known fits.

    A note named by words that are not among the known ones is searched for first.
    """
    match asked.kind:
        case "make":
            arguments = {"title": asked.title, "body": asked.body, "tags": list(asked.tags)}
            return Call("create_note", arguments)
        case "list":
            return Call("list_notes", {})
        case "find":
            return Call("search_notes", {"query": asked.title})
    candidates = meant(asked.ref, known)
    if not candidates:
        words = " ".join(search_terms(_named(asked.ref)))
        return Call("search_notes", {"query": words}) if words and not searched else None
    return _on_note(asked, candidates[0].id)


def meant(ref: str, known: Sequence[KnownNote]) -> list[KnownNote]:
    """The notes `ref` can mean, likeliest first: by position, by title, else by recency."""
    listed = [note for note in known if note.shown]
    in_order = sorted(known, key=lambda note: note.ordinal)
    for position, pattern in enumerate(_POSITIONS):
        if pattern.search(ref):
            if listed:
                return [note for note in listed if note.shown == position + 1]
            return in_order[position : position + 1]
    if _LAST.search(ref):
        return in_order[-1:]
    recent = sorted(known, key=lambda note: (note.recency == 0, note.recency, -note.ordinal))
    words = set(search_terms(_named(ref)))
    if not words:
        return recent
    shared = {note.id: len(words & set(search_terms(note.title))) for note in known}
    best = max(shared.values(), default=0)
    return [note for note in recent if best and shared[note.id] == best]


def said(asked: Command, tool: str, result: str, others: Sequence[str]) -> str:
    """What a person is told after `tool` gave `result`; ids stay between the models."""
    names = _NOTE.findall(result)
    title = names[0][0] if names else asked.title
    chinese = asked.chinese
    match tool:
        case "create_note":
            tags = ("、" if chinese else ", ").join(asked.tags)
            if chinese:
                return f"好的，已创建笔记“{title}”" + (f"，标签：{tags}。" if tags else "。")
            return f'I created the note "{title}"' + (f" with tags: {tags}." if tags else ".")
        case "update_note":
            return _updated(title, result, chinese) + _which(others, chinese)
        case "delete_note":
            done = f"已删除笔记“{title}”。" if chinese else f'I deleted the note "{title}".'
            return done + _which(others, chinese)
        case "share_note":
            return _TO_SHARE_ZH if chinese else _TO_SHARE_EN
    return _IDS.sub("", result)


def unknown(asked: Command, known: Sequence[KnownNote]) -> str:
    """The question back when nothing that is known fits."""
    titles = [note.title for note in known]
    if asked.chinese:
        have = f"这个对话里有：{'、'.join(titles)}。" if titles else "这个对话里还没有笔记。"
        return f"我不确定是哪一条笔记。{have}"
    have = f"This conversation has: {', '.join(titles)}." if titles else "There is none here yet."
    return f"I am not sure which note you mean. {have}"


def _on_note(asked: Command, id: str) -> Call | None:
    tags = list(asked.tags)
    arguments: dict[str, dict[str, Any]] = {
        "tag": {"add_tags": tags},
        "untag": {"remove_tags": tags},
        "name": {"title": asked.title},
    }
    if asked.kind in arguments:
        return Call("update_note", {"note_id": id, **arguments[asked.kind]})
    tools = {"drop": "delete_note", "share": "share_note", "show": "get_note"}
    return Call(tools[asked.kind], {"note_id": id})


def _from_contexts(said: Iterable[str]) -> tuple[KnownNote, ...]:
    titles: dict[str, str] = {}
    used: list[str] = []
    for text in said:
        for match in _NOTE.finditer(text):
            title, id = match.groups()
            if text[: match.start()].endswith(_DELETED):
                titles.pop(id, None)
                continue
            titles[id] = title
            used.append(id)
    recent = [id for id in dict.fromkeys(reversed(used)) if id in titles]
    return tuple(
        KnownNote(id, titles[id], ordinal, recent.index(id) + 1)
        for ordinal, id in enumerate(titles, start=1)
    )


def _updated(title: str, result: str, chinese: bool) -> str:
    changes = _CHANGES.search(result)
    if not changes:
        if chinese:
            return f"笔记“{title}”本来就是这样，没有改动。"
        return f'The note "{title}" is as asked already.'
    what = changes[1]
    if not chinese:
        return f'I updated the note "{title}": {what}.'
    for english, translated in _CHANGES_ZH:
        what = what.replace(english, translated)
    return f"已更新笔记“{title}”：{what}。"


def _which(others: Sequence[str], chinese: bool) -> str:
    """Says what else could have been meant."""
    if not others:
        return ""
    if chinese:
        return f"（这是最近用到的一条；另外还有：{'、'.join(others)}。）"
    return f" (It is the one used last; there is also: {', '.join(others)}.)"


def _named(ref: str) -> str:
    """The words of a reference that name something, without those that only point."""
    return _POINTING.sub(" ", ref)
