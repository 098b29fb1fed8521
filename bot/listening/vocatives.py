"""Who is called by name in a text. Pure, English and Chinese."""

import re
from collections.abc import Sequence
from functools import lru_cache

from bot.listening.patterns import KEPT


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
        calls(text, name) or _begins_with(start, name) for full in names for name in _called(full)
    )


def speaks_of(text: str, names: Sequence[str]) -> bool:
    """Whether a colleague's name stands in the text."""
    short_names = (name for full in names for name in _called(full))
    return any(name in text or _written_small(name).search(text.casefold()) for name in short_names)


def ends_with_name(text: str, names: Sequence[str]) -> bool:
    """Whether the text ends in a colleague's name: “that's tight dario”."""
    end = text.casefold().rstrip(" ?？!！.。~")
    short_names = (name for full in names for name in _called(full))
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


@lru_cache(maxsize=KEPT)
def _without_filler(text: str) -> str:
    """The text without a “hey” at its start."""
    return _FILLER.sub("", text, count=1)


@lru_cache(maxsize=1024)
def _called(name: str) -> tuple[str, ...]:
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
