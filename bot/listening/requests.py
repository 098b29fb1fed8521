"""Recognises questions and requests in a message that addresses nobody. Pure, English and Chinese.

The wording is read by its form: a verb in the imperative, a comparative, a fragment. Whom the
message is for is weighed in `bot.listening.cues`.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Texts of which it is kept what was found: a line is read with those before it, whose readings are
# the same, and several questions about it need the same answer.
CACHED_TEXTS = 256
_END = 1000  # characters
_NUMBER = re.compile(r"\d{2,}")
_HAN = re.compile("[\u4e00-\u9fff]")
_SPACE_IN_HAN = re.compile(
    r"(?<=[\u4e00-\u9fff]) +(?=[\u4e00-\u9fff\d])|(?<=\d) +(?=[\u4e00-\u9fff]{2})"
)
_LATIN_WORD = re.compile(r"[a-z][a-z0-9_]{2,}|(?<!\d)\d+(?:\.\d+)+")

# Characters of grammar end a run, so that bigrams are made of words of weight.
_GRAMMAR = "的了吗呢么是我你他她它们在有也都还就不这那哪什怎为谁几很再和与或要会能可以"
_HAN_RUN = re.compile(rf"[^\W0-9a-z_{_GRAMMAR}]+")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you your our with that this have has had was were will would can "
        "could should does did from they them what when where which who whom why how about into "
        "any all some there here then than its get got let use just now out one two too also very "
        "say said going want need make please still",
    )
)

MAX_FRAGMENT_WORDS = 5
MAX_FRAGMENT_CHARACTERS = 12
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；，,])|\n+")
_CLAUSE_END = re.compile(r"[,，;；。!！?？、\n]+|\.\s+|(?<![^\S\n])[^\S\n]+(?:and|but|then)\s+")
_LEAD = re.compile(
    r"^(?:(?:please|pls|just|then|now|ok(?:ay)?|also|and|but|so|maybe|instead|yes|yep|no|rather"
    r"|actually|sorry|wait|well|hm+|let['’]?s)\b[\s,]*)+"
    "|^(?:请|麻烦|帮忙|帮我|现在|顺便|直接|那就|那么|那|就|先|还是|都|也|再|嗯|好)+(?=.{2})",
    re.IGNORECASE,
)
_OF_A_KIND = re.compile(
    "[^好是真对行会有没挺蛮还可够我你您他她吗谁]{2,10}的(?:那[个种份些])?[。.]?"
)
_FRAGMENT = re.compile(
    r"(?:compared (?:to|with)|instead of|except|without|for|per|by|since|from|only|in|vs|versus"
    r"|above|below|between|among|within|excluding|including|besides"
    r"|(?:the )?same(?: \w+)? (?:for|with|in|of|but))\b"
    r"(?! (?:a |an |\w+ )?(?:min(?:ute)?s?|sec(?:ond)?s?|moment|bit|meeting|call|hour|while|sure"
    r"|real|now|me|my|what|fun|lunch|case|fact|that case|theory|line|traffic)\b)"
    r"(?!.*\b(?:i|i['’]m|my|we|our|you|your|me|us)\b) \S.*$",
    re.IGNORECASE,
)
_VERB_IT = re.compile(
    r"(?!(?:love|like|hate|got|did|saw|knew|sent|made|found|had|is|was|are|were|be|do|does|not|about|for"
    r"|with|of|on|at|to|from|than|as|if|that|this|get|see|hear|know|think|believe|doubt|guess|hope"
    r"|mean|need|want|good|nice|bad|will|would|can|could|should|might|may|must|said|told|took|gave"
    r"|left|lost|forgot|bought|wrote|read|heard|thought|met|it|you|they|we|by|in|over|all|just)\b)"
    r"[a-z]{2,}(?<!ed)(?<!ing)(?<!s) (?:it|them|this|that)(?! (?:is|was)\b)(?: \w+){0,2}[.!]?$",
    re.IGNORECASE,
)
_MAKE_ZH = (
    "[^有是就这那几多整哪每各某买吃喝开打睡洗见请还来一两三我你他]一?[个张份条段篇](?![人会])"
)

# A character, or a Latin word, never parts of one: of a long word there are millions of divisions.
_ANY = r"(?>[a-z0-9_.-]+\s*|\S\s*)"

# What comes first is about what, or when: 仓库的也帮我查查, 周五提醒我
_FOR_ME_ZH = re.compile(
    f"{_ANY}{{0,10}}(?:也|再|都|先|请|麻烦)?(?:帮|替)我\\S|"
    "[\\d今明后大周星期上中下早晚点半号日月天一二三四五六七八九十前时分钟小]*(?:提醒|告诉|通知)我",
    re.IGNORECASE,
)
_NO_IMPERATIVE_ZH = re.compile(
    "(?<![给帮发醒诉知让到把成为由归])我(?!要的|的)|[你您他她咱谁]|[过完好啦][。!！~～]*$"
    "|(?<!掉)(?<!不要)了[。!！~～]*$|怎么|真|又|肯定|已经|正在|还没|差不多|不错|怪|[去来]了"
    "|^(?:就)?[用按照]?[这那][个样](?:来|办|吧|了)?[。!！~～]*$"
)

MAX_QUESTION_WORDS = 30
MAX_QUESTION_CHARACTERS = 200
_QUESTION_END = re.compile(r"(?:[?？][\s!！~～)）]*|[吗呢么][\s。.!！~～…]*)$")

# A question, and then what makes one ask: are you sure? last year …
_QUESTION_THEN_WHY = re.compile(r"[^.。!！?？\n]{2,}[?？]\s*[^\s?？].*[^?？]$")
_QUESTION_START = re.compile(
    r"^(?:what|how|why|when|where|which|who|do|does|is|are|can|could|should|would|will"
    r"|since (?:when|which|what))\b",
    re.IGNORECASE,
)
_ASKS_FIRST = re.compile("(?:哪[些个里儿]|为什么|为何|什么时候|多少|几[个天点号])[^!！…]*了$")
_STATEMENT_END = re.compile(r"(?:[了啦吧哈呀啊]|[还正]\S{0,12}呢)[\s。.!！~～…]*$|[…!！]$|\.\.\.$")
_ADDRESSED = re.compile(r"^(?:@\S+\s+)+")
_SENTENCE = re.compile(r"(?:[^.。!！?？\n]|\.(?=\S))+[.。!！?？]*[\s)）”\"]*")
_ASIDE = re.compile(r"[(（][^()（）]{1,60}[)）]\s*$")
_IS_THAT_WHAT = re.compile(
    r"\b(?:is|was|are|were) (?:that|this|it|these|those) (?:what|how|where|when|who|why|which)\b",
    re.IGNORECASE,
)


def any_of(*alternatives: str) -> str:
    """One of these patterns."""
    return f"(?:{'|'.join(alternatives)})"


def pattern(*alternatives: str) -> re.Pattern[str]:
    """One of these patterns, in any case."""
    return re.compile(any_of(*alternatives), re.IGNORECASE)


def ends_of(text: str) -> str:
    """A long text's beginning and end: there stands what somebody wants. Reading all of it would
    keep everybody waiting."""
    return text if len(text) <= 2 * _END else f"{text[:_END]}\n{text[-_END:]}"


def has_han(text: str) -> bool:
    """Whether there is a Chinese character in it."""
    return bool(_HAN.search(text))


def with_commas(text: str) -> str:
    """Commas where people leave a space between Chinese words: 把我去掉吧 我妈明天来."""
    return _SPACE_IN_HAN.sub("，", text)


@lru_cache(maxsize=CACHED_TEXTS)
def topics(text: str) -> frozenset[str]:
    """The words of weight: beginnings of Latin words, pairs of Chinese characters."""
    folded_text = text.casefold()
    latin = (word for word in _LATIN_WORD.findall(folded_text) if word not in _STOP_WORDS)
    han = (run[i : i + 2] for run in _HAN_RUN.findall(folded_text) for i in range(len(run) - 1))
    return frozenset((*(word[:6].rstrip("s") for word in latin), *han))


def numbers(text: str) -> frozenset[str]:
    """The numbers in digits, but for those of one digit, which stand in any list."""
    return frozenset(_NUMBER.findall(text))


ONESELF = pattern(r"\b(?:i|me|my|we|our|us|i['’]\w+|we['’]\w+)\b", "[我咱]")


def is_ellipsis(text: str) -> bool:
    """Only a few words."""
    return 0 < len(text.split()) <= MAX_FRAGMENT_WORDS and (
        not has_han(text) or len(text) <= MAX_FRAGMENT_CHARACTERS
    )


def continues(text: str) -> bool:
    """A continuation that asks (but why …?, 那…呢), or only names one more thing (and PyPy)."""
    one_more = _ONE_MORE_END.search(text) and is_ellipsis(text)
    if one_more and not ONESELF.search(text) and not _ABSENT.search(text):
        return True
    if not _CONTINUATION.match(text):
        return False
    more = _ONE_MORE.match(text)
    rest = text[more.end() :].strip() if more else ""
    return is_question(text) or (is_ellipsis(rest) and not _STATEMENT.search(rest))


def restyles(text: str) -> bool:
    """A wish for another form of a text and nothing else: shorter, 再正式一点, as a table."""
    form = _LEAD.sub("", text)
    return any(_RESTYLE.match(phrase) for phrase in (text, form)) or bool(
        _FRAGMENT.match(form) and len(form.split()) <= MAX_FRAGMENT_WORDS + 2
    )


@lru_cache(maxsize=CACHED_TEXTS)
def requests(text: str) -> bool:
    """An imperative, in any clause, that a bot can carry out: move it up, 把第二条删掉."""
    return any(
        _is_request(clause) or _is_request(_LEAD.sub("", clause))
        for clause in clauses(ends_of(text))
    )


def asks(text: str) -> bool:
    """Whether somebody waits for what comes back: a question or a request in any sentence, or a
    slash command."""
    if text.startswith(("/", "／")):
        return True
    return any(is_question(one) or requests(one) for one in sentences(ends_of(text)))


def works_on(clause: str) -> bool:
    """Whether it begins with a verb of what a bot does with words: put my name on it, 查下…"""
    clause_rest = _LEAD.sub("", clause)
    return bool(_WORK_FIRST.match(clause_rest)) and not _ABOUT_IT.search(clause_rest)


def points_at_an_item(text: str) -> bool:
    """One of a list is meant: the second one, the cheapest, 最后那个, 3."""
    return bool(_ITEM.search(text))


def names_one_more(text: str) -> bool:
    """Only a thing with 的: 十一月的, 讲给小孩听的那种."""
    return is_ellipsis(text) and bool(_OF_A_KIND.fullmatch(text))


def sentences(text: str) -> list[str]:
    """The parts between stops."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def clauses(text: str) -> list[str]:
    """The parts between punctuation."""
    return [part.strip() for part in _CLAUSE_END.split(text) if part.strip()]


