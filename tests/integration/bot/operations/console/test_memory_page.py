"""Memory is looked at on the record; it is corrected and forgotten as the person would do it."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.integration.bot.operations.console.conftest import Browser

SAID = "please keep that the <b>launch</b> is on 3 March"
PLACE = ("feishu:oc_a:om_1", "ou_alice", "t", "oc_a")


@pytest.fixture(autouse=True)
def kept(database_url: str) -> int:
    """Alice told a fact and asked for a note in a group, shared with another; a summary holds the
    talk. Bob told a fact alone with the bot. The id of Alice's facts."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into people (tenant_key, open_id, name, name_seen_at) values
              ('t', 'ou_alice', 'Alice', now()), ('t', 'ou_bob', '包伯', now()),
              ('t', 'ou_al', 'Alan', now())
        """)
        connection.execute("""
            insert into chats (tenant_key, chat_id, chat_type, name)
            values ('t', 'oc_a', 'group', 'Launch team'), ('t', 'oc_b', 'group', 'Kitchen')
        """)
        said(connection, "om_1", PLACE, "group")
        said(connection, "om_2", ("feishu:oc_p:main", "ou_bob", "t", "oc_p"), "p2p")
        facts = {"launch": "3 <i>March</i>", "team": ["Ada", "Bo"]}
        [alices] = remember(connection, PLACE, "om_1", facts)
        remember(connection, ("feishu:oc_p:main", "ou_bob", "t", "oc_p"), "om_2", {"cat": "Tom"})
        connection.execute(
            "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title,"
            " body, shared_chat_id, turn_id) values"
            " ('n1', 'ou_alice', 't', 'oc_a', 'feishu:oc_a:om_1', 'Plan', 'hire a hall', 'oc_b',"
            " 'om_1')"
        )
        connection.execute(
            "insert into agent_summaries (conversation_id, user_id, tenant_key, chat_id, content,"
            " until_message_id, messages) select conversation_id, user_id, tenant_key, chat_id,"
            " 'They spoke of spring.', max(id), 2 from agent_messages where turn_id = 'om_1'"
            " group by 1, 2, 3, 4"
        )
    return alices


def said(connection: Any, turn: str, place: tuple[str, ...], kind: str) -> None:
    connection.execute(
        "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id, chat_type)"
        " values (%s, %s, %s, %s, split_part(%s, ':', 3), %s)",
        [*place, place[0], kind],
    )
    connection.execute(
        "insert into agent_turns (id, conversation_id, user_id, tenant_key, chat_id, actor_id,"
        " state) values (%s, %s, %s, %s, %s, %s, 'sent')",
        [turn, *place, place[1]],
    )
    for role, text in (("user", SAID), ("assistant", "3 <i>March</i>, I keep that.")):
        connection.execute(
            "insert into agent_messages (conversation_id, user_id, tenant_key, chat_id, turn_id,"
            " role, content, actor_id, status) values (%s, %s, %s, %s, %s, %s, %s, %s, 'sent')",
            [*place, turn, role, text, place[1]],
        )


def remember(connection: Any, place: tuple[str, ...], turn: str, facts: dict[str, Any]) -> Any:
    sources = {key: {"turn": turn, "at": "2026-03-01T10:00:00Z"} for key in facts}
    return connection.execute(
        "insert into agent_working_memory (conversation_id, user_id, tenant_key, chat_id,"
        " actor_id, scope, content, sources) values ('', %s, %s, %s, %s, 'user', %s, %s)"
        " returning id",
        [*place[1:], place[1], Jsonb(facts), Jsonb(sources)],
    ).fetchone()


def read(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


def fact(kept: int, key: str = "launch", **more: str) -> dict[str, str]:
    """What the form of one of Alice's facts holds."""
    return {
        "kind": "fact",
        "id": str(kept),
        "key": key,
        "tenant_key": "t",
        "user_id": "ou_alice",
        "actor_id": "ou_alice",
        "of": "ou_alice",
        "words": "",
        **more,
    }


FACTS = "select content from agent_working_memory where user_id = 'ou_alice'"
NOTE = {"kind": "note", "id": "n1", "key": "Plan"}


def looks(ada: Browser) -> str:
    return ada.get("/console/audit").text.split("<tbody>")[-1]


def test_the_form_alone_shows_nothing_and_keeps_no_look(ada: Browser) -> None:
    page = ada.get("/console/memory").text

    assert "March" not in page
    assert "memory</td>" not in looks(ada)


