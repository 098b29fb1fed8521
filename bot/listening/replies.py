"""Recognises how a message takes up what was said before it, and whom it is for. Pure, English and
Chinese.

What the message wants done is in `bot.listening.requests`; whom it is for is weighed in
`bot.listening.cues`.

A file that nobody asks about is not read. A person who sent one may just point at it (“what is in
this?”); somebody else's has to be named as what it is (“the picture”, “Bob's file”).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from bot.listening.requests import (
    CACHED_TEXTS,
    ONESELF,
    asks_for_consent,
    asks_to_choose,
    has_han,
    is_question,
    pattern,
    points_at_an_item,
    requests,
    restyles,
    topics,
)
from bot.listening.transcript import LastExchange
from memory.dates import WEEKDAY, WEEKDAY_ZH

MAX_ANSWER_WORDS = 15
MAX_ANSWER_CHARACTERS = 30
_PART = pattern(
    r"(?:that|this|these|those) (?!is\b|was\b|are\b|were\b|helps?\b|makes?\b"
    r"|sounds?\b|looks?\b|works?\b|would|will\b|should|could|might|guy|man\b)[a-z]+ [a-z]+",
    "[这那](?:一?[个条行些份段句家款项种]|几[个条行项]|里)[^了吧啊呀]+[\u4e00-\u9fff]$",
)
_CORRECTION = pattern(
    r"\bi (?:meant|mean|said|asked (?:for|about)|was asking|wanted|thought it)\b",
    r"^(?:no|nope|nah)[,.]? (?!thank|worries|problem|need|idea|way|rush|clue|wonder|one\b)"
    r"\S+ \S",
    r"^not (?:that|this|the|those|these|in|for|on|my|\w+,)|^not me\b[,.]",
    "^不是我[,，。]",
    r"^(?:sorry|wait|oops|actually|correction)[,:.]? "
    r".*\b(?:not|is|was|are|should|meant|instead|it)\b",
    r"\b(?:is|was|are|were|be|it['’]?s|that['’]s)\b.{0,300}, not \w",
    r"\bnot \w+(?: \w+){0,3},? but \w",
    r"\b(?:wrong|incorrect|outdated|mistaken|a typo|misspell\w*)\b",
    r"\b(?:can['’]?t be|isn['’]?t|not|doesn['’]?t (?:look|sound|seem)) "
    r"(?:quite )?(?:right|true|correct)\b",
    r"\b(?:used to be|should(?: have)? be(?:en)?|supposed to be|must be)\b",
    r"\bi (?:thought|remember(?:ed)?) (?:it|that|there|the|we|they)\b",
    r"\b(?:you|u) (?:forgot|missed|mixed|misread|misunderstood|left out)\b|\b(?:is|are) missing\b",
    "不对|不准|有误|错了|[说搞弄写记看]错|搞混|弄反|反了|漏了|少了|过时了|(?:有|是)个?错",
    r"\bi (?:count|counted|see|get|got|have|had|heard|read) (?:only |about |just )?\d",
    "我[\u4e00-\u9fff]{1,3}的(?:可?不?是|没)|我(?:印象|(?:怎么|咋)?记得)[里中]?.{0,300}(?:[是有超不]|\\d)|我(?:还)?以为",
    "(?<!是)不是.{1,12}[,，]?\\s*(?:而?是|应该)|^不是[,，]|是.{1,10}[,，]\\s*(?:而?不是|不)",
    "应该?是(?!吧)(?=.{0,300}[\\d号点月日周年个])|应为|(?:以前|原来|本来|之前|原本)(?:不?是|只?有)",
    "^(?:不|不要|没有|不不)[,，]\\s*\\S|更正",
    # An objection
    r"^but (?:i|we|it|he|she|they)\b.*\b(?:need|must|have to|can['’]?t|cannot|prefer"
    r"|(?:do|wo)n['’]?t)\b",
    "^(?:但是?|不过|可是?).*(?:必须|不能|不想|不行|来不及|没办法)",
)
_NO_CORRECTION = pattern(
    r"\b(?:my bad|my fault|no worries)\b",
    r"\bnot (?:bad|sure|yet|really|at all|me(?![,.])|now|again|today)\b",
    r"\b(?:wrong (?:chat|window|channel|group)|nothing wrong)\b|\bi (?:must|should) be\b",
    "怪我|我(?:的|搞|弄|说|看|记)?错了?[。!！]*$|发错|不是吧|不是吗|没错|不错|是不是|差不多",
)
_NUMBER = re.compile(r"\d+")
_IS = pattern(
    r"\b(?:it|that)(?:['’]?s| is| was) (?:on |at )?(?:the |only |about )?", "是|改[到成]了?"
)
_VALUES = (
    pattern(
        r"(?:\d[\d.,:]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)\b)"
        r"(?!\s*(?:sec|min|moment|more\b|of us))",
        "(?:[早晚]上|[上中下]午|[今明后]天){0,3}[\\d一二两三四五六七八九十百]{1,12}[个张条份次点号天人间台位家块年月]",
    ),
    pattern(rf"{WEEKDAY}\b", WEEKDAY_ZH),
    pattern(
        r"(?:january|february|march|april|june|july|august|september|october|november|december)\b",
        "[\\d一二三四五六七八九十]{1,4}月",
    ),
)
_FAILURE = pattern(
    r"\bstill (?:fail|get|see|red|broken|not|doesn|the same|no|slow|empty|missing|wrong|crash)\w*",
    r"\b(?:doesn|didn|don|won)['’]?t (?:work|help|load|start|open|exist|match)\b|\bno luck\b",
    r"\b(?:it|that|this|same) "
    r"(?:error|fails?|failed|crash(?:es|ed)?|broke|looks? (?:right|fine))\b",
    "还是(?:报错|不行|失败|红|一样|没|不|打不开|空)|报错|没用|不管用|不起作用|没反应|不生效|打不开",
    "试过了?.{0,300}(?:不|没)|看着没问题|没找到|找不到",
)
OPINION = pattern(
    r"\b(?:great|good|nice|lovely|fun|funny|chaos|crazy|awful|terrible|expensive|cheap|boring"
    r"|sad|ugh|wow|lol|haha\w*|omg|cool|brave|love|amazing|interesting|weird|enjoy|congrat\w*|happy|finally|nothing|luck|hungry|classic)\b",
    r"^(?:sounds|looks|makes|feels|seems)\b|…|\.\.\.$|!$|[:;][-)(DP]|[\U0001f300-\U0001faff]",
    r"\b(?:more|less|better|worse|smarter|faster) than\b|比.{1,10}[还都更]",
    "真|太|好[多棒贵慢快烦难累]|肯定|居然|竟然|又是|又要|果然|难怪|哈哈|有道理|不错|挺好|喜欢|厉害|牛",
    "烦|^(?:那)?就.{1,8}[了吧][。!！~～]*$|开心|快乐|顺利|加油|恭喜|有意思|[啊呀哇唉哎][。!！~～]*$|[!！~～]$|比.{0,300}想",
)
CONSENT = re.compile(
    r"(?:(?:yes|yep|yeah?|yup|ye|yah|no|nope|nah|ok(?:ay)?|sure|please(?: do)?|do(?: it| that| so)"
    r"|go ahead|go for it|no need|why not|of course|absolutely|definitely|correct|right|exactly"
    r"|fine|not needed|don['’]t|not now|y|n|thanks|thank you|是的?|对的?|要的?|不要了?"
    r"|不用了?|不必|有的?|没有|好[的呀啊吧]?|行|可以|嗯++|没错|当然|不是|需要|不需要|谢谢|麻烦了?|确认|同意|👍|✅|👌)[\s,，.。!！~～]*)+",
    re.IGNORECASE,
)
_CONSENTS = pattern(
    r"(?:yes|yep|yeah|yup|no|nope|nah|ok(?:ay)?|sure|please|rather|instead|both|neither|either|only"
    r"|maybe|all|the \w+|just)\b",
    "是|对|要|不|别|好|行|可以|嗯|需要|还是|换|都|两个|先|只|算了|随便|[用选]",
)
_DO_IT = re.compile("([\u4e00-\u9fff]{1,3})吧[。.!！~～]*")
_NO_THANKS = pattern(
    r"\b(?:no|nope|nah)\b.{0,300}\b(?:thanks|thank you|thx)\b|\bthat['’]s (?:all|it)\b",
    "不用?了?[,，]?\\s*谢谢|没有了|没了$|就这些|不用麻烦",
)
_LATER = pattern(
    r"(?:hm+ |ok(?:ay)?,? |oh,? )?(?:hang on|hold on|one (?:sec|second|moment|minute)|just a|wait a"
    r"|give me a|let me (?:check|look|ask|see|think|find|get|know|try)"
    r"|i['’]?(?:ll| will| have to| need to|['’]?m going to) "
    r"(?:check|look|ask|see|think|find|get back|let|try|do it|come)|not sure yet|later\b|brb"
    r"|wait[,.]? \w+$)",
    "(?:嗯|哦|好)?[,，]?(?:稍等|等[一下会我]|等等|让我(?:看|想|查|问)|我(?:先|去|得|要)?(?:看看|查|问|想|确认|找)(?!的)|回头)",
)
_DOINGS = pattern(
    r"^(?:sent|done|on (?:it|my way)|posted|(?!(?:some|any|every|no)thing|during|morning|evening"
    r"|(?:\w+ )?meeting|training|including|regarding|according)[a-z]{2,}ing\b(?![,:]))",
    r"\bi(?:['’]ll be| will be|['’]?m) (?:out|off|away|late|back|there|in|on|at)\b",
    "^在[修改看弄写发]|发出去了|弄好了|搞定",
    r"\bi(?:['’]ll| will| can)\b.{0,30}\bmyself\b|我自己[\u4e00-\u9fff]",
)

# Courtesies stand alone (“thanks!”) or before what matters (“ok, and how …?”).
_COURTESY = pattern(
    r"(?:thank(?:s| you)(?: so much| a lot)?|thx|ty|np|cool|nice|great|perfect|awesome|good)\b",
    r"(?:ok(?:ay)?|got it|yes|yep|sure|will do|done|lol|(?:ha){2,}|hm+|ah+|oh+)(?![\w'’])",
    "谢谢[你您]?|多谢|感谢|谢[啦了]|收到|明白了?|了解|知道了|辛苦[了啦]?|不错|没问题",
    "好[的滴嘞]|哈{2,}|嗯+",
    r"(?:可以|[好行哦可赞啊])(?=[\s,，。.!！~～…]|$)",
    r"[^\w\s@`\"'“”‘’(（<《/?？]+|\s+",
)
THANKS = pattern(r"\b(?:thanks|thank you|thx)\b|谢谢|多谢|感谢|谢[啦了]")
YOU = pattern(r"\byou(?:['’]\w+|rs?)?\b", "[你您]")
POINTS_BACK = pattern(
    r"\b(?:it|that|this|these|those|(?<!is )(?<!are )(?<!was )there|also|too|instead|else)\b",
    r"\bof the\b",
    "[这那][个样些几三两]|它|也|有没有.{1,6}的",
)

# A farewell, a leave, or several people: never an answer to the bot.
LEAVES = pattern(
    r"\b(?:see|catch|talk to) (?:you|ya|u)\b(?! (?:have|need|want|are|can|did|said|mention))",
    r"\b(?:good ?night|bye(?: bye|-bye)?|so long|take care|ttyl|cya|have a (?:good|nice|great))\b",
    r"\b(?:you (?:all|guys|two|both|three|lot|folks|people)|y['’]?all|(?:all|both) of you)\b",
    "(?:[天头会儿早晚点下月年]|周[一二三四五六日末]|再)见[啦了哦~～。!！]*$",
    r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b",
    r"\b(?:gotta|have to|need to|must) (?:go|run|leave)\b",
    "先走|先撤|先下了|[\u4e00-\u9fff]去[了啦][。!！]*$|回头[聊说见]",
    "拜拜|晚安|早安|你们|[你您]俩|诸位",
)
SMALL_TALK = pattern(
    r"\b(?:lunch|dinner|breakfast|coffee|beers?|weekend|vacation|birthday|team building)\b",
    "吃饭|午饭|晚饭|早饭|奶茶|咖啡|夜宵|周末|下班|团建",
)
SIDE_TALK = pattern(
    # To the group
    LEAVES.pattern,
    r"\b(?:anyone|anybody|everyone|everybody|guys|folks)\b",
    r"\b(?:can|could|will|would|does|did|is|has) some(?:one|body)\b",
    r"\bwho(?: wants|['’]s (?:in|up)(?: for\b|[?!.\s]*$))",
    "大家|各位|咱们|有人|有谁|谁[要来去想有]",
    # To one colleague
    r"(?<!\bhow )(?<!\bwhere )(?<!\bwhy )\b(?:did|have|were|will|are) you\b(?! sure| certain)",
    r"\byour (?:side|end|turn|weekend|day|team|place)\b",
    "[你您](?:吃|今天|明天|昨天|周末|那[边里]|在哪|下班|[去来][吗不]|到了|看了|[做写弄]完)",
    r"\bmy bad\b|怪我",
    # Of the bot, not to it
    r"^(?:see|look|told you)[,!]|^(?:it|he|she) (?:(?:even|actually) (?:got|said)\b"
    r"|(?:even |really |actually )?(?:knows|knew|remember(?:s|ed)|underst(?:ands|ood))\b)",
    "^(?:看吧|瞧)|^它(?:居然|竟然|还|连|都|真)(?:知道|记得|懂)",
    # No answer is wanted
    r"\bwho (?:knows|cares|would have)\b|\bwhy (?:me|bother|oh why)\b|\banyways?\?*$",
    r"\bwhy (?:do|did|am|would) i (?:even|ever|still|always)\b",
    r"^(?:really|seriously|no way|right|you kidding)\s*[?!？！]+",
    r"\b(?:isn|wasn|aren)['’]t (?:that|this|it) (?:just|so|great|lovely|funny|wonderful)\b",
    "谁(?:知道|能想|料到)|怎么[又老总]|怎么可能|真的假的|不会吧|难道|何必|搞什么|什么鬼|^这不",
)

_LONGEST = 100
_HAN = re.compile("[\u4e00-\u9fff]+")
_LATIN = re.compile("[A-Za-z0-9_]")
_NEVER = re.compile("(?!)")
_PARTS = re.compile(r"[\s_.-]+")

# Names that are words as well, when they are written small.
_WORDS = frozenset(
    "angel april art bill chase dawn dick drew faith frank gene grace grant hope iris ivy jack jade"
    " joy june lance long mark max may miles nick olive pat penny ray rich rob rose ruby sandy so"
    " sue summer sunny victor wade ward west will young mum mom dad memo team the and all".split()
)

# “@…”, “Mei, …” or “小美，你…”: somebody is called, known or not.
_CALL = re.compile(
    "@|(?!(?:Also|And|But|So|Then|Well|Actually|Wait|No|Yes|Right|Sorry|Please|First|Otherwise"
    "|However|Still|Anyway|Instead|Again|Alternatively|Maybe|Now|If|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Today|Tomorrow|Only|Both|Not)\\b)[A-Z][a-z]+,\\s"
    "|[A-Z][a-z]+ (?:can|could|will|would|did|do|are|were|have) you\\b"
    "|[\u4e00-\u9fff]{2,3}[,，]\\s*[你您]"
    "|(?!周[一二三四五六日天末几]|方[案便面法式]|马上|高[兴级]|万一|任[何务]|金额|白天|文[件档案字本])"
    "[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶"
    "温樊戚柯鲁岳骆凌霍柳鲍倪殷毕邬俞阮颜梅岑祁狄庞舒屈祝裴翁苗詹褚尤柏窦滕聂耿卓蒲乔桂庄晏柴瞿翟冉栾焦"
    "阎余潘杜戴夏钟汪田任姜范石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎武贺赖龚文]"
    "[\u4e00-\u9fff]{1,2}(?:[,，]|.{0,2}[你您])"
    "|(?:小|老|阿)[\u4e00-\u9fff][,，\\s]*[你您]|[\u4e00-\u9fff](?:哥|姐|总|老师|经理)[,，\\s]"
)
_FILLER = re.compile(r"^(?:(?:hey|hi|hello|and|but|so)\b|[那哎嗨])[\s,，]*", re.IGNORECASE)

Reference = Literal["", "pointed_at", "named"]
_TIMES = (
    r"(?:week|month|year|quarter|time|morning|afternoon|evening|night|weekend"
    r"|mon|tues|wednes|thurs|fri|satur|sun)"
)
_NOUN = (
    r"(?:files?|pictures?|pics?|images?|photos?|screenshots?|documents?|docs?|pdfs?|attachments?"
    r"|spreadsheets?|sheets?|tables?|slides?|charts?|diagrams?)\b"
)
_NAMED_PERSON = re.compile(
    rf"\b(?:the|this|that|these|those|my|his|her|their|above|attached|last|\w+['’]s)\s+"
    rf"(?:\w+\s+){{0,2}}?{_NOUN}"
    "|(?:这|那|上面|刚才|刚刚|刚发|上一|他|她|的)[^，。,.?？!！\\n]{0,6}?"
    "(?:文件|图|照片|截图|文档|附件|表格|幻灯片)"
    "|^\\W*(?:文件|图片?|照片|截图|文档|附件|表格)(?:里|中|上|内)",
    re.IGNORECASE,
)
_POINTED_AT = re.compile(
    rf"\b(?:this|these)\b(?!\s+{_TIMES})|\b(?:attached|above)\b|\bi (?:just )?sent\b"
    r"|\b(?:summari[sz]e|translate|read|explain|describe|review|look at|check|transcribe)\s+"
    r"(?:it|that|them)\b"
    r"|\bwhat\s+(?:does|do)\s+(?:it|they)\s+(?:say|show|mean|contain)\b"
    r"|\bwhat(?:['’]s| is)\s+(?:in|on)\s+(?:it|here)\b"
    "|这(?:是|个(?!月|周|星期|季度|礼拜)|张|份|些|里|段|幅|篇|上面|怎么|说|写|讲|$)|上面的?|刚才?发的"
    "|(?:帮我|请|麻烦)?(?:看看|看一下|看下|翻译一下|总结一下|读一下|解释一下)\\W*$"
    "|里面(?:有|写|说|是)|写了?(?:什么|啥)",
    re.IGNORECASE,
)


def corrects(text: str) -> bool:
    """What was said is called wrong, or set right: not X but Y, I meant Z, 不对."""
    return bool(_CORRECTION.search(text)) and not _NO_CORRECTION.search(text)


def replaces_a_value(text: str, earlier: str) -> bool:
    """Where a number, a day or a month was said, it names another one: three, one was taken."""
    if not states_a_fact(text):
        return False
    place = _IS.search(text)
    for kind in _VALUES:
        value = kind.match(text) or (place and kind.match(text, place.end()))
        if value and kind.search(earlier):
            return value[0].casefold() not in earlier.casefold()
    return False


def reports_failure(text: str) -> bool:
    """What was advised did not help."""
    return bool(_FAILURE.search(text))


def states_a_fact(text: str) -> bool:
    """A plain statement in the third person: not about oneself, not an opinion."""
    return not ONESELF.search(text) and not OPINION.search(text)


def points_at_a_part(text: str) -> bool:
    """A statement about something of the answer: that line is …, 那行是…"""
    return bool(_PART.match(text))


@lru_cache(maxsize=CACHED_TEXTS)
def could_answer(text: str, question: str) -> bool:
    """Whether `text` is of the form of an answer to `question`; a bare ok answers only yes or no.

    “let me check” and “no thanks” end the matter for now.
    """
    words = text.strip()
    if len(words.split()) > MAX_ANSWER_WORDS or (
        has_han(words) and len(words) > MAX_ANSWER_CHARACTERS
    ):
        return False
    if postpones(words) or _NO_THANKS.search(words) or does_something(words):
        return False
    if CONSENT.fullmatch(words):
        return asks_for_consent(question)
    if _chooses(words, question):
        return True
    if OPINION.search(words) or not re.search(r"\w", words):
        return False
    return not asks_for_consent(question) or _takes_it_up(words, question)


def _chooses(text: str, question: str) -> bool:
    """Whether it names one of the numbers that the question offers."""
    return asks_to_choose(question) and bool(
        set(_NUMBER.findall(text)) & set(_NUMBER.findall(question))
    )


def _takes_it_up(text: str, offer: str) -> bool:
    """Whether what is more than yes or no still speaks of what was offered."""
    wants = restyles(text) or requests(text) or points_at_an_item(text)
    match = _DO_IT.fullmatch(text)
    return (
        wants
        or bool(match and match[1] in offer)
        or bool(_CONSENTS.match(text) or topics(text) & topics(offer))
    )


def does_something(text: str) -> bool:
    """The author is at work, or away: sending it now, 在修, I'm off."""
    return bool(_DOINGS.search(text))