def _is_request(clause: str) -> bool:
    if has_han(clause):
        matches = any(form.match(clause) for form in (_REQUEST, _IMPERATIVE_ZH, _FOR_ME_ZH))
        return bool(matches) and not _NO_IMPERATIVE_ZH.search(clause)
    return any(form.match(clause) for form in (_REQUEST, _IMPERATIVE, _VERB_IT))


# One more thing
_CONTINUATION = pattern(
    r"(?:and|also|what about|how about|what if|why|but|so|then|or)\b",
    "那么?|还有|另外|为什么|但是?|如果|要是|怎么|然后|以及|可是|不过",
)
_ONE_MORE = pattern(r"(?:and|also|what about|how about|or)\b[\s,]*|那么?|还有|另外|以及")
_ONE_MORE_END = pattern(r"\b(?:too|as well)[\s.!?？]*$|(?:的也要?|也要|也一样|呢)[\s?？。]*$")
_ABSENT = pattern("人呢|[他她你您]|[还正又怎]")
_STATEMENT = pattern(
    r"\b(?:i|we|he|she|they|me|my|our|done|(?:i|we|it|that)['’]\w+)\b",
    r"\b(?:is|are|was|were|has|have|had|just|already|still)\b|!$",
    "[我咱]|已经|就这样|今天|明天|昨天|下午|晚上",
    "[了吧哈啦的呀][。.!！~～]*$",
)