def test_a_person_is_shown_with_sources_and_readers_and_the_look_is_kept(ada: Browser) -> None:
    page = ada.get("/console/memory?person=alice").text

    for text in (
        "3 &lt;i&gt;March&lt;/i&gt;",
        "hire a hall",
        "They spoke of spring.",
        "Launch team",
    ):
        assert text in page
    assert "shared with Kitchen" in page
    assert "the &lt;b&gt;launch&lt;/b&gt; is on 3 March" in page
    assert page.count("/console/turns/om_1") == 4
    assert "<i>March" not in page
    assert "Tom" not in page
    assert "viewed memory" in looks(ada)
    assert "Alice" in looks(ada)


def test_what_was_told_alone_is_said_to_be_theirs_alone(ada: Browser) -> None:
    page = ada.get("/console/memory?person=包").text

    assert "包伯 only" in page
    assert "members of" not in page


def test_of_several_people_one_is_chosen_first(ada: Browser) -> None:
    page = ada.get("/console/memory?person=al").text

    assert "of=ou_al&" in page
    assert "of=ou_alice&" in page
    assert "March" not in page
    assert "viewed memory" not in looks(ada)
    assert "nobody by that name" in ada.get("/console/memory?person=nobody").text
    assert "hire a hall" in ada.get("/console/memory?of=ou_alice").text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("words=MARCH", {"March"}),
        ("words=hall", {"hall"}),
        ("words=tom", {"Tom"}),
        ("words=tom&of=ou_alice", set()),
        ("words=spring", {"spring"}),
        ("words=Bo", {"Ada"}),
        ("words=%25", set()),
        ("words=' or 1=1 --", set()),
        ("words=hall&after=99999999999999999999", set()),
        ("words=%00", set()),
    ],
)
def test_memory_is_found_by_words(ada: Browser, query: str, found: set[str]) -> None:
    page = ada.get(f"/console/memory?{query}").text
    kept = "".join(item.split("<details")[0] for item in page.split("<pre>")[1:])

    assert {one for one in ("March", "hall", "Tom", "spring", "Ada") if one in kept} == found


def test_a_search_stays_with_somebody_whose_name_is_not_known(
    ada: Browser, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "update people set name = '', name_seen_at = null where open_id = 'ou_alice'"
        )
    whole = ada.get("/console/memory?of=ou_alice").text
    form = whole[whole.index('role="search"') :].split("</form>")[0]
    page = ada.get("/console/memory?of=ou_alice&words=tom").text

    assert 'name="of" value="ou_alice"' in form
    assert "unknown person" in page
    assert "Tom" not in page
    assert "Tom" in ada.get("/console/memory?of=ou_alice&person=包&words=tom").text


def test_searched_words_are_not_kept(ada: Browser, database_url: str) -> None:
    ada.get("/console/memory?words=secretword")

    assert "searched memory" in looks(ada)
    assert "secretword" not in read(
        database_url, "select string_agg(console_audit::text, ' ') from feishu_bot.console_audit"
    )


def test_a_fact_is_forgotten_with_what_it_was_made_from(
    ada: Browser, database_url: str, kept: int
) -> None:
    answer = ada.post("/console/memory/forget", **fact(kept))

    assert "Deleted for good" in ada.get(answer.location).text
    assert read(database_url, FACTS) == {"team": ["Ada", "Bo"]}
    assert read(database_url, "select count(*) from agent_messages where turn_id = 'om_1'") == 0
    assert "deleted a fact" in looks(ada)
    again = ada.post("/console/memory/forget", **fact(kept))
    assert "no longer exists" in ada.get(again.location).text


def test_a_note_is_forgotten(ada: Browser, database_url: str, kept: int) -> None:
    ada.post("/console/memory/forget", **fact(kept, **NOTE))

    assert read(database_url, "select count(*) from agent_notes") == 0


def summary_of_alice(url: str, **more: str) -> dict[str, str]:
    id = read(url, "select id from agent_summaries where user_id = 'ou_alice'")
    return fact(id, "", kind="summary", only="summary", **more)


def test_summaries_are_shown_one_by_one_with_their_messages(ada: Browser) -> None:
    page = ada.get("/console/memory?kind=summary").text

    assert "They spoke of spring." in page
    assert "hire a hall" not in page
    assert "1 of its 2 messages" in page
    assert "the &lt;b&gt;launch&lt;/b&gt; is on 3 March" in page
    assert "viewed memory" in looks(ada)


