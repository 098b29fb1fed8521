"""Reads greetings, thanks, and questions to the bot about itself, for the offline model. Pure."""

from __future__ import annotations

import re

_ANYBODY = r"(?:\s+(?:there|all|everyone|everybody|team|again))?"
_GREETING = re.compile(
    rf"\W{{0,9}}(?:hello|hi(?:ya)?|hey|(?:good\s+)?(?:morning|afternoon|evening)|good day"
    rf"|(?:are )?you there|anyone there){_ANYBODY}\W{{0,9}}"
    r"|\W{0,9}(?:(?:你|您|大家)好[呀啊哦]?|嗨|哈[喽啰]|(?:大家|各位)?早[啊呀]?|早安|(?:早上|上午"
    r"|中午|下午"
    r"|晚上)好|在[吗么]|在不在|有人吗)\W{0,9}",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"\W{0,9}(?:many\s+|ok,?\s+|great,?\s+)?(?:thanks|thank\s+you|thx|cheers|(?:much "
    r"|i )?appreciate(?:d| it))"
    r"(?:\s+(?:so\s+much|very\s+much|a\s+lot|again))?\W{0,9}"
    r"|\W{0,9}(?:好的?[，,\s]*)?(?:非常|十分|太)?(?:谢谢|多谢|感谢|谢了"
    r"|辛苦了?)[你您啦了啊大家]*(?:[，,]?帮了?大忙了?)?\W{0,9}",
    re.IGNORECASE,
)
_BYE = re.compile(
    r"(?:that['’]?s (?:all|it)[,.! ]{1,3})?\W{0,9}(?:good ?)?"
    r"(?:bye|night)(?: bye)?(?: (?:all|everyone|now))?\W{0,9}"
    r"|\W{0,9}see you(?: (?:later|tomorrow))?\W{0,9}"
    r"|\W{0,9}(?:就这样[，,吧]{0,2})?(?:再见|拜拜|晚安|回头见|明天见)[了啦]?\W{0,9}",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"\W{0,9}(?:ok(?:ay)?|alright|all right|got it|great|nice|cool|perfect|awesome"
    r"|good (?:job|bot)|well done|lol|haha+|oops|my (?:bad|mistake)|sorry(?:,? (?:wrong (?:chat"
    r"|group)|my (?:bad|mistake)|about that))?"
    r"|sounds good|never ?mind|nvm|no worries)(?: then| thanks| job| work)?\W{0,9}"
    r"|\W{0,9}(?:好的?|好[嘞滴哒]|嗯+|行|收到|知道了|明白了?|可以|没事了?|算了|不用了"
    r"|(?:不好意思|抱歉|对不起)[，,]?(?:发错群?|打扰)?|哈哈+"
    r"|(?:干得|真)?不错|真?棒|太好了|干得好|厉害)[呀啊吧哦了的]?\W{0,9}|[\s👍👌🙏🎉❤️😀-😊]+",
    re.IGNORECASE,
)
_HOW_ARE_YOU = re.compile(
    r"\W{0,9}(?:(?:hi|hello|hey),? )?how(?:['’]s it going| are you(?: doing)?)(?: today)?\W{0,9}"
    r"|\W{0,9}(?:你|最近|你最近)(?:怎么样|还?好吗|过得好吗|好不好)\W{0,9}",
    re.IGNORECASE,
)
_ASKS_CLOCK = re.compile(
    r"\W*(?:what(?:['’]s| is) the (?:time|date)|what (?:time|day|date) is (?:it|today))"
    r"(?: (?:now|today|right now))*\W*"
    r"|\W*(?:现在|今天)?(?:是)?(?:几点|什么时间|几号|几月几[号日]|星期几|周几|礼拜几"
    r"|什么日子)[了钟啊呢]*\W*",
    re.IGNORECASE,
)
_ASKS_SOURCE = re.compile(
    r"\W*(?:who (?:said|told you|says) (?:that|so|this|it)|says who|how d(?:o"
    r"|id) you know(?: that)?"
    r"|are you (?:really )?sure(?: about that)?|where (?:did you get"
    r"|do you have) that(?: from)?)\W*"
    r"|\W*(?:这(?:是|话是)?)?谁(?:说|告诉你)的?\W*|\W*你?(?:怎么|从哪儿?里?)知道的?\W*"
    r"|\W*你?(?:确定|确认|肯定)[吗么]\W*|\W*真的[吗么]?[？?]\W*",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,，.。!！;；:：~～]")
_LONGEST_CLAUSE = 40
_APOLOGY = re.compile(
    r"sorry|oops|my |不好意思|抱歉|对不起", re.IGNORECASE
)  # a correction may follow
_LABEL = re.compile(r"(?:\[([a-z ]{1,40})(?:: [^\]\n]{0,500})?\]|!\[(image)\]\([^()\n]*\))\s*")
_KINDS = {
    "voice message": "voice",
    "sticker": "sticker",
    "image": "picture",
    "video": "video",
    "file": "file",
    "folder": "file",
}


def lead_in(text: str, own_name: str) -> tuple[str, str]:
    """The key of the answer to thanks in front of what is said, and the rest without them, an “ok”,
    greetings and the bot's name: “Hi Memo, …”, “thanks. …”."""
    key = ""
    if small_talk(text):
        return key, text
    while end := _CLAUSE_END.search(text, 0, _LONGEST_CLAUSE):
        clause, rest = text[: end.start()].strip(), text[end.end() :].lstrip(" ,，.。!！;；:：~～")
        words = clause.replace(own_name, "").strip("@ ") if own_name else clause
        talk = "" if _APOLOGY.match(words) else small_talk(words)
        if not clause or not rest or (words and not talk):
            break
        key, text = key or (talk if talk == "thanks" else ""), rest
    return key, text


def small_talk(text: str) -> str:
    """The key of the answer to a greeting, to thanks, or to a message without text; "" for what
    may ask for something."""
    if _GREETING.fullmatch(text) or _HOW_ARE_YOU.fullmatch(text):
        return "greeting"
    if _THANKS.fullmatch(text):
        return "thanks"
    if _BYE.fullmatch(text):
        return "goodbye"
    if _PRAISE.fullmatch(text):
        return "acknowledged"
    kind = kind_sent(text)
    return f"sent-{_KINDS.get(kind, 'other')}" if kind else ""


def kind_sent(text: str) -> str:
    """What a message without text of its own brings, as it is labelled: `file`, `sticker`; "" where
    there is text."""
    labels = list(_LABEL.finditer(text.strip()))
    if not labels or _LABEL.sub("", text).strip():
        return ""
    return labels[0][1] or labels[0][2]


def asks_clock(text: str) -> bool:
    return bool(_ASKS_CLOCK.fullmatch(text))


def asks_source(text: str) -> bool:
    """“Who told you that?”, 你确定吗: where the last answer comes from."""
    return bool(_ASKS_SOURCE.fullmatch(text))
