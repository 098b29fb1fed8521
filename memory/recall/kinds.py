"""Classifies the value of a statement: a weekday, a time, an amount, a place, a name. Pure.

Two values can only replace each other if they are of the same kind: “on Friday” says nothing
against “on holiday”.
"""

from __future__ import annotations

import re

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
    rf"|{_DIGITS_ZH}{{1,3}}月{_DIGITS_ZH}{{1,3}}[日号]?|(?<!\d)\d{{1,2}}[日号](?![楼院室店线])"
    r"|[今明后]天|月[底初中]|年[底初])"
    r"|(?P<weekday>\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|[周週][一二三四五六日天末]"
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


def kinds_of(value: str, preposition: str = "") -> tuple[str, ...]:
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
