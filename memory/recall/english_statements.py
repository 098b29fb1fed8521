"""Reads what an English clause states. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.recall.stated_facts import StatedFact, value_kinds
from memory.text import one_line

# As it is written, and in lower case.
_Word = tuple[str, str]


def _forms(table: str) -> Mapping[str, str]:
    """Reads “lemma: form form; …”. Returns form -> lemma."""
    rows = (row.split(":") for row in table.split(";"))
    return {form: lemma.strip() for lemma, forms in rows for form in forms.split()}


CORRECTS_EN = re.compile(
    r"^(?:no|nope|sorry|correction|update|actually|not any ?more|wait)\b", re.I
)
_OPENING = re.compile(
    r"^(?:(?:please|ok(?:ay)?|so|and|but|well|hi|from now on|as of \w+|remember|note|update"
    r"|correction|fyi"
    r"|by the way|keep in mind|heads up|it turns out|that)\b[:,]?\s*)*",
    re.I,
)
_WORD = re.compile(r"[^\s\"“”()]+")
_SHORT_FORMS = re.compile(
    r"\b(i|it|that|this|he|she|they|we|you|there)['’](m|s|re|ve|ll)\b"
    r"|\b(\w+)['’](s)(?= (?:been|no longer|not|now|on|in|at|off|out|back|done)\b)",
    re.I,
)
_LONG_FORMS = {"m": "am", "s": "is", "re": "are", "ve": "have", "ll": "will"}
_BE = frozenset("is are am was were be been being".split())
_HELPING = frozenset(
    "has have had will would is are am was were be been being got gets get going to".split()
)
_PASSING = frozenset(
    "just still also already currently officially finally really always usually only".split()
)
_NEW = frozenset("now again instead".split())
_POINTING = frozenset(
    "it this that these those there here he she they who what everything all nothing you".split()
)
# Of a subject with one of these nothing certain is known, or it is a clause of its own.
_BACK = frozenset("it this that they these".split())
_UNCERTAIN = _POINTING | frozenset(
    """his her its their him them which whom when where if because than some many most few another
    other others anything something someone somebody everyone anyone none thing things lot bit
    way""".split()
)
_LONGEST_SUBJECT, _LONGEST_DESCRIPTION = 9, 14
_UNSAID = frozenset(
    "the a an our new current my i we us of for your their his her its in at date time day".split()
)
_PREPOSITIONS = frozenset(
    """on in at to by for from with until till as of into after before under near about against
    per""".split()
)
_WHEN_WHERE = frozenset("on in at for".split())
_ARRANGED = frozenset(
    "scheduled planned set held fixed booked slated arranged located based situated".split()
)
_CHANGED = frozenset(
    """moved changed switched rescheduled postponed delayed renamed shifted pushed brought extended
    raised increased rose lowered reduced dropped cut went relocated transferred updated replaced
    upgraded migrated""".split()
)
# “came down to 12,900 euros”: whatever the verb, what it passed to has the new value.
_PASSED = frozenset("came fell grew shot slid got ran crept".split())
_DIRECTIONS = frozenset("down up back over out forward".split())
_MEASURED = frozenset(("day", "weekday", "time", "month", "money", "percent"))
_BECAME = frozenset("became become promoted appointed".split())
_JOINED = frozenset("joined joins".split())
_STOPPED = frozenset("cancelled canceled scrapped dropped discontinued".split())
_LEFT = frozenset("left quit leaves".split())
# A subject does these with one value at a time.
_SINGLE = _forms(
    """
    live: live lives lived; stay: stays; sit: sit sits; work: work works worked employed;
    start: start starts begin begins; open: opens open; end: end ends finishes finish;
    close: closes close; leave: leaves leave departs; arrive: arrives lands; cost: costs cost;
    weigh: weighs; last: lasts; take: takes take; report: report reports; belong: belongs;
    expire: expires; meet: meets meet; run: runs; have: has have; need: needs; seat: seats;
    hold: holds; called: called named; born: born; died: died; founded: founded; created: created;
    written: written; performed: performed; produced: produced; developed: developed;
    designed: designed; married: married; due: due; play: plays; speak: speaks;
    educated: educated; associated: associated; famous: famous; stored: stored; parked: parked;
    kept: kept; hosted: hosted; reach: reachable; drive: drive drives; use: use uses;
    drink: drink drinks; deploy: deploy deploys; ship: ships; publish: publish publishes;
    deliver: delivers; train: trains; pay: pays
    """
)
# One person at a time does these to a thing; the nouns are who does them.
_DONE_BY = _forms(
    """
    lead: lead leads led leader; own: owns owned owner; manage: manages managed manager;
    head: heads headed head; chair: chairs chaired chair chairperson; host: hosts host;
    review: reviews reviewed reviewer; maintain: maintains maintained maintainer;
    moderate: moderates moderated moderator; present: presents presented presenter;
    organise: organises organizes organised organized organiser organizer;
    coordinate: coordinates coordinated coordinator; supervise: supervises supervised supervisor;
    handle: handles handled; give: given gives; approve: approves approver; run: run;
    answer: responsible charge; teach: teaches taught; edit: edits editor; contact: contact;
    ceo: ceo; cto: cto; cfo: cfo; direct: director directs; write: author; capital: capital;
    president: president; assist: assistant; deputy: deputy; dentist: dentist; landlord: landlord;
    boss: boss
    """
)
_AGENTS = frozenset(
    """leader lead owner manager head chair chairperson host reviewer maintainer moderator
    presenter organiser organizer coordinator supervisor approver editor contact ceo cto cfo
    director author president deputy dentist landlord boss capital assistant""".split()
)
# After “I”, “we” or a plural they are verbs.
_ALSO_NOUNS = frozenset(
    """lead head host chair contact run end start meet work leave cost open take use drink drive
    report close live have finish begin sit deploy publish""".split()
)
_KINDS_OF_PLACE = frozenset("city continent country state town region province field".split())
_NOT_ONE_OF = frozenset("a an one some another".split())
_MANY = frozenset(
    """friend colleague brother sister son daughter cousin aunt uncle neighbour neighbor client
    customer student""".split()
)
_SHARED = frozenset("member fan friend part one kind lot supporter colleague fellow".split())


def read_english_clause(clause: str, is_correction: bool) -> StatedFact | None:
    words = _WORD.findall(_SHORT_FORMS.sub(_long_form, CORRECTS_EN.sub("", clause).strip(" ,:")))
    words = _WORD.findall(_OPENING.sub("", " ".join(words)))
    lower = [word.lower().strip(",:") for word in words]
    changes = (
        is_correction
        or bool(_NEW.intersection(lower))
        or lower[-2:] in (["any", "more"], ["from", "today"])
    )
    is_negated = "longer" in lower or "anymore" in lower or lower[-2:] == ["any", "more"]
    word_list = [
        (word, low)
        for word, low in zip(words, lower, strict=True)
        if low not in _PASSING and low not in _NEW and low not in ("no", "longer", "anymore", "not")
    ]
    verb = _describing_words([low for _, low in word_list]) or next(
        (n for n, (_, low) in enumerate(word_list) if n and _is_verb(word_list, n, low)), 0
    )
    if not verb:
        return None
    subject, rest = [low for _, low in word_list[:verb]], word_list[verb:]
    return _statement_of(subject, word_list[:verb], rest, changes=changes, ends=is_negated)


def _describing_words(lower: Sequence[str]) -> int:
    """The place of “is” after a description: “the company that made the van is Ford”; or 0."""
    if lower[:1] != ["the"] or not {"that", "where", "who", "which"}.intersection(lower[2:5]):
        return 0
    return next((n for n in range(len(lower) - 2, 3, -1) if lower[n] in ("is", "was")), 0)


def _long_form(match: re.Match[str]) -> str:
    return f"{match[1] or match[3]} {_LONG_FORMS[(match[2] or match[4]).lower()]}"


def _is_verb(words: Sequence[_Word], n: int, low: str) -> bool:
    if low in _BE or low in _HELPING - {"to", "get", "going"}:
        return True
    before = words[n - 1][1]
    if low in _ALSO_NOUNS:
        return low not in _AGENTS and (before in ("i", "we", "they") or before.endswith("s"))
    return (
        low in _CHANGED | _BECAME | _JOINED | _STOPPED | _LEFT
        or low in _SINGLE
        or _passes_to_value(low, words[n + 1 :])
        or (low in _DONE_BY and low not in _AGENTS)
    )


def _passes_to_value(verb: str, tail: Sequence[_Word]) -> bool:
    lows = [low for _, low in tail[:2]]
    to = 1 if lows[:1] and lows[0] in _DIRECTIONS else 0
    if not (verb.endswith("ed") or verb in _PASSED) or lows[to : to + 1] != ["to"]:
        return False
    kind = value_kinds(_text(tail[to + 1 :]))[0]
    return kind in _MEASURED or kind.startswith("number:")


def _statement_of(
    subject: list[str],
    subject_words: Sequence[_Word],
    rest: Sequence[_Word],
    *,
    changes: bool,
    ends: bool,
) -> StatedFact | None:
    """The statement of a clause cut before its first verb."""
    be = rest[0][1] in _BE
    at = 0
    while at + 1 < len(rest) and rest[at][1] in _HELPING and _leads_on(rest[at + 1][1]):
        at += 1
    verb = rest[at][1]
    tail = list(rest[at + 1 :])
    about = _bag(subject)
    personal = bool({"i", "my", "mine"}.intersection(subject))
    points_back = len(subject) == 1 and subject[0] in _BACK
    if points_back and changes:
        about = frozenset()
    elif _is_uncertain(subject):
        return None
    make = _ClauseReader(about, personal, changes, ends)
    return _change(make, verb, tail) or _relation(make, subject, subject_words, verb, tail, be=be)


def _change(make: _ClauseReader, verb: str, tail: Sequence[_Word]) -> StatedFact | None:
    """“… moved to Lisbon”, “… was cancelled”, “… joined Notion”."""
    then = tail[0][1] if tail else ""
    called_off = verb == "called" and then == "off"
    if called_off or (verb in _STOPPED and then != "to"):
        return make("end", "", ends=True)
    if verb in _CHANGED or _passes_to_value(verb, tail):
        return _changed_fact(make, verb, tail)
    if verb in _BECAME:
        return make("become", _text(_without_to(tail)), changes=True)
    if verb in _JOINED:
        return make("join", _text(tail), changes=True)
    if verb in _LEFT and then and then not in _PREPOSITIONS:
        return make("leave off", _text(tail), changes=True, ends=True)
    return None


def _relation(
    make: _ClauseReader,
    subject: Sequence[str],
    subject_words: Sequence[_Word],
    verb: str,
    tail: list[_Word],
    *,
    be: bool,
) -> StatedFact | None:
    """“… starts at 9”, “Nora leads …”, “… is on Friday”, “… is led by Nora”."""
    then = tail[0][1] if tail else ""
    speaker = make.personal and not make.subject
    if verb in _DONE_BY and not be:
        return _done_by(make, subject_words, verb, tail)
    if be and not speaker and len(tail) > 1 and _is_participle(verb, then, tail[1][1]):
        return _single(make, then, tail[1:])
    if be and (verb in _BE or (verb in _ARRANGED and tail)):
        return _is_something(make, subject, subject_words, tail)
    if be and verb in _DONE_BY and then == "by":
        return _by(make, verb, make.subject, tail[1:])
    if be and verb in _DONE_BY and then in ("for", "of"):
        return _done_by(make, subject_words, verb, tail[1:])
    return _single(make, _SINGLE[verb], tail) if verb in _SINGLE else None


def _is_participle(verb: str, low: str, then: str) -> bool:
    """True if a relation of its own follows “is”: “is affiliated with”, “was sold by”."""
    is_listed = low in _ARRANGED or low in _DONE_BY or low in _SINGLE
    return verb in _BE and low.endswith("ed") and not is_listed and then in _PREPOSITIONS


def _is_uncertain(subject: Sequence[str]) -> bool:
    if _describing_words([*subject, "is", ""]):
        return False
    clause = "i" in subject[1:] or "we" in subject[1:]
    longest = _LONGEST_DESCRIPTION if subject[0] == "the" else _LONGEST_SUBJECT
    return clause or len(subject) > longest or bool(_UNCERTAIN.intersection(subject))


def _leads_on(low: str) -> bool:
    return (
        low in _HELPING or low in _CHANGED or low in _BECAME or low in _STOPPED or low in _JOINED
        or low in _ARRANGED or low in _SINGLE or (low in _DONE_BY and low not in _AGENTS)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _ClauseReader:
    """A statement about a subject, without what is said of it."""

    subject: frozenset[str]
    personal: bool
    changes: bool
    ends: bool

    def __call__(
        self,
        relation: str,
        value: str,
        preposition: str = "",
        *,
        changes: bool = False,
        ends: bool = False,
        subject: frozenset[str] | None = None,
    ) -> StatedFact | None:
        about = self.subject if subject is None else subject
        if not value and not (ends or self.ends):
            return None
        return StatedFact(
            about,
            relation,
            one_line(value).lower(),
            value_kinds(value, preposition),
            self.changes or changes or ends or self.ends,
            self.ends or ends,
            self.personal,
        )


def _changed_fact(make: _ClauseReader, verb: str, tail: Sequence[_Word]) -> StatedFact | None:
    lows = [low for _, low in tail]
    if verb == "went" and lows[:1] not in (["up"], ["down"]):
        return None
    if "to" not in lows[:6]:
        if verb == "replaced" and "by" in lows:
            return make("change", _text(tail[lows.index("by") + 1 :]), changes=True)
        return None
    to = lows.index("to")
    # “raised the price to 1,100”: the price of the subject
    own = "my" in lows[:to]
    thing = _bag([low for low in lows[:to] if low not in _PREPOSITIONS | _DIRECTIONS])
    about = make.subject - {"we"} | thing if thing and "from" not in lows[:to] else make.subject
    relation = "move" if verb in ("moved", "relocated", "transferred") else "change"
    value = tail[to + 1 :]
    if value and value[0][1] in _WHEN_WHERE:
        value = value[1:]
    about = make.subject if verb == "went" else about
    fact = make(relation, _text(value), changes=True, subject=about)
    return replace(fact, personal=True) if fact and own else fact


def _done_by(
    make: _ClauseReader, agent_words: Sequence[_Word], verb: str, tail: Sequence[_Word]
) -> StatedFact | None:
    """“Nora leads the Atlas project”: of the project, who leads it."""
    if not tail or tail[0][1] in _NOT_ONE_OF | {"me", "us", "you", "him", "her", "them"}:
        return None
    definite = (
        tail[0][1] in ("the", "our", "my")
        or tail[0][0][:1].isupper()
        or _DONE_BY[verb] in ("answer", "handle")
    )
    what = _bag([low for _, low in tail])
    if not definite or not what or any(low[:1].isdigit() for low in what):
        return None
    return make(f"by:{_DONE_BY[verb]}", _text(agent_words), subject=what)


def _by(
    make: _ClauseReader, verb: str, about: frozenset[str], tail: Sequence[_Word]
) -> StatedFact | None:
    return make(f"by:{_DONE_BY[verb]}", _text(tail), subject=about)


def _is_something(
    make: _ClauseReader,
    subject: Sequence[str],
    subject_words: Sequence[_Word],
    tail: list[_Word],
) -> StatedFact | None:
    """“X is …”: on a day, somewhere, a name; “Tomas is the reviewer of the spec”."""
    if not tail:
        return None
    lows = [low for _, low in tail]
    if lows[0] == "back" and len(lows) > 1 and lows[1] in ("to", "at", "on", "in"):
        return make("be", _text(tail[2:]), lows[1] if lows[1] != "to" else "at", changes=True)
    if lows[0] == "in" and "charge" in lows[:2] and "of" in lows[2:3]:
        return _done_by(make, subject_words, "charge", tail[3:])
    if lows[0] in _PREPOSITIONS:
        if lows[1:2] == ["the"] and lows[3:4] == ["of"] and lows[2] in _KINDS_OF_PLACE:
            return make(f"be in the {lows[2]} of", _text(tail[4:]))
        relation = "be" if lows[0] in _WHEN_WHERE else f"be {lows[0]}"
        fact = make(relation, _text(tail[1:]), lows[0])
        vague = make.personal and not make.subject and fact and fact.kinds[0] in ("other", "state")
        return None if vague else fact  # “I’m in a hurry”
    if make.personal and not make.subject and lows[0] not in ("a", "an", "the", "our", "my"):
        return None  # “I’m glad”
    agent = next((n for n, low in enumerate(lows[:5]) if low in _AGENTS), None)
    if agent is not None and lows[0] in ("the", "our", "my") and subject_words and lows[0] != "a":
        what = _bag(lows[1:agent] + lows[agent + 1 :])
        personal = lows[0] == "my"
        fact = make(f"by:{_DONE_BY[lows[agent]]}", _text(subject_words), subject=what)
        return replace(fact, personal=True) if fact and personal else fact
    of = next(
        (n for n in (2, 3) if n < len(lows) - 1 and lows[n] == "of" and lows[0] in ("a", "an")),
        None,
    )
    if of and not _SHARED.intersection(lows[:of]):
        return make(f"be {' '.join(lows[1 : of + 1])}", _text(tail[of + 1 :]))
    if _describing_words([*subject, "is", ""]):
        return make("be the", _text(tail))
    doing = next((low for low in subject if low in _AGENTS), "")
    if doing and not make.personal:
        return _by(make, doing, make.subject - {doing}, tail)
    fact = make("be", _text(tail))
    kind = fact.kinds[0] if fact else ""
    is_name = kind in ("name", "person") or (kind == "national" and "language" in subject)
    return replace(fact, relation="be the") if fact and is_name and _is_one(subject) else fact


def _is_one(subject: Sequence[str]) -> bool:
    """Returns whether there is one of it: “the Minister for Home Affairs”, “Lena's landlord”."""
    is_possessive = any(low.endswith(("'s", "’s")) for low in subject[:-1])
    return subject[:1] == ["the"] or (is_possessive and subject[-1] not in _MANY)


