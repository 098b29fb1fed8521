"""Recall in the real database, over every backend: what is found, in which order, and by whom."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from lab.corpora.recall import load_locomo
from lab.evaluate.recall import TELLING, evaluate, store
from memory.errors import BadArgument, IdentityMissing
from memory.recall.passages import Passage, RecallScope, passages, recall_params
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, private_context
from memory.store import MemoryStore
from tests.support.backends import Backend, PostgresBackend
from tests.support.people import Group
from tests.support.postgres import Server

pytestmark = pytest.mark.anyio

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime.now(SHANGHAI)
LOCOMO = Path(__file__).parents[3] / "data" / "recall" / "locomo_small.json"


@dataclass(frozen=True)
class Memory:
    """One backend: tells it turns and searches them."""

    rpc: Rpc

    async def tell(
        self, who: AgentMemoryContext, name: str, question: str, *answer: str
    ) -> AgentMemoryContext:
        """A whole turn; `name` makes its id in this thread."""
        store, turn_id = MemoryStore(self.rpc), f"{who.root_id}-{name}"
        await store.begin_turn(who, turn_id=turn_id, content=question, actor_name="Name")
        if answer:
            await store.record_reply(who, turn_id=turn_id, cards=answer)
        return who

    async def search(
        self,
        who: AgentMemoryContext,
        query: str,
        *,
        scope: RecallScope = "thread",
        k: int = 5,
        before_id: int | None = None,
        now: datetime = NOW,
    ) -> tuple[Passage, ...]:
        params = recall_params(who, query, now=now, scope=scope, k=k, before_id=before_id)
        return passages(await self.rpc.call("recall", _identity(who) | params, who))

    async def questions(
        self, who: AgentMemoryContext, query: str, *, scope: RecallScope = "thread"
    ) -> list[str]:
        return [hit.question for hit in await self.search(who, query, scope=scope)]


def _identity(who: AgentMemoryContext) -> dict[str, object]:
    return {
        "p_conversation_id": who.conversation_id,
        "p_user_id": who.user_id,
        "p_actor_id": who.actor_id,
    }


@pytest.fixture
async def memory(backend: Backend) -> AsyncIterator[Memory]:
    async with backend.rpc() as rpc:
        yield Memory(rpc)


@pytest.fixture
async def direct(database_url: str, postgres_server: Server) -> AsyncIterator[Memory]:
    """Over Postgres, beside which the test may look into the tables."""
    async with PostgresBackend(database_url, postgres_server.socket_folder).rpc() as rpc:
        yield Memory(rpc)


@pytest.fixture
def group() -> Group:
    return Group()


async def test_the_turn_that_has_the_words_comes_first(memory: Memory, group: Group) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "我最近在学做菜", "想学什么菜？")
    await memory.tell(alice, "2", "我喜欢爵士乐，尤其是钢琴", "爵士乐很美")
    await memory.tell(alice, "3", "明天开会吗", "下午三点")

    hits = await memory.search(alice, "我喜欢什么爵士乐？")

    assert hits[0].question == "我喜欢爵士乐，尤其是钢琴"
    assert hits[0].answer == "爵士乐很美"
    assert hits[0].before == "我最近在学做菜\n想学什么菜？"
    assert hits[0].after == "明天开会吗\n下午三点"
    assert (hits[0].actor_id, hits[0].actor_name) == (alice.user_id, "Name")
    assert (hits[0].conversation_id, hits[0].chat_id) == (alice.conversation_id, alice.chat_id)
    assert hits[0].score > hits[1].score > 0


async def test_english_is_found_in_its_other_forms(memory: Memory, group: Group) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "We hiked to the glaciers", "Nice")
    await memory.tell(alice, "2", "Lunch?", "Noodles")

    assert (await memory.questions(alice, "HIKING near a glacier"))[0] == "We hiked to the glaciers"


async def test_a_turn_is_found_by_what_its_neighbour_says(memory: Memory, group: Group) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "厦门哪个景点好？", "你最喜欢哪个？")
    await memory.tell(alice, "2", "鼓浪屿", "好")
    for n in range(3, 6):
        await memory.tell(alice, str(n), f"unrelated {n}", "ok")

    assert (await memory.questions(alice, "厦门的景点"))[:2] == ["厦门哪个景点好？", "鼓浪屿"]


async def test_a_long_neighbour_does_not_drown_the_turn_that_says_it(
    memory: Memory, group: Group
) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "the sprint ends on 29 March", "ok")
    for n in range(2, 12):
        await memory.tell(alice, str(n), f"other matter {n}", "fine")
    long = " ".join(f"filler{n} step{n}" for n in range(200))
    await memory.tell(alice, "12", "how to plan a sprint", f"sprint sprint sprint {long}")
    await memory.tell(alice, "13", "and then", "ok")
    await memory.tell(alice, "14", "a sprint review", f"sprint sprint {long}")

    found = await memory.questions(alice, "when does the sprint end")

    assert found[0] == "the sprint ends on 29 March"


async def test_a_turn_is_found_by_who_spoke(memory: Memory, group: Group) -> None:
    for name in ("王小明", "Bob", "Carol", "Dan"):
        who = group.turn(name, thread=name)
        await MemoryStore(memory.rpc).begin_turn(
            who, turn_id=f"om-{who.user_id}", content="我订了票", actor_name=name
        )
        await MemoryStore(memory.rpc).record_reply(who, turn_id=f"om-{who.user_id}", cards=["好"])

    here = group.turn(thread="asking")
    assert (await memory.search(here, "王小明订了什么", scope="chat"))[0].actor_name == "王小明"
    assert (await memory.search(here, "what did Bob book", scope="chat"))[0].actor_name == "Bob"


async def test_what_somebody_says_comes_before_what_is_said_of_them(
    memory: Memory, group: Group
) -> None:
    store = MemoryStore(memory.rpc)
    said = (("Bob", "cooked noodles yesterday"), ("Carol", "Bob cooked noodles"))
    for name, text in said:
        who = group.turn(name, thread=name)
        await store.begin_turn(who, turn_id=f"om-{who.user_id}", content=text, actor_name=name)
        await store.record_reply(who, turn_id=f"om-{who.user_id}", cards=["ok"])

    found = await memory.questions(group.turn(thread="asking"), "What did Bob cook?", scope="chat")

    assert found == [text for _, text in said]


async def test_what_people_say_of_themselves_comes_before_what_they_ask_of_others(
    memory: Memory, group: Group
) -> None:
    said = [f"{who} plant tomatoes" for who in ("I", "They", "You")]
    for n, text in enumerate(said):
        await memory.tell(group.turn(thread=f"t{n}"), "1", text, "ok")

    found = await memory.questions(group.turn(thread="asking"), "tomatoes planted", scope="chat")

    assert found == said


async def test_what_is_worth_a_fraction_of_the_best_is_not_shown_unless_little_matches(
    memory: Memory, group: Group
) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "蓝色大门 餐厅 预订 周五 晚上 七点", "好")
    for n in range(2, 7):
        await memory.tell(alice, str(n), f"unrelated {n}", "ok")
    long = " ".join(f"filler{n}" for n in range(400))
    await memory.tell(alice, "7", f"{long} 晚上", "ok")

    async def shows_filler() -> bool:
        found = await memory.questions(alice, "蓝色大门餐厅预订周五晚上七点")
        assert found[0].startswith("蓝色大门")
        return any("filler" in question for question in found)

    assert await shows_filler()
    for n in range(8, 40):
        await memory.tell(alice, str(n), f"晚上 unrelated {n}", "ok")
    assert not await shows_filler()


async def test_where_little_was_said_a_prompt_gets_the_newest_after_what_matches(
    memory: Memory, group: Group
) -> None:
    alice = group.turn()
    for n, text in enumerate(("the van is in the garage", "lunch at noon", "the beamer is broken")):
        await memory.tell(alice, str(n), text, "ok")

    async def found(question: str) -> list[str]:
        hits = await MemoryStore(memory.rpc).find(alice, question, now=NOW, k=5, newest_too=True)
        return [hit.question for hit in hits]

    assert await found("where is our vehicle, not lunch") == [
        "lunch at noon", "the beamer is broken", "the van is in the garage",
    ]  # fmt: skip
    for n in range(3, 24):
        await memory.tell(alice, str(n), f"unrelated {n}", "ok")
    assert "unrelated 23" not in await found("where is our vehicle, not lunch")


async def test_all_cards_of_an_answer_are_searched(memory: Memory, group: Group) -> None:
    alice = await memory.tell(group.turn(), "1", "计划？", "第一部分", "第二部分谈到火星")

    (hit,) = await memory.search(alice, "火星")

    assert hit.answer == "第一部分\n\n第二部分谈到火星"


async def test_words_that_were_never_said_find_nothing(memory: Memory, group: Group) -> None:
    alice = await memory.tell(group.turn(), "1", "hello", "hi")

    assert await memory.search(alice, "南极洲") == ()
    assert await memory.search(alice, "what is the") == ()
    assert await memory.search(alice, "") == ()


async def test_in_a_group_the_chat_is_all_there_is_and_it_is_everybodys(
    memory: Memory, group: Group
) -> None:
    here = await memory.tell(group.turn(), "1", "猕猴桃 here", "ok")
    await memory.tell(group.turn(thread="second"), "1", "猕猴桃 second thread", "ok")
    await memory.tell(group.turn(chat="there", thread="third"), "1", "猕猴桃 other chat", "ok")
    await memory.tell(group.turn("bob", thread="fourth"), "1", "猕猴桃 of bob", "ok")

    assert await memory.questions(here, "猕猴桃") == ["猕猴桃 here"]
    for scope in ("chat", "everywhere"):
        assert set(await memory.questions(here, "猕猴桃", scope=scope)) == {
            "猕猴桃 here",
            "猕猴桃 second thread",
            "猕猴桃 of bob",
        }


async def test_neighbours_of_another_conversation_do_not_count(
    memory: Memory, group: Group
) -> None:
    here = await memory.tell(group.turn(thread="a"), "1", "猕猴桃", "ok")
    await memory.tell(group.turn(thread="b"), "1", "other", "ok")

    assert await memory.questions(here, "猕猴桃", scope="chat") == ["猕猴桃"]


async def test_turns_of_another_time_of_day_are_no_neighbours(
    direct: Memory, group: Group, database_url: str
) -> None:
    for thread, hours, found in (("a", 5, ["猕猴桃", "other"]), ("b", 7, ["猕猴桃"])):
        here = await direct.tell(group.turn(thread=thread), "1", "猕猴桃", "ok")
        await direct.tell(here, "2", "other", "ok")
        _move(database_url, f"{here.root_id}-1", NOW - timedelta(hours=hours))

        hits = await direct.search(here, "猕猴桃")

        assert [hit.question for hit in hits] == found
        assert hits[0].after == ("other\nok" if len(found) > 1 else "")


async def test_whoever_is_spoken_about_only_this_chat_is_searched(
    memory: Memory, group: Group
) -> None:
    await memory.tell(group.turn("john"), "1", "猕猴桃 in this chat", "ok")
    await memory.tell(group.turn("john", chat="there", thread="t"), "1", "猕猴桃 elsewhere", "ok")
    alice_about_john = group.turn("john", sender="alice")

    assert await memory.questions(alice_about_john, "猕猴桃", scope="chat") == [
        "猕猴桃 in this chat"
    ]
    assert await memory.questions(alice_about_john, "猕猴桃", scope="everywhere") == [
        "猕猴桃 in this chat"
    ]


async def test_another_tenants_turns_are_never_found(memory: Memory, group: Group) -> None:
    await memory.tell(group.turn(), "1", "猕猴桃", "ok")

    assert await memory.search(group.turn(tenant="other"), "猕猴桃", scope="everywhere") == ()


async def test_what_the_prompt_already_has_is_left_out(memory: Memory, group: Group) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "猕猴桃 first", "ok")
    await memory.tell(alice, "2", "猕猴桃 second", "ok")
    newest = max(hit.message_id for hit in await memory.search(alice, "猕猴桃"))

    (hit,) = await memory.search(alice, "猕猴桃", before_id=newest)

    assert hit.question == "猕猴桃 first"


async def test_what_may_be_read_is_looked_up_for_the_search_and_for_the_reading(
    database_url: str, direct: Memory, group: Group
) -> None:
    who = group.turn()
    for name in ("1", "2", "3"):
        await direct.tell(who, name, "Mars has two moons", "Phobos and Deimos")

    with psycopg.connect(database_url) as connection:
        connection.execute(b"set local track_functions = 'all'")
        _become(connection, who)
        [found] = connection.execute(
            b"select recall(%s, %s, %s, %s, %s, 'moons of Mars last week', 'chat', 5,"
            b' \'[["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"]]\')',
            [*_identity(who).values(), who.chat_id, who.tenant_key],
        ).fetchone() or [[]]
        connection.execute(b"reset role")
        calls = connection.execute(
            b"select funcname, calls from pg_stat_xact_user_functions"
            b" where funcname in ('look_up_told_since', 'readable_imports')"
        ).fetchall()

    assert len(found) == 3
    assert dict(calls) == {"look_up_told_since": 2}


@pytest.mark.parametrize("scope", ["thread", "chat"])
async def test_one_turn_among_many_is_found_and_few_are_read(
    direct: Memory, group: Group, database_url: str, scope: RecallScope
) -> None:
    alice = group.turn()
    await direct.tell(alice, "1", "The courier is Swiftline", "Noted")
    _fill(database_url, alice, 20_000)
    params = _identity(alice) | recall_params(
        alice, "Which courier do people talk of at lunch?", now=NOW, scope=scope
    )

    with psycopg.connect(database_url) as connection:
        connection.execute(b"analyze bot_private.turn_words")
        _become(connection, alice)
        call = ", ".join(f"{name} => %({name})s" for name in params)
        row = connection.execute(f"select recall({call})".encode(), params).fetchone()
        connection.execute(b"reset role")
        read = connection.execute(_READ).fetchone()

    assert row is not None
    assert row[0][0]["question"] == "The courier is Swiftline"
    assert read is not None
    assert 0 < read[0] < 6_000


@pytest.mark.parametrize(
    ("question", "fits"),
    [
        ("Which courier is it?", True),
        ("talk at lunch", True),  # of which every turn has a word
        ("Where is the bicycle?", False),
    ],
)
async def test_whether_anything_private_fits_is_seen_among_many_turns(
    direct: Memory, group: Group, database_url: str, question: str, fits: bool
) -> None:
    alice = group.p2p()
    await direct.tell(alice, "1", "The courier is Swiftline", "Noted")
    _fill(database_url, alice, 20_000)
    asking = private_context(alice.actor_id, alice.tenant_key)
    identity = asking.conversation_id, asking.user_id, asking.actor_id, asking.tenant_key

    with psycopg.connect(database_url) as connection:
        connection.execute(
            b"insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id)"
            b" select turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id"
            b" from agent_messages where chat_id = %s on conflict do nothing",
            [alice.chat_id],
        )
        connection.execute(b"analyze bot_private.turn_words")
        _become(connection, asking)
        row = connection.execute(
            b"select private_sources(%s, %s, %s, %s, %s, %s) <> '[]'",
            [*identity, question, group.chat()],
        ).fetchone()

    assert row == (fits,)


async def test_a_common_word_such_as_a_name_still_counts_for_its_own_turn(
    direct: Memory, group: Group
) -> None:
    alice = group.turn()
    await direct.tell(alice, "bob", "Bob cooked noodles", "ok")
    for n in range(24):
        await direct.tell(alice, str(n), f"{('Bob', 'Carol')[n % 2]} item{n}", "ok")
    await direct.tell(alice, "carol", "Carol cooked noodles", "ok")

    for name in ("Bob", "Carol"):
        found = await direct.questions(alice, f"What kind of noodles does {name} cook?")
        assert found[0] == f"{name} cooked noodles"


async def test_who_speaks_of_one_thing_only_still_finds_it(memory: Memory, group: Group) -> None:
    alice = group.turn()
    for n in range(24):
        await memory.tell(alice, str(n), "the launch", "ok")
    await memory.tell(alice, "walrus", "a walrus at the launch", "ok")

    assert len(await memory.search(alice, "What of the launch?", k=5)) == 5
    found = await memory.questions(alice, "What of the walrus at the launch?")
    assert found[0] == "a walrus at the launch"


async def test_a_word_that_says_little_counts_less_however_rare(
    memory: Memory, group: Group
) -> None:
    said = ["she cooks noodles", "she usually walks"]
    for n, text in enumerate(said):
        await memory.tell(group.turn(thread=f"t{n}"), "1", text, "ok")

    asking = group.turn(thread="asking")
    found = await memory.questions(asking, "What does she usually cook?", scope="chat")

    assert found == said


async def test_many_words_are_not_too_many(memory: Memory, group: Group) -> None:
    alice = group.turn()
    await memory.tell(alice, "1", "签证材料交给周敏", "好")
    for n in range(2, 5):
        await memory.tell(alice, str(n), f"unrelated {n}", "ok")

    long = "".join(map(chr, range(0x4E00, 0x4E00 + 450))) + "，签证材料交给谁？"
    assert (await memory.questions(alice, long))[0] == "签证材料交给周敏"


async def test_k_is_the_most_that_is_returned(memory: Memory, group: Group) -> None:
    alice = group.turn()
    for n in range(4):
        await memory.tell(alice, str(n), f"猕猴桃 {n}", "ok")

    assert len(await memory.search(alice, "猕猴桃", k=2)) == 2


async def test_a_card_that_failed_is_not_found(memory: Memory, group: Group) -> None:
    alice = await memory.tell(group.turn(), "1", "计划？", "谈到火星")

    await MemoryStore(memory.rpc).mark_failed(alice, turn_id=f"{alice.root_id}-1", error="230002")

    assert await memory.search(alice, "火星") == ()
    assert [hit.answer for hit in await memory.search(alice, "计划")] == [""]


async def test_the_text_that_was_finally_sent_is_what_is_found(
    memory: Memory, group: Group
) -> None:
    alice = await memory.tell(group.turn(), "1", "计划？", "谈到火星")

    await MemoryStore(memory.rpc).mark_sent(
        alice, turn_id=f"{alice.root_id}-1", chunk=0, content="谈到金星", message_id="om_card"
    )

    assert await memory.search(alice, "火星") == ()
    assert len(await memory.search(alice, "金星")) == 1


async def test_a_missing_identity_and_an_unknown_scope_are_refused(
    memory: Memory, group: Group
) -> None:
    alice = group.turn()
    params = recall_params(alice, "x", now=NOW)

    with pytest.raises(IdentityMissing):
        await memory.rpc.call("recall", _identity(alice) | {"p_user_id": ""} | params, alice)
    with pytest.raises(BadArgument):
        await memory.rpc.call("recall", _identity(alice) | params | {"p_scope": "all"}, alice)


async def test_a_date_in_the_question_puts_that_day_first(
    direct: Memory, group: Group, database_url: str
) -> None:
    alice = group.turn()
    for name, text in (("old", "我看了电影"), ("day", "我做了饭"), ("new", "我又看了电影")):
        await direct.tell(alice, name, text, "ok")
    _move(database_url, f"{alice.root_id}-old", datetime(2026, 5, 3, 4, tzinfo=UTC))
    _move(database_url, f"{alice.root_id}-day", datetime(2026, 5, 4, 4, tzinfo=UTC))

    hits = await direct.search(
        alice, "5月4日我看了什么电影", now=datetime(2026, 11, 1, tzinfo=SHANGHAI)
    )

    assert hits[0].question == "我做了饭"
    assert {hit.question for hit in hits[1:]} == {"我看了电影", "我又看了电影"}


async def test_the_latest_year_in_which_something_was_said_is_meant(
    direct: Memory, group: Group, database_url: str
) -> None:
    alice = group.turn()
    for name, year in (("a", 2022), ("b", 2024)):
        await direct.tell(alice, name, f"in {year}", "ok")
        _move(database_url, f"{alice.root_id}-{name}", datetime(year, 5, 4, 4, tzinfo=UTC))

    hits = await direct.search(alice, "5月4日", now=datetime(2026, 11, 1, tzinfo=SHANGHAI))

    assert [hit.question for hit in hits] == ["in 2024"]


async def test_a_day_without_a_word_in_common_is_still_found(direct: Memory, group: Group) -> None:
    alice = await direct.tell(group.turn(), "1", "noodles", "ok")

    hits = await direct.search(
        alice, "昨天我说了什么", now=datetime.now(SHANGHAI) + timedelta(days=1)
    )

    assert [hit.question for hit in hits] == ["noodles"]


async def test_a_turn_that_goes_takes_its_tokens_with_it(
    direct: Memory, group: Group, database_url: str
) -> None:
    alice = await direct.tell(group.turn(), "1", "猕猴桃", "香蕉皮")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from agent_messages where role = 'user'")
        assert _indexed(connection) == [_words(connection, alice, ["香蕉", "蕉皮"])]
        connection.execute("delete from agent_messages")
        assert _indexed(connection) == []

    await direct.tell(alice, "2", "猕猴桃", "ok")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from agent_chats")
        assert _indexed(connection) == []


async def test_only_the_chat_reaches_the_words(
    direct: Memory, group: Group, database_url: str
) -> None:
    await direct.tell(group.turn(), "1", "猕猴桃", "ok")

    with psycopg.connect(database_url) as connection:
        _become(connection, group.turn())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(b"select from bot_private.turn_words")
    assert _readable(database_url, group.turn(chat="there")) == 0
    assert _readable(database_url, group.turn(sender="bob")) == 1
    assert _readable(database_url, group.turn(sender="bob", chat="there")) == 0
    assert _readable(database_url, group.turn("bob")) == 1
    assert _readable(database_url, group.turn(tenant="other")) == 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我喜欢电影", ["喜欢", "欢电", "电影"]),
        ("你喜欢什么样的电影呢", ["喜欢", "样", "电影"]),
        ("好", ["好"]),
        ("用 Python 写", ["用", "python", "写"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("hikes hiked hiking hike", ["hik"] * 4),
        ("studies study, movies movie", ["stud", "stud", "mov", "mov"]),
        ("what is the plan", ["plan"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("Привет", ["привет"]),
        ("'; drop table -- \\ :1 \"", ["drop", "tabl", "1"]),
        ("！？。 \n", []),
        ("", []),
        ("a" * 60, ["a" * 40]),
    ],
)
def test_text_is_cut_into_tokens(database_url: str, text: str, tokens: list[str]) -> None:
    with psycopg.connect(database_url) as connection:
        cut = "select t, bot_private.recall_terms(t) from bot_private.recall_tokens(%s) t"
        row = connection.execute(cut.encode(), [text]).fetchone()

    assert row is not None
    assert row[0] == tokens


def test_the_longest_texts_can_be_stored(database_url: str) -> None:
    every_character = "".join(map(chr, range(0x4E00, 0x9FFF))) * 8

    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            b"select length(bot_private.recall_terms(bot_private.recall_tokens(%s)))",
            [every_character],
        ).fetchone()

    assert row is not None
    assert row[0] > 20_000


@pytest.mark.parametrize("text", ["火星计划" * 7500, "あ" * 30_000, "a" * 30_000, "火a" * 15_000])
def test_the_time_for_a_long_text_grows_with_its_length_only(database_url: str, text: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("set statement_timeout = '1500ms'")  # by its square: some 3 s
        row = connection.execute(
            "select cardinality(bot_private.recall_tokens(%s))", [text]
        ).fetchone()

    assert row is not None
    assert row[0] > 0


async def test_the_evaluation_counts_the_share_of_the_evidence(database_url: str) -> None:
    corpus = load_locomo(LOCOMO)
    store(database_url, corpus)

    report = await evaluate(database_url, corpus, [1, 5], TELLING)

    assert (report.corpus, report.questions) == ("LoCoMo", 3)
    assert report.found[5] == 1
    assert 0 < report.found[1] < 1
    assert 0 < report.ms.p50 <= report.ms.p95


def _move(database_url: str, turn_id: str, at: datetime) -> None:
    """Makes a turn one of another time, as the index of the turn has it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            b"update bot_private.turn_words w set asked_at = %s from agent_messages m"
            b" where m.id = w.first_id and m.turn_id = %s",
            (at, turn_id),
        )