# Another form of the text
_COMPARATIVE = any_of(
    r"(?!(?:bett|nev|ev|oth|eith|neith|aft|ov|und|lat|rath|togeth|numb|rememb|consid|off|ord"
    r"|dinn|summ|wint|wheth|pow|serv|us|pap|lett|answ|cent|mast|comput|manag|weath|wat"
    r"|whatev|howev|forev|supp|clev|sup|col|cheap|high|oft)er\b)[a-z]{3,}er",
    r"(?:more|less|not (?:so|that|too)|too|a (?:bit|little)(?: more| less| too)?) "
    r"(?!(?:much|bad|late|early|many|true|funny|than|sure|easy|expensive|tired|busy|work|time)\b)"
    r"[a-z]+(?: [a-z]+)?",
    r"(?:half|twice) (?:as|the) \w+",
)
_FORM = any_of(
    "(?:bullet(?:ed|s| points?)*|(?:numbered )?list|table|haiku|poem|checklist|outline|email|json"
    "|csv|markdown|code|steps|sentences?|paragraphs?|words?|lines?|points?|emojis?|headings?)"
)
_RESTYLE = re.compile(
    r"(?:(?:even|much|way|still|make it|a bit|a little|a tad|slightly|bit|please)\s+)*"
    rf"{_COMPARATIVE}"
    r"(?:\s+(?:please|pls|and \w+|than that))*[\s.!]*$"
    r"|too (?:stiff|long|short|formal|informal|wordy|vague|dry|technical|casual|complicated"
    r"|polite)\b"
    rf"|(?:as|in|into|with|without) (?:\w+ ){{0,3}}{_FORM}\b(?:[\s.!]|please)*$"
    rf"|(?:max(?:imum)? |at most |only |just )?(?:\d+|one|two|three|four|five) {_FORM}\b"
    r"(?: max| at most| only| please)?[\s.!]*$"
    rf"|(?:\w+ )?{_FORM}(?:,? (?:please|pls))[\s.!]*$"
    r"|(?:in(?:to)? )?(?:plain |simple )?(?:english|chinese|german|french|spanish|italian|japanese"
    r"|korean|russian|portuguese|dutch|arabic|hindi|polish|ukrainian|turkish|greek|swedish|danish"
    r"|norwegian|finnish|czech|hungarian|romanian|vietnamese|thai|catalan|welsh|irish|persian|hebrew"
    r"|mandarin|cantonese|croatian|serbian|bulgarian)(?: (?:version|please|pls|too))?[\s.!?]*$"
    "|(?:再|更|稍微?|要|语气|口气|写得?|说得?|弄得?|能不能|可以)*(?:再|更)?"
    "[^\\s，。我你他]{1,4}?(?:一点儿?|一些|点儿?|些)[吧儿。!！~～\\s]*(?:[,，].{0,12})?$"
    "|(?:再|更)(?:短|长|简|详|正式|口语|活泼|委婉|礼貌|具体|客气|专业|通俗)"
    "|(?:有?点|有些)?太(?:长|短|正式|啰嗦|罗嗦|复杂|简单|官方|生硬|口语|随意|笼统|空|干|死板|书面)"
    "|(?:别|不要|不用)(?:那么|这么|太).{1,6}$"
    "|太[^\\s，。了]{1,3}了?(?:吧|点)?[。!！~～]*$|(?:像|跟).{1,6}(?:说的?话?|写的|聊天)(?:一样|似的|一点)?$"
    "|(?:[英中日韩法德俄西葡意泰越]文|(?:[英日韩法德俄汉粤泰]|西班牙|葡萄牙|意大利|阿拉伯|越南|荷兰|波兰|土耳其)语|中英|双语|表格|列表|清单|要点|一句话|口语|书面|简体|繁体)"
    "(?:版|对照|形式|格式|的)?[吧呢。]*$"
    "|[一二两三四五六\\d]+(?:句话?|段|个?字|行|条)(?:以内|之内|就[够行好]|左右)?.{0,4}$"
    "|一(?:行|句|段)话?(?:说|讲|写|概括|总结)"
    "|(?:砍|缩|减)(?:掉)?(?:一半|到|短)",
    re.IGNORECASE,
)

