"""How a message takes the words before it: as a question it answers, as wrong, as of no help. Pure.

The wording of a message that addresses nobody, English and Chinese. What it wants done is in
`bot.listening.requests`; whom it is for is weighed in `bot.listening.addressee_classifier`.
"""

import re
from functools import lru_cache

from bot.listening.patterns import KEPT, ONESELF, has_han, pattern, topics
from bot.listening.questions import asks_for_consent, asks_to_choose
from bot.listening.requests import points_at_an_item, requests, restyles
from memory.dates.words import WEEKDAY, WEEKDAY_ZH

MAX_ANSWER_WORDS = 15
MAX_ANSWER_CHARACTERS = 30


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


@lru_cache(maxsize=KEPT)
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
