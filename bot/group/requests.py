"""What a message wants of the words before it: rework, correction, one more thing, an answer. Pure.

The wording of a message that addresses nobody, English and Chinese, read by its form: a verb in
the imperative, a comparative, a fragment, a contrast. Whom it is for is decided in
`bot.group.cues`.
"""

import re

from bot.group.questions import asks_for_consent, is_question
from bot.group.wording import any_of, has_han, pattern, topics

MAX_FRAGMENT_WORDS = 5
MAX_FRAGMENT_CHARACTERS = 12
MAX_ANSWER_WORDS = 15
MAX_ANSWER_CHARACTERS = 30


def is_ellipsis(text: str) -> bool:
    """Only a few words."""
    return 0 < len(text.split()) <= MAX_FRAGMENT_WORDS and (
        not has_han(text) or len(text) <= MAX_FRAGMENT_CHARACTERS
    )


def continues(text: str) -> bool:
    """A continuation that asks (but why …?, 那…呢), or only names one more thing (and PyPy)."""
    one_more = _ONE_MORE_END.search(text) and is_ellipsis(text)
    if one_more and not _ONESELF.search(text) and not _ABSENT.search(text):
        return True
    if not _CONTINUATION.match(text):
        return False
    more = _ONE_MORE.match(text)
    rest = text[more.end() :].strip() if more else ""
    return is_question(text) or (is_ellipsis(rest) and not _STATEMENT.search(rest))


def restyles(text: str) -> bool:
    """A wish for another form of a text and nothing else: shorter, 再正式一点, as a table."""
    form = _LEAD.sub("", text)
    return any(_RESTYLE.match(said) for said in (text, form)) or bool(
        _FRAGMENT.match(form) and is_ellipsis(form)
    )


def requests(text: str) -> bool:
    """An imperative, in any clause, that a bot can carry out: move it up, 把第二条删掉."""
    return any(
        _is_request(clause) or _is_request(_LEAD.sub("", clause)) for clause in clauses(text)
    )


def points_at_an_item(text: str) -> bool:
    """One of a list is meant: the second one, the cheapest, 最后那个, 3."""
    return bool(_ITEM.search(text))


def names_one_more(text: str) -> bool:
    """Only a thing with 的: 十一月的, 讲给小孩听的那种."""
    return is_ellipsis(text) and bool(_OF_A_KIND.fullmatch(text))


def corrects(text: str) -> bool:
    """What was said is called wrong, or set right: not X but Y, I meant Z, 不对."""
    return bool(_CORRECTION.search(text)) and not _NO_CORRECTION.search(text)


def reports_failure(text: str) -> bool:
    """What was advised did not help."""
    return bool(_FAILURE.search(text))


def states_a_fact(text: str) -> bool:
    """A plain statement in the third person: not about oneself, not an opinion."""
    return not _ONESELF.search(text) and not _OPINION.search(text)


def points_at_a_part(text: str) -> bool:
    """A statement about something of the answer: that line is …, 那行是…"""
    return bool(_PART.match(text))


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
    if _CONSENT.fullmatch(words):
        return asks_for_consent(question)
    if _OPINION.search(words) or not re.search(r"\w", words):
        return False
    return not asks_for_consent(question) or _takes_it_up(words, question)


def _takes_it_up(text: str, offer: str) -> bool:
    """Whether what is more than yes or no still speaks of what was offered."""
    wants = restyles(text) or requests(text) or points_at_an_item(text)
    return wants or bool(_CONSENTS.match(text) or topics(text) & topics(offer))


def does_something(text: str) -> bool:
    """The author is at work, or away: sending it now, 在修, I'm off."""
    return bool(_DOINGS.search(text))


def postpones(text: str) -> bool:
    """The author will come back to it: let me check, 等一下."""
    return bool(_LATER.match(text))


def clauses(text: str) -> list[str]:
    """The parts between punctuation."""
    return [part.strip() for part in _CLAUSE_END.split(text) if part.strip()]