# Imperatives
_WORK = any_of(
    "make|turn|put|change|add|remove|delete|erase|rename|translate|shorten|rewrite|rephrase",
    "summari[sz]e|expand|explain|elaborate|continue|list|show|give|tell|write|try|move|extend",
    "replace|include|exclude|draft|compare|swap|switch|reverse|split|merge|combine|join|sort",
    "order|rank|group|filter|set|mark|tick|check off|cross|assign|drop|skip|keep|leave|cut|trim",
    "mention|say|note|remind|record|save|store|pin|tag|label|flag|highlight|bold|underline",
    "convert|format|calculate|compute|count|sum|total|double|halve|round|scale|update|correct",
    "undo|revert|restore|ignore|forget|pick|choose|select|use|book|reserve|cancel|schedule",
    "postpone|reschedule|open|close|create|build|generate|suggest|propose|describe|define|name",
    "send|mail|email|forward|export|attach|print|copy|paste|find|look up|search|quote|cite|link",
    "emphasi[sz]e|stress|simplify|clarify|rate|number|break|repeat|redo|start over|go on|narrow",
    "limit|prioriti[sz]e|archive|invite|subscribe|strike|scratch|throw|take|bring up|pull|push",
)
_OBJECT = any_of(
    "the|that|this|it|them|those|these|all|both|each|every|everything|me|us|number|no\\.|#",
    "another|one|two|three|first|second|third|fourth|fifth|last|a|an|only|just|more|also",
    "him|her|out|up|off|down|in|back|away|to|as|by|for|from|over|less|again|any|some",
)
_REWORK = any_of(
    r"(?:make|turn|put|change) (?:it|that|this|them)\b",
    r"(?:add|remove|delete|rename|translate|shorten|rewrite|rephrase|summari[sz]e|expand|explain"
    r"|elaborate|continue|go on|list|try again|move|extend|replace|include|write|draft|compare"
    r"|swap|split|sort|group|use|set|more|mention|skip|drop)\b",
    r"(?:show|give|tell|write) me\b",
    "(?:much |a bit |even )?(?:shorter|longer|simpler|more detail)",
    "as (?:an? )?(?:bullet|list|table|number)",
    "in (?:english|chinese|one sentence|plain)",
)
_REWORK_ZH = any_of(
    "再[短长详细简单说加写给来举列具正]",
    "翻译|缩短|精简|简化|展开|扩写|润色|详细|具体|语气|继续|接着[说写]|解释|总结",
    "换[成个种]|[改写做整]成|改写|举个?例|列[出成个]|加[上个一条]|[去删]掉",
    "多[来给加写举]|来[个几]|补[上充一]|[延挪调]到|[写发]给?我|给我",
    "用.{1,6}[列写说表]|(?:直接)?把",
)
_REQUEST = pattern(
    rf"(?:(?:please|now|no|and|also|then|instead)[\s,]+)*(?:{_REWORK}|send me\b)",
    f"(?:请|麻烦|帮我|现在)*{_REWORK_ZH}(?!.*了[。!！~～]*$)",
)
_IMPERATIVE = re.compile(rf"{_WORK}\s+(?:{_OBJECT}\b|\d|[\"“#])", re.IGNORECASE)
_WORK_FIRST = pattern(
    rf"(?:{_WORK}|lose|fix|bring|start|end|begin|fill|adjust|reword|rework|re-?do)"
    r"(?= \S)(?! (?:to|was|is|will|has|had|would|on|of)\b)",
    r"[\u4e00-\u9fff\d]{0,6}?(?:[删加改换查算记写发列补排挪移标留缩译翻并拆减重]"
    "[下上掉成到进入回出短长个一]?|去掉|对调|取整|提醒|备注|通知|平[摊分]|保留|合并|撤[回销]|恢复|注明|标注|推荐|总结|概括|解释|翻译|润色|精简)",
)
_ABOUT_IT = pattern(r"\byou\b", "[你您他她]|(?<!掉)(?<!要)了[。!！~～]*$|[过完][。!！~～]*$")
_VERB_ZH = any_of(
    "删|去掉|去除|加|改|换|移|挪|调|标|分[给成]|排|按|列|写|记|提|发[我给到]|放|存|保留|留|只[留要看保列算]",
    "订|预订|预约|查|算|比较|对比|整理|归类|汇总|合并|拆|拿掉|砍|缩|压缩|置顶|取消|推迟|延后",
    "提前|安排|提醒|通知|分配|导出|打印|复制|引用|加粗|标红|突出|强调|举|补|撤销|恢复|还原|重[写做来新发算]",
    "忽略|跳过|选|挑|用|用上|生成|建|新建|创建|说明|注明|写明|替换|调换|交换|对调|展开|细说|讲讲|说说|介绍",
    "筛|过滤|给它|给第|转成|转给|转发给|显示|隐藏|看看第|优先|不要[写提放加把用]|别[写提放加把用]|同步到",
)
_RESULT_ZH = any_of(
    "[\u4e00-\u9fff]掉|[删去改换标分放挪移写调排算缩转列记存做][成为给到进上入出下去]",
    "[\u4e00-\u9fff]{1,2}一下|[\u4e00-\u9fff]一[下遍]|细?说说|讲讲|介绍|展开",
    "给我看?看?|发我|不要[写提放加]?了?$|不要[写提放加]|不用写|也要$|也写上|也加上|提前|推迟|保留|合并",
    "置顶|优先|放?最前|放?最后面|换个?|对调|互换|详细|多?讲|再说",
)
_IMPERATIVE_ZH = re.compile(
    f"(?:{_VERB_ZH}|{_ANY}{{0,8}}?(?:(?:(?<=[周期].)|(?<![一二两三四五六七八九十几\\d]))把|将)|{_ANY}{{1,10}}?{_RESULT_ZH}|{_MAKE_ZH})",
    re.IGNORECASE,
)
_ITEM = pattern(
    r"\b(?:first|second|third|fourth|fifth|last|latter|former|next|top|bottom|middle|other) "
    r"(?:one|two|three|item|point|option|task|part|entry|line|row|of|in|and|to|as|is)\b",
    r"\bthe (?:first|second|third|fourth|fifth|last|latter|former|rest|others?|\w{3,}est)\b",
    r"\bthe (?:most|least) \w+|\b(?:number|option|item|point|no\.|#) ?\d|(?:^| )\d{1,2}(?= |$)",
    "第[一二两三四五六七八九十\\d]+[个条项家点段句款种位]?|[前后][一两二三四\\d]+[个条项]",
    "最[后前]一?[个条项那家面]|最[便贵近早晚大小新高低]|(?:其他|其余|剩下)的?|[这那]几?[个条项家]",
)


