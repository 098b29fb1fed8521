"""Turns are found by words and names; who looks at what people wrote is kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import psycopg
import pytest

from bot.operations.console.application import create_console
from bot.settings import Settings
from tests.integration.bot.operations.console.conftest import Browser

WORDS = "where is the <b>launch</b>?"


@pytest.fixture(autouse=True)
def turns(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into people (tenant_key, open_id, name, name_seen_at)
            values ('t', 'ou_alice', 'Alice', now()), ('t', 'ou_bob', '包伯', now())
        """)
        connection.execute("""
            insert into chats (tenant_key, chat_id, chat_type, name)
            values ('t', 'oc_a', 'group', 'Launch team'), ('t', 'oc_b', 'group', 'Kitchen')
        """)
        for turn, who, chat, state in (
            ("om_1", "ou_alice", "oc_a", "sent"),
            ("om_2", "ou_bob", "oc_b", "failed"),
        ):
            place = (f"feishu:{chat}:{turn}", who, "t", chat)
            connection.execute(
                "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id, chat_type,"
                " title) values (%s, %s, %s, %s, %s, 'group', %s)",
                [*place, turn, WORDS],
            )
            connection.execute(
                "insert into agent_turns (id, conversation_id, user_id, tenant_key, chat_id,"
                " actor_id, state, error) values (%s, %s, %s, %s, %s, %s, %s, %s)",
                [turn, *place, who, state, "230002 chat" if state == "failed" else None],
            )
            for role, text in (("user", WORDS), ("assistant", "In the hall.")):
                connection.execute(
                    "insert into agent_messages (conversation_id, user_id, tenant_key, chat_id,"
                    " turn_id, role, content, actor_id, status)"
                    " values (%s, %s, %s, %s, %s, %s, %s, %s, 'sent')",
                    [*place, turn, role, text, who],
                )
            connection.execute(
                "insert into agent_decisions (tenant_key, chat_id, message_id, actor_id, respond,"
                " reason, tier) values ('t', %s, %s, %s, true, 'explicit_trigger', 'explicit')",
                [chat, turn, who],
            )


def test_the_list_has_names_and_how_each_question_begins_and_keeps_the_look(ada: Browser) -> None:
    page = ada.get("/console/turns").text

    assert '<span title="ou_alice">Alice</span>' in page
    assert '<span title="oc_b">Kitchen</span>' in page
    assert "the bot was asked directly" in page
    assert "where is the &lt;b&gt;launch&lt;/b&gt;?" in page
    assert "In the hall" not in page
    assert "looked through conversations" in ada.get("/console/audit").text


def test_a_long_question_is_cut_and_one_without_words_says_so(
    ada: Browser, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from agent_messages")
        connection.execute(
            "insert into agent_messages (conversation_id, user_id, tenant_key, chat_id, turn_id,"
            " role, content, actor_id, status) values ('feishu:oc_a:om_1', 'ou_alice', 't',"
            " 'oc_a', 'om_1', 'user', repeat('发布会 ', 200), 'ou_alice', 'received')"
        )
    page = ada.get("/console/turns").text

    assert f"{'发布会 ' * 30}"[:119] + "…</a>" in page
    assert "(its words are gone)</a>" in page


def test_what_nobody_answered_shows_its_words_and_is_found_by_them(
    ada: Browser, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into chat_conversations (tenant_key, chat_id) values ('t', 'oc_a')"
        )
        connection.execute(
            "insert into chat_transcript (tenant_key, chat_id, message_id, author, author_id,"
            " content, timestamp, is_bot) values ('t', 'oc_a', 'om_3', 'Bob', 'ou_bob',"
            " 'lunch at noon', 1, false)"
        )
        connection.execute(
            "insert into agent_decisions (tenant_key, chat_id, message_id, actor_id, respond,"
            " reason, tier) values ('t', 'oc_a', 'om_3', 'ou_bob', false, 'quiet', 'explicit')"
        )
    for words, found in (("", True), ("LUNCH noon", True), ("dinner", False)):
        page = ada.get(f"/console/turns?outcome=silent&words={words}").text
        assert ("lunch at noon" in page) is found, words


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("person=alice", {"om_1"}),
        ("person=包", {"om_2"}),
        ("chat=kitch", {"om_2"}),
        ("outcome=answered", {"om_1"}),
        ("outcome=silent", set()),
        ("reason=explicit_trigger", {"om_1", "om_2"}),
        ("reason=quiet", set()),
        ("person=%25", set()),
        ("person=' or 1=1 --", set()),
        ("before=nonsense", {"om_1", "om_2"}),
        ("words=LAUNCH", {"om_1", "om_2"}),
        ("words=hall+where", {"om_1", "om_2"}),
        ("words=hall+kitchen", set()),
        ("words=launch&person=alice", {"om_1"}),
        ("words=%25", set()),
        ("words=' or 1=1 --", set()),
    ],
)
def test_turns_are_found_by_words_name_outcome_and_reason(
    ada: Browser, query: str, found: set[str]
) -> None:
    page = ada.get(f"/console/turns?{query}").text

    assert {turn for turn in ("om_1", "om_2") if f"/console/turns/{turn}" in page} == found
    looked = "searched conversations" if "words=" in query else "looked through conversations"
    assert looked in ada.get("/console/audit").text


