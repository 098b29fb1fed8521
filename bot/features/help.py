"""Answers `/help` and `/why`, and words unknown commands.

`CAPABILITIES` lists what the bot can do. The quoted examples in a capability's text work as
written, one after the other; a test sends each of them to the bot."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.answering.texts import failure_cause
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine, SetUp
from bot.feishu import markup
from bot.feishu.errors import lacks_scope
from bot.feishu.manifest import GROUP_MESSAGES
from bot.listening.chat_rules import PER_PAIR_AND_HOUR, PER_REQUEST, rules_of
from bot.listening.conversation_store import ChatConversations, PastDecision
from bot.listening.decisions import AddressedBy, Reason
from bot.outbox.buttons import Reply, offered_buttons
from bot.services import Services
from bot.settings import Settings
from bot.text import times
from bot.text.languages import LANGUAGES, Catalogue, Language, Sentence, quote, shorten
from bot.text.slash_commands import COMMAND_WORDS, CommandName
from memory.scope import ChatType
from memory.text import one_line

_LATELY_S = 600.0

say = Catalogue(__file__).say

_ORDER = (
    "new memory notes reminders digest forget quiet resume stop why settings proactive import"
    " connect"
).split()  # of commands in the help; others follow
_WORD = re.compile(r"`(/[^`\s]+)`")

_LETTERS = "a-z\u4e00-\u9fff"
_ONE_WORD = re.compile(rf"[/／]([{_LETTERS}]{{2,20}})(?![/\\\w.~-])\s*(\S?)", re.IGNORECASE)
_SHORT = 4  # a word up to so long is near with one slip, a longer one with two
_LEAST_SHARED = 3
_LONGEST_WORD = 60

_NOT_ANSWERED = frozenset({"apologised", "refused", "stopped", "undelivered", "taken_back"})
_NO_HINT = frozenset(
    {
        Reason.OWN_MESSAGE,
        Reason.BOT_WITHOUT_MENTION,
        Reason.BOT_LOOP_LIMIT,
        Reason.RATE_LIMITED,
    }
)
_A_MINUTE_S = 90
_WORDS_CHARS = 60


async def show_help(services: Services, command_turn: CommandTurn) -> Reply:
    here = await set_up_here(services, command_turn.chat_type, command_turn.open_turn.rules)
    buttons = offered_buttons(
        say("command-buttons", command_turn.language).split(), command_turn.chat_type
    )
    return Reply(help_text(command_turn.commands, here, command_turn.language), buttons)


async def explain_decision(services: Services, command_turn: CommandTurn) -> Reply:
    """Why the bot answered, or not, as it was decided then."""
    request = command_turn.turn.request
    conversations = ChatConversations(services.rpc, command_turn.context)
    decision = await conversations.last_decision(
        root_id=request.root_of_thread or None, message_id=request.quotes or None
    )
    if command_turn.chat_type == "p2p" and not _explains_p2p(services, command_turn, decision):
        return Reply(say("always-in-p2p", command_turn.language))
    if decision is None:
        return Reply(say("nothing-decided", command_turn.language))
    if decision.reason == Reason.NO_TRIGGER and not decision.cue and await conversations.is_quiet():
        decision = replace(decision, reason=Reason.QUIET)  # a quiet chat has no conversation
    names = services.people.of(command_turn.context.tenant_key)
    await names.look_up([decision.actor_id])
    at = datetime.fromtimestamp(decision.at_ms / 1000, services.settings.zone)
    window_s = services.settings.followup_window_seconds
    of_another = decision.actor_id and decision.actor_id != command_turn.context.actor_id
    name = names.label(decision.actor_id) if of_another else ""
    return Reply(decision_explanation(decision, name, at, window_s, command_turn.language))


def _explains_p2p(
    services: Services, command_turn: CommandTurn, decision: PastDecision | None
) -> bool:
    """In p2p only skipped messages have a decision, so the last one may be long ago."""
    if decision is None or decision.reason != Reason.RATE_LIMITED:
        return False
    quotes = bool(command_turn.turn.request.quotes)
    return quotes or services.clock() - decision.at_ms / 1000 < _LATELY_S


async def hears_all(services: Services, chat_type: ChatType) -> bool:
    """Whether all that is said in such a chat reaches the bot, as far as Feishu says."""
    return chat_type == "p2p" or not await lacks_scope(
        services.feishu, services.denials, GROUP_MESSAGES
    )


async def set_up_here(services: Services, chat_type: ChatType, rules: Mapping[str, Any]) -> SetUp:
    """What the bot can do there; `rules` is a row of `get_chat_rules`."""
    hears = await hears_all(services, chat_type)
    return set_up(services.settings, chat_type, rules, hears=hears)


async def with_limits(
    services: Services, chat_type: ChatType, text: str, language: Language
) -> str:
    """`text`, with what the bot cannot hear there below it."""
    if await hears_all(services, chat_type):
        return text
    return f"{text}\n\n{say('mentions-only', language)}"


def set_up(
    settings: Settings, chat_type: ChatType, rules: Mapping[str, Any], *, hears: bool = True
) -> SetUp:
    """What it is here; `rules` is a row of `get_chat_rules`."""
    return SetUp(
        chat_type,
        rules_of(rules, settings).mode,
        shares=settings.sharing == "chat",
        proactive=settings.proactive,
        offline=not settings.openai_api_key,
        hears=hears,
        connects=bool(settings.user_token_key),
    )


@dataclass(frozen=True, slots=True)
class Capability:
    """A line of the help about what people can say: its key, and whether the bot can do that."""

    key: str
    is_there: Callable[[SetUp], bool] = lambda _: True


CAPABILITIES: tuple[Capability, ...] = (
    Capability("saying-ask-in-group", lambda here: here.in_group),
    Capability("saying-ask-in-p2p", lambda here: not here.in_group and here.shares),
    Capability("saying-ask-in-p2p-alone", lambda here: not here.in_group and not here.shares),
    Capability("saying-ask-for-others", lambda here: here.in_group and here.shares),
    Capability("saying-facts"),
    Capability("saying-notes"),
    Capability("saying-reminders"),
    Capability("saying-documents", lambda here: here.connects),
    Capability("saying-calendar", lambda here: here.connects),
    Capability("saying-go-on", lambda here: here.follows and here.mode == "follow"),
    Capability("saying-go-on-in-threads", lambda here: here.follows and here.mode == "threads"),
    Capability("saying-answer-everything", lambda here: here.follows and here.mode == "all"),
    Capability("saying-offline", lambda here: here.offline),
)


def available_commands(
    commands: Sequence[CommandSpec], here: SetUp
) -> list[tuple[Sentence, Sentence]]:
    """Returns the commands that work here, each as the word that is written and what it does."""
    entries = []
    for line in _help_lines(commands, here):
        (words, about), (words_zh, about_zh) = line.en.split(": ", 1), line.zh.split("：", 1)
        description = Sentence(_plain(about), _plain(about_zh))
        pairs = zip(_WORD.findall(words), _WORD.findall(words_zh), strict=True)
        entries += [(Sentence(*pair), description) for pair in pairs]
    return entries


def _help_lines(commands: Sequence[CommandSpec], here: SetUp) -> list[Sentence]:
    """Returns the lines of commands that work here: first those in `_ORDER`."""
    commands_in_order = sorted(
        commands, key=lambda one: _ORDER.index(one.name) if one.name in _ORDER else len(_ORDER)
    )
    return [line.text for one in commands_in_order for line in one.help if line.is_there(here)]


def _plain(markdown: str) -> str:
    return re.sub(r"[`*]", "", markdown)


def help_text(commands: Sequence[CommandSpec], here: SetUp, language: Language) -> str:
    """Returns all that works here, and nothing else."""
    others = [one for one in commands if one.name != CommandName.HELP]
    sections = (
        ("heading-saying", [say(one.key, language) for one in CAPABILITIES if one.is_there(here)]),
        ("heading-command", [one.said(language) for one in _help_lines(others, here)]),
    )
    parts = [
        "\n".join((say(heading, language), "", *(f"- {line}" for line in lines)))
        for heading, lines in sections
    ]
    if here.in_group and not here.hears:
        parts.append(say("mentions-only", language))
    return "\n\n".join(parts)


def answer_unknown(text: str, language: Language) -> str:
    """What is said to a text that begins with a slash word that is no command; "" for any other
    text: a path, a number, and a word unlike any command that more is said about."""
    match = _ONE_WORD.match(unicodedata.normalize("NFKC", text.strip()))
    if not match:
        return ""
    word = match[1].lower()
    nearest_name = nearest_command(word)
    if word in COMMAND_WORDS or (match[2] and not nearest_name):
        return ""
    key = "did-you-mean" if nearest_name else "no-such-command"
    return say(key, language, word=word, meant=nearest_name)


def nearest_command(word: str) -> str:
    """The command's word that `word` was meant to be: by the fewest slips, or begun alike."""
    if len(word) > _LONGEST_WORD:
        return ""
    slips = {command: _slips(word, command) for command in COMMAND_WORDS}
    best = min(slips, key=lambda command: slips[command])
    if slips[best] <= min(1 if len(word) <= _SHORT else 2, len(word) // 2):
        return best
    least = 2 if word[0] >= "\u4e00" else _LEAST_SHARED
    alike = (one for one in COMMAND_WORDS if len(one) >= least and _begins(one, word, least))
    return next(alike, "")


def _begins(command: str, word: str, least: int) -> bool:
    return word.startswith(command) or (len(word) >= least and command.startswith(word))


def _slips(one: str, other: str) -> int:
    """How many letters are added, left out, changed, or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
    return row[-1]


def page_commands(
    commands: Sequence[CommandSpec], settings: Settings, chat_type: ChatType
) -> list[tuple[Sentence, Sentence]]:
    """The commands of a chat without rules of its own, as a menu offers them."""
    return available_commands(commands, set_up(settings, chat_type, {}))


def describe_decision(decision: str, message_text: str) -> Sentence:
    """The beginning of the message and the explanation of a decision such as
    `answered: explicit_trigger: mention`. A reason without a text is returned as it is."""
    verb, _, why = decision.partition(": ")
    reason, _, cue = why.partition(": ")
    explanation = short_explanation(verb == "answered", reason, cue) or Sentence(decision, decision)
    quotation = f"{quote(message_beginning(message_text))} · " if message_text.strip() else ""
    return Sentence(quotation + explanation.en, quotation + explanation.zh)


def short_explanation(respond: bool, reason: str, cue: str = "") -> Sentence | None:
    """What was decided and why, where no more than the reason and the cue is known; None for a
    reason that is not known any more."""
    if reason not in set(Reason):
        return None
    if reason == Reason.LLM_JUDGE:
        why = "judged-yes" if respond else "judged-no"
    elif reason == Reason.EXPLICIT_TRIGGER and cue in set(AddressedBy):
        why = f"address-{cue}"
    else:
        why = "why-unknown" if reason == Reason.NO_TRIGGER else f"why-{reason}"
    key = "answered-in-short" if respond else "silent-in-short"
    en, zh = (say(key, one, why=_reason(why, None, 0, one)) for one in LANGUAGES)
    return Sentence(en, zh)


def decision_explanation(
    decision: PastDecision, name: str, at: datetime, window_s: int, language: Language
) -> str:
    """What was decided on which message, and why. `name` is "" when nobody knows whose it is."""
    why = _reason(_why(decision), decision.since_bot_ms, window_s, language)
    key = "silent"
    if decision.respond and decision.reason != Reason.RATE_LIMITED:
        outcome = decision.outcome
        key = f"not-answered-{outcome}" if outcome in _NOT_ANSWERED else "answered"
    cause = failure_cause(decision.outcome, decision.outcome_reason, language)
    what = _message(decision, name, at, language)
    explanation = say(key, language, what=what, why=why, cause=cause)
    silent = not decision.respond and decision.reason not in _NO_HINT
    return explanation + (say("hint", language) if silent else "")


def _message(decision: PastDecision, name: str, at: datetime, language: Language) -> str:
    """The message by its words, or by its time where they are gone."""
    who = one_line(name).replace("*", "＊").replace("`", "'")
    words = markup.quotable(decision.words, _WORDS_CHARS)
    if words:
        return say("their-words" if who else "words", language, name=who, words=words)
    when = times.moment_text(at, language, now=at)
    return say("their-message" if who else "message", language, name=who, at=when)


def message_beginning(words: str) -> str:
    """The beginning of a message on one line."""
    return shorten(words, _WORDS_CHARS)


def _why(decision: PastDecision) -> str:
    """The key of the reason."""
    reason = Reason(decision.reason)
    if reason is Reason.LLM_JUDGE:
        return f"judged-{decision.verdict or 'error'}"
    if reason is Reason.NO_TRIGGER:
        return f"cue-{decision.cue or 'none'}"
    if reason is Reason.EXPLICIT_TRIGGER and decision.cue:
        return f"address-{decision.cue}"
    return f"why-{reason}"


def _reason(key: str, since_bot_ms: int | None, window_s: int, language: Language) -> str:
    return say(
        key,
        language,
        since=_since(since_bot_ms, language),
        window_s=window_s,
        in_a_row=PER_REQUEST,
        an_hour=PER_PAIR_AND_HOUR,
    )


def _since(since_bot_ms: int | None, language: Language) -> str:
    if since_bot_ms is None:
        return say("since-unknown", language)
    seconds = max(1, since_bot_ms // 1000)
    if seconds > _A_MINUTE_S:
        return say("since-minutes", language, n=seconds // 60)
    return say("since-seconds", language, n=seconds)


HELP = Feature(
    name="help",
    commands=(
        CommandSpec(
            words=("help", "帮助"),
            run=show_help,
            help=(HelpLine("`/help`: what I can do here", "`/帮助`：查看我能做什么"),),
        ),
        CommandSpec(
            words=("why", "为什么", "为何"),
            run=explain_decision,
            help=(
                HelpLine(
                    "`/why`: why I did or didn't answer the last message; quote a message to "
                    "ask about that one",
                    "`/为什么`：查看我为什么回答或没有回答上一条消息；"
                    "引用某条消息再发送，可以查看那一条的原因",
                    lambda here: here.in_group,
                ),
            ),
        ),
    ),
    page_texts={"decision": describe_decision},
)
