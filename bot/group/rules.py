"""The rules that a chat gives the bot: when it speaks, in which language, instructions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Mode = Literal["mention", "threads", "follow", "all"]
RuleLanguage = Literal["zh", "en", "auto"]

MODES: tuple[Mode, ...] = get_args(Mode)
LANGUAGES: tuple[RuleLanguage, ...] = get_args(RuleLanguage)
MAX_INSTRUCTIONS = 500


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What holds in a chat; `own` names the rules that the chat set itself.

    mention: only who addresses the bot is answered. threads: also who goes on in a thread of the
    bot. follow: also who goes on in the chat just after the bot spoke. all: everybody who does not
    speak to somebody else. `proactive`: the bot also answers what nobody answers.
    """

    mode: Mode = "follow"
    language: RuleLanguage = "auto"
    instructions: str = ""
    proactive: bool = False
    own: frozenset[str] = frozenset()


def rules_of(row: Mapping[str, Any] | None, usual: ChatRules) -> ChatRules:
    """The rules of a row of `get_chat_rules`; what it does not set is as usual."""
    own = {name: value for name, value in (row or {}).items() if value}
    return ChatRules(
        own.get("mode", usual.mode),
        own.get("language", usual.language),
        own.get("instructions", usual.instructions),
        bool(own.get("proactive")),
        frozenset(own),
    )


def told_by_owner(owner: str, rules: ChatRules) -> str:
    """The owner's instructions with those of the chat, whose managers wrote them, below them."""
    parts = [owner.strip(), _LANGUAGE.get(rules.language, "")]
    if rules.instructions:
        parts.append(f"{_OF_THE_CHAT}\n{rules.instructions}")
    return "\n\n".join(part for part in parts if part)


_LANGUAGE: Mapping[str, str] = {
    "zh": "Answer in Chinese, in whatever language you are asked.",
    "en": "Answer in English, in whatever language you are asked.",
}
_OF_THE_CHAT = "The managers of this chat ask you, as far as nothing above says otherwise:"