def postpones(text: str) -> bool:
    """The author will come back to it: let me check, 等一下."""
    return bool(_LATER.match(text))


@lru_cache(maxsize=CACHED_TEXTS)
def without_courtesies(text: str) -> str:
    """What is left after “ok, thanks,” and the like."""
    position = 0
    while courtesy := _COURTESY.match(text, position):
        position = courtesy.end()
    return text[position:].strip()


def is_aside(text: str, exchange: LastExchange) -> bool:
    """Whether it speaks to the group, of the bot, or of nothing that wants an answer."""
    return bool(SIDE_TALK.search(text)) or is_small_talk(text, exchange)


def is_small_talk(text: str, exchange: LastExchange) -> bool:
    """Whether it is about lunch or the weekend, and neither asks on about what the bot said of it
    nor wants work done."""
    both_texts = f"{exchange.answer}\n{exchange.question}".lower()
    words = {match.group().lower() for match in SMALL_TALK.finditer(text)}
    asks_on = is_question(text) and all(word in both_texts for word in words)
    return bool(words) and not asks_on and not requests(text)


def calls(text: str, name: str) -> bool:
    """“Memo, …”, “hey Memo: …” or “…, Memo?”"""
    if not name:
        return False
    start = _without_filler(text)
    end = text.rstrip(" ?？!！.。~")
    rest = start.startswith(name) and start[len(name) :].lstrip()[:1] in (",", "，", ":", "：")
    return rest or end.endswith((f", {name}", f"，{name}", f",{name}"))


