"""“That note”, “the first note”: the seed scenarios through the manager and the real database.

Each runs with the offline model and with a scripted model; both find ids only in their prompt.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agents.llm.model import Model, Request
from bot.agents.manager import AgentAnswer, Manager, Prompt, Stores
from bot.agents.offline.model import OfflineModel
from bot.agents.prompts.prompt import without_knowledge
from bot.agents.prompts.tool_context import enrich, exchanges, registry_table, with_shown
from bot.features.registry import TOOLS
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.context import PromptMessage
from memory.models import StoredMessage
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.notes import Note, NoteStore
from tests.support.models import Acting, everything
from tests.support.people import Group

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def reading_model() -> Model:
    """A model that follows the seed scenarios and finds every id by reading its prompt."""
    return Acting(_read_and_act)


def _read_and_act(request: Request) -> Any:
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"Done. {last['content']}"
    call = _call_for(without_knowledge(last["content"])[1], everything(request))
    return [call] if call else "All right."


def _call_for(question: str, prompt: str) -> tuple[str, dict[str, Any]] | None:
    if match := re.search(r"create a note about (\w+)(?: with tags (.+))?", question):
        tags = match[2].split(", ") if match[2] else []
        return "create_note", {"title": match[1].title(), "tags": tags}
    if match := re.search(r"search notes for (\w+)", question):
        return "search_notes", {"query": match[1]}
    ids = re.findall(r"^\| (\d+) \| ([^|]+) \| (note_\w+) \|.*\| (\d+|-) \|$", prompt, re.MULTILINE)
    if not ids:  # no registry: what the tool context of earlier answers refers to
        seen = dict.fromkeys(re.findall(r"References: (note_\w+)", prompt))
        ids = [(str(n), "", id, str(len(seen) - n + 1)) for n, id in enumerate(seen, start=1)]
    wanted = "1"
    place = 0 if "first note" in question else 3
    chosen = [row[2] for row in ids if row[place] == wanted]
    listed = re.search(
        r"list of notes that a card showed last, in its order: 1\. (note_\w+)", prompt
    )
    if listed and place == 0:
        chosen = [listed[1]]
    if not chosen:
        return None
    if match := re.search(r"remove the (\w+) tag from", question):
        return "update_note", {"note_id": chosen[0], "remove_tags": [match[1]]}
    if match := re.search(r"add (?:the )?tag '([\w-]+)'", question):
        return "update_note", {"note_id": chosen[0], "add_tags": [match[1]]}
    return None


@dataclass
class Talk:
    """One thread as a turn drives it: open, prompt with tool context, answer, store, sent."""

    manager: Manager
    memory: MemoryStore
    notes: NoteStore
    context: AgentMemoryContext
    with_registry: bool = True
    in_pairs: bool = True
    turns: int = 0
    answers: list[AgentAnswer] = field(default_factory=list)

    async def say(self, question: str) -> str:
        self.turns += 1
        turn_id = f"{self.context.root_id}-{self.context.actor_id}-{self.turns}"
        opened = await self.memory.begin_turn(self.context, turn_id=turn_id, content=question)
        history = tuple(self._told(message) for message in opened.history[:-1])
        registry = registry_table(await self.notes.registry(self.context))
        answer = await self.manager.answer(
            Prompt(
                bot_name="Bot",
                question=question,
                history=history,
                subject="Alice",
                working_memory=opened.working_memory,
                now=NOW,
                context=self.context,
                turn_id=turn_id,
                registry=registry if self.with_registry else "",
            ),
            timeout_s=20,
        )
        await self.memory.record_reply(
            self.context,
            turn_id=turn_id,
            cards=[answer.text],
            tool_calls=with_shown(answer.tool_calls, answer.text),
        )
        await self.memory.mark_sent(
            self.context,
            turn_id=turn_id,
            chunk=0,
            content=answer.text,
            message_id=f"{turn_id}-card",
        )
        self.answers.append(answer)
        return answer.text

    def _told(self, message: StoredMessage) -> PromptMessage:
        if self.in_pairs:
            pairs = exchanges(message.id, message.tool_calls)
            return PromptMessage(message.role, message.content, exchanges=pairs)
        return PromptMessage(message.role, enrich(message.content, message.tool_calls))

    async def tags(self, title: str) -> tuple[str, ...]:
        return (await self.note(title)).tags

    async def note(self, title: str) -> Note:
        [note] = [n for n in await self.notes.list(self.context) if n.title == title]
        return note


OpenTalk = Callable[..., Talk]


@pytest.fixture(params=[OfflineModel, reading_model], ids=["offline", "reading"])
def model(request: pytest.FixtureRequest) -> Model:
    made: Model = request.param()
    return made


@pytest.fixture
async def talk(database_url: str, model: Model) -> AsyncIterator[OpenTalk]:
    """Opens threads; each call is a fresh manager and store, as after a restart."""
    pool = connection_pool(database_url)
    await pool.open()
    rpc = PostgresRpc(pool, timeout_s=20)
    group = Group()

    def open_talk(
        turns: int = 0, with_registry: bool = True, in_pairs: bool = True, **who: str
    ) -> Talk:
        memory, notes = MemoryStore(rpc), NoteStore(rpc)
        return Talk(
            Manager(model, stores=Stores(memory, notes), tools=TOOLS),
            memory,
            notes,
            group.turn(**who),
            with_registry,
            in_pairs,
            turns,
        )

    yield open_talk
    await rpc.close()


KNOWN_FROM = pytest.mark.parametrize(
    ("with_registry", "in_pairs"),
    [(True, True), (False, True), (False, False)],
    ids=["registry", "earlier calls only", "tool context only"],
)


@KNOWN_FROM
async def test_that_note_is_the_note_just_created(
    talk: OpenTalk, with_registry: bool, in_pairs: bool
) -> None:
    thread = talk(with_registry=with_registry, in_pairs=in_pairs)
    await thread.say("create a note about pasta with tags italian, dinner")

    await thread.say("add the tag 'dining' to that note")

    assert await thread.tags("Pasta") == ("italian", "dinner", "dining")


@KNOWN_FROM
async def test_the_first_note_is_the_one_created_first(
    talk: OpenTalk, with_registry: bool, in_pairs: bool
) -> None:
    thread = talk(with_registry=with_registry, in_pairs=in_pairs)
    await thread.say("create a note about pizza with tags italian, party")
    await thread.say("create a note about lasagna with tags italian, dinner")

    await thread.say("remove the italian tag from the first note")

    assert await thread.tags("Pizza") == ("party",)
    assert await thread.tags("Lasagna") == ("italian", "dinner")


async def test_after_a_list_the_first_note_is_the_first_of_that_list(talk: OpenTalk) -> None:
    thread = talk()
    await thread.say("create a note about pizza with tags italian, dinner")
    await thread.say("create a note about dinner with tags italian, party")
    await thread.say("create a note about salad with tags green")
    # best first: the title counts as much as the tag, the last changed note comes first
    listed = await thread.say("search notes for dinner")
    assert listed.index("Dinner") < listed.index("Pizza")
    for number in range(12):
        await thread.say(f"Thing number {number} happened")

    await talk(turns=thread.turns).say("remove the italian tag from the first note")

    assert await thread.tags("Dinner") == ("party",)
    assert await thread.tags("Pizza") == ("italian", "dinner")


async def test_notes_of_other_threads_that_were_only_seen_do_not_come_first(
    talk: OpenTalk,
) -> None:
    earlier = talk(thread="earlier")
    await earlier.say("create a note about soup with tags hot")
    thread = talk(thread="now")
    await thread.say("Hello there")
    await thread.notes.list(thread.context)
    await thread.say("create a note about pizza with tags italian, hot")

    await thread.say("remove the hot tag from the first note")

    assert await thread.tags("Soup") == ("hot",)
    assert await thread.tags("Pizza") == ("italian",)


async def test_removing_one_tag_keeps_the_rest(talk: OpenTalk) -> None:
    thread = talk()
    await thread.say("create a note about pasta with tags italian, dinner, quick")

    await thread.say("remove the dinner tag from that note")

    assert await thread.tags("Pasta") == ("italian", "quick")


async def test_of_two_notes_that_note_is_the_most_recent_and_the_reply_says_which(
    talk: OpenTalk,
) -> None:
    thread = talk()
    await thread.say("create a note about salad with tags green")
    await thread.say("create a note about burger with tags beef")

    reply = await thread.say("update that note to add tag 'fast-food'")

    assert await thread.tags("Burger") == ("beef", "fast-food")
    assert await thread.tags("Salad") == ("green",)
    assert "Burger" in reply


async def test_the_registry_answers_when_the_window_has_moved_on(talk: OpenTalk) -> None:
    thread = talk()
    await thread.say("create a note about pizza with tags italian")
    await thread.say("create a note about pasta with tags italian, dinner")
    for number in range(30):
        await thread.say(f"Thing number {number} happened")

    await thread.say("remove the italian tag from the first note")
    await thread.say("add the tag 'dining' to that note")

    assert await thread.tags("Pizza") == ("dining",)
    assert await thread.tags("Pasta") == ("italian", "dinner")


async def test_who_mentions_somebody_works_on_notes_of_their_own(talk: OpenTalk) -> None:
    alice = talk()
    await alice.say("create a note about pasta with tags secret")
    bob_about_alice = talk(turns=1, subject="alice", sender="bob")

    await bob_about_alice.say("remove the secret tag from the first note")
    await bob_about_alice.say("create a note about trouble")

    assert await alice.tags("Pasta") == ("secret",)
    assert [n.title for n in await alice.notes.list(alice.context)] == ["Pasta"]
    assert [n.title for n in await bob_about_alice.notes.list(bob_about_alice.context)] == [
        "Trouble"
    ]
