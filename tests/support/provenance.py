"""Random histories of sources and of what the bot makes of them, for when a source is taken back.

Every source (a question, talk, a file, a picture, a forward) carries a token of its own. An answer,
fact, note or reminder tells of a source if it holds the token; all of them share everyday words
besides. What is made from a source goes with it. What was given it, at any hand, goes if it tells
of it. All else stays. This is stated here in Python once more, and the database has to agree.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

STEPS = 16
PEOPLE = ("ann", "bob", "cid")
CHATS = ("red", "tan", "sky")
_SIGNS = "鲸鹭霜岚屿藤烬澜翎墨琥珀砚苔霁穹骊麓汐芷蕨柚枫棠荻藜鹫鲲鲤鳕鸢鸥鹤鹰麒麟龟蟾蜓蝶蛟蚌萤蜻"
_SYLLABLES = ("kra", "vel", "tho", "mir", "zan", "qua", "rix", "dol", "fen", "gri", "plo", "vus")
EVERYDAY = (
    "下周三下午？",
    "季度评审在下周三下午三点",
    "我们明天上午开会讨论一下这个问题",
    "好的，收到，谢谢大家",
    "请把文件发给我，我看一下",
    "这个项目的进度怎么样？",
    "会议室在三楼，请大家准时参加",
    "周五之前完成就可以",
    "大概需要两个小时",
    "没问题，我来安排",
    "今天下午五点之前给你回复",
    "已经通知了相关的同事",
    "Is Tuesday afternoon fine?",
    "The review is on Wednesday at 15:00",
    "Thanks everybody, sounds good!",
    "Please send me the report by tomorrow",
    "I think we should meet next week",
    "How many are left?",
    "Could you have a look at the file?",
    "Let us discuss it in the team meeting on Monday morning",
    "The deadline is Friday at noon",
    "I am not sure about the second part, let me check again",
    "Here is what I found",
    "It is about 20 minutes from here",
    "OK, noted.",
    "see you at 9:30 on 14 March",
)

# What was seen: a test that takes nothing back proves nothing.
SEEN: Counter[str] = Counter()

# Of a message: a number that tells its content, as exactly as a vector keeps one.
_VECTOR = "('x' || left(md5(m.content), 2))::bit(8)::integer"


class Wrong(AssertionError):
    """Something remains that was to go, or went that was to stay."""


@dataclass(slots=True)
class Kept:
    """A fact, note or reminder as a turn kept it."""

    kind: str
    tokens: frozenset[str]
    text: str
    key: str = ""


@dataclass(slots=True)
class Item:
    """A message, with the turn that answers it if the bot did. `given`: the items of the prompt;
    `made`: those it is made from, which it goes with. `token`: that it brings; `asked` and `told`
    are those that stand in the question and in the answer. `origin`: of a turn whose question
    nobody wrote there; `shown_of`: the question that a private answer is for."""

    id: str
    chat: str
    root: str
    person: str
    token: str = ""
    asked: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    is_turn: bool = True
    made: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)  # to be read in the story of what was wrong
    whole: bool = False
    stored: bool = True  # whether the token stands in a text that is stored
    kept: list[Kept] = field(default_factory=list)
    reminders: list[str] = field(default_factory=list)  # also those that are gone
    authors: set[str] = field(default_factory=set)  # of what a digest tells
    by_chance: bool = False
    origin: Mapping[str, str] | None = None
    shown_of: str = ""
    open: bool = False  # not answered yet
    forgotten: bool = False
    has_button: bool = True
    gone: bool = False
    answer_gone: bool = False

    @property
    def can_be_shown(self) -> bool:
        """Whether there is an answer, and one that others may be given."""
        return not (self.gone or self.answer_gone or self.by_chance or self.is_private)

    @property
    def is_private(self) -> bool:
        return self.came_as("private_answer")

    def came_as(self, origin: str) -> bool:
        return self.origin is not None and self.origin["origin"] == origin

    @property
    def goes_whole(self) -> bool:
        """Whether its question is a copy, or a model's, which goes with an answer that tells."""
        return self.origin is not None and not self.came_as("again")

    @property
    def place(self) -> tuple[str, str, str]:
        """Whose thread it is in."""
        return self.chat, self.root, self.person

    @property
    def is_file(self) -> bool:
        return self.id.startswith(("file", "picture"))

    @property
    def card(self) -> str:
        return f"{self.id}_card"


