"""Reads what a Chinese clause states. Pure."""

from __future__ import annotations

import re

from memory.recall.kinds import kinds_of
from memory.recall.stated_fact import StatedFact
from memory.text import has_han

CORRECTS = re.compile(r"^(?:不对|不是|错了|更正|更新|纠正)(?!\w)|^(?:不对|更正|更新)")
_OPENING = re.compile(
    r"^(?:(?:请|帮我|麻烦|大家)?(?:记住|记一下|记得|更正|更新|注意|其实|对了|另外|通知|不对"
    r"|不是|从今天起|请注意|但是|不过|而且|然后|所以|因为|因此|虽然|可是|于是)[一下：:，,\s]*)+"
)
_MARK = re.compile(
    r"(?P<change>[改换变调挪移](?:整|期)?[到在为成叫至回]|(?:推迟|延期|延后|提前|顺延|调整|更改"
    r"|变更|更换|替换)[到为至成]"
    r"|(?:涨|升|降|减|加|提高|增加|降低|减少|缩短|延长|恢复)[到至])"
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
    r"|(?P<time>(?<=[\u4e00-\u9fff])(?<![下上每本这年月第十一二三四五六七八九])(?=[一二三四五六七八九十\d]{1,3}[点月号]|[周週][一二三四五六日]))"
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


def chinese_statement(clause: str, is_correction: bool) -> StatedFact | None:
    text = _OPENING.sub("", clause)
    match = _MARK.search(text)
    if not match or match.start() > _LONGEST_SUBJECT:
        return None
    before, after = text[: match.start()], text[match.end() :].rstrip(_ENDING).strip()
    kind = str(match.lastgroup)
    personal = "我" in before and "我们" not in before
    changes = is_correction or bool(_NOW.search(before)) or (text.endswith("了") and kind == "is")
    if kind == "there" and _TIME.search(before) and not after[:1].isdigit():
        return _made(after, "be", before, changes=changes)  # 周五下午有分享会
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
        return _made(about, _LEAVING[kind], after, changes=True, ends=True, personal=personal)
    if not value or relation == "":
        return None
    changes = changes or kind in ("change", "move", "join", "went", "become")
    at = "在" if match[0].endswith("在") else ""
    return _made(about, relation, value, at, changes=changes, personal=personal)


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


def _made(
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
    kinds = kinds_of(value, preposition)
    return StatedFact(subject, relation, value.lower(), kinds, changes, ends, personal)
