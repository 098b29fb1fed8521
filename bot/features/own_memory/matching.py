"""Decides which of several texts “forget …” means. Pure.

An identifier (an address, a number, a path, a name with a surname) matches only as a whole. Other
words match in any order and in any form. `bot.text.spelling` folds spellings. “A / B” and “A aka
B” are two ways to name the same thing. Of “everything about Frank the engineer” the name counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Literal

from bot.text.spelling import ALPHANUMERIC, folded_text, full_name, identifier, stem
from memory.text import HAN

Match = Literal["sure", "likely", ""]
_STOP = frozenset(
    """a an the this that these those my mine your yours his her hers its our ours their theirs i me
    we us you he him she it they them is are was were be been being am do does did done has have had
    will would shall should can could may might must of in on at to for from by with as and or but
    if so too very just also about any all some there here what which who whom whose when where how
    why not no yes please thing things stuff fact facts message messages everything anything
    something said told say tell know remember ever again s ll ve re d m t""".split()
)

# Generic words for people and for what is stored about them. They identify nobody.
_GENERIC = frozenset(
    """account client contact customer data detail employee entry info information member person
    profile record user""".split()
)
_HAN_STOP = re.compile(
    "哪[天年班趟个家]|有?几[个只条辆位点号]|多[高重久]|在?哪[里儿]?|什么时候|什么|多少|几号|谁|怎么|关于|有关|我们|你们|他们|我|你|您|这个|那个|这条|那条|所有|一切|全部|事情|消息|内容|刚才|刚刚|之前|以前|[提聊说讲](?:到|起)?过|提[到及起]|告诉过|说"
    rf"|的[事话](?![{HAN}])|告诉|记得|记住|的|了|是|吗|吧|呢|啊|那|这|和|跟|与"
)
_TOKEN = re.compile(rf"[/\\~#@+]{{0,3}}{ALPHANUMERIC}(?:[\w.@+/\\:#-]*{ALPHANUMERIC})?")
_HAN_IN = re.compile(f"[{HAN}]")
_HAN_RUN = re.compile(f"[{HAN}]+")
_WORDS = re.compile(r"\w+(?:-\w+)*")
_WORD = re.compile(rf"{ALPHANUMERIC}+")
_CODE = re.compile(r"\b[a-z]{1,4}\d{1,6}\b")
_MARKS = re.compile(r"[@/\\_#:.+\-]|\d")
_NAME = re.compile(r"\b[A-Z][a-zà-ÿ]+(?:[- ][A-Z][a-zà-ÿ]+)+\b")
_GIVEN_NAME = re.compile(r"(?<!-)\b[A-Z][a-zà-ÿ]+\b(?!-)")
_ASIDE = re.compile(r"[(（](?!\d+[)）])[^()（）]{0,200}[)）]")
_OR = re.compile(
    r"\s{1,3}(?:/|\||aka|a\.k\.a\.|alias|also known as)\s{1,3}|又名|又叫|也叫", re.IGNORECASE
)
_OTHER_LETTER = rf"[^\W\d_a-zA-ZÀ-ɏ{HAN}]"
_OTHER_LETTERS = re.compile(_OTHER_LETTER)
_IN_OTHER_LETTERS = re.compile(
    rf"(?P<name>[A-Z][\w.'-]{{0,40}})\s{{1,3}}(?={_OTHER_LETTER}{{2,40}}(?![a-zA-Z]))"
)
_IS_NAME = re.compile(r"[^\W\d_a-z]|[\d@]")
_HAN_GENERIC = frozenset("信息 资料 数据 记录 档案".split())
_ABOUT = (
    r"\s+(?:(?:that\s+)?(?:i|you|we)(?:['’]ve)?\s+(?:\w+\s+){1,4}?)?"
    r"(?:about|regarding|concerning|mentioning|rel(?:ated|ating)\s+to|to\s+do\s+with"
    r"|that\s+(?:mentions?|names?|concerns?))\s+"
)
_EVERYTHING = re.compile(rf"(?:everything|anything|all){_ABOUT}(.+)", re.IGNORECASE)

# “my last message about the rent” is about the rent.
_SOMETHING = re.compile(
    r"^(?:what(?:ever)?|(?:all\s+)?(?:of\s+)?(?:the\s+|my\s+|your\s+|our\s+|any\s+)?"
    r"(?:(?:last|latest|previous|recent|earlier)\s+)?"
    r"(?:notes?|messages?|facts?|things?|stuff|memor(?:y|ies)|info(?:rmation)?|details?|data))"
    rf"{_ABOUT}",
    re.IGNORECASE,
)
_SAYS_WHO = re.compile(r"(?:\s+(?:the|a|an|this|that|who|on the)\s.*|[\s.!?]*)", re.DOTALL)

# “how much I earn”, “which train I take”: what they said of themselves, and of which kind it is.
_QUESTION = re.compile(
    r"(?:about )?(?:what|which|who|whom|where|when|how)((?: (?!(?:i|we|my|our)\b)[a-z]+){0,3})"
    r" (?=(?:i|we|my|our)\b)"
)
_IS_AMOUNT = re.compile(r"(?:about )?how (?:much|many|old|long|tall|far|often)\b")
_AMOUNT_WORDS = frozenset("much many old long tall far often".split())
_AMOUNT = re.compile(
    r"[\d一二两三四五六七八九十百千万]"
    r"|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred)\b"
)
_OTHERS = frozenset("he she they you".split())
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我咱俺]")
_MY = re.compile(rf"(?:that |about )?(?:my|our) ({ALPHANUMERIC}+)|我们?的?([{HAN}]{{2,}})")
_KIN = (
    "姐姐|妹妹|哥哥|弟弟|爸爸|妈妈|[父母]亲|老婆|老公|妻子|丈夫|爱人|女儿|儿子|孩子|朋友|同事|老板"
)
_OF_OTHERS = re.compile(
    r"(?:['’]s|s['’]|\b(?:his|her|their|your)) $"
    rf"|(?<!我)(?<!我们)(?<!咱们)的$|(?:[他她你您]|{_KIN})$"
)
_OWNS = re.compile(r"['’]s | of (?:the|a|an|his|her|their|[a-z]+['’]s) ")
_I = re.compile(r"(?:that |about )?(i|we)\b|(我)(?!们?(?:的|说|告诉|提|讲|聊|刚|之前|以前|记))")
_SUBJECT_IS = re.compile(
    r"\b[a-z]{2,} (?:is|are|was|were|has|had|will|would|can|could|won't|isn't)\b"
)
_VALUE_AFTER = re.compile(r"[是为叫在号码有]|\s{0,2}(?:[^\w\s]|\d|$)")
_CLAUSE_END = re.compile(r"[.;!?]\s|\b(?:and|but|while)\b")
_CAMEL = re.compile(r"\b[a-z]{2,}(?:[A-Z][a-z0-9]+)+\b")
_CAMEL_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
)

# What people say instead of the word for a kind of thing (stems): “is called Jules” for “name”.
_SAID_INSTEAD = {
    "nam": r"\bcall|叫",
    "address": r"\bliv|住",
    "birthday": r"\bborn|出生",
    "ag": r"\bold|岁",
    "job": r"\bwork|上班",
    "salary": r"\b(?:earn|paid)|月薪|年薪|挣",
    "名字": "叫",
    "姓名": "叫",
    "地址": "住",
    "住址": "住",
    "生日": "出生",
    "年龄": "岁",
    "多大": "岁",
    "工作": "上班|任职",
    "工资": "月薪|年薪|薪水|挣",
    "收入": "月薪|年薪|工资|挣",
    "电话": "手机|号码",
}
_SAID_INSTEAD_SHARE = 0.8

# Two ways to write one text: `gymCode`, “Müller”.
_REWRITINGS: tuple[Callable[[str], str], ...] = (
    lambda text: _CAMEL.sub(lambda match: _CAMEL_JOINT.sub(" ", match[0]), text),
    lambda text: text.translate(_UMLAUTS),
)

_LONG_CODE = 6
_LIKELY_SHARE = 0.6

# A surname and one character; what follows a name; what begins the words after one.
_SHORT_NAME = re.compile(
    "[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭"
    f"廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文][{HAN}]"
)
_AFTER_NAME = "的是在说有住叫和跟要会去喜"
_NO_NAME = (
    f"(?![{_AFTER_NAME}家人病来能不没也都就还被把给让到今明昨上下每常已正将从对向因与及等最很太只又再才刚])"
    f"[{HAN}]"
)


@dataclass(frozen=True, slots=True)
class _Description:
    """What somebody describes: identifiers, each as a pattern; other words, as stems; Chinese
    phrases; and given names that stand without a surname.

    `is_unique`: one of the identifiers, or the name, is enough to show what else says it. `name`:
    it is everything about the person of this name, or about something of theirs. `goes_on` tells of
    words that others follow whether the next one is a stop word. `shapes` are those of identifiers.
    `own`: the word or phrase that stands right after “my”. `speaker`: “I” at the beginning. `kinds`
    of thing are what a question asks for (“which train”); `is_amount` if that is a number.
    """

    identifiers: tuple[re.Pattern[str], ...]
    is_unique: bool
    name: str
    words: frozenset[str]
    phrases: tuple[str, ...]
    given_names: tuple[str, ...]
    goes_on: Mapping[str, bool]
    shapes: Mapping[str, frozenset[str]]
    own: str
    speaker: str
    kinds: frozenset[str]
    is_amount: bool

    def __bool__(self) -> bool:
        return bool(self.identifiers or self.words or self.phrases)

    def match(self, text: str) -> Match:
        """How well `text` says what is described."""
        if not self:
            return ""
        plain = folded_text(text)
        if not all(one.search(plain) for one in self.identifiers):
            return ""
        if self.name and not self._is_named(text):
            return "likely" if text == text.lower() and self._share(plain) == 1 else ""
        share = self._share(plain)
        is_doubtful = self._names_another(text) or self._is_of_another(plain)
        is_doubtful |= _is_of_others(self.own, plain) or self._has_another_subject(plain)
        is_doubtful |= self._is_scattered(plain) or self._is_of_own(plain)
        is_doubtful |= self._is_nobodys_own(plain) or not self._is_answer(plain)
        if share == 1 and not is_doubtful:
            return "sure"
        return "likely" if share >= _LIKELY_SHARE or self.is_unique else ""

    def _share(self, plain: str) -> float:
        """The share of words and phrases that `plain` says."""
        stems = {stem(word) for word in _WORD.findall(plain)}
        shares = [word in stems or _said_instead(word, plain) for word in self.words]
        shares += [
            max(_said_share(phrase, plain), _said_instead(phrase, plain)) for phrase in self.phrases
        ]
        return sum(shares) / len(shares) if shares else 1

    def _is_named(self, text: str) -> bool:
        """Whether `text` has the name as a whole word with a capital: “Will”, but not “will”."""
        name = folded_text(self.name)
        return any(one[0].isupper() and folded_text(one) == name for one in _WORDS.findall(text))

    def _names_another(self, text: str) -> bool:
        """True if a surname follows a given name wherever it stands: that may be someone else."""
        return any(
            re.search(rf"\b{name}[ -][A-Z][a-z]", text)
            and not re.search(rf"\b{name}\b(?![ -][A-Z][a-z])", text)
            for name in self.given_names
        )

    def _is_of_another(self, plain: str) -> bool:
        """True if `plain` goes on after one of the words with another thing, as “Otto's intern”
        does for “Otto sits”, or if it has another identifier of the same shape (Q4, Q3)."""
        text_words = _WORD.findall(plain)
        for word, before_stop in self.goes_on.items():
            at = [n for n, one in enumerate(text_words, 1) if stem(one) == word]
            if at and all(self._is_other(text_words[n : n + 2], before_stop) for n in at):
                return True
        shapes = _shapes(plain) if self.words else {}
        return any(
            shapes.get(shape, known_words) - known_words
            for shape, known_words in self.shapes.items()
        )

    def _has_another_subject(self, plain: str) -> bool:
        """True if `plain` tells more than this, and not of its author: “my sister is pregnant”,
        “Bob leaves”, “the hospital project starts”."""
        if not self.speaker or re.search(rf"(?<![a-z]){self.speaker}(?![a-z])", plain):
            return False
        for phrase in self.phrases:
            plain = plain.replace(phrase, "")
        rest = {stem(one) for one in _WORD.findall(plain) if one not in _STOP or one in _OTHERS}
        return bool(rest - self.words or _HAN_IN.search(_HAN_STOP.sub("", plain)))

    def _is_scattered(self, plain: str) -> bool:
        """True if no clause of `plain` says all words: “the gym is closed and the code is late”."""
        clauses = (set(map(stem, _WORD.findall(one))) for one in _CLAUSE_END.split(plain))
        return len(self.words) > 1 and not any(self.words <= one for one in clauses)

    def _is_of_own(self, plain: str) -> bool:
        """True if `plain` tells of what belongs to what is described: “my boss's wife” of “my
        boss”."""
        if not self.own or self.words != {stem(self.own)}:
            return False
        following = plain.split(self.own)[1:]
        return bool(following) and all(map(_OWNS.match, following))

    def _is_nobodys_own(self, plain: str) -> bool:
        """True if `plain` says nothing of its author, and what is called “my holiday” is another's
        (“Kim is on holiday”) or part of another thing (“holiday rules”)."""
        if not self.own or _FIRST_PERSON.search(plain):
            return False
        before, _, after = plain.partition(self.own)
        if _SUBJECT_IS.search(before):
            return True
        is_alone = not self.words - {stem(self.own)}
        return is_alone and bool(after) and not _VALUE_AFTER.match(after) and not _is_stop(after)

    def _is_answer(self, plain: str) -> bool:
        """Whether `plain` says of which kind the thing is that a question asks for."""
        stems = {stem(word) for word in _WORD.findall(plain)}
        return self.kinds <= stems and (not self.is_amount or bool(_AMOUNT.search(plain)))

    def _is_other(self, following: Sequence[str], before_stop: bool) -> bool:
        of_it = following[:1] == ["s"]
        next_word = following[int(of_it) :][:1]
        return (of_it or before_stop) and any(
            one not in _STOP and stem(one) not in self.words for one in next_word
        )


def match(words: str, text: str) -> Match:
    """Whether `text` says all of `words` ("sure") or most of them ("likely")."""
    matches = {one.match(text) for one in _descriptions(words)}
    for rewriting in _REWRITINGS:
        if (rewriting(words), rewriting(text)) != (words, text):
            matches |= {one.match(rewriting(text)) for one in _descriptions(rewriting(words))}
    return "sure" if "sure" in matches else "likely" if "likely" in matches else ""


def names_something(words: str) -> bool:
    """Whether anything can be looked for by these words."""
    return any(_descriptions(words))


@lru_cache(maxsize=8)  # one request is compared with every message
def _descriptions(words: str) -> tuple[_Description, ...]:
    """What `words` describe: one for each way in which they name it."""
    description = _ASIDE.sub("", words).strip() or words
    ways = _OR.split(description)
    if not all(map(_IS_NAME.search, ways)):  # “wiki / intranet password” is one thing
        ways = [description]
    split = (_IN_OTHER_LETTERS.sub("\\g<name>\0", one).split("\0") for one in ways)
    ways = list(chain.from_iterable(split))
    return tuple(one for one in map(_description, ways) if one)


def _description(words: str) -> _Description:
    """What `words` describe, which name it in one way."""
    words = _SOMETHING.sub("", words, count=1)
    about = _EVERYTHING.match(words)
    head = _head(about[1]) if about else ""
    if about:
        is_head = head and _SAYS_WHO.fullmatch(about[1].partition(head)[2])
        words = head if is_head else about[1]
    plain = folded_words = folded_text(words)
    question = _QUESTION.match(folded_words)
    statement = folded_words[question.end() :] if question else folded_words
    kinds = {stem(one) for one in question[1].split() if one not in _STOP} if question else set()
    names = [one for one in _NAME.findall(words) if len(one.split()) > 1]
    full = [full_name(name) for name in names]
    for name in names:
        plain = plain.replace(folded_text(name), " ")
    tokens = _TOKEN.findall(re.sub(rf"(?<={ALPHANUMERIC})['’]s?\b", " ", plain))
    marked_tokens = [_bare(token) for token in tokens if _MARKS.search(_bare(token))]
    long = [one for one in marked_tokens if len(one) >= _LONG_CODE]
    needed_tokens = _without_label(tokens, long[0]) if long else tokens
    bare = map(_bare, needed_tokens)
    others = {stem(one) for one in bare if not _MARKS.search(one) and one not in _STOP}
    if marked_tokens or names or _OTHER_LETTERS.search(words):
        others -= {stem(one) for one in _GENERIC}
    first, _, rest = _NAME.sub(" ", words).strip().partition(" ")
    description = f"{first} {rest}" if first.endswith(("'s", "’s")) else rest
    return _Description(
        identifiers=(*full, *map(identifier, marked_tokens)),
        is_unique=bool(full or long or head),
        name=head,
        words=frozenset(others - kinds or others - _AMOUNT_WORDS or others),
        phrases=tuple(one for run in _HAN_RUN.findall(plain) for one in _phrases(run)),
        given_names=tuple(_GIVEN_NAME.findall(description or ("" if names else words))),
        goes_on={
            stem(one): after in _STOP
            for one, after in pairwise(_WORD.findall(plain))
            if stem(one) in others and after != "s" and not about and not question
        },
        shapes=_shapes(plain),
        own=(own[1] or _phrases(own[2])[0]) if (own := _MY.match(statement)) else "",
        speaker=(speaker[1] or speaker[2]) if (speaker := _I.match(statement)) else "",
        kinds=frozenset(kinds - _AMOUNT_WORDS),
        is_amount=bool(question and _IS_AMOUNT.match(folded_words)),
    )


def _head(about: str) -> str:
    """The person whom all of it is about, by a given name, without who they are (“the engineer”);
    "" where a surname follows."""
    name_match = re.match(r"(?:[a-z]+\s+)?([A-Z][a-zà-ÿ]+)\b(?![- ][A-Z])", about)
    return name_match[1] if name_match else ""


def _is_of_others(own: str, plain: str) -> bool:
    """True if what somebody calls theirs (“my blood type”, “我的血型”) is others' wherever `plain`
    says it: “my sister's blood type”, “他的血型”."""
    before = plain.split(own)[:-1] if own else []
    return bool(before) and all(map(_OF_OTHERS.search, before))