def test_a_summary_is_corrected_and_names_what_was_wrong_no_longer(
    ada: Browser, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute('update agent_summaries set verbatim = \'["spring", "Ada"]\'')
    form = summary_of_alice(database_url, value="Ada said: in autumn.")
    answer = ada.post("/console/memory/correct", **form)

    assert answer.location.endswith("kind=summary&done=corrected")
    assert read(database_url, "select content from agent_summaries") == "Ada said: in autumn."
    assert read(database_url, "select verbatim from agent_summaries") == ["Ada"]
    assert read(database_url, "select version from agent_summaries") == 2
    form = summary_of_alice(database_url, value="x" * 4001)
    assert "done=not_storable" in ada.post("/console/memory/correct", **form).location
    assert "corrected a summary" in looks(ada)


def test_a_summary_is_forgotten_with_all_it_was_made_from(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        said(connection, "om_3", ("feishu:oc_a:om_3", "ou_alice", "t", "oc_a"), "group")
    form = summary_of_alice(database_url)
    other = {**form, "user_id": "ou_bob"}
    assert "done=item_gone" in ada.post("/console/memory/forget", **other).location

    assert "done=item_forgotten" in ada.post("/console/memory/forget", **form).location
    assert read(database_url, "select count(*) from agent_summaries") == 0
    left = "select array_agg(distinct turn_id order by turn_id) from agent_messages"
    assert read(database_url, left) == ["om_2", "om_3"]  # of other threads
    assert "deleted a summary" in looks(ada)


def test_a_fact_and_a_note_are_corrected(ada: Browser, database_url: str, kept: int) -> None:
    answer = ada.post("/console/memory/correct", **fact(kept, value="5 April\r\n"))
    ada.post("/console/memory/correct", **fact(kept, "team", value='["Cy"]', json="1"))
    ada.post("/console/memory/correct", **fact(kept, **NOTE, value="rent a barn"))

    assert "Corrected." in ada.get(answer.location).text
    assert read(database_url, FACTS) == {"launch": "5 April", "team": ["Cy"]}
    assert read(database_url, "select body from agent_notes") == "rent a barn"
    assert "corrected a fact" in looks(ada)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"value": "  "}, "t be saved"),
        ({"value": "[1", "json": "1"}, "t be saved"),
        ({"value": "NaN", "json": "1"}, "t be saved"),
        ({"value": "x" * 20_000}, "too long"),
        ({"value": "mine", "actor_id": "ou_bob"}, "no longer exists"),
        ({"value": "mine", "tenant_key": "other"}, "no longer exists"),
    ],
)
def test_what_cannot_be_corrected_stays_as_it_was(
    ada: Browser, database_url: str, kept: int, more: dict[str, str], said: str
) -> None:
    answer = ada.post("/console/memory/correct", **fact(kept, **more))

    assert said in ada.get(answer.location).text
    assert read(database_url, FACTS)["launch"] == "3 <i>March</i>"


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "message"},
        {"kind": "summary", "id": "n1"},
        {"id": "1; drop"},
        {"id": "9" * 30},
        {"id": ""},
        {"user_id": ""},
    ],
)
def test_what_is_no_item_is_not_found(
    ada: Browser, database_url: str, kept: int, more: dict[str, str]
) -> None:
    assert ada.post("/console/memory/forget", **fact(kept, **more)).status_code == 404
    assert "launch" in read(database_url, FACTS)


@pytest.mark.parametrize("path", ["forget", "correct", "export"])
def test_another_page_changes_and_takes_nothing(
    ada: Browser, database_url: str, kept: int, path: str
) -> None:
    answer = ada.post(f"/console/memory/{path}", csrf="forged", **fact(kept, value="forged"))

    assert answer.status_code == 403
    assert read(database_url, FACTS)["launch"] == "3 <i>March</i>"
    assert ada.get(f"/console/memory/{path}").status_code == 405


def test_a_persons_memory_is_exported_as_json_and_that_is_kept(ada: Browser) -> None:
    answer = ada.post("/console/memory/export", of="ou_alice")
    found = json.loads(answer.text)

    assert answer.headers["Content-Disposition"] == "attachment; filename=memory.json"
    assert found["person"] == {"open_id": "ou_alice", "name": "Alice"}
    rows = {one["table"]: one["row"] for one in found["rows"]}
    assert rows["agent_notes"]["body"] == "hire a hall"
    assert rows["agent_summaries"]["content"] == "They spoke of spring."
    assert rows["agent_working_memory"]["content"]["launch"] == "3 <i>March</i>"
    assert "Tom" not in answer.text
    assert "exported memory" in looks(ada)
    assert json.loads(ada.post("/console/memory/export", of="ou_none").text)["rows"] == []