def _indexed(connection: psycopg.Connection) -> list[list[int]]:
    rows = connection.execute(b"select words from bot_private.turn_words").fetchall()
    return [words for (words,) in rows]


def _words(connection: psycopg.Connection, who: AgentMemoryContext, tokens: list[str]) -> list[int]:
    """As the index of `who`'s place has them."""
    row = connection.execute(
        b"select bot_private.recall_words(bot_private.recall_number(%s, %s), %s)",
        [who.tenant_key, who.chat_id, tokens],
    ).fetchone()
    return list(row[0]) if row else []


# Rows of the index of turns that this transaction has fetched, by whatever index.
_READ = b"""
    select pg_stat_get_xact_tuples_fetched(c.oid) + pg_stat_get_xact_tuples_returned(c.oid)
    from pg_class c where c.relname = 'turn_words'
"""


def _fill(database_url: str, who: AgentMemoryContext, turns: int) -> None:
    """Many later turns of `who` in the index: each with a word of its own, some that many have."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(b"set session_replication_role = replica")
        connection.execute(
            b"""
            insert into bot_private.turn_words (first_id, place, thread, asked_at, length, words)
            select w.first_id + n + 9, w.place, w.thread, w.asked_at + n * interval '1 second', 5,
              bot_private.recall_words(w.place, array['x' || n, 'talk', 'lunch',
                case when n %% 5 = 0 then 'peopl' else 'nothing' end])
            from bot_private.turn_words w, generate_series(1, %s) n
            """,
            [turns],
        )
        connection.execute(
            b"""
            insert into agent_messages (id, conversation_id, user_id, turn_id, tenant_key, chat_id,
              role, content, actor_id, status) overriding system value
            select w.first_id, %s, %s, 'turn ' || w.first_id, %s, %s, 'user', 'talk', %s, 'sent'
            from bot_private.turn_words w
            where w.words @> bot_private.recall_words(w.place, '{talk}')
            """,
            [who.conversation_id, who.user_id, who.tenant_key, who.chat_id, who.actor_id],
        )


def _become(connection: psycopg.Connection, who: AgentMemoryContext) -> None:
    claims = json.dumps(who.claims())
    connection.execute(b"select set_config('request.jwt.claims', %s, true)", [claims])
    connection.execute(b"set local role authenticated")


def _readable(database_url: str, who: AgentMemoryContext) -> int:
    with psycopg.connect(database_url) as connection:
        _become(connection, who)
        row = connection.execute(
            b"select cardinality(bot_private.recall_newest('', 'everywhere', 0, 999999999999, 9))"
        ).fetchone()
    return row[0] if row else -1