def test_a_turn_is_shown_as_text_and_the_look_is_kept(ada: Browser) -> None:
    page = ada.get("/console/turns/om_1").text

    assert "where is the &lt;b&gt;launch&lt;/b&gt;?" in page
    assert "In the hall." in page
    assert "There is no record of this turn" in page
    audit = ada.get("/console/audit").text
    assert "viewed a turn" in audit
    assert "Launch team" in audit


def test_the_card_is_given_as_it_was_sent_and_nothing_in_it_is_markup(
    ada: Browser, database_url: str
) -> None:
    text = "In the </script><script>alert(1)</script> hall, <at id=ou_bob></at>"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into agent_messages (conversation_id, user_id, tenant_key, chat_id, turn_id,"
            " role, content, actor_id, status, chunk) values ('feishu:oc_a:om_1', 'ou_alice', 't',"
            " 'oc_a', 'om_1', 'assistant', %s, 'ou_alice', 'sent', 1)",
            [text],
        )
        connection.execute(
            "insert into agent_buttons (id, group_id, turn_id, chunk, ordinal, conversation_id,"
            " user_id, actor_id, tenant_key, chat_id, chat_type, kind, label, payload, expires_at)"
            " values ('b1', 'g', 'om_1', 1, 1, 'feishu:oc_a:om_1', 'ou_alice', 'ou_alice', 't',"
            " 'oc_a', 'group', 'follow_up', 'Which <i>hall</i>?',"
            """ '{"text": "Which <i>hall</i>?"}', now())"""
        )
    page = ada.get("/console/turns/om_1").text
    given = page.split('<div class="drawn-card"><script type="application/json">')[2]
    card = json.loads(given.split("</script>")[0])

    elements = card["body"]["elements"]
    assert elements[0]["content"] == text
    assert elements[1]["text"]["content"] == "Which <i>hall</i>?"
    assert '{"ou_bob": "\\u5305\\u4f2f"}' in page
    assert "alert(1)</script>" not in page
    assert "@包伯" in page


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("card.js", 200),
        ("card.css", 200),
        ("main.js", 404),
        ("index.html", 404),
        ("../page.py", 404),
        ("..%2fpage.py", 404),
        ("%2e%2e/page.py", 404),
    ],
)
def test_what_draws_cards_is_served_and_nothing_beside_it(
    ada: Browser, name: str, status: int
) -> None:
    assert ada.get(f"/console/cards/{name}").status_code == status


def test_a_failed_turn_says_why_and_where_to_go(ada: Browser) -> None:
    page = ada.get("/console/turns/om_2").text

    assert "230002 chat" in page
    assert 'href="/console/queue"' in page


