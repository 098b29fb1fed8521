"""Describes what a clause states and of which kind its value is; reads Chinese clauses. Pure.

Two values can replace each other only if they are of the same kind: “on Friday” says nothing
against “on holiday”. English clauses are read in `memory.recall.english_statements`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.text import has_han

_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DIGITS_ZH = "[0-9零一二两三四五六七八九十百千]"
_COUNTED = (
    r"\d[\d,.]{0,12}k?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty"
    r"|thirty|forty"
    r"|fifty|sixty|ninety|hundred"
)

# In order: of two that begin at the same place, the first one counts.
_KINDS = re.compile(
    rf"(?P<day>\b\d{{4}}-\d\d?-\d\d?\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?:\ of)?\ (?:{_MONTH})\b"
    rf"|\b(?:{_MONTH})\ (?:the\ )?\d{{1,2}}(?!\d)|\b(?:today|tonight|tomorrow)\b"
    rf"|\bthe\ \d{{1,2}}(?:st|nd|rd|th)\b"
    rf"|{_DIGITS_ZH}{{1,3}}月{_DIGITS_ZH}{{1,3}}[日号]?|(?<!\d)\d{{1,2}}[日号](?![楼院室店线门桌柜位机台车厅仓馆区出])"
    r"|[今明后]天|月[底初中]|年[底初])"
    r"|(?P<weekday>\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tues?|weds?|thurs?|thu|fri)\b|[周週][一二三四五六日天末]"
    r"|(?:星期|礼拜)[一二三四五六日天])"
    r"|(?P<time>\b\d{1,2}:\d\d(?!\d)|\b\d{1,2}(?:\.\d\d)?\ ?[ap]\.?m\b|\b(?:noon|midnight"
    r"|o'clock|half\ past|quarter\ past"
    r"|quarter\ to)\b|\b(?:morning|afternoon|evening)s?\b"
    rf"|(?!一[点點](?![钟鐘半整零一二三四五]|$)){_DIGITS_ZH}{{1,3}}[点點](?:{_DIGITS_ZH}|半)?"
    rf"|[上下中]午|早上|晚上|傍晚)"
    rf"|(?P<money>[€$£¥￥]\ ?\d|\b(?:{_COUNTED})(?:\ million)?\ (?:euros?|dollars?|pounds?|yuan"
    rf"|usd|eur|rmb|cny|francs?)\b"
    rf"|[0-9零一二两三四五六七八九十百千万亿.]{{1,12}}(?:块钱?|元|欧元?|美元|美金|人民币)"
    rf"|{_DIGITS_ZH}{{1,12}}[万亿])"
    r"|(?P<percent>\d\ ?(?:%|％|percent\b)|百分之)"
    r"|(?P<period>\bq[1-4]\b|\bnext\ (?:week|month|year|quarter)\b|第?[一二三四]季度|下个?[周月])"
    rf"|(?P<month>\b(?:{_MONTH})\b|{_DIGITS_ZH}{{1,3}}月份?)"
    r"|(?P<year>(?<![\d.])(?:19|20)\d\d(?![\d.])年?)"
    r"|(?P<place>\b(?:room|floor|building|hall|street|road|avenue|house|office|lobby|basement"
    r"|canteen|warehouse|lab)\b"
    r"|[楼樓室厅廳层層馆館市省区路街城镇村]\w{0,3}$|酒店|公园|仓库|办公室|会议室|机房|食堂|车库"
    r"|前台)"
    r"|(?P<color>\b(?:red|blue|green|yellow|black|white|gr[ea]y|silver|orange|purple|pink|brown"
    r"|beige)\b"
    r"|[红蓝绿黄黑白灰紫粉橙银]色?(?:的)?$)",
    re.IGNORECASE,
)
_NUMBER = re.compile(rf"(?<![\w.-])(?P<count>{_COUNTED})(?:[ -](?P<unit>[a-z]+))?(?!\w)", re.I)
_NUMBER_ZH = re.compile(
    rf"(?:{_DIGITS_ZH}|\.){{1,12}}[个位名只条家件台张把辆间份]?(?P<unit>[\u4e00-\u9fff]{{0,2}})"
)
_CODE = re.compile(r"(?=[\w.@/+-]*[\d@])[\w.@/+-]*[\w/]|https?://\S+")
_CITIES = frozenset(
    """berlin lisbon paris london madrid rome milan vienna munich hamburg frankfurt lyon marseille
    zurich geneva dublin brussels amsterdam rotterdam oslo stockholm copenhagen helsinki warsaw
    prague budapest athens porto barcelona valencia seville tokyo osaka kyoto seoul beijing shanghai
    shenzhen guangzhou hangzhou chengdu nanjing wuhan xiamen suzhou singapore bangkok delhi mumbai
    sydney melbourne toronto montreal vancouver boston chicago seattle austin denver houston dallas
    miami york francisco angeles cairo nairobi lagos dubai istanbul moscow lima bogota santiago
    virginia oregon ireland germany france spain italy portugal poland china japan india""".split()
)
_CITIES_ZH = re.compile(
    r"^(?:(?:北京|上海|广州|深圳|杭州|成都|南京|武汉|西安|重庆|天津|苏州|厦门|青岛|大连|长沙"
    r"|郑州|宁波|合肥|济南|沈阳"
    r"|昆明|福州|香港|澳门|台北|新加坡|东京|大阪|首尔|伦敦|巴黎|柏林|法兰克福|慕尼黑|里斯本"
    r"|马德里|罗马|纽约|波士顿"
    r"|旧金山|硅谷|西雅图|悉尼|德国|法国|美国|英国|日本|韩国|西班牙|意大利)(?=[市区，,\s]|那边"
    r"|这边|办公室|$))"
)
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏"
    "钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_PERSON_ZH = re.compile(
    rf"^(?:[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}|[小老阿][\u4e00-\u9fff]|[\u4e00-\u9fff](?:总|工"
    rf"|老师|经理|主任|医生))$"
)
_STATE = re.compile(
    r"^(?:not\b|(?!king\b|spring\b|evening\b|meeting\b|building\b)[a-z]+ing\b|(?:a\ (?:little"
    r"|bit|lot|few)|able|glad|sure|too|so|very|pretty|really|quite"
    r"|more|less|much|happy|sad|proud|afraid|aware|worth)\b|on\ (?:holiday|leave|vacation|sick"
    r"|call|duty|time|track|hold|strike)|in\ (?:a\ )?(?:meeting|progress|trouble)"
    r"|at\ (?:lunch|risk)|(?:[a-z]+(?:ed|ing|y|ful|less|ous|ive|able|ible|al|ish|ese|ic)"
    r"|ready|late|early|ill|sick|free|open|closed|broken|down|up|done|here|away|back|off|out"
    r"|over|good|great|bad|fine|new|old"
    r"|fast|slow|big|small|full|married|single|pregnant|vegan|offline|online|cheap|nice|safe"
    r"|short|long)"
    r"(?:$|\ (?:and|or|but|until|since|for|with|in|by|at|this|these|again|because|about)\b))",
)
_STATE_ZH = re.compile(
    r"^在(?:休假|请假|出差|开会|上课|加班|值班|住院|忙|线上|路上|等|改|写|做|看|学|测|找|准备"
    r"|处理|讨论|排队|维修|施工"
    r"|考虑|考试|装修|吃|睡|生病|正常|没)|(?:的|了|中|着|人)$|^(?:没|不|很|非常|比较|挺|太|已)"
)
_COMPANY_ZH = re.compile(
    r"(?:公司|集团|银行|医院|中学|小学|大学|学校|学院|事务所|研究所|研究院|工厂|厂|局|报社"
    r"|工作室|律所|酒店|餐厅|商店|店|部)$"
)
_NATIONAL = re.compile(r"^[A-Z][a-z]+(?:ish|ese|ian|ean|can|man)$|^(?:French|Dutch|Czech|Swiss)$")
_ARTICLE = re.compile(r"^(?:the|an?|our|my)\s+", re.I)

CORRECTS_ZH = re.compile(r"^(?:不对|不是|错了|更正|更新|纠正)(?!\w)|^(?:不对|更正|更新)")
_OPENING = re.compile(
    r"^(?:(?:请|帮我|麻烦|大家)?(?:记住|记一下|记得|更正|更新|注意|其实|对了|另外|通知|不对"
    r"|不是|从今天起|请注意|但是|不过|而且|然后|所以|因为|因此|虽然|可是|于是)[一下：:，,\s]*)+"
)
_MARK = re.compile(
    r"(?P<change>[改换变调挪移](?:整|期)?[到在为成叫至回]|(?:推迟|延期|延后|提前|顺延|调整|更改"
    r"|变更|更换|替换)[到为至成]"
    r"|(?:[延拖推缩压砍降升涨跌减加增](?:期|迟|后|价|高|低|少|短|长|加)?|提[前高]|恢复)[到至成])"
    r"|(?P<move>搬[到去至]|迁[到至]|转移到)"
    r"|(?P<end>取消|作废|停办|不办)|(?P<leave>不再(?:是|在)?)"
    r"|(?P<join>加入|跳槽[到去]|入职|转[到去])|(?P<went>去了(?![一两几个趟]))"
    r"|(?P<become>升[为任成]|升职为|晋升为|成为|当上|改任|接任|转岗[为做])"
    r"|(?P<by>(?:是)?由|归|轮到)|(?P<live>住[在到]?(?!的))|(?P<sit>坐在)"
    r"|(?P<called>(?:改?名)?叫做?)|(?P<with>[和跟与](?=.{1,12}合作))"
    r"|(?P<use>(?<![费信作试])用(?!户|例|途|法|品|餐))"
    r"|(?P<at>定[在于]|安排[在于]|是?(?<![现正])在|位于|设[在于]|放在)"
    r"|(?P<is>(?<![但还只就可总要不于或而])是|(?<![因以认成作名华])为(?![什了何止])|：|:)"
    r"|(?P<there>(?:有|共|需要|要|花|售价|卖|收费)(?=[\d两二三四五六七八九十百千万])"
    r"|(?<=[午一二三四五六日天号])有)|(?P<does>负责|主持|管理|审核|审阅|带领|牵头|组织)"
    r"|(?P<time>(?<=[\u4e00-\u9fff])(?<![下上每本这年月第十一二三四五六七八九])(?=[一二三四五六七八九十\d]{1,3}[点月号]|[周週][一二三四五六日]"
    r"|\d{3,6}$|[一二两三四五六七八九][百千万][一二三四五六七八九]?$))"
)
_BY = re.compile(
    r"^(?P<who>.{1,8}?)(?:来|在)?(?P<does>负责|主持|管理|审核|审阅|带领|牵头|组织|讲|做|接手)"
)
_WORKS = re.compile(r"^(?P<where>.{1,16}?)(?:工作|上班|任职|实习|就职)$")
_NOW = re.compile(r"现在|目前|如今|改|从今天起|又|重新|恢复")
_NO_SUBJECT = re.compile(
    r"我们的|咱们?的?|大家|新的?|现在|目前|如今|已经|已|刚刚|刚|上个?[周月]|昨天|今天起?"
    r"|的?(?:时间|日期|地点)$|的|把|将|也|都|就|[到至]$"
)
_TIME = re.compile(r"(?:下?[周週]|星期|礼拜)[一二三四五六日天]|[上下]午|\d{1,2}月\d{1,2}[日号]")

# No name of a thing, so the form is no statement about one.
_NO_NAME = re.compile(
    r"[了着过吗我你他她它谁其某这那哪]|[和跟与].{0,12}一起|^(?:但|不|很|非常|太|想|听|感谢|如果|因"
    r"|虽|这样|那样|有时|可能|或者|比如|希望|觉得|只)|(?:得|感觉)$"
)
_LATIN = re.compile(r"[A-Za-z0-9_.\s-]+")
_POINTING = re.compile(r"[这那它他她你][个些里边]?|什么|谁|不|没|")
_ENDING = "了呢啦哦吧啊呀"
_ANSWERS = frozenset(("负责", "牵头", "接手", "管理", "带领"))
_LONGEST_SUBJECT = 60
_LONGEST_NAME = 14
_LONGEST_PERSON = 5
_LEAVING = {"leave": "leave off", "end": "end"}


@dataclass(frozen=True, slots=True)
class StatedFact:
    """What one clause states.

    `subject` are the words of what it is about, none if it points back (“no, it is now …”).
    `relation` is its verb and preposition, or how it
    changed (change, move, join, become, end, leave off). `kinds` are
    those of `value` (`memory.recall.stated_facts`). `changes`: a word says that this is new.
    `ends`: what was said before holds no more, and nothing takes its place.
    """

    subject: frozenset[str]
    relation: str
    value: str
    kinds: tuple[str, ...]
    changes: bool = False
    ends: bool = False
    personal: bool = False


def value_kinds(value: str, preposition: str = "") -> tuple[str, ...]:
    """Returns the kinds of `value` in the order in which they stand in it; the first one decides.

    An amount has its unit with it (“number:chair”). A value of no special kind is a “state”
    (approved, on holiday), “national” (Swedish), a “role” (a designer), a “name” or “other”.
    """
    text = " ".join(value.split())
    phrase = f"{preposition} {text}".strip() if preposition else text
    matches = [one for one in _KINDS.finditer(text) if not _is_named(one)]
    kinds = tuple(dict.fromkeys(str(match.lastgroup) for match in matches))
    if kinds == ("color",) and _PERSON_ZH.match(text) and not text.endswith("色"):
        return ("person",)
    if kinds and matches[0].start() == 0:
        return kinds
    if _is_city(text):
        return ("place", *kinds)
    if _NATIONAL.match(text):
        return ("national",)
    lower = not text[:1].isupper()
    if lower and (_STATE.match(phrase.lower()) or _STATE.match(text.lower())):
        return ("state",)
    if kinds:
        return kinds
    if amount := _amount(text, preposition):
        return (amount,)
    return (_plain_kind(text, preposition),)


def values_of_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Returns the values in `text` that are of a special kind, each with that kind."""
    return tuple((str(one.lastgroup), one[0].lower()) for one in _KINDS.finditer(text))


