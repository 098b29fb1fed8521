"""Words facts and notes for the person they belong to: name, value, origin, age and readers.
Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bot.feishu.markup import chat_link, quotable
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list, shorten
from memory.models import FormerValue
from memory.tables.items import ChangedItem, ForgottenCounts, Item, ItemKind
from memory.text import has_han

PAGE_SIZE = 5
say = Catalogue(__file__).say
_KINDS = {"user": "lasting-fact", "chat": "fact-of-thread"}
_CHATS = {"group": "a-group", "p2p": "private-chat"}

_VALUE_CHARS: Mapping[ItemKind, int] = {"fact": 300, "note": 160, "summary": 300}
_NAME_CHARS = 60
_LONG_KEY = 30
_PLAIN = str.maketrans("`[]", "'()")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[\s_.\-]+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the items: their open_id, how others are named, and where links lead. Times
    are in the zone of `now`."""

    open_id: str
    language: Language
    now: datetime
    name: Callable[[str], str]
    applink: str


def item_list(items: Sequence[Item], total: int, offset: int, viewer: Viewer) -> str:
    """A page of items, numbered from `offset` + 1: a paragraph each and, where there are more
    pages, one that says which this is."""
    if not items:
        return say("nothing-kept", viewer.language)
    language, last = viewer.language, offset + len(items)
    intro = say("items", language, total=total, first=offset + 1, last=last)
    entries = [_entry(number, item, viewer) for number, item in enumerate(items, offset + 1)]
    if total > PAGE_SIZE:
        page, pages = offset // PAGE_SIZE + 1, -(-total // PAGE_SIZE)
        entries.append(say("page", language, page=page, pages=pages))
    return "\n\n".join((intro, *entries))


def ask_delete(kind: ItemKind, key: str, language: Language) -> str:
    return say("ask-delete", language, name=name_of(kind, key, language))


def ask_correct(item: Item, language: Language) -> str:
    return say("ask-correct", language, item=item_line(item.kind, item.key, item.value, language))


def deletion_receipt(counts: ChangedItem, language: Language) -> str:
    """The receipt: what was deleted."""
    return say("deleted", language, item=item_line(counts.kind, counts.key, counts.value, language))


def correction_receipt(old: ChangedItem, new: object, language: Language) -> str:
    return say(
        "corrected",
        language,
        name=name_of(old.kind, old.key, language),
        old=value_of(old.value, language) or "–",
        new=value_of(new, language),
    )


def deletion_counts(counts: ForgottenCounts, language: Language) -> str:
    """What was deleted: “Deleted: 1 fact, 2 messages, 1 answer”."""
    each = [
        say(f"count-{name}", language, n=count) for name, count in asdict(counts).items() if count
    ]
    if not each:
        return say("gone-already", language)
    return say("deleted-counts", language, counts=join_list(each, language))


def _entry(number: int, item: Item, viewer: Viewer) -> str:
    since_text = say("since", viewer.language, when=_when(item.at, viewer))
    parts = (_kind(item, viewer), since_text, _place(item, viewer), _seen_by(item, viewer.language))
    before = f"\n{_before(item.before, viewer)}" if item.before else ""
    return (
        f"**{number}.** {item_line(item.kind, item.key, item.value, viewer.language)}\n"
        f"{' · '.join(part for part in parts if part)}{before}"
    )


def _before(former: FormerValue, viewer: Viewer) -> str:
    language, until = viewer.language, _when(former.until, viewer)
    start_text = _when(former.since, viewer) if former.since else until
    span = f"{start_text} – {until}" if start_text != until else say("until", language, when=until)
    return say("before", language, value=value_of(former.value, language), span=span)


def _kind(item: Item, viewer: Viewer) -> str:
    def name(open_id: str) -> str:
        return short_text(viewer.name(open_id))

    language = viewer.language
    if item.kind == "note":
        return say("note", language)
    if item.actor_id != viewer.open_id:
        return say("said-by", language, name=name(item.actor_id))
    if item.user_id != viewer.open_id:
        return say("said-about", language, name=name(item.user_id))
    return say(_KINDS[item.scope], language)