@dataclass
class History:
    """One history; `mark` keeps it apart from the others in the database."""

    database: psycopg.Connection
    dice: random.Random
    mark: str
    items: list[Item] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    shown: frozenset[str] = frozenset()  # the tokens of the latest prompt
    gone: frozenset[str] = frozenset()  # the tokens of what was taken back

    def __post_init__(self) -> None:
        self.signs = list(_SIGNS)
        self.dice.shuffle(self.signs)

    # Words

    def token(self) -> str:
        """One that nobody else has: a number, a name, or in Chinese."""
        number = len(self.items)
        kind = self.dice.randrange(4)
        if kind == 0 and len(self.signs) >= 3:
            return "".join(self.signs.pop() for _ in range(3))
        if kind == 1:
            return f"{self.dice.randrange(210, 999)}{number:02d}"
        if kind == 2:
            return f"q{self.mark}x{number:02d}z"
        return "".join(self.dice.choices(_SYLLABLES, k=3)) + chr(ord("a") + number % 26)

    def say(self, tokens: Iterable[str] = ()) -> str:
        words = [*sorted(tokens), *self.dice.sample(EVERYDAY, self.dice.randint(1, 3))]
        self.dice.shuffle(words)
        return " ".join(words)

    # What a prompt shows

    def prompt(self, asked: Item) -> tuple[list[str], frozenset[str]]:
        """Some of what was said, as the bot notes it, and the tokens in it."""
        given: list[str] = []
        tokens: set[str] = set()
        live = self.live_items(asked.place)
        for item in self.dice.sample(live, min(len(live), self.dice.randint(0, 3))):
            how = self.dice.choice(["question", "answer", "both", "facts", "thread"])
            if not item.is_turn:
                if item.stored and item.chat == asked.chat:  # a chat's talk is told there
                    given.append(item.id)
                    tokens |= item.asked
            elif how == "thread":
                given.append(f"thread:{self.thread(asked)}:")
                for one in live:
                    if one.is_turn and self.thread(one) == self.thread(asked):
                        tokens |= one.asked | (frozenset() if one.answer_gone else one.told)
            elif how == "facts":
                for kept in item.kept:
                    given.append(f"note:{kept.key}" if kept.kind == "note" else item.id)
                    tokens |= kept.tokens
            else:
                if how != "answer":
                    given.append(item.id)
                    tokens |= item.asked
                if how != "question" and not item.answer_gone:
                    given.append(item.card if how == "answer" else item.id)
                    tokens |= item.told
        self.shown = frozenset(tokens)
        return given, self.shown

    def live_items(self, place: tuple[str, str, str] | None = None) -> list[Item]:
        """What others may be given; what one person is shown stays in their p2p conversation."""
        return [one for one in self.items
                if not (one.gone or one.by_chance or one.open)
                and (not one.is_private or one.place == place)]  # fmt: skip

    # Places

    def chat_id(self, item: Item) -> str:
        return f"oc_{item.chat}_{self.mark}"

    def thread(self, item: Item) -> str:
        """A group with topics: each chat has two threads."""
        return f"feishu:{self.chat_id(item)}:{item.root}"

    def who(self, item: Item) -> str:
        return f"ou_{item.person}_{self.mark}"

    # Steps

    def begin(self, item: Item, question: str) -> dict[str, str]:
        person = self.who(item)
        who = {"p_turn_id": item.id, "p_conversation_id": self.thread(item),
               "p_user_id": person, "p_actor_id": person}  # fmt: skip
        self.call("open_turn", {
            **who, "p_chat_id": self.chat_id(item), "p_root_id": item.root,
            "p_actor_name": "A", "p_tenant_key": "t", "p_content": question, "p_history_limit": 5,
            "p_origin": json.dumps(item.origin) if item.origin else None,
        })  # fmt: skip
        self.database.execute(  # a turn is later than what it was given
            "update agent_turns set created_at = clock_timestamp() where id = %s", [item.id]
        )
        if item not in self.items:
            self.items.append(item)
        item.open = item.answer_gone = True
        return who

    def finish(self, item: Item, who: dict[str, str], given: Sequence[str]) -> None:
        """Answers with some of what the prompt showed."""
        if self.record(item, who, given) != "pending":
            raise self.wrong(f"{item.id} is not answered")

    def record(self, item: Item, who: dict[str, str], given: Sequence[str]) -> str:
        """Answers, unless some of what was given is gone; returns the state of the turn."""
        item.given = [*given]
        answer = self.answer(item)
        place = {"chat_id": self.chat_id(item), "root_id": f"om_{self.mark}"}
        button = {"id": f"b_{item.id}", "group_id": f"g_{item.id}", "chat_type": "group",
                  "kind": "follow_up", "label": "More?", "payload": {"text": "More?", **place},
                  "lives_s": 60}  # fmt: skip
        stored = self.call("record_reply_with_buttons", {
            **who, "p_cards": json.dumps([answer]), "p_tool_calls": self.calls(item, given),
            "p_buttons": json.dumps([button]), "p_given": json.dumps(list(given)),
        })  # fmt: skip
        if stored["state"] == "pending":
            item.open = item.answer_gone = False
            self.call("mark_sent", {**who, "p_chunk": 0, "p_content": answer,
                                    "p_message_id": item.card})  # fmt: skip
        return str(stored["state"])

    def answer(self, item: Item) -> str:
        return f"<at id={self.who(item)}></at> {self.say(item.told)}"

    def calls(self, item: Item, given: Sequence[str]) -> str:
        return json.dumps([{
            "name": "update_working_memory", "arguments": {"patch": {}, "scope": "user"},
            "result": "\n".join(["", *(self.shown if given else item.told)]), "ok": True,
            "ms": 1234,
        }])  # fmt: skip

    def new(self, kind: str = "om", chat: str = "") -> Item:
        number = len(self.items)
        as_of_feishu = kind == "om" and number % 3 > 0  # such ids are kept as numbers
        id = f"om_{number:022x}{self.mark}" if as_of_feishu else f"{kind}_{number}_{self.mark}"
        return Item(
            id, chat or self.dice.choice(CHATS),
            self.dice.choice("rs"), chat or self.dice.choice(PEOPLE),
        )  # fmt: skip

    def some(self, tokens: Iterable[str]) -> frozenset[str]:
        return frozenset(one for one in sorted(tokens) if self.dice.random() < 0.6)

    def ask(self) -> None:
        """A question that brings a token of its own, answered with some of what was given."""
        item = self.new()
        item.token = self.token()
        item.asked = frozenset([item.token])
        given, known = self.prompt(item)
        item.told = self.some(known | item.asked)
        who = self.begin(item, self.say(item.asked))
        self.keep(item, who, known | item.asked)
        self.finish(item, who, given)

    def ask_again(self) -> None:
        """A question without a token: what is told is second hand."""
        item = self.new()
        given, known = self.prompt(item)
        item.told = self.some(known)
        who = self.begin(item, self.say())
        self.keep(item, who, known)
        self.finish(item, who, given)

    def keep(self, item: Item, who: dict[str, str], known: frozenset[str]) -> None:
        for kind in ("fact", "note", "reminder"):
            if self.dice.random() > 0.25:
                continue
            tokens = self.some(known)
            key = f"{kind} {len(self.items)}" + ("" if kind == "fact" else self.mark)
            text = f"{self.say(tokens)} {len(self.items)}"
            if kind == "fact" and len(self.items) % 2:  # its name tells as much as its value
                key, text = " ".join([key, *sorted(tokens)]), "yes"
            item.kept.append(Kept(kind, tokens, text, key))
            item.reminders += [key] if kind == "reminder" else []
            identity = {
                name: who[name] for name in ("p_conversation_id", "p_user_id", "p_actor_id")
            }
            place = {**identity, "p_chat_id": self.chat_id(item), "p_tenant_key": "t"}
            if kind == "fact":
                self.call("merge_working_memory", {
                    **place, "p_scope": "user", "p_patch": json.dumps({key: text}),
                    "p_turn_id": item.id,
                })  # fmt: skip
            elif kind == "note":
                self.call("create_note", {
                    **place, "p_note_id": key, "p_title": "list", "p_body": text, "p_tags": "[]",
                    "p_turn_id": item.id,
                })  # fmt: skip
            else:
                timer = {"content": text, "language": "en", "for_all": True, "for_people": [],
                         "local_at": "2030-01-01T10:00", "zone": "UTC", "repeats": "daily",
                         "due_ms": 1893492000000}  # fmt: skip
                self.call("set_timer", {
                    **place, "p_root_id": item.root, "p_chat_type": "group", "p_turn_id": item.id,
                    "p_timer_id": key, "p_timer": json.dumps(timer), "p_most_person": 99,
                    "p_most_chat": 99,
                })  # fmt: skip

    def talk(self) -> None:
        """Nobody asked the bot, but it hears."""
        self.hear(self.new())

    def hear(self, item: Item) -> None:
        item.is_turn, item.token = False, self.token()
        item.asked = frozenset([item.token])
        self.database.execute(
            "insert into chat_conversations (tenant_key, chat_id) values ('t', %s)"
            " on conflict do nothing",
            [self.chat_id(item)],
        )
        self.database.execute(
            "insert into chat_transcript (chat_id, tenant_key, message_id, author, author_id,"
            " content, is_bot, timestamp) values (%s, 't', %s, 'A', %s, %s, false,"
            " (extract(epoch from clock_timestamp()) * 1000)::bigint)",
            [self.chat_id(item), item.id, self.who(item), self.say(item.asked)],
        )
        self.items.append(item)

    def answer_unasked(self) -> None:
        """A question that nobody asked the bot is answered after a while."""
        item = self.new()
        given, known = self.prompt(item)
        self.hear(item)
        item.is_turn, item.told = True, self.some(known | item.asked)
        who = self.begin(item, self.say(item.asked))
        self.finish(item, who, given)

    def talk_ends(self, chat: str = "") -> None:
        """The next conversation of a chat takes the place of what was heard there."""
        chat = chat or self.dice.choice(CHATS)
        for item in self.items:
            if item.chat == chat and not item.is_turn:
                item.stored = False
        self.call("begin_conversation", {
            "p_chat_id": f"oc_{chat}_{self.mark}", "p_tenant_key": "t", "p_now": 1,
            "p_records": "[]",
        })  # fmt: skip

    def file(self) -> None:
        """A file or a picture, which is read at once, by a question that quotes it."""
        file = self.new(self.dice.choice(["file", "picture"]))
        file.is_turn, file.stored, file.token = False, False, self.token()
        file.asked = frozenset([file.token])
        self.items.append(file)
        self.read(file)

    def read_again(self) -> None:
        files = [one for one in self.items if one.is_file and not one.gone]
        if files:
            self.read(self.dice.choice(files))

    def read(self, file: Item) -> None:
        self.quoting(file.id, file.asked, [file.id])

    def quote(self) -> None:
        """A question that quotes an answer: it is made from that."""
        told = [one for one in self.items
                if one.is_turn and one.can_be_shown]  # fmt: skip
        if told:
            source = self.dice.choice(told)
            self.quoting(source.card, source.told, [source.card])

    def quoting(self, source: str, tokens: frozenset[str], made: list[str]) -> None:
        item = self.new()
        given, known = self.prompt(item)
        item.made, item.told = made, self.some(known | tokens)
        is_picture = source.startswith("picture")
        who = self.begin(item, self.say())
        self.call("note_read_messages", {
            **who, "p_messages": json.dumps([source]),
            "p_texts": json.dumps({} if is_picture else {source: self.say(tokens)}),
        })  # fmt: skip
        self.keep(item, who, known | tokens)
        self.finish(item, who, given)

    def forward(self) -> None:
        """A question that is a forward, or comes with a picture: its words are never stored."""
        item = self.new()
        item.token = self.token()
        brought = frozenset([item.token])
        given, known = self.prompt(item)
        item.told = self.some(known | brought)
        who = self.begin(item, "[forwarded messages]")
        self.call("note_read_messages", {
            **who, "p_messages": "[]",
            "p_texts": json.dumps({item.id: self.dice.choice(["", self.say(brought)])}),
        })  # fmt: skip
        self.keep(item, who, known | brought)
        self.finish(item, who, given)

    def digest(self) -> None:
        """A digest is made from all that it tells of."""
        live = [one for one in self.live_items() if one.stored]
        if not live:
            return
        item, authors = self.new(), list[str]()
        item.whole = True
        sources = self.dice.sample(live, min(len(live), 3))
        for one in sources:
            told = one.is_turn and not one.answer_gone and self.dice.random() < 0.5
            item.made.append(one.card if told else one.id)
            item.authors |= set() if told else {one.person}
            authors.append("" if told else self.who(one))
            item.told |= one.told if told else one.asked
        who = self.begin(item, "/digest")
        self.call("keep_digest_sources", {
            "p_turn_id": item.id, "p_chat_id": self.chat_id(item), "p_tenant_key": "t",
            "p_sources": json.dumps([{"message_id": one, "author_id": author}
                                     for one, author in zip(item.made, authors, strict=True)]),
        })  # fmt: skip
        self.finish(item, who, [])

    def fire(self) -> None:
        """The time of a reminder has come, and now and then its ground goes just then."""
        for one in self.items:
            for kept in one.kept:
                origin = {"origin": "reminder", "parent_id": kept.key, "cause": "1"}
                fired = any(other.origin == origin for other in self.items)
                if kept.kind == "reminder" and not one.gone and not fired:
                    item = Item(f"fired_{kept.key}", *one.place, told=kept.tokens, whole=True)
                    item.origin = origin
                    item.made = [f"timer {kept.key}"]
                    who = self.begin(item, "timer")
                    self.while_it_is_made()
                    if self.record(item, who, []) != ("cancelled" if item.gone else "pending"):
                        raise self.wrong(f"{item.id} is made, gone: {item.gone}")
                    return

    def press(self) -> None:
        """A button under an answer: the question is made from that."""
        pressed = [one.origin["parent_id"] for one in self.items if one.origin]
        told = [one for one in self.items if one.is_turn and one.can_be_shown]
        told = [one for one in told if one.id not in pressed and one.has_button]
        if told:
            one = self.dice.choice(told)
            item = Item(f"press_{one.id}", one.chat, one.root, self.dice.choice(PEOPLE))
            item.origin = {"origin": "button", "parent_id": one.id, "cause": f"b_{one.id}"}
            item.whole, item.made = True, [f"button {one.id}"]
            given, known = self.prompt(item)
            item.told = self.some(known)
            self.finish(item, self.begin(item, self.say()), given)

    def ask_once_more(self) -> None:
        """A question is answered anew: it is the same question."""
        asked = [one for one in self.items if one.asked and one.is_turn and not one.gone
                 and not one.origin]  # fmt: skip
        if asked:
            one = self.dice.choice(asked)
            item = Item(f"again_{one.id}", *one.place, asked=one.asked)
            item.origin = {"origin": "again", "parent_id": one.id, "cause": ""}
            item.whole, item.made = True, [one.id]
            if any(other.id == item.id for other in self.items):
                return
            given, known = self.prompt(item)
            item.told = self.some(known | item.asked)
            self.finish(item, self.begin(item, self.say(item.asked)), given)

    def tell_privately(self) -> None:
        """What one person alone is shown: it is made from what it draws on."""
        asked = [one for one in self.live_items() if one.is_turn and one.id.startswith("om_")
                 and one.chat in CHATS and not one.origin]  # fmt: skip
        if not asked:
            return
        one, drawn = self.dice.choice(asked), self.dice.sample(asked, min(len(asked), 2))
        item = Item(
            f"private_{one.id}", f"p2p{one.person}", "main", one.person, whole=True, shown_of=one.id
        )
        if any(other.id == item.id for other in self.items):
            return
        self.offer(item)
        self.shown = frozenset(
            token for own in drawn
            for token in own.asked | (frozenset() if own.answer_gone else own.told)
        )  # fmt: skip
        item.told = self.some(self.shown)
        who = self.begin(item, self.say())
        identity = {name: who[name] for name in ("p_conversation_id", "p_user_id", "p_actor_id")}
        self.call("draw_on", {
            **identity, "p_tenant_key": "t", "p_turn_id": item.id, "p_with_notes": True,
            "p_sources": json.dumps([own.id for own in drawn]),
        })  # fmt: skip
        row = self.database.execute("select drawn_on from agent_turns where id = %s", [item.id])
        item.made = [one.id, *next(row)[0]]
        self.finish(item, who, [own.id for own in drawn])

    def offer(self, item: Item) -> None:
        """What comes before a private answer: a button, as a turn that says nothing."""
        offer, button = f"offer_{item.shown_of}", f"show_{item.shown_of}"
        item.origin = {"origin": "private_answer", "parent_id": offer, "cause": button}
        self.call("offer_private", {
            "p_conversation_id": self.thread(item), "p_user_id": self.who(item),
            "p_actor_id": self.who(item), "p_tenant_key": "t", "p_turn_id": item.shown_of,
            "p_button": json.dumps({"id": button, "group_id": button, "chat_type": "p2p",
                                    "label": "Show me", "payload": {}, "lives_s": 60}),
            "p_offer_id": offer,
        })  # fmt: skip

    def ask_alone(self) -> None:
        """A question in p2p, with what was shown there before the prompt's other words."""
        shown = [one for one in self.items
                 if one.is_private and not (one.gone or one.answer_gone or one.open)]  # fmt: skip
        if not shown:
            return
        one = self.dice.choice(shown)
        item = Item(f"om_{len(self.items)}_{self.mark}", *one.place)
        given, known = self.prompt(item)
        item.told = self.some(known | one.told)
        who = self.begin(item, self.say())
        self.keep(item, who, known | one.told)
        self.finish(item, who, [*given, one.id])

    def ask_meanwhile(self) -> None:
        """Something is taken back while an answer is made: it is made again without that."""
        item = self.new()
        given, known = self.prompt(item)
        item.told = self.some(known)
        who = self.begin(item, self.say())
        self.while_it_is_made()
        if self.record(item, who, given) == "open":
            given, known = self.prompt(item)
            item.told = self.some(known)
            self.finish(item, self.begin(item, ""), given)
        elif item.told & self.gone:
            raise self.wrong(f"{item.id} tells {item.told & self.gone}")

    def while_it_is_made(self) -> None:
        if self.dice.random() < 0.5:
            self.take_back()

    def answer_while_away(self) -> None:
        """The memory is away, and gets to know later what was asked and answered; before that, what
        was taken back meanwhile. What was read then leaves no hashes."""
        item, reads = self.new(), [one for one in self.items if one.is_file and not one.gone]
        given, known = self.prompt(item)
        if reads and self.dice.random() < 0.5:
            file = self.dice.choice(reads)
            item.made, known = [file.id], known | file.asked
        item.told = self.some(known)
        before = {one.id: (one.gone, one.answer_gone, len(one.kept)) for one in self.items}
        asked_at = next(self.database.execute("select clock_timestamp()"))[0]
        self.while_it_is_made()
        changed = any(
            before[one.id] != (one.gone, one.answer_gone, len(one.kept))
            for one in self.items if one.id in before
        )  # fmt: skip
        card = {"chunk": 0, "content": self.answer(item), "status": "sent",
                "message_id": item.card}  # fmt: skip
        state = self.call("restore_turn", {
            "p_turn_id": item.id, "p_conversation_id": self.thread(item),
            "p_chat_id": self.chat_id(item), "p_root_id": item.root, "p_user_id": self.who(item),
            "p_actor_id": self.who(item), "p_actor_name": "A", "p_tenant_key": "t",
            "p_content": self.say(), "p_cards": json.dumps([card]), "p_tool_calls": "[]",
            "p_error": None, "p_asked_at": asked_at, "p_answered_at": asked_at,
            "p_given": json.dumps([*given, *(f"read:{one}" for one in item.made)]),
        })["state"]  # fmt: skip
        self.items.append(item)
        item.given, item.has_button = given, False
        item.answer_gone = state == "failed"
        if item.answer_gone != bool(item.told & self.gone) and not (item.answer_gone and changed):
            raise self.wrong(f"{item.id} {state} tells {item.told}")

    def by_chance(self) -> None:
        """Somebody is told a token by nobody: the answer was never given its source."""
        sources = [one for one in self.items if one.token and not one.gone]
        if sources:
            item = self.new(chat="zoe")  # in a thread of its own, of which nobody is told
            item.by_chance = True
            item.told = frozenset([self.dice.choice(sources).token])
            self.finish(item, self.begin(item, self.say()), [])

    # Taking back

    def take_back(self) -> None:
        sources = [one for one in self.items if one.token and not one.gone]
        if not sources:
            return
        source = self.dice.choice(sources)
        whole, answers = self.made_from(source)
        self.gone |= {source.token}
        self.call("recall_message", {"p_message_id": source.id,
                                     "p_chat_id": self.chat_id(source)})  # fmt: skip
        self.story[-1] += f": {source.id} {source.token}"
        SEEN["taken back"] += 1
        for item in self.items:
            if item is source or item.id in whole:
                item.gone = item.answer_gone = True
                item.kept = []
                continue
            if item.by_chance or not item.is_turn:
                continue
            tells = source.token in item.told and (not item.open or item.came_as("reminder"))
            if item.id in answers or tells:
                item.answer_gone = True
                item.gone = item.gone or (tells and item.goes_whole)
                if item.gone:
                    item.kept = []
            item.kept = [one for one in item.kept if source.token not in one.tokens]
        self.compare(source)

    def forget(self) -> None:
        """A person is forgotten, in all chats: the rest stays, and still knows its sources."""
        person = self.dice.choice(PEOPLE)
        self.call("forget_person", {"p_user_id": f"ou_{person}_{self.mark}", "p_tenant_key": "t"})
        self.story[-1] += f": {person}"
        gone = set[str]()  # what was shown privately of a digest goes with it
        for item in self.items:
            theirs = item.person == person
            if not item.is_file and (theirs or person in item.authors or item.shown_of in gone):
                gone.add(item.id)
                item.gone = item.answer_gone = True
                item.forgotten = item.forgotten or theirs
                item.kept = []
        SEEN["forgotten"] += 1

    def made_from(self, source: Item) -> tuple[set[str], set[str]]:
        """The ids of turns that go with the source whatever they tell, whole and their answers."""
        whole, answers, ids = {source.id}, set[str](), {source.id, source.card}
        ids |= {f"button {source.id}"} | {f"timer {one}" for one in source.reminders}
        while True:
            before = len(ids)
            for item in self.items:
                if item.forgotten or not ids.intersection(item.made):
                    continue
                ids |= {item.card, f"button {item.id}"}
                if item.whole:
                    whole.add(item.id)
                    ids |= {item.id} | {f"timer {one}" for one in item.reminders}
                else:
                    answers.add(item.id)
            if len(ids) == before:
                return whole, answers

    def embed(self) -> None:
        """Every message gets a vector that tells its content."""
        made = self.database.execute(
            f"""insert into agent_embeddings (id, turn_id, conversation_id, user_id, tenant_key,
                  chat_id, model, embedding, actor_id, said_at)
                select id, turn_id, conversation_id, user_id, tenant_key, chat_id, 'm',
                  format('[1,%%s]', {_VECTOR})::extensions.halfvec, actor_id, created_at
                from agent_messages m where turn_id like %s
                on conflict do nothing returning id""".encode(),
            [f"%{self.mark}%"],
        )
        SEEN["vectors"] += len(made.fetchall())

    def compare(self, source: Item) -> None:
        """The database holds what it should, and nothing else."""
        like = f"%{self.mark}%"
        answers = self.rows("select turn_id from agent_messages where role = 'assistant'"
                            " and turn_id like %s", like)  # fmt: skip
        questions = self.rows("select turn_id from agent_messages where role = 'user'"
                              " and turn_id like %s", like)  # fmt: skip
        kept = self.rows("select e.key from agent_working_memory w, jsonb_each(w.content) e"
                         " where w.user_id like %s", like)  # fmt: skip
        kept |= self.rows("select id from agent_notes where id like %s", like)
        kept |= self.rows("select id from agent_timers where id like %s", like)
        withdrawn = self.rows("select message_id from agent_withdrawals where message_id like %s",
                              f"%{self.mark}%_card")  # fmt: skip
        turns = [one for one in self.items if one.is_turn]
        shown = [one for one in turns if not one.forgotten and not one.open]
        self.expect("answers", answers, {one.id for one in turns if not one.answer_gone}, source)
        self.expect("questions", questions, {one.id for one in turns if not one.gone}, source)
        self.expect("kept", kept, {k.key for one in turns for k in one.kept}, source)
        self.expect("cards", {one.card for one in shown} - withdrawn,
                    {one.card for one in shown if not one.answer_gone}, source)  # fmt: skip
        self.look_for(source)

    def expect(self, what: str, found: set[str], wanted: set[str], source: Item) -> None:
        SEEN[f"{what} stay"] += len(wanted)
        if found != wanted:
            problem = f"{what} remain: {found - wanted}, bystanders: {wanted - found}"
            raise self.wrong(f"without {source.id} {source.token} {problem}")

    def wrong(self, problem: str) -> Wrong:
        return Wrong("\n".join([*self.story, *map(repr, self.items), problem]))

    def look_for(self, source: Item) -> None:
        """Nor do tool calls, the history of facts, the hashes or a vector hold it."""
        old = self.rows(
            f"""select e.turn_id from agent_embeddings e left join agent_messages m using (id)
                where e.turn_id like %s and (e.embedding::real[])[2] is distinct from {_VECTOR}""",
            f"%{self.mark}%",
        )
        if old:
            raise self.wrong(f"a vector is of what {old} said before")
        like = f"%{source.token}%"
        mine = f"%{self.mark}%"
        chance = [one.id for one in self.items if one.by_chance]
        for query in (
            "select turn_id from agent_messages where tool_calls::text like %s and turn_id like %s"
            " and turn_id <> all (%s)",
            "select turn_id from agent_working_memory_history where was::text || became::text"
            " like %s and user_id like %s and turn_id <> all (%s)",
            "select source from bot_private.source_terms where source like %s and %s <> ''"
            " and source <> all (%s)",
            "select source from bot_private.talk_terms where source like %s and %s <> ''"
            " and source <> all (%s)",
        ):
            first = source.id if "select source" in query else like
            if row := self.database.execute(query.encode(), [first, mine, chance]).fetchone():
                raise self.wrong(f"{source.token} is in {query}: {row}")

    def rows(self, query: str, *params: object) -> set[str]:
        return {str(row[0]) for row in self.database.execute(query.encode(), params)}

    def call(self, function: str, params: dict[str, Any]) -> Any:
        given = ", ".join(f"{name} => %s" for name in params)
        row = self.database.execute(
            f"select public.{function}({given})".encode(), [*params.values()]
        ).fetchone()
        return row[0] if row else None

    def live(self) -> None:
        for number in range(self.dice.randint(4, STEPS)):
            step = self.dice.choice(_STEPS) if self.dice.random() > 0.02 else History.forget
            self.story.append(f"{number} {step.__name__}")
            step(self)
        if self.dice.random() < 0.2:
            self.story.append("end forget")
            self.forget()
        for _ in range(2):
            self.story.append("end take_back")
            self.take_back()


_STEPS: list[Callable[[History], None]] = [
    History.ask, History.ask, History.ask_again, History.ask_again, History.talk, History.file,
    History.read_again, History.quote, History.forward, History.digest, History.fire,
    History.press, History.by_chance, History.take_back, History.talk_ends, History.answer_unasked,
    History.ask_once_more, History.tell_privately, History.ask_alone, History.ask_meanwhile,
    History.answer_while_away, History.embed, History.embed, History.embed,
]  # fmt: skip
