"""What is said in a past, before it has ids: scenes on their days, and talk in between."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sandbox.past import words
from sandbox.past.cast import BY_KEY, SPEAKERS, CastMember
from sandbox.past.days import day_of, moment, moved_ms, with_dates
from sandbox.past.script import Episode, alternatives, episodes, filled, slots

DAYS = 729
_DAY_MS = 86_400_000
_THREADS = 0.3
_SETTLING = 0.08
_BOTS = 0.06


@dataclass(frozen=True, slots=True)
class PastLine:
    """A message to be. `episode` counts the episodes: lines of one belong together. `settles`: the
    key of the matter that stands in it. `kind`: text, post, image, file, sticker, card1, card2,
    forward. `mentions`: the key of somebody."""

    at_ms: int
    by: CastMember
    text: str
    episode: int
    in_thread: bool
    kind: str = "text"
    settles: str = ""
    quotes: bool = False
    mentions: str = ""
    is_recalled: bool = False
    is_edited: bool = False


def drafted(seed: str, count: int, ends_ms: int) -> list[PastLine]:
    """So many messages, in order of their time."""
    chance = random.Random(seed)  # noqa: S311  (a story, no secret)
    by_ms = moved_ms(ends_ms)
    found = [
        said
        for number, one in enumerate(episodes("scenes.txt"))
        for said in _scene(chance, one, number, by_ms)
    ]
    number = len(found)
    while len(found) < count:
        number += 1
        found += list(_talk(chance, number, by_ms))[: count - len(found)]
    return sorted(found, key=lambda one: (one.at_ms, one.episode))


def _scene(chance: random.Random, episode: Episode, number: int, by_ms: int) -> Iterator[PastLine]:
    at = moment(episode.day, episode.time) + by_ms
    for line in episode.lines:
        kind, _, text = line.text.removeprefix("[").partition("] ")
        if not line.text.startswith("["):
            kind, text = "text", line.text
        kind = {"card": "card2"}.get(kind, kind)
        text = with_dates(text, by_ms)
        said = PastLine(at, BY_KEY[line.who], text, number, episode.in_thread, kind)
        yield replace(said, settles=episode.key if line.settles else "")
        at += chance.randrange(20_000, 240_000)


def _talk(chance: random.Random, number: int, by_ms: int) -> Iterator[PastLine]:
    at = _some_time(chance)
    kind = chance.random()
    if kind < _BOTS:
        yield from _of_bots(chance, number, at, by_ms)
        return
    language = chance.choice(("en", "zh"))
    settling = kind < _BOTS + _SETTLING
    episode = chance.choice(episodes(f"{'settled' if settling else 'talk'}.{language}.txt"))
    people = _present(SPEAKERS[language], at)
    people = chance.sample(people, min(3, len(people)))
    told = _words(chance, episode, language, people, at, settled=settling)
    in_thread = chance.random() < _THREADS
    at += by_ms
    for place, line in enumerate(episode.lines):
        text = filled(_one_of(chance, line.text), told)
        settles = f"{episode.key}#{number}" if line.settles else ""
        by = people["abc".index(line.who) % len(people)]
        before = people["abc".index(episode.lines[place - 1].who) % len(people)]
        said = PastLine(at, by, text, number, in_thread, settles=settles)
        yield _varied(chance, said, place, before)
        at += chance.randrange(4_000, 400_000)
        if chance.random() < 0.03:
            yield _beside(chance, said, at)
            at += chance.randrange(4_000, 60_000)


def _some_time(chance: random.Random) -> int:
    """A moment in office hours of a day, seldom of a weekend, not yet moved."""
    first = moment("2024-07-01", "00:00")
    while True:
        day = chance.randrange(1, DAYS)
        if day % 7 < 5 or chance.random() < 0.12:
            break
    hour = min(max(chance.gauss(14, 2.6), 8), 22)
    return first + day * _DAY_MS + int(hour * 3_600_000) + chance.randrange(60_000)


def _present(people: Sequence[CastMember], at: int) -> list[CastMember]:
    day = day_of(at)
    return [one for one in people if one.is_there(day)]


def _words(
    chance: random.Random,
    episode: Episode,
    language: str,
    people: Sequence[CastMember],
    at: int,
    *,
    settled: bool,
) -> dict[str, str]:
    lists = words.WORDS[language]
    told = {name: chance.choice(lists[name]) for name in sorted(slots(episode) & lists.keys())}
    others = [one.name for one in _present(SPEAKERS[language], at) if one not in people[:2]]
    minor = 19 * (at - moment("2024-07-01", "00:00")) // (DAYS * _DAY_MS)
    return told | {
        "n": str(chance.randrange(2, 30)),
        "money": words.money(language, chance.randrange(2, 90)),
        "ticket": f"APP-{chance.randrange(100, 4000)}",
        "version": f"{2 + minor // 10}.{minor % 10}.{chance.randrange(1, 9)}",
        "person": chance.choice(others or [people[0].name]),
        "customer": chance.choice(words.customers(language, settled=settled)),
    }


def _one_of(chance: random.Random, text: str) -> str:
    while found := alternatives(text):
        chosen = chance.choice(found[1].split("|"))
        text = text[: found.start()] + chosen + text[found.end() :]
    return text


def _varied(chance: random.Random, said: PastLine, place: int, before: CastMember) -> PastLine:
    """Some quote, mention, are written as a post, are edited, or are taken back."""
    luck = chance.random()
    if place and luck < 0.05 and not said.in_thread:
        return replace(said, quotes=True)
    if place and luck < 0.11 and before != said.by:
        return replace(said, mentions=before.key)
    if luck < 0.14:
        return replace(said, kind="post")
    if luck < 0.15:
        return replace(said, is_edited=True)
    if luck < 0.165 and not said.settles and place:
        return replace(said, is_recalled=True)
    return said


def _beside(chance: random.Random, said: PastLine, at: int) -> PastLine:
    kind = chance.choice(("image", "file", "sticker", "forward"))
    text = chance.choice(words.FILES) if kind == "file" else ""
    return replace(said, at_ms=at, kind=kind, text=text, settles="")


def _of_bots(chance: random.Random, number: int, at: int, by_ms: int) -> Iterator[PastLine]:
    """A build, an approval, or a question to a bot with its answer."""
    kind, at_ms, day = chance.randrange(3), at + by_ms, day_of(at)
    n, build = chance.randrange(2, 30), chance.randrange(100, 9000)
    branch = chance.choice(words.WORDS["en"]["branch"])
    if kind == 1 and BY_KEY["审批助手"].is_there(day):
        thing, amount = chance.choice(words.WORDS["zh"]["thing"]), chance.randrange(200, 9000)
        text = f"费用审批已通过｜编号 EX-{build}｜{thing}，{amount} 元"
        yield PastLine(at_ms, BY_KEY["审批助手"], text, number, False, "card2")
    elif kind == 2 and BY_KEY["HelpDesk"].is_there(day):
        asker = chance.choice(_present(SPEAKERS["en"], at))
        tool = chance.choice(words.WORDS["en"]["tool"])
        text = f"how do I get into {tool}?"
        yield PastLine(at_ms, asker, text, number, False, mentions="HelpDesk")
        text = f"Ask for {tool} in the portal, form {build}. It takes about {n} hours."
        yield PastLine(at_ms + 3000, BY_KEY["HelpDesk"], text, number, False, quotes=True)
    else:
        outcome = chance.choice(("passed", "passed", "failed"))
        text = f"Build {outcome}|branch {branch}, number {build}|{n} minutes"
        yield PastLine(at_ms, BY_KEY["Pipeline"], text, number, False, "card1")