def _is_named(match: re.Match[str]) -> bool:
    """True if it is a colour as part of a name: “Green Fork”."""
    return match.lastgroup == "color" and match[0][:1].isupper()


def _is_city(text: str) -> bool:
    first = re.split(r"[\s,.]", _ARTICLE.sub("", text).lower(), maxsplit=1)[0]
    return first in _CITIES or _CITIES_ZH.match(text) is not None


def _amount(text: str, preposition: str) -> str:
    latin = _NUMBER.search(text)
    if latin and not latin["unit"] and preposition == "at":
        return "time"
    if latin and (latin.start() == 0 or latin["unit"]):
        return f"number:{(latin['unit'] or '').lower().removesuffix('s')}"
    chinese = _NUMBER_ZH.match(text)
    return f"number:{chinese['unit']}" if chinese else ""


def _plain_kind(text: str, preposition: str) -> str:
    bare = _ARTICLE.sub("", text)
    first = bare.split(" ", 1)[0].strip(".,")
    if _PERSON_ZH.match(text):
        return "person"
    if _CODE.fullmatch(text):
        return "code"
    if _STATE_ZH.search(f"{preposition}{text}" if preposition == "在" else text):
        return "state"
    if _COMPANY_ZH.search(text):
        return "company"
    if first[:1].isupper():
        return "name"
    return "role" if bare != text and text[:1].lower() == "a" else "other"


