"""A chat's history from before: who begins it, who reads it, and how it goes again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.features.private_answers.comparing import helps_more
from memory.errors import AccessDenied
from memory.models import ANSWERED_OUTCOME
from memory.recall.passages import Passage
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, FeishuPerson, private_context
from memory.store import MemoryStore
from memory.tables.directory import ChatStore
from memory.tables.imports import Chat, ImportedMessage, ImportStore, MembershipNotice, Page
from memory.tables.private import PrivateStore
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

NOW = datetime.now(UTC)
YEAR_AGO = NOW - timedelta(days=365)


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


@dataclass
class History:
    """A group of Ann, Bob and Cleo, of whom a list was read, and what was said there a year ago."""

    rpc: Rpc
    group: Group
    imports: ImportStore = field(init=False)
    memory: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.imports, self.memory = ImportStore(self.rpc), MemoryStore(self.rpc)

    @property
    def chat(self) -> Chat:
        return "tenant", self.group.chat()

    def at(self, who: str = "ann") -> AgentMemoryContext:
        return self.group.turn(who, chat_type="group")

    def p2p(self, who: str = "ann") -> AgentMemoryContext:
        return self.group.p2p(who)

    async def members(self, *names: str) -> None:
        members = [FeishuPerson("tenant", self.group.person(name)) for name in names]
        await ChatStore(self.rpc).enter("tenant", self.group.chat(), name="Team", at_ms=ms(NOW))
        await ChatStore(self.rpc).save_members(self.group.chat(), members, asked_ms=ms(NOW))

    def message(
        self, name: str, content: str, who: str = "ann", days: float = 0, root: str = ""
    ) -> ImportedMessage:
        return ImportedMessage(
            self.group.message(name),
            root,
            self.group.person(who),
            who.capitalize(),
            ms(YEAR_AGO + timedelta(days=days)),
            content,
        )

    async def begin(self, *, context: AgentMemoryContext | None = None) -> int:
        started = await self.imports.start(
            self.chat, "group", context=context, since_ms=None, until_ms=ms(NOW)
        )
        return started.id

    async def import_all(self, *pages: Page, names: Sequence[str] = ("ann", "bob", "cleo")) -> int:
        number = await self.begin()
        await self.read(number, *pages)
        await self.imports.finish(
            number, {self.group.person(name): [name.capitalize()] for name in names}
        )
        return number

    async def read(self, number: int, *pages: Page) -> None:
        at = ""
        for page in pages:
            await self.imports.store_page(number, phase="chat", at=at, page=page)
            at = page.next_position
        while thread := await self.imports.next_thread(number):
            page = Page([self.message("reply", "the rooftop it is", "bob", 1, root="root")])
            await self.imports.store_page(
                number, phase="threads", at=thread[1], page=page, thread_id=thread[0]
            )

    async def find(self, context: AgentMemoryContext, query: str) -> tuple[Passage, ...]:
        scope = "everywhere" if context.chat_type == "p2p" else "chat"
        return await self.memory.find(context, query, now=NOW, scope=scope)

    async def texts(self, context: AgentMemoryContext, query: str) -> list[str]:
        return [passage.question for passage in await self.find(context, query)]


@pytest.fixture
async def history(backend: Backend, group: Group) -> AsyncIterator[History]:
    async with backend.rpc() as rpc:
        here = History(rpc, group)
        await here.members("ann", "bob", "cleo")
        yield here


async def test_only_who_manages_the_chat_begins_pauses_and_removes_an_import(
    history: History,
) -> None:
    with pytest.raises(AccessDenied):
        await history.begin(context=history.at("bob"))
    await ChatStore(history.rpc).save_managers(*history.chat, [history.group.person("ann")])
    await history.begin(context=history.at("ann"))

    with pytest.raises(AccessDenied):
        await history.imports.pause(history.chat, history.at("bob"))
    with pytest.raises(AccessDenied):
        await history.imports.remove(history.chat, history.at("bob"))
    paused = await history.imports.pause(history.chat, history.at("ann"))
    seen = await history.imports.of_chat(history.chat, history.at("bob"))
    assert paused
    assert paused.state == "paused"
    assert paused.started_by == history.group.person("ann")
    assert seen == paused


async def test_what_was_said_before_is_found_with_its_author_and_time(history: History) -> None:
    said = history.message("budget", "The budget of the summer party is 4,200 euros", "bob")
    reply = history.message("chat", "fine with me", "cleo", 0.01)
    await history.import_all(Page([said, reply]))

    [found, *_] = await history.find(history.at(), "What is the budget of the summer party?")

    assert (found.source, found.feishu_id) == ("import", said.message_id)
    assert (found.actor_id, found.actor_name) == (said.author_id, "Bob")
    assert (found.question, found.answer, found.after) == (said.content, "", reply.content)
    assert ms(datetime.fromisoformat(found.asked_at)) == said.sent_ms


async def test_a_page_that_comes_twice_or_late_changes_nothing(history: History) -> None:
    number = await history.begin()
    page = Page(
        [history.message("one", "lunch is at the harbour")], ("t1",), (), {"files": 2}, "next"
    )
    last = Page([history.message("two", "dinner is at the lake", days=2)])

    first = await history.imports.store_page(number, phase="chat", at="", page=page)
    again = await history.imports.store_page(number, phase="chat", at="", page=page)
    twice = await history.imports.store_page(
        number,
        phase="chat",
        at="next",
        page=replace(last, messages=[*page.messages, *last.messages]),
    )
    late = await history.imports.store_page(number, phase="chat", at="next", page=last)

    assert first
    assert again == first
    assert (first.messages, first.pages, first.report) == (1, 1, {"files": 2})
    assert twice
    assert (twice.messages, twice.phase) == (2, "threads")
    assert late == twice


async def test_a_thread_is_read_after_the_chat(history: History) -> None:
    root = history.message("root", "where do we celebrate?")
    number = await history.import_all(Page([root], threads=["omt_1"]))

    done = await history.imports.get(number)

    assert done
    assert (done.state, done.messages) == ("done", 2)
    assert await history.texts(history.at(), "rooftop") == ["the rooftop it is"]


async def test_a_paused_import_takes_no_page_and_goes_on_where_it_was(history: History) -> None:
    number = await history.begin()
    page = Page([history.message("one", "lunch is at the harbour")], next_position="next")
    await history.imports.store_page(number, phase="chat", at="", page=page)
    await history.imports.pause(history.chat, None)

    paused = await history.imports.store_page(number, phase="chat", at="next", page=Page())
    resumed = await history.imports.resume(history.chat, None)

    assert paused
    assert (paused.state, paused.position) == ("paused", "next")
    assert resumed
    assert (resumed.state, resumed.position) == ("running", "next")


async def test_a_group_is_told_only_what_its_newest_member_could_read(history: History) -> None:
    early = history.message("early", "the mascot is a walrus", "ann")
    late = history.message("late", "the slogan is walk tall", "bob", 100)
    joined = MembershipNotice("Cleo", ms(YEAR_AGO + timedelta(days=50)), True)
    await history.import_all(Page([early, late], memberships=[joined]))

    assert await history.texts(history.at(), "mascot walrus") == []
    assert await history.texts(history.at(), "slogan") == [late.content]
    assert await history.texts(history.p2p("ann"), "mascot walrus") == [early.content]
    assert await history.texts(history.p2p("cleo"), "mascot walrus") == []
    assert await history.texts(history.p2p("cleo"), "slogan") == [late.content]
    assert await history.texts(history.p2p("dora"), "slogan") == []


async def test_where_the_owner_says_that_all_members_see_history_they_do(history: History) -> None:
    said = history.message("early", "the mascot is a walrus", "ann")
    joined = MembershipNotice("Cleo", ms(YEAR_AGO + timedelta(days=50)), True)
    await history.import_all(Page([said], memberships=[joined]))
    await ChatStore(history.rpc).save_managers(*history.chat, [history.group.person("ann")])
    rule = {"p_chat_id": history.chat[1], "p_tenant_key": "tenant", "p_name": "history"}
    await history.rpc.call("set_chat_rule", {**rule, "p_value": "shown"}, history.at())

    assert await history.texts(history.at(), "mascot") == [said.content]
    assert await history.texts(history.p2p("cleo"), "mascot") == [said.content]
    assert await history.texts(history.p2p("dora"), "mascot") == []


async def test_who_is_not_known_to_have_been_there_keeps_the_group_from_it(
    history: History,
) -> None:
    said = history.message("early", "the mascot is a walrus", "ann")
    await history.import_all(Page([said]), names=("ann", "bob"))

    assert await history.texts(history.at(), "mascot") == []
    assert await history.texts(history.p2p("ann"), "mascot") == [said.content]


async def test_nothing_is_read_before_it_is_known_who_was_there(history: History) -> None:
    number = await history.begin()
    await history.read(number, Page([history.message("early", "the mascot is a walrus")]))

    assert await history.texts(history.at(), "mascot") == []
    assert await history.texts(history.p2p(), "mascot") == []


async def test_a_message_taken_back_goes_and_stays_away_with_the_answer_that_told_it(
    history: History,
) -> None:
    said = history.message("early", "the mascot is a walrus named Gustav", "bob")
    number = await history.import_all(Page([said]))
    here = history.at()
    await history.memory.begin_turn(
        here, turn_id=history.group.message("asked"), content="who is our mascot?"
    )
    [found] = await history.find(here, "mascot")
    await history.memory.record_reply(
        here,
        turn_id=history.group.message("asked"),
        cards=["A walrus, Gustav."],
        means=ANSWERED_OUTCOME,
        source_ids=found.ids,
    )

    await history.memory.take_back(said.message_id, history.chat[1])
    await history.begin()
    await history.imports.store_page(number, phase="chat", at="", page=Page([said]))

    after = await history.imports.get(number)
    told = await history.memory.begin_turn(
        here, turn_id=history.group.message("later"), content="and now?"
    )
    assert after
    assert after.messages == 0
    assert not any("Gustav" in message.content for message in told.history)


async def test_a_removed_import_leaves_nothing_and_can_be_made_again(history: History) -> None:
    said = [history.message(f"m{n}", f"the walrus number {n} is Gustav", days=n) for n in range(9)]
    number = await history.import_all(Page(said))
    here = history.at()
    await history.memory.begin_turn(
        here, turn_id=history.group.message("asked"), content="who is number 3?"
    )
    found = await history.find(here, "walrus number 3")
    await history.memory.record_reply(
        here,
        turn_id=history.group.message("asked"),
        cards=["Gustav."],
        means=ANSWERED_OUTCOME,
        source_ids=found[0].ids,
    )

    await history.imports.remove(history.chat, None)
    at_once = await history.texts(here, "walrus")
    gone, left = 0, True
    while left:
        removed, left_import = await history.imports.remove_some(number)
        gone, left = gone + removed, left_import is not None

    later = await history.memory.begin_turn(
        here, turn_id=history.group.message("later"), content="and now?"
    )
    assert at_once == []
    assert gone == len(said)
    assert await history.imports.of_chat(history.chat, None) is None
    assert not any("Gustav" in message.content for message in later.history)
    await history.import_all(Page(said))
    assert len(await history.texts(here, "walrus")) > 0


async def test_the_sender_learns_how_many_of_their_messages_are_kept(history: History) -> None:
    await history.import_all(
        Page([history.message("a", "one"), history.message("b", "two", "bob", 1)])
    )

    assert await history.imports.own_messages(history.at("ann")) == 1
    assert await history.imports.own_messages(history.at("cleo")) == 0


async def test_the_sender_learns_it_of_messages_that_nobody_else_may_read(history: History) -> None:
    said = history.message("early", "the mascot is a walrus", "ann")
    await history.import_all(Page([said]), names=("ann", "bob"))
    assert await history.texts(history.at("ann"), "mascot") == []

    assert await history.imports.own_messages(history.at("ann")) == 1
    elsewhere = replace(history.at("ann"), actor_id=history.group.person("bob"))
    assert await history.imports.own_messages(elsewhere) == 0
    await history.imports.remove(history.chat, None)
    assert await history.imports.own_messages(history.at("ann")) == 0


async def test_what_the_asker_may_read_of_it_and_not_the_whole_group_is_a_private_matter(
    history: History,
) -> None:
    said = history.message("early", "the mascot of the summer party is a walrus", "ann")
    joined = MembershipNotice("Cleo", ms(YEAR_AGO + timedelta(days=50)), True)
    await history.import_all(Page([said], memberships=[joined]))

    async def fits(who: str) -> bool:
        place = private_context(history.group.person(who), "tenant")
        question = "What is the mascot of the summer party?"
        return await helps_more(
            PrivateStore(history.rpc), place, question, asked_in=history.group.chat()
        )

    assert await fits("ann")
    assert not await fits("cleo")
    await history.imports.remove(history.chat, None)
    assert not await fits("ann")


async def test_of_the_month_that_is_asked_about_a_common_word_finds_what_was_said(
    history: History,
) -> None:
    often = [history.message(f"r{n}", f"release {n} is out", days=n) for n in range(330)]
    wanted = history.message("then", "release notes are mine", "bob", 40.5)
    await history.import_all(Page([*often, wanted]))
    then = YEAR_AGO + timedelta(days=40.5)
    best = await history.texts(history.at(), f"who wrote notes of the release in {then:%B %Y}?")
    assert best[0] == "release notes are mine"
    assert (await history.texts(history.at(), f"Bob and the release in {then:%B %Y}"))[0] == best[0]


async def test_what_follows_a_question_is_found_by_its_words(history: History) -> None:
    asked = [
        history.message("q1", "where do we keep the spare projector?", days=1),
        history.message("a1", "in the blue cupboard", "bob", 1.001),
        history.message("q2", "is the projector free?", days=20),
        history.message("q3", "has anybody seen the projector?", days=40),
    ]
    await history.import_all(Page(asked))
    best = await history.texts(history.at(), "where is the spare projector kept?")
    assert set(best[:2]) == {"where do we keep the spare projector?", "in the blue cupboard"}


async def test_a_version_is_a_word(history: History) -> None:
    said = [history.message(f"v{n}", f"{n}.8 comes from the team", days=n) for n in range(1, 9)]
    await history.import_all(Page(said))
    assert (await history.texts(history.at(), "who made 3.8?"))[0] == "3.8 comes from the team"