@pytest.mark.parametrize("path", ["turns/%00", "turns?before=0001-01-01T00:00:00%2B23:59"])
def test_an_address_that_means_nothing_is_no_trouble_of_the_database(
    ada: Browser, path: str
) -> None:
    assert ada.get(f"/console/{path}").status_code == 400


def test_a_turn_that_is_not_there_is_not_found(ada: Browser) -> None:
    assert ada.get("/console/turns/om_3").status_code == 404


def test_usage_is_told_by_name_and_day(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into feishu_bot.model_usage
              (day, tenant_key, chat_id, actor_id, turns, tokens_in, tokens_out)
            values ((now() at time zone 'utc')::date, 't', 'oc_a', 'ou_alice', 3, 12345, 67),
                   ((now() at time zone 'utc')::date - 20, 't', 'oc_b', 'ou_bob', 1, 999, 1)
        """)
    page = ada.get("/console/usage").text

    assert "Alice" in page
    assert "Launch team" in page
    assert "12,345" in page
    assert "包伯" not in page
    assert "包伯" in ada.get("/console/usage?days=30").text
    assert ada.get("/console/usage?days=nonsense").status_code == 200


def test_usage_tells_calls_of_feishu_kinds_of_tokens_and_who_reached_a_limit(
    settings: Settings, database_url: str
) -> None:
    limits = {"usage_limit_person": 1000, "feishu_calls_per_month": 500}
    console = create_console(replace(settings, **limits), database_url)
    ada = Browser(console).sign_in(database_url)
    assert "0 of 500 calls" in ada.get("/console/usage").text
    assert "Feishu API calls" not in ada.get("/console/").text
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into feishu_bot.model_usage
              (day, tenant_key, chat_id, actor_id, turns, tokens_in, tokens_out)
            values ((now() at time zone 'utc')::date, 't', 'oc_a', 'ou_alice', 3, 900, 100),
                   ((now() at time zone 'utc')::date, 't', 'oc_a', 'ou_bob', 1, 900, 99)
        """)
        connection.execute("""
            insert into feishu_bot.calls (day, service, name, calls, tokens_in, tokens_out)
            values ((now() at time zone 'utc')::date, 'feishu', 'stream', 401, 0, 0),
                   ((now() at time zone 'utc')::date, 'feishu', 'names', 70, 0, 0),
                   ((now() at time zone 'utc')::date, 'model', 'judge', 5, 4321, 5)
        """)
    page = ada.get("/console/usage").text

    assert "401 of 500 calls" in page
    assert "stream into a card" in page
    assert "not counted" in page
    assert "4,321" in page
    full = page.split('id="used-up"')[1].split("</section>")[0]
    assert "Alice" in full
    assert "midnight (UTC)" in full
    assert "包伯" not in full
    assert "401 of 500 Feishu API calls" in ada.get("/console/").text
    chinese = ada.get("/console/usage?lang=zh").text
    assert "流式更新卡片" in chinese
    assert "已用 401 次" in chinese


@pytest.mark.parametrize("language", ["en", "zh"])
def test_times_are_written_as_people_write_them(ada: Browser, language: str) -> None:
    written = {"en": r"\d{1,2} [A-Z][a-z]{2} at \d\d:\d\d<", "zh": r"\d{1,2}月\d{1,2}日 \d\d:\d\d<"}
    ada.get("/console/turns")
    for path in ("turns", "turns/om_1", "audit", "people"):
        page = ada.get(f"/console/{path}?lang={language}").text
        assert not re.search(r"\d{4}-\d\d-\d\d", re.sub(r"<[^<>]*>", "", page)), path
        if path != "people":
            assert re.search(
                r'<time datetime="\d{4}-\d\d-\d\dT[^"]+"[^<>]*>' + written[language], page
            )


def test_a_muted_chat_is_shown_as_muted_and_no_other_one(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into chat_conversations (chat_id, tenant_key, started_at, last_activity, quiet)"
            " values ('oc_a', 't', 0, 0, true)"
        )
    muted = "This chat is muted now"
    assert muted in ada.get("/console/turns/om_1").text
    assert muted not in ada.get("/console/turns/om_2").text