def _is_request(clause: str) -> bool:
    if has_han(clause):
        wanted = _REQUEST.match(clause) or _IMPERATIVE_ZH.match(clause)
        return bool(wanted) and not _NO_IMPERATIVE_ZH.search(clause)
    return any(form.match(clause) for form in (_REQUEST, _IMPERATIVE, _VERB_IT))


_CLAUSE_END = re.compile(r"[,，;；。!！?？、\n]+|\.\s+|\s+(?:and|but|then)\s+")
_LEAD = re.compile(
    r"^(?:(?:please|pls|just|then|now|ok(?:ay)?|also|and|but|so|maybe|instead|yes|yep|no|rather"
    r"|actually|sorry|wait|well|hm+|let['’]?s)\b[\s,]*)+"
    "|^(?:请|麻烦|帮忙|帮我|现在|顺便|直接|那就|那么|那|就|先|还是|都|也|再|嗯|好)+(?=.{2})",
    re.IGNORECASE,
)

# One more thing
_CONTINUATION = pattern(
    r"(?:and|also|what about|how about|what if|why|but|so|then|or)\b",
    "那么?|还有|另外|为什么|但是?|如果|要是|怎么|然后|以及|可是|不过",
)
_ONE_MORE = pattern(r"(?:and|also|what about|how about|or)\b[\s,]*|那么?|还有|另外|以及")
_ONE_MORE_END = pattern(r"\b(?:too|as well)[\s.!?？]*$|(?:的也要?|也要|也一样|呢)[\s?？。]*$")
_OF_A_KIND = re.compile(
    "[^好是真对行会有没挺蛮还可够我你您他她吗谁]{2,10}的(?:那[个种份些])?[。.]?"
)
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
    r"|korean|russian|portuguese|dutch|arabic|hindi)(?: (?:version|please|pls|too))?[\s.!?]*$"
    "|(?:再|更|稍微?|要|语气|口气|写得?|说得?|弄得?|能不能|可以)*(?:再|更)?"
    "[^\\s，。我你他]{1,4}?(?:一点儿?|一些|点儿?|些)[吧儿。!！~～\\s]*(?:[,，].{0,12})?$"
    "|(?:再|更)(?:短|长|简|详|正式|口语|活泼|委婉|礼貌|具体|客气|专业|通俗)"
    "|(?:有?点|有些)?太(?:长|短|正式|啰嗦|罗嗦|复杂|简单|官方|生硬|口语|随意|笼统|空|干|死板|书面)"
    "|(?:别|不要|不用)(?:那么|这么|太).{1,6}$"
    "|(?:[英中日韩法德俄西]文|[英日韩法德俄]语|中英|双语|表格|列表|清单|要点|一句话|口语|书面|简体|繁体)"
    "(?:版|对照|形式|格式|的)?[吧呢。]*$"
    "|[一二两三四五六\\d]+(?:句话?|段|个?字|行|条)(?:以内|之内|就[够行好]|左右)?.{0,4}$"
    "|一(?:行|句|段)话?(?:说|讲|写|概括|总结)"
    "|(?:砍|缩|减)(?:掉)?(?:一半|到|短)",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(
    r"(?:compared (?:to|with)|instead of|except|without|for|per|by|since|from|only|in)\b"
    r"(?! (?:a |an |\w+ )?(?:min(?:ute)?s?|sec(?:ond)?s?|moment|bit|meeting|call|hour|while|sure"
    r"|real|now|me|my|what|fun|lunch|case|fact|that case|theory|line|traffic)\b)"
    r"(?!.*\b(?:i|i['’]m|my|we|our|you|your|me|us)\b) \S.*$",
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
POLITE_REQUEST = pattern(
    rf"(?:can|could|would) you (?:please |also )?{_REWORK}(?!.*\byou)",
    f"[你您]?(?:能不能|能|可以|可不可以)(?:再|也)?{_REWORK_ZH}(?!.*[你您])",
)
_IMPERATIVE = re.compile(rf"{_WORK}\s+(?:{_OBJECT}\b|\d|[\"“#])", re.IGNORECASE)
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
_IMPERATIVE_ZH = re.compile(f"(?:{_VERB_ZH}|.{{0,8}}?(?:把|将)|.{{1,10}}?{_RESULT_ZH}|{_MAKE_ZH})")
_NO_IMPERATIVE_ZH = re.compile(
    "(?<![给帮发醒诉知让到把])我(?!要的|的)|[你您他她咱谁]|[过完好啦][。!！~～]*$"
    "|(?<!掉)(?<!不要)了[。!！~～]*$|怎么|真|又|肯定|已经|正在|还没|差不多|不错|怪|[去来]了"
    "|^(?:就)?[用按照]?[这那][个样](?:来|办|吧|了)?[。!！~～]*$"
)

_ITEM = pattern(
    r"\b(?:first|second|third|fourth|fifth|last|latter|former|next|top|bottom|middle|other) "
    r"(?:one|two|three|item|point|option|task|part|entry|line|row|of|in|and|to|as|is)\b",
    r"\bthe (?:first|second|third|fourth|fifth|last|latter|former|rest|others?|\w{3,}est)\b",
    r"\bthe (?:most|least) \w+|\b(?:number|option|item|point|no\.|#) ?\d|(?:^| )\d{1,2}(?= |$)",
    "第[一二两三四五六七八九十\\d]+[个条项家点段句款种位]?|[前后][一两二三四\\d]+[个条项]",
    "最[后前]一?[个条项那家面]|最[便贵近早晚大小新高低]|(?:其他|其余|剩下)的?|[这那]几?[个条项家]",
)

_PART = pattern(
    r"(?:that|this|these|those) (?!is\b|was\b|are\b|were\b|helps?\b|makes?\b"
    r"|sounds?\b|looks?\b|works?\b|would|will\b|should|could|might|guy|man\b)[a-z]+ [a-z]+",
    "[这那](?:一?[个条行些份段句家款项种]|几[个条行项]|里)[^了吧啊呀]+[\u4e00-\u9fff]$",
)

# Corrections
_CORRECTION = pattern(
    r"\bi (?:meant|mean|said|asked (?:for|about)|was asking|wanted|thought it)\b",
    r"^(?:no|nope|nah)[,.]? (?!thank|worries|problem|need|idea|way|rush|clue|wonder|one\b)"
    r"\S+ \S",
    r"^not (?:that|this|the|those|these|in|for|on|my|\w+,)",
    r"^(?:sorry|wait|oops|actually|correction)[,:.]? "
    r".*\b(?:not|is|was|are|should|meant|instead|it)\b",
    r"\b(?:is|was|are|were|be|it['’]?s|that['’]s)\b.*, not \w",
    r"\bnot \w+(?: \w+){0,3},? but \w",
    r"\b(?:wrong|incorrect|outdated|mistaken|a typo|misspell\w*)\b",
    r"\b(?:can['’]?t be|isn['’]?t|not|doesn['’]?t (?:look|sound|seem)) "
    r"(?:quite )?(?:right|true|correct)\b",
    r"\b(?:used to be|should(?: have)? be(?:en)?|supposed to be|must be)\b",
    r"\bi (?:thought|remember(?:ed)?) (?:it|that|there|the|we|they)\b",
    r"\b(?:you|u) (?:forgot|missed|mixed|misread|misunderstood|left out)\b|\b(?:is|are) missing\b",
    "不对|不准|有误|错了|[说搞弄写记看]错|搞混|弄反|反了|漏了|少了|过时了|(?:有|是)个?错",
    r"\bi (?:count|counted|see|get|got|have|had|heard|read) (?:only |about |just )?\d",
    "我[\u4e00-\u9fff]{1,3}的(?:可?不?是|没)|我(?:印象|记得)[里中]?.*(?:[是有超不]|\\d)|我(?:还)?以为",
    "(?<!是)不是.{1,12}[,，]?\\s*(?:而?是|应该)|^不是[,，]|是.{1,10}[,，]\\s*(?:而?不是|不)",
    "应该?是(?!吧)(?=.*[\\d号点月日周年个])|应为|(?:以前|原来|本来|之前|原本)(?:不?是|只?有)",
    "^(?:不|不要|没有|不不)[,，]\\s*\\S|更正",
    # An objection
    r"^but (?:i|we|it|he|she|they)\b.*\b(?:need|must|have to|can['’]?t|cannot|prefer"
    r"|(?:do|wo)n['’]?t)\b",
    "^(?:但是?|不过|可是?).*(?:必须|不能|不想|不行|来不及|没办法)",
)
_NO_CORRECTION = pattern(
    r"\b(?:my bad|my fault|no worries|not (?:bad|sure|yet|really|at all|me|now|again|today))\b",
    r"\b(?:wrong (?:chat|window|channel|group)|nothing wrong)\b|\bi (?:must|should) be\b",
    "怪我|我(?:的|搞|弄|说|看|记)?错了?[。!！]*$|发错|不是吧|不是吗|没错|不错|是不是|差不多",
)
_FAILURE = pattern(
    r"\bstill (?:fail|get|see|red|broken|not|doesn|the same|no|slow|empty|missing|wrong|crash)\w*",
    r"\b(?:doesn|didn|don|won)['’]?t (?:work|help|load|start|open|exist|match)\b|\bno luck\b",
    r"\b(?:it|that|this|same) "
    r"(?:error|fails?|failed|crash(?:es|ed)?|broke|looks? (?:right|fine))\b",
    "还是(?:报错|不行|失败|红|一样|没|不|打不开|空)|报错|没用|不管用|不起作用|没反应|不生效|打不开",
    "试过了?.*(?:不|没)|看着没问题|没找到|找不到",
)
_ONESELF = pattern(r"\b(?:i|me|my|we|our|us|i['’]\w+|we['’]\w+)\b", "[我咱]")
_OPINION = pattern(
    r"\b(?:great|good|nice|lovely|fun|funny|chaos|crazy|awful|terrible|expensive|cheap|boring"
    r"|sad|ugh|wow|lol|haha\w*|omg|cool|brave|love|amazing|interesting|weird|enjoy|congrat\w*|happy|finally|nothing|luck|hungry|classic)\b",
    r"^(?:sounds|looks|makes|feels|seems)\b|…|\.\.\.$|!$|[:;][-)(DP]|[\U0001f300-\U0001faff]",
    "真|太|好[多棒贵慢快烦难累]|肯定|居然|竟然|又是|又要|果然|难怪|哈哈|有道理|不错|挺好|喜欢|厉害|牛",
    "烦|^(?:那)?就.{1,8}[了吧][。!！~～]*$|开心|快乐|顺利|加油|恭喜|有意思|[啊呀哇唉哎][。!！~～]*$|[!！~～]$|比.*想",
)

# Answers
_CONSENT = re.compile(
    r"(?:(?:yes|yep|yeah|yup|no|nope|nah|ok(?:ay)?|sure|please(?: do)?|do(?: it| that| so)"
    r"|go ahead|go for it|of course|absolutely|definitely|correct|right|exactly|fine|not needed"
    r"|don['’]t|not now|y|n|thanks|thank you|是的?|对的?|要|不要|不用了?|不必|好[的呀啊吧]?|行|可以"
    r"|嗯+|没错|当然|不是|需要|不需要|谢谢|麻烦了?|确认|同意|👍|✅|👌)[\s,，.。!！~～]*)+",
    re.IGNORECASE,
)
_CONSENTS = pattern(
    r"(?:yes|yep|yeah|yup|no|nope|nah|ok(?:ay)?|sure|please|rather|instead|both|neither|either|only"
    r"|maybe|all|the \w+|just)\b",
    "是|对|要|不|别|好|行|可以|嗯|需要|还是|换|都|两个|先|只|算了|随便|[用选]",
)
_NO_THANKS = pattern(
    r"\b(?:no|nope|nah)\b.*\b(?:thanks|thank you|thx)\b|\bthat['’]s (?:all|it)\b",
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
    r"^(?:fixing|sending|sent|done|on it|trying|checking|posting|posted|working on)\b",
    r"\bi(?:['’]ll be| will be|['’]?m) (?:out|off|away|late|back|there|in|on|at)\b",
    "^在[修改看弄写发]|发出去了|弄好了|搞定",
)
