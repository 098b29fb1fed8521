"""How facts and notes are shown to whom they are of: whence, since when, who sees them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from bot.features.own_memory.item_names import line_of, name_of, short, value_of
from bot.feishu.applink import chat_link
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language, join_list
from memory.models import Former
from memory.tables.items import Changed, Item, Kind
from memory.tables.said import Gone

PAGE_SIZE = 5

say = Catalogue(__file__).say

_KINDS = {"user": "lasting-fact", "chat": "fact-of-thread"}
_CHATS = {"group": "a-group", "p2p": "private-chat"}


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the items: their open_id, how others are named, and where links lead. Times
    are in the zone of `now`."""

    open_id: str
    language: Language
    now: datetime
    name: Callable[[str], str]
    applink: str


def listed(items: Sequence[Item], total: int, offset: int, viewer: Viewer) -> str:
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


def ask_delete(kind: Kind, key: str, language: Language) -> str:
    return say("ask-delete", language, name=name_of(kind, key, language))


def ask_correct(item: Item, language: Language) -> str:
    return say("ask-correct", language, item=line_of(item.kind, item.key, item.value, language))


def deleted(counts: Changed, language: Language) -> str:
    """The receipt: what was deleted."""
    return say("deleted", language, item=line_of(counts.kind, counts.key, counts.value, language))


def corrected(old: Changed, new: object, language: Language) -> str:
    return say(
        "corrected",
        language,
        name=name_of(old.kind, old.key, language),
        old=value_of(old.kind, old.value, language) or "–",
        new=value_of(old.kind, new, language),
    )


def gone(counts: Gone, language: Language) -> str:
    """What was deleted: “Deleted: 1 fact, 2 messages, 1 answer”."""
    each = [
        say(f"count-{name}", language, n=count) for name, count in asdict(counts).items() if count
    ]
    if not each:
        return say("gone-already", language)
    return say("deleted-counts", language, counts=join_list(each, language))


def value_text(value: object) -> str:
    """A value as text, to be searched."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _entry(number: int, item: Item, viewer: Viewer) -> str:
    since = say("since", viewer.language, when=_when(item.at, viewer))
    parts = (_kind(item, viewer), since, _place(item, viewer), _seen_by(item, viewer.language))
    before = f"\n{_before(item.before, viewer)}" if item.before else ""
    return (
        f"**{number}.** {line_of(item.kind, item.key, item.value, viewer.language)}\n"
        f"{' · '.join(part for part in parts if part)}{before}"
    )


def _before(former: Former, viewer: Viewer) -> str:
    language, until = viewer.language, _when(former.until, viewer)
    if former.since:
        span = f"{_when(former.since, viewer)} – {until}"
    else:
        span = say("until", language, when=until)
    return say("before", language, value=value_of("fact", former.value, language), span=span)


def _kind(item: Item, viewer: Viewer) -> str:
    def name(open_id: str) -> str:
        return short(viewer.name(open_id))

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
    return spoken.moment(then, viewer.language, now=viewer.now)


def _place(item: Item, viewer: Viewer) -> str:
    """A link to the chat in which it was told: Feishu has none that can be made for a message."""
    fallback_name = say(_CHATS.get(item.chat_type or "", "that-chat"), viewer.language)
    name = short(item.chat_name or fallback_name)
    return f"[{name}]({chat_link(viewer.applink, item.chat_id)})" if item.chat_id else name


def _seen_by(item: Item, language: Language) -> str:
    def chat(name: str | None) -> str:
        return short(name or say("that-chat", language))

    if item.chat_type == "p2p":
        readers = say("only-you", language)
    else:
        readers = say("members", language, chat=chat(item.chat_name))
    if not item.shared_chat_id:
        return readers
    return f"{readers} · {say('shared-with', language, chat=chat(item.shared_chat_name))}"
