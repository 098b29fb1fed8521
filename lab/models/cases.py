"""What people ask a bot with a real model, in English and in Chinese, and what becomes of it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from bot.outbox.partial_answer import status
from lab.models.observations import (
    Observation,
    TokenAccount,
    inner_marks,
    instructions_in,
    tokens,
    words,
)
from lab.models.surroundings import (
    ANSWER,
    JUDGE,
    SUMMARY,
    GroupChat,
    Surroundings,
    answer_text,
    notice,
)

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CaseWords:
    """What is said in one language. `fact` is in the first statement, `file_fact` in the file."""

    person: str
    mention: str
    follow_up: str
    ambiguous: str
    statements: tuple[str, ...]
    recall: str
    fact: str
    elsewhere: str
    file: str
    file_fact: str
    about_file: str
    long_answer: str


WORDS = {
    "en": CaseWords(
        person="Alice",
        mention="what should we pack for a trip to the sea?",
        follow_up="what about the children?",
        ambiguous="the press kit is finished on my side",
        statements=(
            "the code word of our launch is zanzibar",
            "Bob orders the cake",
            "we start at nine on Thursday",
            "the hall has 80 seats",
            "Carol brings the projector",
        ),
        recall="what is the code word of our launch?",
        fact="zanzibar",
        elsewhere="how many chairs are there in the hall?",
        file="Warehouse report. Apples: 7391. Pears: 12.",
        file_fact="7391",
        about_file="how many apples are there?",
        long_answer="tell me a long story about the sea",
    ),
    "zh": CaseWords(
        person="陈晨",
        mention="去海边旅行要带什么？",
        follow_up="那孩子们呢？",
        ambiguous="新闻稿我这边写完了",
        statements=(
            "我们发布会的暗号是桑给巴尔",
            "李雷负责订蛋糕",
            "我们周四九点开始",
            "会场有80个座位",
            "韩梅梅带投影仪",
        ),
        recall="我们发布会的暗号是什么？",
        fact="桑给巴尔",
        elsewhere="会场有多少把椅子？",
        file="仓库报告。苹果：7391。梨：12。",
        file_fact="7391",
        about_file="有多少苹果？",
        long_answer="给我讲一个关于大海的长故事",
    ),
}


def observe(around: Surroundings, said: CaseWords, report: Report) -> Iterator[Observation]:
    """The cases of a language, one after the other."""
    talk = CaseTalk(around.group_of(said.person), report)
    root, first = talk.ask("mention", said.mention)
    yield first
    yield talk.ask("follow-up, no mention", said.follow_up, mention=False, reply_to=root)[1]
    yield _judged(talk, said.ambiguous)
    yield from _long_thread(talk, said)
    yield talk.ask_for("recall in another thread", said.elsewhere, "80")
    yield _file(talk, said)
    yield talk.ask("Stop", said.long_answer, stop=True)[1]


def account(around: Surroundings) -> TokenAccount:
    """The tokens of the first request of a turn, which the probes of `/readyz` precede."""
    asked = (one["request"] for one in around.model.requests(ANSWER))
    request = next(one for one in asked if one["messages"][0]["role"] == "system")
    texts = {True: "", False: ""}
    for message in request["messages"]:
        texts[message["role"] == "system"] += f"{message['content']}\n"
    tools = request.get("tools") or []
    written = json.dumps(tools, ensure_ascii=False, separators=(",", ":")) if tools else ""
    count = around.model.count_tokens
    return TokenAccount(count(texts[True]), count(written), len(tools), count(texts[False]))


@dataclass(frozen=True, slots=True)
class CaseTalk:
    """One person's questions in one group."""

    group: GroupChat
    report: Report

    def ask(
        self, case: str, text: str, *, mention: bool = True, stop: bool = False, **more: Any
    ) -> tuple[str, Observation]:
        """Says `text` and watches the card until it is complete; the message's id and what was
        seen. `stop`: presses the first button once there are words."""
        self.report(f"{case}: {text}")
        group, model = self.group, self.group.around.model
        before, asked_before = group.position(), len(model.requests())
        began = time.monotonic()
        message_id = group.say(text, mention=mention, **more)
        seen = Watched(group, before, began, message_id)
        if stop:
            seen.press_stop()
        cards = seen.until_complete()
        if cards:  # the server notices between two batches that nobody listens any more
            group.wait_for(lambda: of_answers(model.requests()[asked_before:]))
        records = model.requests()[asked_before:]
        answered = of_answers(records)
        sent = tuple(map(answer_text, cards))
        read, written = tokens(answered)
        observed = Observation(
            case=case,
            asked=text,
            stored=seen.stored(),
            sent=sent,
            first_s=seen.first_s,
            end_s=seen.end_s,
            tokens_in=read,
            tokens_out=written,
            marks=self._marks(sent, records),
            remarks=(*_endings(cards), *_raw_marks(answered)),
        )
        return message_id, observed

    def ask_for(self, case: str, text: str, fact: str, **more: Any) -> Observation:
        """Asks, and notes whether `fact` was in the prompt and in the answer."""
        asked_before = len(self.group.around.model.requests())
        _, observed = self.ask(case, text, **more)
        records = self.group.around.model.requests(ANSWER)
        prompts = [str(one["request"]["messages"]) for one in records[-1:]]
        given = any(fact in prompt for prompt in prompts) and asked_before < len(
            self.group.around.model.requests()
        )
        told = any(fact in text for text in observed.sent)
        remark = f"fact in the prompt: {_yes(given)}, in the answer: {_yes(told)}"
        return replace(observed, remarks=(*observed.remarks, remark))

    def _marks(self, sent: tuple[str, ...], records: list[dict[str, Any]]) -> tuple[str, ...]:
        name, rules = self.group.around.bot_name, instructions_in(records)
        return tuple(
            mark for text in sent for mark in inner_marks(text, instructions=rules, own_name=name)
        )


