"""What an app brings along for the page: the commands it understands, links for its operators."""

from dataclasses import dataclass, field
from typing import TypedDict


class BothLanguages(TypedDict):
    """One text in both languages."""

    en: str
    zh: str


class Offered(TypedDict):
    """A command of the slash menu: the word that is written, and what it does."""

    word: BothLanguages
    about: BothLanguages


class ShownMenuItem(TypedDict):
    """An item of the bot's menu."""

    key: str
    name: BothLanguages


class Link(TypedDict):
    """A page beside the sandbox."""

    title: BothLanguages
    href: str


@dataclass(frozen=True)
class Extras:
    """`commands`: by kind of chat, `group` or `p2p`. `menu`: that of the bot's private chats."""

    commands: dict[str, list[Offered]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    menu: list[ShownMenuItem] = field(default_factory=list)
