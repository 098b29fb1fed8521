"""Why the bot spoke, or did not, in words and in both languages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bot.listening.bot_budget import PER_PAIR_AND_HOUR, PER_REQUEST
from bot.listening.conversation_store import PastDecision
from bot.listening.cues import Cue
from bot.listening.decisions import Reason
from bot.text.languages import Language, Sentence
from memory.text import one_line

_Texts = Mapping[Language, str]

IN_P2P: _Texts = {
    "zh": "单聊里你的每一条消息我都回答，没有需要判断的。",
    "en": "In our private chat I answer every message of yours; there is nothing to decide.",
}
NOTHING_DECIDED: _Texts = {
    "zh": "在这里我还没有判断过任何消息，或者那次判断的记录已经不在了。",
    "en": "I have decided on no message here yet, or what I decided is not kept any more.",
}
_DECIDED: Mapping[bool, _Texts] = {
    True: {
        "zh": "{name}在 {at} 的消息，我**回答了**：{why}",
        "en": "I **answered** the message {name}at {at}: {why}",
    },
    False: {
        "zh": "{name}在 {at} 的消息，我**没有回答**：{why}{hint}",
        "en": "I **did not answer** the message {name}at {at}: {why}{hint}",
    },
}
_HINT: _Texts = {
    "zh": "想让我回答，就 @我，或者回复我的消息。",
    "en": " To have an answer for certain, mention me or reply to a message of mine.",
}
_NO_HINT = frozenset(
    {
        Reason.OWN_MESSAGE,
        Reason.BOT_WITHOUT_MENTION,
        Reason.BOT_LOOP_LIMIT,
        Reason.RATE_LIMITED,
    }
)

WHY: Mapping[Reason, Sentence] = {
    Reason.OWN_MESSAGE: Sentence(
        "it was my own, and I do not answer myself.", "那是我自己发的，我不回答自己。"
    ),
    Reason.BOT_WITHOUT_MENTION: Sentence(
        "another bot wrote it without mentioning me.", "那是别的机器人发的，而且没有 @我。"
    ),
    Reason.BOT_ASKED: Sentence("another bot mentioned me.", "那是别的机器人发的，而且 @了我。"),
    Reason.BOT_LAST_ANSWER: Sentence(
        "another bot mentioned me. So that bots don't talk forever, that was my last answer to a "
        "bot until a person asks me or that bot again.",
        "那是别的机器人发的，而且 @了我。为避免机器人之间没完没了，在有人再次向我或它提问之前，"
        "我不再回答机器人。",
    ),
    Reason.BOT_LOOP_LIMIT: Sentence(
        f"another bot wrote it, and so that bots don't talk forever, I answer bots at most "
        f"{PER_REQUEST} times in a row and the same bot at most {PER_PAIR_AND_HOUR} times an hour. "
        "When a person mentions me or that bot, I go on.",
        f"那是别的机器人发的。为避免机器人之间没完没了，我最多连续回答机器人 {PER_REQUEST} 次，"
        f"同一个机器人每小时最多 {PER_PAIR_AND_HOUR} 次。有人 @我 或 @它 之后，我会继续。",
    ),
    Reason.AMONG_BOTS: Sentence(
        "it did not mention me, and my last answer here was to another bot. I don't join in then, "
        "so that bots don't talk forever.",
        "它没有 @我，而我在这里的上一次回答是给别的机器人的。为避免机器人之间没完没了，"
        "这时我不接话。",
    ),
    Reason.EXPLICIT_TRIGGER: Sentence(
        "it was addressed to me: with a mention, as a reply to me, or with a button under my "
        "answer.",
        "那是对我说的：@了我、回复了我，或者按了我回答下面的按钮。",
    ),
    Reason.ADDRESSED_TO_OTHER: Sentence(
        "it was addressed to somebody else: it mentions them (or everybody), or replies to them.",
        "那是对别人说的：@了别人（或所有人），或者回复了别人的消息。",
    ),
    Reason.QUIET: Sentence(
        "I was asked to be quiet in this chat; `/resume` ends that.",
        "这个群里有人让我安静；用 `/继续` 恢复。",
    ),
    Reason.RECENT_FOLLOWUP: Sentence(
        "it went on with what I had said{since}.", "它接着我{since}说的话往下说。"
    ),
    Reason.OTHER_TOPIC: Sentence(
        "it read like a question, but of another discussion than the one I was part of{since}.",
        "它看起来像在提问，但属于另一场讨论，不是我{since}参与的那场。",
    ),
    Reason.MODE_ALL: Sentence(
        "in this chat I answer everything that is not for somebody else (mode `all`; `/settings`).",
        "这个群设置为不是对别人说的我都回答（模式 `all`，见 `/设置`）。",
    ),
    Reason.MODE_MENTION: Sentence(
        "in this chat I answer only when I am mentioned or replied to (mode `mention`; "
        "`/settings`).",
        "这个群设置为只有 @我 或回复我时才回答（模式 `mention`，见 `/设置`）。",
    ),
    Reason.MODE_THREADS: Sentence(
        "it did not mention me, and outside of my own threads I answer only then in this chat "
        "(mode `threads`; `/settings`).",
        "它没有 @我，而这个群设置为在我自己的话题之外只有 @我 才回答"
        "（模式 `threads`，见 `/设置`）。",
    ),
    Reason.STOP: Sentence(
        "it asked me to stop while I was writing an answer for whoever wrote it.",
        "我正在为这个人写回答，而它让我停下。",
    ),
    Reason.RATE_LIMITED: Sentence(
        "its author had asked for more than I take from one person in a minute. I say so once and "
        "skip the rest.",
        "发送者短时间内的请求太多，超过了每人每分钟的上限。我只提示一次，超出的部分会跳过。",
    ),
    Reason.PROACTIVE: Sentence(
        "it was a question that nobody had answered for a while, something was said about it here "
        "before, and this chat wants that (`/proactive off` ends it).",
        "那是一个过了一段时间没有人回答的问题，这里以前说过相关的内容，而且这个群开启了主动回答"
        "（`/主动 关` 可关闭）。",
    ),
}
JUDGED: Mapping[str, Sentence] = {
    "yes": Sentence(
        "it was not clear from the words, and the judge model found that it was meant for me.",
        "从字面上看不准，判断模型认为那是对我说的。",
    ),
    "no": Sentence(
        "it was not clear from the words, and the judge model found that it was not meant for me.",
        "从字面上看不准，判断模型认为那不是对我说的。",
    ),
    "timeout": Sentence(
        "it was not clear from the words, and the judge model did not answer in time.",
        "从字面上看不准，而判断模型没有及时回答。",
    ),
    "error": Sentence(
        "it was not clear from the words, and the judge model could not be asked.",
        "从字面上看不准，而判断模型没能给出回答。",
    ),
}
SILENT: Mapping[Cue | None, Sentence] = {
    None: Sentence(
        "it did not mention me, and I was in no conversation here just then.",
        "它没有 @我，当时我也没有在这里参与对话。",
    ),
    Cue.FOLLOW_UP: Sentence(
        "it read like going on with what I had said{since}, but I listen for that for "
        "{window_s} seconds only.",
        "它像是接着我{since}说的话，但我只在 {window_s} 秒内这样接话。",
    ),
    Cue.CLOSING: Sentence(
        "it read like the end of our exchange (thanks, all right), which wants no answer.",
        "它像是对话的结束（谢谢、好的），不需要再回答。",
    ),
    Cue.SIDE_TALK: Sentence(
        "it read like talk among people, which I stay out of.",
        "它像是大家之间的谈话，我不插话。",
    ),
    Cue.UNCLEAR: Sentence(
        "nothing in it told that it was meant for me, and then I keep silent.",
        "没有什么表明它是对我说的，这种时候我不说话。",
    ),
}
_NO_TRIGGER = Sentence(
    "it did not mention me, and nothing told that it was meant for me.",
    "它没有 @我，也没有什么表明它是对我说的。",
)
_SINCE: Mapping[Language, tuple[str, str, str]] = {
    "zh": ("刚才", "{} 秒前", "{} 分钟前"),
    "en": ("", " {} seconds before", " {} minutes before"),
}
_A_MINUTE_S = 90


def in_short(respond: bool, reason: Reason) -> Sentence:
    """What was decided and why, where only the reason is known."""
    if reason is Reason.LLM_JUDGE:
        why = JUDGED["yes" if respond else "no"]
    else:
        why = WHY.get(reason, _NO_TRIGGER)
    en, zh = ("Answered", "回答了") if respond else ("Kept silent", "没有回答")
    since_en, since_zh = _SINCE["en"][0], _SINCE["zh"][0]
    return Sentence(
        f"{en}: {why.en.format(since=since_en)}", f"{zh}：{why.zh.format(since=since_zh)}"
    )


def explained(
    decided: PastDecision, name: str, at: datetime, window_s: int, language: Language
) -> str:
    """What was decided on whose message, when, and why. `name` is "" when nobody knows it."""
    why = _why(decided).said(language)
    who = one_line(name).replace("*", "＊").replace("`", "'")
    of_whom = f"of {who} " if language == "en" else f"{who} "
    hint = "" if decided.reason in _NO_HINT else _HINT[language]
    return _DECIDED[decided.respond][language].format(
        name=of_whom if who else "",
        at=at.strftime("%H:%M:%S"),
        why=why.format(since=_since(decided.since_bot_ms, language), window_s=window_s),
        hint=hint,
    )


def _why(decided: PastDecision) -> Sentence:
    reason = Reason(decided.reason)
    if reason is Reason.LLM_JUDGE:
        return JUDGED[decided.verdict or "error"]
    if reason is Reason.NO_TRIGGER:
        return SILENT[Cue(decided.cue) if decided.cue else None]
    return WHY[reason]


def _since(since_bot_ms: int | None, language: Language) -> str:
    just_now, seconds, minutes = _SINCE[language]
    if since_bot_ms is None:
        return just_now
    passed = max(1, since_bot_ms // 1000)
    return (minutes if passed > _A_MINUTE_S else seconds).format(
        passed // 60 if passed > _A_MINUTE_S else passed
    )