def _single(make: _ClauseReader, verb: str, tail: list[_Word]) -> StatedFact | None:
    """“… starts at 9”, “… plays the position of goalkeeper”."""
    if not tail:
        return make(verb, "") if make.ends else None
    if (verb == "use" and tail[0][1] == "to") or (
        verb == "work" and tail[0][1] not in _PREPOSITIONS
    ):
        return None
    if verb == "take" and tail[0][1] == "place":
        return _is_something(make, (), (), tail[1:])
    lows = [low for _, low in tail]
    if lows[0] == "back" and verb != "have":
        tail, lows = tail[1:], lows[1:]
    of = next((n for n, low in enumerate(lows[:5]) if low == "of"), None)
    if of is not None and "the" in lows[:of] and of + 1 < len(tail):
        return make(f"{verb} {' '.join(lows[: of + 1])}", _text(tail[of + 1 :]))
    if lows and lows[0] in _PREPOSITIONS:
        # a place or a time, whatever the word before it: “opens on Monday”, “opens at 9”
        where = (
            "" if lows[0] in _WHEN_WHERE and verb not in ("work", "run", "be") else f" {lows[0]}"
        )
        return make(f"{verb}{where}", _text(tail[1:]), lows[0])
    return make(verb, _text(tail))


def _without_to(tail: Sequence[_Word]) -> Sequence[_Word]:
    return tail[1:] if tail and tail[0][1] in ("to", "as") else tail


def _text(tail: Sequence[_Word]) -> str:
    words = [word.strip(",:") for word, _ in tail]
    return " ".join(words)


def _bag(lows: Sequence[str]) -> frozenset[str]:
    words = {low.removesuffix("'s").removesuffix("’s") for low in lows} - {""}
    return frozenset(words - _UNSAID) or frozenset(
        words - {"the", "a", "an", "our", "my", "i", "of"}
    )
