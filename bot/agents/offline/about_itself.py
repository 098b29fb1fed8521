"""Recognises what is asked about the bot itself, or what it cannot do, for the offline model. Pure.

Nobody can have told it that, so it is not looked for in the memory."""

from __future__ import annotations

import re

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
