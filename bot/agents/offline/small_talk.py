"""Reads greetings, thanks, and what is asked about the bot itself, for the offline model. Pure.

Nobody can have told it the answers to these, so they are not looked for in the memory."""

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


_SAYS = re.compile(r"\b(?:know|tell|remember|say)\b|告诉|知道|记得", re.IGNORECASE)
# The first that matches the whole text decides; the keys are those of the texts.
_QUESTIONS = tuple(
    (key, re.compile(rf"\W{{0,9}}(?:{pattern})\W{{0,9}}", re.IGNORECASE))
    for key, pattern in (
        (
            "about-me",
            r"what(?:['’]s| is) your name|what (?:should|can|do) (?:i|we) call you"
            r"|are you (?:an? )?(?:real )?(?:ro)?(?:bot|human|ai|person|machine|real|chatgpt|llm)"
            r"(?: or (?:an? )?\w+)?|who (?:made|built|created|wrote) you"
            r"|你(?:叫|的名字(?:是|叫)?)(?:什么|啥)(?:名字)?|(?:该|要)?怎么(?:称呼|叫)你"
            r"|你是不?是?(?:一?个)?(?:机器人|真人|人|ai|大模型)(?:还是.{1,6})?[吗么]?|谁(?:开发"
            r"|做|造|创造)[了的出]*你",
        ),
        (
            "about-privacy",
            r"(?:can|could|will|do) (?:other people|others|anyone(?: else)?|everyone|people"
            r"|my boss)"
            r" (?:see|read|hear)(?: (?:this|it|that|what (?:i|we) .{1,30}|my .{1,20}))?"
            r"|is (?:this|it|what i (?:say|write|tell you)) (?:private|confidential|secret"
            r"|safe)(?: here)?"
            r"|who (?:can|could) (?:see|read) (?:this|it|what i .{1,30}|my .{1,20})"
            r"|.{0,12}(?:别人|其他人|大家|同事|老板|谁)(?:都)?(?:能|会|可以)?(?:不能)?看(?:得"
            r"|不)?[到见](?:吗|么|吧)?"
            r"|(?:你)?会(?:不会)?(?:保密|泄露|外传)(?:吗)?|(?:这里|我们的聊天|单聊)是?(?:私密"
            r"|保密)的?吗",
        ),
        (
            "about-language",
            r"(?:which|what) languages? (?:do|can) you (?:speak|understand|know)"
            r"|(?:do|can) you (?:speak|understand) \w+(?: \w+)?"
            r"|你(?:会|能)(?:说|讲)(?:哪些|什么|几种)(?:语言|话)|你(?:会|能)(?:说|讲).{1,4}[文语]吗",
        ),
        (
            "no-members",
            r"who(?:['’]s| is| are|['’]re)(?: all| else)?(?: the (?:members|people))?"
            r" (?:in|of|part of) (?:this|the|our) (?:group|chat)|who(?: else)?(?:['’]s"
            r"| is) (?:else )?(?:all )?(?:in )?here"
            r"|(?:list|show)(?: me)? (?:all )?(?:the )?(?:group )?members(?: of this (?:group"
            r"|chat))?"
            r"|how many (?:people|members)(?: are)? (?:here|in (?:this|the) (?:group|chat))"
            r"|(?:这个|本)?群里?(?:现在)?(?:都|还)?有(?:谁|哪些人|多少人|几个人)"
            r"|群成员(?:有)?(?:哪些|谁)?",
        ),
        (
            "no-agenda-change",
            r"(?:please |can you |could you ){0,3}(?:cancel|move|reschedule|delete|postpone)"
            r" (?:my |the |our |all ){0,2}(?:\w+ )?(?:meetings?|calls?|events?|appointments?"
            r"|lunch)\b.{0,60}"
            r"|(?:please |can you |could you ){0,3}(?:mark|complete|close|finish|tick off"
            r"|check off)"
            r" .{0,40}\b(?:tasks?|to-?dos?)\b.{0,30}"
            r"|(?:请|帮我|麻烦|把){0,3}(?:取消|推迟|改一下).{0,15}(?:会议?|日程)"
            r"|把.{0,15}(?:会议?|日程).{0,4}(?:取消|推迟|改到).{0,12}"
            r"|(?:请|帮我|把){0,3}.{0,15}(?:任务|待办)(?:已经)?(?:标记?[成为])?(?:完成|做完"
            r"|搞定)了?",
        ),
        (
            "no-messages",
            r"(?:please |can you |could you ){0,3}(?:tell|message|text|dm|write to|send)"
            r" (?!me\b|us\b|everyone\b)(?:a message to )?@?(?-i:[A-Z]\w+"
            r"|[\u4e00-\u9fff]{2,4})\b.{0,200}"
            r"|(?:请|帮我|麻烦){0,2}(?:告诉|转告|通知)(?!我|大家)\s?\S.{1,100}"
            r"|(?:请|帮我|麻烦){0,2}给(?!我|大家).{1,12}?(?:发|捎)(?:一?[条个])?(?:消息|信息"
            r"|微信|话).{0,60}",
        ),
        (
            "no-undo",
            r"(?:please |can you |could you |no,? ){0,3}(?:undo|revert|restore)(?: (?:that|this|it"
            r"|them))?"
            r"|take (?:that|it) back|keep (?:them|it|those)|bring (?:it|them|that) back"
            r"|(?:请|帮我){0,2}(?:撤销|撤回|恢复|还原|改回[来去])(?:一下|刚才的?)?"
            r"|(?:还是)?不(?:取消|删除?)了",
        ),
    )
)
_OF_BOT = re.compile(
    r"\W{0,9}(?:(?:who|what|how|where|why|when) (?:else )?)?(?:can|could|do|are|will|would|have)"
    r" you\b|\W{0,9}who can change\b"
    r"|\W{0,9}(?:bot|机器人)?你(?:能|会|是|可以|有)[^，。]{0,60}(?:[吗么]|什么|啥|谁)\W{0,9}$",
    re.IGNORECASE,
)
_FORGETS_LAST = re.compile(
    r"\W{0,9}(?:please )?(?:forget|(?:don['’]?t|do not) (?:remember|keep|save|store)) (?:that"
    r"|this|it)"
    r"(?: please)?\W{0,9}"
    r"|\W{0,9}(?:[这那刚][个条才]?(?:那[个条])?|上一条)?(?:就)?(?:别|不要|不用)(?:记"
    r"|存)[住了下]?(?:这个|它)?\W{0,9}"
    r"|\W{0,9}(?:请|把)?(?:忘[掉了记]|删掉)(?:刚才(?:的)?|上一条|[那这][个条]"
    r"|它)(?:那[个条])?\W{0,9}",
    re.IGNORECASE,
)


def question_about_itself(text: str) -> str:
    """The key of the answer to what is asked about the bot, or asked of it in vain; or ""."""
    return next((key for key, pattern in _QUESTIONS if pattern.fullmatch(text)), "")


def asks_of_bot(text: str) -> bool:
    """“Can you read PDFs?”, 你能看到什么: nobody can have told the bot that."""
    return bool(_OF_BOT.match(text)) and not _SAYS.search(text)


def forgets_last(text: str) -> bool:
    """“Forget that”, 这个别记: what was kept just now."""
    return bool(_FORGETS_LAST.fullmatch(text))