def read_chinese_clause(clause: str, is_correction: bool) -> StatedFact | None:
    text = _OPENING.sub("", clause)
    match = _MARK.search(text)
    if not match or match.start() > _LONGEST_SUBJECT:
        return None
    before, after = text[: match.start()], text[match.end() :].rstrip(_ENDING).strip()
    kind = str(match.lastgroup)
    personal = "我" in before and "我们" not in before
    changes = is_correction or bool(_NOW.search(before)) or (text.endswith("了") and kind == "is")
    if kind == "there" and _TIME.search(before) and not after[:1].isdigit():
        return _stated_fact(after, "be", before, changes=changes)  # 周五下午有分享会
    about = _subject(before, keeps_time=False)
    if not about and "们" in before:
        about = "我们"
    if not about and not personal and not (is_correction or kind in ("change", "end")):
        return None
    if _POINTING.fullmatch(about) and not personal:
        if not (changes or kind in ("change", "end")):
            return None
        about = ""
    own = about.removeprefix("我") if personal else about
    if len(_LATIN.sub("", own)) > _LONGEST_NAME or (own and own != "我们" and _NO_NAME.search(own)):
        return None
    relation, value = _relation(match, after)
    if kind == "does":
        about, value = _subject(after), about
        if len(value) > _LONGEST_PERSON and has_han(value):
            return None
    if kind in _LEAVING:
        return _stated_fact(
            about, _LEAVING[kind], after, changes=True, ends=True, personal=personal
        )
    if not value or relation == "":
        return None
    changes = changes or kind in ("change", "move", "join", "went", "become")
    at = "在" if match[0].endswith("在") else ""
    return _stated_fact(about, relation, value, at, changes=changes, personal=personal)