def of_answers(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that the model took for an answer, not for the judge or a summary."""
    taken = (one for one in records if "prompt_tokens" in one)
    return [one for one in taken if one["request"].get("model") == ANSWER]


class Watched:
    """A question and the cards that answer it."""

    def __init__(self, group: GroupChat, before: int, began: float, message_id: str) -> None:
        self._group, self._before, self._began = group, before, began
        self._message_id = message_id
        self.first_s: float | None = None
        self.end_s: float | None = None

    def press_stop(self) -> None:
        """Presses Stop as soon as there are words."""

        def begun() -> list[dict[str, Any]]:
            return [one for one in self._cards() if one["streaming"] and _says_something(one)]

        if cards := self._group.wait_for(begun):
            body = {"as": self._group.person, "message_id": cards[0]["message_id"], "index": 0}
            self._group.around.platform.post("/click", **body)

    def until_complete(self) -> list[dict[str, Any]]:
        """The cards once the turn is sent; none where the bot stays silent."""
        decisions = self._group.wait_for(self._decisions)
        if not decisions or not decisions[0]["respond"]:
            return []
        if self._group.wait_for(self._is_sent):
            self.end_s = time.monotonic() - self._began
        return self._cards()

    def stored(self) -> tuple[str, ...]:
        """What is kept of the answer."""
        rows = self._group.around.rows(
            "select content from agent_messages where turn_id = %s and role = 'assistant'"
            " order by chunk",
            self._message_id,
        )
        return tuple(str(row["content"]) for row in rows)

    def _cards(self) -> list[dict[str, Any]]:
        cards = [one for one in self._group.answers(self._before) if answer_text(one)]
        if self.first_s is None and any(map(_says_something, cards)):
            self.first_s = time.monotonic() - self._began
        return cards

    def _decisions(self) -> list[dict[str, Any]]:
        return self._group.around.rows(
            "select respond from agent_decisions where message_id = %s", self._message_id
        )

    def _is_sent(self) -> bool:
        self._cards()
        rows = self._group.around.rows(
            "select state from agent_turns where id = %s", self._message_id
        )
        return bool(rows and rows[0]["state"] in ("sent", "failed"))


def _says_something(card: dict[str, Any]) -> bool:
    """Not only that the model thinks."""
    return words(answer_text(card)) not in ("", status("", "en"), status("", "zh"))


def _judged(talk: CaseTalk, text: str) -> Observation:
    model = talk.group.around.model
    before = len(model.requests(JUDGE))
    message_id, observed = talk.ask("judge", text, mention=False)
    records = model.requests(JUDGE)[before:]
    decision = talk.group.around.rows(
        "select respond, reason, verdict, judge_ms from agent_decisions where message_id = %s",
        message_id,
    )
    told = [f"model wrote {one['text'].strip()[:20]!r}" for one in records]
    told += [f"{one['reason']}, verdict {one['verdict']!r}" for one in decision]
    if records and not observed.sent:
        read, written = tokens(records)
        observed = replace(observed, tokens_in=read, tokens_out=written)
    return replace(observed, remarks=(*observed.remarks, *(told or ["no decision"])))


def _long_thread(talk: CaseTalk, said: CaseWords) -> Iterator[Observation]:
    """A thread that outgrows the window, its summary, and a question for what was said first."""
    first, *others = said.statements
    root, observed = talk.ask("long thread, 1", first)
    yield observed
    for number, text in enumerate(others, 2):
        _, observed = talk.ask(f"long thread, {number}", text, reply_to=root)
        yield observed
    yield _summary(talk, root, said.fact)
    yield talk.ask_for("recall in the long thread", said.recall, said.fact, reply_to=root)


def _summary(talk: CaseTalk, root: str, fact: str) -> Observation:
    around = talk.group.around
    conversation = f"feishu:{talk.group.chat_id}:{root}"

    def stored() -> list[dict[str, Any]]:
        return around.rows(
            "select content from agent_summaries where conversation_id = %s", conversation
        )

    summaries = [str(row["content"]) for row in talk.group.wait_for(stored)]
    records = around.model.requests(SUMMARY)
    read, written = tokens(records[-1:])
    text = " ".join(summaries)
    by_model = any(one["text"] and one["text"].strip()[:20] in text for one in records)
    return Observation(
        case="summary",
        asked="(in the background)",
        stored=tuple(summaries),
        sent=tuple(summaries),
        end_s=records[-1].get("total_s") if records else None,
        tokens_in=read,
        tokens_out=written,
        marks=inner_marks(text, instructions=instructions_in(records)),
        remarks=(
            f"kept: {'the model’s' if by_model else 'the rules’'}",
            f"first fact in it: {_yes(fact in text)}",
        ),
    )


def _file(talk: CaseTalk, said: CaseWords) -> Observation:
    content = base64.b64encode(said.file.encode()).decode()
    file = talk.group.say(
        "", mention=False, message_type="file", file_name="report.txt", file_base64=content
    )
    return talk.ask_for(
        "a file, quoted", said.about_file, said.file_fact, reply_to=file, quote=True
    )


def _endings(cards: list[dict[str, Any]]) -> list[str]:
    """Why the answers ended, in short."""
    return [line.partition(".")[0].partition("。")[0] for line in map(notice, cards) if line]


def _raw_marks(records: list[dict[str, Any]]) -> list[str]:
    """What the model itself wrote of marks, before anything was taken out."""
    marks = [mark for one in records for mark in inner_marks(one["text"])]
    return [f"the model wrote {', '.join(dict.fromkeys(marks))}"] if marks else []


def _yes(value: bool) -> str:
    return "yes" if value else "no"
