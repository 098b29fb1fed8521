"""Answers `/new`, `/quiet`, `/resume` and `/stop`, and holds what all commands share: their
texts, who may change a chat, and which command a whole text asks for in plain words (a digest,
silence, another language; English and Chinese)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.help import set_up_here
from bot.feishu.errors import FeishuFailure
from bot.feishu.markup import quotable
from bot.outbox.buttons import Reply
from bot.queue.table import stopping_statement
from bot.services import Services
from bot.text import times
from bot.text.languages import Catalogue, Language, language_of
from bot.text.slash_commands import Command, CommandName
from memory.models import MemoryOverview
from memory.scope import AgentMemoryContext, ChatType
from memory.tables.directory import ChatStore
from memory.tables.notes import Note

_VALUE_CHARS = 200
_MESSAGE_CHARS = 120
_MESSAGES_SHOWN = 6
say = Catalogue(__file__).say

_LOOK_UP_S = 5.0


async def start_afresh(services: Services, command_turn: CommandTurn) -> Reply:
    await services.store.start_afresh(command_turn.context)
    return Reply(say("afresh", command_turn.language))


async def quiet_chat(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(say("quiet-in-p2p", command_turn.language))
    await command_turn.turn.chat.manager.quieten(command_turn.context.chat_id)
    return Reply(say("quiet", command_turn.language))


async def resume_following(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(say("quiet-in-p2p", command_turn.language))
    await command_turn.turn.chat.manager.resume(command_turn.context.chat_id)
    here = await set_up_here(services, command_turn.chat_type, command_turn.open_turn.rules)
    text_key = "resumed" if here.follows else "resumed-on-mention"
    return Reply(say(text_key, command_turn.language))


async def stop_answers(services: Services, command_turn: CommandTurn) -> Reply | None:
    """Ends the answers to the person, and those about them, that are being written in this chat."""
    context, language = command_turn.context, command_turn.language
    running = await services.store.running_turns(context, turn_id=command_turn.turn_id)
    if not running or services.run_on_queue is None:
        if command_turn.command.only_when_running:
            return None
        return Reply(say("nothing-runs", language))
    for turn_id in running:
        await services.run_on_queue(stopping_statement(turn_id))
    return Reply(say("stopping", language))


def forget_scope_text(tool: str, language: Language) -> str:
    """What `tool` (`forget.thread`, `forget.person`) would forget."""
    return say(f"forget-{_scope(tool)}", language)


def forget_choice_label(tool: str, language: Language) -> str:
    """The button that chooses `tool` of several."""
    return say(f"choose-{_scope(tool)}", language)


def forgotten_text(tool: str, language: Language) -> str:
    return say(f"forgotten-{_scope(tool)}", language)


def _scope(tool: str) -> str:
    return tool.removeprefix("forget.")


def forget_question(choices: Iterable[str], language: Language) -> str:
    """What would be forgotten, before anything is."""
    lines = [f"- {forget_scope_text(tool, language)}" for tool in choices]
    return "\n".join((say("confirm-forget", language), "", *lines))


def memory_overview(
    overview: MemoryOverview,
    messages: Sequence[tuple[str, str]],
    language: Language,
    now: datetime,
) -> str:
    """Counts, and the latest messages as (role, text); days are in the zone of `now`."""
    counts = say(
        "counts-since" if overview.since else "counts",
        language,
        here=overview.messages_here,
        conversations=overview.conversations,
        messages=overview.messages,
        notes=overview.notes,
        day=_day(overview.since, language, now) if overview.since else "",
    )
    with_text = [line for line in messages if line[1].strip()]
    latest = [_line(role, text, language) for role, text in with_text[-_MESSAGES_SHOWN:]]
    parts = [
        f"{say('memory', language)}\n{counts}",
        "\n".join((say("latest-messages", language), *latest)) if latest else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _line(role: str, text: str, language: Language) -> str:
    key = "line-by-me" if role == "assistant" else "line-by-you"
    return f"- {say(key, language, text=quotable(text, _MESSAGE_CHARS))}"


def note_list(all_notes: Sequence[Note], language: Language, *, in_group: bool = False) -> str:
    """Titles and tags, numbered in order of creation."""
    lines = [
        f"{number}. “{quotable(note.title, _VALUE_CHARS)}”"
        + "".join(f" #{quotable(tag, 40)}" for tag in note.tags)
        for number, note in enumerate(all_notes, 1)
    ]
    if not lines:
        return say("no-notes-here" if in_group else "no-notes", language)
    return "\n".join((say("notes", language), "", *lines))


def _day(at: str, language: Language, now: datetime) -> str:
    return times.day_text(datetime.fromisoformat(at).astimezone(now.tzinfo), language, now=now)


async def learn_managers(
    services: Services, context: AgentMemoryContext, chat_type: ChatType
) -> bool:
    """Stores who manages the chat as Feishu says now; False where it does not say. In p2p that is
    the person themselves."""
    managers: tuple[str, ...] = (context.actor_id,)
    if chat_type != "p2p":
        try:
            async with asyncio.timeout(_LOOK_UP_S):
                managers = (await services.feishu.chat_info(context.chat_id)).managers
        except (TimeoutError, FeishuFailure):
            return False
    await ChatStore(services.rpc).save_managers(context.tenant_key, context.chat_id, managers)
    return bool(managers)


def explain_refusal(language: Language, *, managers_known: bool = True) -> str:
    return say("refused" if managers_known else "unreadable", language)


CHAT_COMMANDS = Feature(
    name="commands",
    commands=(
        CommandSpec(
            words=("new", "新对话"),
            run=start_afresh,
            help=(
                HelpLine(
                    "`/new`: start over in this thread; I'll ignore what was said before",
                    "`/新对话`：在这个话题里重新开始，不再参考之前的内容",
                ),
            ),
            personal=True,
        ),
        CommandSpec(
            words=("quiet", "安静"),
            run=quiet_chat,
            help=(
                HelpLine(
                    "`/quiet`: mute me in this group, so that I only answer mentions",
                    "`/安静`：静音，之后只在有人 @我 时回答",
                    lambda here: here.follows,
                ),
            ),
        ),
        CommandSpec(
            words=("resume", "继续"),
            run=resume_following,
            help=(
                HelpLine(
                    "`/resume`: unmute me",
                    "`/继续`：取消静音",
                    lambda here: here.follows,
                ),
            ),
        ),
        CommandSpec(
            words=("stop", "停止", "停"),
            run=stop_answers,
            help=(
                HelpLine(
                    "`/stop`: stop the answer I'm writing for you, just like the **Stop** "
                    "button on its card",
                    "`/停止`：停止我正在为你写的回答，作用与卡片上的**停止**按钮相同",
                ),
            ),
        ),
    ),
)


_WHEN = r"today|yesterday|(?:this|the|last|past) week"
_TALK = r"discussions?|chats?|conversations?|talk|messages|thread"
_SUM_UP = r"(?:a |the )?(?:summari[sz]e|sum up|summary|recap|digest|tl;?dr|catch (?:me|us) up)"
_WHEN_ZH = "今[天日]|当天|昨[天日]|[这本上]个?(?:周|星期)"
_HERE_ZH = "这里|群里|大家|我们|你们|[本这]个?(?:群|话题)"
_SAID_ZH = r"(?:都)?(?:讨论|聊|说|谈|发生)+了?(?:些|点)?(?:什么|啥)(?:内容|事情?)?"
_POST = "send|post|schedule|give|write|make"
_OFTEN = (
    r"(?P<often>every ?day|daily|on weekdays|every weekday|(?:every|each) (?:mon|tue|wed|thu|fri"
    r"|sat|sun)"
    r"[a-z]*|weekly on [a-z]+)(?:,? at)? (?P<at>.{1,12})"
)
_OFTEN_ZH = (
    r"(?P<often_zh>每[天日]|(?:每个?)?工作日|每(?:周|星期)[一二三四五六日天])(?P<at_zh>.{1,8}?)"
)
_MEANT_WORDS = (
    (
        CommandName.DIGEST,
        r"(?:(?:please|can you|could you|give (?:me|us)) )*"
        rf"(?:(?:{_SUM_UP})(?: (?:(?:of|for|on|from) )?"
        r"(?:what (?:we|everyone|people) (?:discussed|said|talked about|have missed)"
        rf"|(?:the|our|this)(?: day['’]s)? (?:{_TALK})|(?:{_WHEN})(?:['’]s (?:{_TALK}))?"
        r"|the day|here|everything|so far)){0,3}"
        rf"|(?:{_WHEN})['’]s (?:summary|recap|digest)"
        r"|what (?:did (?:we|everyone|people) (?:discuss|say|talk about)|was (?:discussed|said)"
        rf"|happened) (?:here )?(?:{_WHEN})|what (?:did|have) i miss(?:ed)?(?: {_WHEN})?)"
        r"(?: here| today| for (?:me|us)| please)*"
        r"|(?:可以|能不能|可不可以|能)?(?:请|麻烦|帮我|帮忙|给我|来个|来份|生成|你)*"
        rf"(?:(?:总结|概括|汇总)(?:一下|下)?(?:{_WHEN_ZH}|{_HERE_ZH})*的?"
        r"(?:讨论|聊天|内容|对话|群聊|消息|记录|[聊说]的)*(?:[聊说讨论]{1,2}了(?:些|点)?(?:什么|啥))?"
        rf"|(?:(?:{_WHEN_ZH}|{_HERE_ZH})的?)*(?:摘要|总结|小结))"
        rf"|我(?:{_WHEN_ZH})?(?:都)?(?:错过|漏掉|漏看|落下)了?(?:些|点|哪些)?(?:什么|啥|内容|消息)?"
        rf"|(?:{_HERE_ZH})*(?:{_WHEN_ZH})(?:{_HERE_ZH})*{_SAID_ZH}",
    ),
    (
        CommandName.DIGEST,
        r"(?:please )?(?:(?:turn off|stop|cancel|disable|no more) (?:the |sending |posting )*"
        r"(?:daily |weekly |scheduled )*(?:digests?|summary|summaries)"
        rf"|(?:{_POST}) (?:me |us )?(?:an? |the )?(?:digest|summary|recap)(?: here)? {_OFTEN})"
        r"|(?:请|帮我|把)*(?:(?:关掉|关闭|停掉|停止|取消|不要再?发)(?:定时|每日|每天|每周)*的?(?:摘要|总结)"
        r"|(?:定时|每日|每天|每周)*(?:摘要|总结)(?:关掉|关闭|停掉|取消)了?"
        rf"|{_OFTEN_ZH}(?:给?(?:我们?|大家|群里))?(?:发送?|生成|来|写)(?:一?[份个篇])?(?:摘要|总结))",
    ),
    (
        CommandName.LANGUAGE,
        r"(?:please |can you |could you )*(?:speak|answer|reply|respond|write|talk"
        r"|switch)(?: to me)?"
        r"(?: in| to| only)? (?:english|chinese|mandarin)(?: from now on| please| only)*"
        r"|(?:请|以后|你)*(?:用|说|讲|改用|换成)(?:中文|英文|英语|汉语|普通话)(?:回答|回复|说|讲|跟我说)?",
    ),
    (
        CommandName.CONNECT,
        r"(?:please )?(?:disconnect|unlink) (?:my|the) account|(?:请|帮我)?断开我的(?:账号|账户"
        r"|授权|连接)",
    ),
    (
        CommandName.NEW,
        r"(?:please |let['’]?s )*(?:start over|start afresh|start (?:a )?new (?:conversation"
        r"|chat)|new chat)"
        r"(?: please)?|(?:我们)?(?:重新开始|从头开始|开始?新(?:的)?对话)",
    ),
    (
        CommandName.HELP,
        r"(?:what|which) commands (?:are there|do you (?:have|know)|can i use)|(?:show "
        r"|list )?(?:me )?"
        r"(?:all )?(?:the |your )?commands|你?(?:都)?(?:有|支持)(?:什么|哪些)命令|(?:所有"
        r"|全部)?命令(?:列表)?",
    ),
    (
        CommandName.WHY,
        r"why (?:did|didn['’]t|did not) you (?:answer|reply|respond|say)(?: to)?(?: me| us| that"
        r"| this)*"
        r"|你?(?:刚才)?(?:为什么|为何|怎么)你?(?:不|没有?|这么|这样)?(?:回答|回复|理|说话|说)(?:我们?|大家)?",
    ),
    (
        CommandName.QUIET,
        r"(?:(?:please|can you|could you|i['’]d like you to|i want you to|just) )*"
        r"(?:(?:be|stay|keep) (?:quiet|silent)|quiet|shut up|mute(?: yourself)?|stop talking)"
        r"(?:,? (?:please|now|here))*"
        r"|(?:请|麻烦|你|先){0,3}(?:安静|静音|别说话|不要说话|别插话|闭嘴)(?:一下|一?点)?了?",
    ),
    (
        CommandName.RESUME,
        r"(?:please )?(?:resume|unmute(?: yourself)?)(?: please)?"
        r"|you (?:can|may) (?:talk|speak)(?: again| now)*"
        r"|(?:请|现在)?(?:取消|解除)静音|(?:现在)?你?可以(?:继续)?(?:说话|发言)了",
    ),
    (
        CommandName.MEMORY,
        r"(?:so )?what (?:all )?do you (?:know|remember|have)(?: stored| saved)? (?:about|of|on) me"
        r"|what have you (?:remembered|stored|kept|saved) (?:about|of) me"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)我?(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)(?:我|关于我的?)(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?",
    ),
)
_MEANT = tuple(
    (name, re.compile(rf"\A(?:{words})[吧吗呢]?\Z", re.IGNORECASE)) for name, words in _MEANT_WORDS
)
_SPANS = {"th": "thread", "话题": "thread", "ye": "yesterday", "昨": "yesterday"} | {
    "la": "last week", "上周": "last week", "上星": "last week", "上个": "last week",
    "we": "week", "周": "week", "星期": "week",
}  # fmt: skip
_LONGEST_MEANT = 80
_SIGNS = " .,!?;:。，！？；：~～…"


def command_meant(text: str) -> Command | None:
    """The command that `text` asks for as a whole: a digest of today, one's own memory, silence."""
    if len(text) > _LONGEST_MEANT:
        return None
    words = " ".join(text.split()).strip(_SIGNS)
    for name, pattern in _MEANT:
        if match := pattern.match(words):
            argument = _argument_meant(name, match)
            return Command(name, argument, language_of([text]), words=argument)
    return None


def _argument_meant(name: CommandName, match: re.Match[str]) -> str:
    """What would stand after the command: `daily 18:00`, `off`, `en`."""
    words, groups = match[0], match.groupdict()
    if name is CommandName.LANGUAGE:
        return "en" if re.search("english|英", words, re.IGNORECASE) else "zh"
    if name is not CommandName.DIGEST:
        return "off" if name is CommandName.CONNECT else ""
    if often := groups.get("often") or groups.get("often_zh"):
        often = re.sub(r"^on |^weekly on ", lambda one: "" if one[0] == "on " else "every ", often)
        return f"{often} {groups.get('at') or groups['at_zh']}".lower()
    if re.search(
        r"\b(?:turn off|stop|cancel|disable|no more)\b|关|停|取消|不要", words, re.IGNORECASE
    ):
        return "off"
    return _span(words)


def _span(words: str) -> str:
    """What the digest is of, as the command's argument; "" where it is asked for."""
    match = re.search(
        r"thread|话题|yesterday|昨|last week|上个?[周星]|week|周|星期|today|今|当天|day",
        words,
        re.I,
    )
    return _SPANS.get(match[0][:2].lower(), "today") if match else ""