def _relation(mark: re.Match[str], after: str) -> tuple[str, str]:
    """The relation and its value; two empty texts if the form says nothing certain."""
    kind = str(mark.lastgroup)
    if kind == "by":
        match = _BY.match(after)
        return (_done_by(match["does"]), match["who"]) if match else ("", "")
    if kind == "does":
        return _done_by(mark["does"]), after
    if kind == "at" and (works := _WORKS.match(after)):
        return "work at", works["where"]
    simple = {"at": "be", "is": "be", "time": "be", "there": "have"}
    return simple.get(kind, kind), after


def _done_by(verb: str) -> str:
    return "by:answer" if verb in _ANSWERS else f"by:{verb}"


def _subject(text: str, *, keeps_time: bool = True) -> str:
    bare = text if keeps_time else _TIME.sub("", text.split("从", 1)[0] or text)
    return _NO_SUBJECT.sub("", bare).strip(" ，,")


def _stated_fact(
    about: str,
    relation: str,
    value: str,
    preposition: str = "",
    *,
    changes: bool = False,
    ends: bool = False,
    personal: bool = False,
) -> StatedFact:
    subject = frozenset({(about.removeprefix("我") if personal else about).lower()} - {""})
    kinds = value_kinds(value, preposition)
    return StatedFact(subject, relation, value.lower(), kinds, changes, ends, personal)
