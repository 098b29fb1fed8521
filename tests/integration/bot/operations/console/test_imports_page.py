"""Imports are seen by name, with how far they are and why not further; paused, resumed, removed."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.bot.operations.console.conftest import Browser

# Of `bot.features.history_import.refusals`.
REASONS = (
    "not_offered",
    "secret_mode",
    "no_scope",
    "not_in_chat",
    "unintelligible",
    "refused",
    "defect",
)
_IMPORTS = """
insert into chat_imports (tenant_key, chat_id, chat_type, started_by, since, until, state, phase,
                          estimated, pages, messages, error)
values ('t', 'oc_a', 'group', 'ou_alice', now() - interval '30 days', now(), 'running', 'chat',
        10000, 50, 2481, ''),
       ('t', 'oc_b', 'group', '', null, now(), 'failed', 'chat', 0, 0, 0, 'no_scope')
returning id
"""


@pytest.fixture
def imports(database_url: str) -> list[int]:
    """One that runs, of Alice's group, and one of an operator that could not be read."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into people (tenant_key, open_id, name, name_seen_at)"
            " values ('t', 'ou_alice', 'Alice', now())"
        )
        connection.execute(
            "insert into chats (tenant_key, chat_id, chat_type, name) values"
            " ('t', 'oc_a', 'group', 'Launch team'), ('t', 'oc_b', 'group', 'Kitchen')"
        )
        return [row[0] for row in connection.execute(_IMPORTS)]


def states(url: str) -> dict[int, str]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("select id, state from chat_imports"))


def test_imports_are_shown_by_name_with_how_far_they_are(
    ada: Browser, imports: list[int], database_url: str
) -> None:
    page = ada.get("/console/imports").text

    assert "Launch team" in page
    assert '<span title="ou_alice">Alice</span>' in page
    assert "2481 messages" in page
    assert "50 pages" in page
    assert "25 %" in page
    assert "ends about" in page
    assert "Kitchen" in page
    assert "from the beginning" in page
    assert "started by an operator" in page
    assert "The app lacks im:message.group_msg. Next:" in page
    chinese = ada.get("/console/imports?lang=zh").text
    assert "读取中" in chinese
    assert "应用缺少 im:message.group_msg 权限" in chinese
    assert states(database_url) == {imports[0]: "running", imports[1]: "failed"}


@pytest.mark.parametrize("kind", REASONS)
def test_every_reason_says_what_to_do_next(
    ada: Browser, imports: list[int], database_url: str, kind: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update chat_imports set error = %s where id = %s", [kind, imports[1]])
    assert "Next:" in ada.get("/console/imports").text
    assert "下一步：" in ada.get("/console/imports?lang=zh").text


def test_an_import_is_paused_resumed_and_removed_and_each_is_kept(
    ada: Browser, imports: list[int], database_url: str
) -> None:
    running = imports[0]
    for act, state, said in (
        ("pause", "paused", "Paused."),
        ("pause", "paused", "Paused."),
        ("resume", "running", "goes on within a minute"),
        ("remove", "removing", "Nobody can ask about it"),
    ):
        answer = ada.post(f"/console/imports/{running}/{act}")
        assert states(database_url)[running] == state
        assert said in ada.get(answer.location).text
    audit = ada.get("/console/audit").text
    assert audit.count("paused an import") == 2
    assert "removed an import" in audit
    assert "Launch team" in audit


def test_what_is_gone_or_no_act_changes_nothing(
    ada: Browser, imports: list[int], database_url: str
) -> None:
    before = states(database_url)
    assert "no longer exists" in ada.get(ada.post("/console/imports/999999/pause").location).text
    assert ada.post(f"/console/imports/{imports[0]}/burn").status_code == 404
    assert states(database_url) == before
    assert "an import" not in ada.get("/console/audit").text


def test_without_imports_the_page_says_so(ada: Browser) -> None:
    assert "Nobody has asked for an import" in ada.get("/console/imports").text