def _when(at: str, viewer: Viewer) -> str:
    then = datetime.fromisoformat(at).astimezone(viewer.now.tzinfo)
    return times.moment_text(then, viewer.language, now=viewer.now)


def _place(item: Item, viewer: Viewer) -> str:
    """A link to the chat in which it was told: Feishu has none that can be made for a message."""
    fallback_name = say(_CHATS.get(item.chat_type or "", "that-chat"), viewer.language)
    name = short_text(item.chat_name or fallback_name)
    return f"[{name}]({chat_link(viewer.applink, item.chat_id)})" if item.chat_id else name


def _seen_by(item: Item, language: Language) -> str:
    def chat(name: str | None) -> str:
        return short_text(name or say("that-chat", language))

    if item.chat_type == "p2p":
        readers = say("only-you", language)
    else:
        readers = say("members", language, chat=chat(item.chat_name))
    if not item.shared_chat_id:
        return readers
    return f"{readers} · {say('shared-with', language, chat=chat(item.shared_chat_name))}"


def short_text(text: str, limit: int = _NAME_CHARS) -> str:
    """`text` on one line, without marks that would open code or a link in the card."""
    return shorten(text.translate(_PLAIN), limit)


def name_of(kind: ItemKind, key: str, language: Language) -> str:
    """A fact by the words of its key, a note by its title."""
    name = quotable(key, _NAME_CHARS) if kind == "note" else short_text(_words_of(key))
    return name or say(f"unnamed-{kind}", language)


def item_line(kind: ItemKind, key: str, value: Any, language: Language, most: int = 0) -> str:
    """An item in one line: its name and what is kept; only the latter where it says the name. A
    note is quoted by its title. `most`: characters of what is kept, if fewer than usual."""
    name = name_of(kind, key, language)
    text = value_of(value, language, most or _VALUE_CHARS[kind])
    shown_name = f"“{name}”" if kind == "note" and key.strip() else name
    if not text:
        return shown_name
    if not key or _says(text, name, whole=kind == "note"):
        return text
    return say("item", language, name=shown_name, value=text)


def value_of(value: Any, language: Language, most: int = _VALUE_CHARS["fact"]) -> str:
    """What is kept, or its first words; a text is quoted."""
    if isinstance(value, str):
        words = quotable(value, most)
        return f"“{words}”" if words else ""
    return short_text(_spelled_value(value, language), most)


def _spelled_value(value: Any, language: Language) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return say("yes" if value else "no", language)
    if isinstance(value, list):
        return join_list([_spelled_value(one, language) for one in value], language)
    if isinstance(value, Mapping):
        pairs = ((_words_of(key), _spelled_value(one, language)) for key, one in value.items())
        return join_list([say("item", language, name=k, value=v) for k, v in pairs], language)
    return json.dumps(value, ensure_ascii=False)


def _words_of(key: str) -> str:
    """`favourite_colour`, `favouriteColour` → “favourite colour”."""
    key_words = _CAMEL.split(key)
    text = " ".join([key_words[0], *map(str.lower, key_words[1:])])
    return _JOINTS.sub(" ", text).strip()


def _says(text: str, name: str, *, whole: bool) -> bool:
    """Whether the text begins with the name or, unless that is asked for as a `whole`, has all its
    words. A long key may end within a word."""
    text_words, name_words = _WORD.findall(text.lower()), _WORD.findall(name.lower())
    if name_words[1:] and name_words[-1] == "time":  # of what respect it is, not of what matter
        name_words.pop()
    begins = " ".join(text_words).startswith(" ".join(name_words))
    if begins and (text_words[: len(name_words)] == name_words or len(name) > _LONG_KEY):
        return True
    if has_han(name):
        at = "".join(text_words).find("".join(name_words))
        return at == 0 if whole else at >= 0
    return not whole and set(name_words) <= set(text_words)
