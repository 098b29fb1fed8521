"""People and what they said of answers are shown by name, in numbers, without what they wrote."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.integration.bot.operations.console.conftest import Browser

SECRET = "the words of a message"


@pytest.fixture(autouse=True)
def asked(database_url: str) -> None:
    """Alice asked twice, Bob once, and said what they think of it; nobody has named ou_carol."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into people (tenant_key, open_id, name, name_seen_at)
            values ('t', 'ou_alice', 'Alice <i>', now()), ('t', 'ou_bob', '包伯', now())
        """)
        connection.execute("""
            insert into chats (tenant_key, chat_id, chat_type, name)
            values ('t', 'oc_a', 'group', 'Launch team'), ('t', 'oc_b', 'group', 'Kitchen')
        """)
        for turn, who, chat in (
            ("om_1", "ou_alice", "oc_a"),
            ("om_2", "ou_alice", "oc_a"),
            ("om_3", "ou_bob", "oc_b"),
            ("om_4", "ou_carol", "oc_b"),
        ):
            place = (f"feishu:{chat}:{turn}", who, "t", chat)
            connection.execute(
                "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id, chat_type,"
                " title) values (%s, %s, %s, %s, %s, 'group', %s)",
                [*place, turn, SECRET],
            )
            connection.execute(
                "insert into agent_turns (id, conversation_id, user_id, tenant_key, chat_id,"
                " actor_id, state) values (%s, %s, %s, %s, %s, %s, 'sent')",
                [turn, *place, who],
            )
        for turn, by, source, helpful in (
            ("om_1", "ou_alice", "button", True),
            ("om_1", "ou_bob", "reaction", False),
            ("om_3", "ou_bob", "button", True),
        ):
            connection.execute(
                "insert into agent_feedback (turn_id, conversation_id, user_id, actor_id,"
                " tenant_key, chat_id, source, helpful) select id, conversation_id, user_id, %s,"
                " tenant_key, chat_id, %s, %s from agent_turns where id = %s",
                [by, source, helpful, turn],
            )
        connection.execute(
            "insert into agent_working_memory (conversation_id, user_id, actor_id, tenant_key,"
            " chat_id, scope, content)"
            " values ('', 'ou_alice', 'ou_alice', 't', 'oc_a', 'user', %s)",
            [psycopg.types.json.Jsonb({"a": SECRET, "b": 1, "c": 2})],
        )
        connection.execute(
            "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title,"
            " body) values ('n', 'ou_bob', 't', 'oc_b', 'feishu:oc_b:om_3', %s, %s)",
            [SECRET, SECRET],
        )
        connection.execute(
            "insert into user_tokens (tenant_key, open_id, granted_at)"
            " values ('t', 'ou_bob', '2026-03-04 05:06+00')"
        )
        connection.execute(
            "insert into bot_private.told_documents"
            " (tenant_key, chat_id, chat_type, kind, token, actor_id)"
            " values ('t', 'oc_b', 'group', 'docx', %s, 'ou_bob')",
            [SECRET],
        )


def cells(page: str, name: str) -> str:
    """The row of the table that names them, without the labels of its cells."""
    row = next(row for row in page.split("<tr>") if f">{name}" in row)
    return re.sub(r' data-label="[^"]*"', "", row)


def test_people_are_shown_in_numbers(ada: Browser) -> None:
    page = ada.get("/console/people").text

    alice, bob = cells(page, "Alice &lt;i&gt;"), cells(page, "包伯")
    assert ">2 <span" in alice
    assert '"number">3</td><td class="number">0</td>' in alice
    assert "👍 1 👎 0" in alice
    assert '"number">0</td><td class="number">1</td>' in bob
    assert "👍 1 👎 1" in bob
    assert '<td>–</td><td class="number">0</td>' in alice
    assert "2026-03-04" in bob
    assert '</td><td class="number">1</td>\n      <td><a href="/console/memory' in bob
    assert "unknown person" in page
    assert SECRET not in page
    assert "read" not in ada.get("/console/audit").text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("person=ALICE", {"Alice"}),
        ("person=包", {"包伯"}),
        ("person=%25", set()),
        ("person=' or 1=1 --", set()),
        ("after=1000", set()),
        ("after=-1", {"Alice", "包伯"}),
        ("after=99999999999999999999", set()),
        ("after=nonsense", {"Alice", "包伯"}),
    ],
)
def test_people_are_found_by_name(ada: Browser, query: str, found: set[str]) -> None:
    page = ada.get(f"/console/people?{query}").text.split("</form>")[-1]

    assert {name for name in ("Alice", "包伯") if f"<td>{name}" in page} == found


def test_everybody_is_on_one_page(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into people (tenant_key, open_id, name, name_seen_at)"
            " select 't', 'ou_' || i, 'Person ' || i || '.', now() from generate_series(1, 120) i"
        )
    pages = [ada.get(f"/console/people?after={after}").text for after in (0, 50, 100)]

    shown = [page.count("<td>Person ") for page in pages]
    assert sum(shown) == 120
    assert "after=50" in pages[0]
    assert "after=150" not in pages[2]


def test_feedback_is_told_by_answer_and_leads_to_its_turn(ada: Browser) -> None:
    page = ada.get("/console/feedback").text

    answer = next(item for item in page.split("<li>") if "/console/turns/om_1" in item)
    assert "Alice &lt;i&gt;</span>: helped" in answer
    assert "包伯</span>: did not help" in answer
    assert "(reaction)" in answer
    assert "2 helped, 1 did not" in page
    assert "om_2" not in page
    assert SECRET not in page
    assert "有帮助 2，没有帮助 1" in ada.get("/console/feedback?lang=zh").text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("verdict=helped", {"om_1", "om_3"}),
        ("verdict=did_not_help", {"om_1"}),
        ("verdict=nonsense", {"om_1", "om_3"}),
        ("person=alice", {"om_1"}),
        ("person=包", {"om_1", "om_3"}),
        ("chat=kitchen", {"om_3"}),
        ("chat=%25", set()),
        ("before=2000-01-01", set()),
    ],
)
def test_feedback_is_found_by_person_chat_and_verdict(
    ada: Browser, query: str, found: set[str]
) -> None:
    page = ada.get(f"/console/feedback?{query}").text

    assert {turn for turn in ("om_1", "om_3") if f"/console/turns/{turn}" in page} == found


def test_feedback_of_a_turn_that_is_forgotten_is_not_shown(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from agent_turns where id = 'om_1'")

    assert "om_1" not in ada.get("/console/feedback").text