def _is_stop(text: str) -> bool:
    first = _WORD.match(text.strip())
    return first is not None and first[0] in _STOP


def _said_instead(word: str, plain: str) -> float:
    """A share if `plain` says the kind of thing that `word` names with other words."""
    others = _SAID_INSTEAD.get(word)
    return _SAID_INSTEAD_SHARE if others and re.search(others, plain) else 0


def _shapes(plain: str) -> dict[str, frozenset[str]]:
    """Codes of letters and digits by their shape, Q3 and Q4 by “a0”."""
    words_by_shape: dict[str, frozenset[str]] = {}
    for code in _CODE.findall(plain):
        shape = re.sub("[^0]", "a", re.sub(r"\d", "0", code))
        words_by_shape[shape] = words_by_shape.get(shape, frozenset()) | {code}
    return words_by_shape


def _phrases(run: str) -> list[str]:
    phrases = [one for one in _HAN_STOP.split(run) if one]
    return [one for one in phrases if one not in _HAN_GENERIC] or phrases


def _said_share(phrase: str, plain: str) -> float:
    """The share of a Chinese phrase that stands in `plain`, with or without particles between."""
    spellings = [plain] if _SHORT_NAME.fullmatch(phrase) else [plain, re.sub("[的了]", "", plain)]
    if any(_stands_in(phrase, one) for one in spellings):
        return 1
    pairs = ["".join(pair) for pair in pairwise(phrase)]
    hits = sum(pair in plain for pair in pairs)
    return min(hits / len(pairs), 0.9) if len(pairs) > 1 else 0


def _stands_in(phrase: str, plain: str) -> bool:
    """A doubled last character makes another name of it, and so does one more character of a name:
    “张伟民的” does not name 张伟."""
    longer = rf"|{_NO_NAME}[{_AFTER_NAME}]" if _SHORT_NAME.fullmatch(phrase) else ""
    other = f"{re.escape(phrase[-1])}{longer}"
    return re.search(f"{re.escape(phrase)}(?!{other})", plain) is not None


def _without_label(tokens: Sequence[str], identifier: str) -> Sequence[str]:
    """Without the words just in front of a long identifier, which say what kind it is: “licence
    key XK7L-9P3Q”."""
    at = next(n for n, one in enumerate(tokens) if _bare(one) == identifier)
    first = at
    while first and (tokens[first - 1] not in _STOP or tokens[first - 1] == "at"):
        first -= 1
    return [*tokens[:first], *tokens[at:]] if first in (0, 1) else tokens


def _bare(token: str) -> str:
    return token.strip(".:-_+#@") if "@" not in token.strip("@") else token.strip(".:-_+#")