def names_a_person(text: str, names: Sequence[str]) -> bool:
    """Whether the text begins with a colleague's name or calls one."""
    start = _without_filler(text)
    return bool(_CALL.match(start)) or any(
        calls(text, name) or _begins_with(start, name)
        for full in names
        for name in _short_forms(full)
    )


def speaks_of(text: str, names: Sequence[str]) -> bool:
    """Whether a colleague's name stands in the text."""
    short_names = (name for full in names for name in _short_forms(full))
    return any(name in text or _written_small(name).search(text.casefold()) for name in short_names)


def ends_with_name(text: str, names: Sequence[str]) -> bool:
    """Whether the text ends in a colleague's name: “that's tight dario”."""
    end = text.casefold().rstrip(" ?？!！.。~")
    short_names = (name for full in names for name in _short_forms(full))
    return any(end.endswith(name.casefold()) and speaks_of(end, [name]) for name in short_names)


def _begins_with(text: str, name: str) -> bool:
    if text.startswith(name) and not _LATIN.match(text, len(name)):
        return True
    return bool(_written_small(name).match(text.casefold()))


@lru_cache(maxsize=1024)
def _written_small(name: str) -> re.Pattern[str]:
    """Finds the name in small letters; never one that is a word as well."""
    small = name.casefold()
    if small in _WORDS or not _LATIN.match(small):
        return _NEVER
    return re.compile(rf"(?<![a-z0-9_]){re.escape(small)}(?![a-z0-9_])")


@lru_cache(maxsize=CACHED_TEXTS)
def _without_filler(text: str) -> str:
    """The text without a “hey” at its start."""
    return _FILLER.sub("", text, count=1)


@lru_cache(maxsize=1024)
def _short_forms(name: str) -> tuple[str, ...]:
    """The name; what is called of it: the given name of a Chinese one, a word of another. Nobody is
    called by a longer name than `_LONGEST`."""
    if len(name) > _LONGEST:
        return ()
    short_names = [name] if len(name) > 1 else []
    if len(name) == 3 and _HAN.fullmatch(name[0]):
        short_names.append(name[1:])
    elif len(name) > 3 and _HAN.fullmatch(name[-2:]):
        short_names.append(name[-2:])
    return (*short_names, *(part for part in _PARTS.split(name) if 2 < len(part) < len(name)))


def reference(question: str) -> Reference:
    """How the question refers to something that was sent before it, if it does."""
    if _NAMED_PERSON.search(question):
        return "named"
    return "pointed_at" if _POINTED_AT.search(question) else ""