@lru_cache(maxsize=CACHED_TEXTS)
def is_question(text: str) -> bool:
    """A short question: by its mark, a final 吗/呢/么, or a question word."""
    if len(text) > MAX_QUESTION_CHARACTERS or len(text.split()) > MAX_QUESTION_WORDS:
        return False
    if _QUESTION_THEN_WHY.match(text):
        return True
    if _STATEMENT_END.search(text):
        return bool(_ASKS_FIRST.match(text))
    return any(asks.search(text) for asks in (_QUESTION_END, _QUESTION_START, _QUESTION_WORD))


@lru_cache(maxsize=CACHED_TEXTS)
def last_question(text: str) -> str:
    """The questions that a text ends with, or nothing; “Anything else?” wants no answer."""
    own_words = _ASIDE.sub("", _ADDRESSED.sub("", ends_of(text.strip())))
    sentences = [part for part in _SENTENCE.findall(own_words) if part.strip()]
    questions: list[str] = []
    for last in map(str.strip, reversed(sentences)):
        asks = _QUESTION_END.search(last) or (not questions and _WANTS_TO_KNOW.search(last))
        if not asks or _ANYTHING_ELSE.search(last):
            break
        questions.append(last)
    return " ".join(reversed(questions))


def asks_for_a_name(question: str) -> bool:
    """Whether it is about who, so that a person's name answers it."""
    return bool(_WHO.search(question))


@lru_cache(maxsize=CACHED_TEXTS)
def asks_for_consent(question: str) -> bool:
    """Whether yes or no answers it."""
    plain_question = _IS_THAT_WHAT.sub("is that it", question)
    return bool(_YES_OR_NO.search(plain_question)) and not _ALTERNATIVES.search(plain_question)


def asks_to_choose(question: str) -> bool:
    """Whether it offers alternatives."""
    return bool(_ALTERNATIVES.search(question))


_QUESTION_WORD = pattern(
    "怎么|什么|为何|如何|怎样|多久|多少|哪[里儿个些天一]|几[点个天号次]",
    "^谁.{1,8}的[?？]?$|可不可以|是否|有没有|([\u4e00-\u9fff])不\\1|(?<!还)没[?？]?$",
)
_WANTS_TO_KNOW = pattern(
    r"\b(?:tell me (?:which|what|when|who|how|whether|if|your|the)|let me know (?:which|what|when"
    r"|who|how|whether)|please (?:choose|pick|confirm|specify|tell|paste|provide|describe"
    r"|(?:give|send|show) me|share (?:it|them) with me)|which one)\b",
    "请(?:把.{1,12})?(?:告诉|选择?|提供|确认|说明|补充|回复|问|[发贴传]给?我?)|告诉我(?:哪|什|是|要|您|你)|需要您?(?:确认|提供|补充)",
)
_ANYTHING_ELSE = pattern(
    r"\b(?:anything|something) else\b|\b(?:can|may) i (?:help|do)\b.{0,200}\b(?:else|more)\b",
    r"\bmore (?:help|questions)\b|还有(?:什么|其他|别的)|还需要(?:什么|其他|别的|我)",
)
_YES_OR_NO = pattern(
    r"(?:^|[.,;:!] )(?:ready|mind|sure|agreed|confirm(?:ed)?|delete|remove|send|save|add|book|keep"
    r"|post|share|proceed|continue|go (?:ahead|on)|try)\b",
    "(?<![什怎那这多])么[?？。\\s]*$|吧[?？]\\s*$",
    "^(?:确认|继续|可以|没问题|同意|保存|提交|发送|删除|预订)[^?？]{0,8}[?？]\\s*$",
    r"(?:^|[,;:] )(?:so |and |then )?(?:should|shall|do|does|did|is|are|was|were|may|can|could|will"
    r"|would|have|has|want|need|ok|okay|right)\b",
    r"\b(?:want me to|would you like|do you want|correct|right|okay|ok)\b.{0,400}[?？]",
    "吗[?？。\\s]*$|是否|([\u4e00-\u9fff])不\\1|可不可以|有没有|好[吗么]|对吧|是吧",
)
_ALTERNATIVES = pattern(r"\b(?:which|what|when|where|who|how|or)\b|哪|什么|还是|几[点个]")
_WHO = pattern(r"\b(?:who|whom|whose)\b|谁|哪位")
