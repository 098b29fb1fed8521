"""scripts/conversations: figures of groups by day, without text; or how conversations began."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
import pytest

from tests.support.forking import run_script

CHAT = "oc_figures"
# Sender, seconds since the first, answered, why, about whom.
HEARD = (
    ("ou_ann", 0, True, "explicit_trigger", "ou_ann"),
    ("ou_bob", 30, False, "no_trigger", None),
    ("ou_ann", 40, True, "recent_followup", "ou_ann"),
    ("ou_bob", 1000, False, "no_trigger", None),
    ("ou_bob", 2000, True, "explicit_trigger", "ou_ann"),
    ("ou_cid", 2010, False, "addressed_to_other", None),
)


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    ours = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {
        **kept, "DATABASE_URL": database_url, "DATA_DIR": str(tmp_path), "COLUMNS": "200",
        "TIMEZONE": "Asia/Shanghai", "CONVERSATION_TIMEOUT_SECONDS": "120",
    }  # fmt: skip


@pytest.fixture
def heard(database_url: str) -> None:
    """A day of one chat, beginning ten to midnight in Shanghai."""
    with psycopg.connect(database_url) as db:
        for number, (who, at, respond, reason, about) in enumerate(HEARD):
            said = f"timestamptz '2026-01-05 15:50:00+00' + interval '{at} seconds'"
            db.execute(
                "insert into agent_decisions (message_id, chat_id, actor_id, respond, reason, tier,"
                f" created_at) values (%s, %s, %s, %s, %s, 'none', {said})",  # type: ignore[arg-type]
                (f"om_{number}", CHAT, who, respond, reason),
            )
            if about:
                thread = f"feishu:{CHAT}:om_{number}"
                db.execute(
                    "insert into agent_chats (id, user_id, chat_id, root_id)"
                    " values (%s, %s, %s, %s)",
                    (thread, about, CHAT, f"om_{number}"),
                )
                db.execute(
                    "insert into agent_turns"
                    " (id, conversation_id, user_id, actor_id, chat_id, state)"
                    " values (%s, %s, %s, %s, %s, 'sent')",
                    (f"om_{number}", thread, about, who, CHAT),
                )


@pytest.fixture
def said(database_url: str, heard: None) -> None:
    """What people said of the answers, a day later than the last of them was given."""
    with psycopg.connect(database_url) as db:
        for number, helpful in ((0, True), (2, True), (4, False)):
            db.execute(
                "insert into agent_feedback (turn_id, conversation_id, user_id, actor_id, chat_id,"
                " source, helpful, updated_at) select id, conversation_id, user_id, actor_id,"
                " chat_id, 'button', %s, '2026-01-07 10:00:00+08' from agent_turns where id = %s",
                (helpful, f"om_{number}"),
            )


def run(environment: dict[str, str], *arguments: str) -> str:
    done = run_script("conversations", *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("heard")
def test_the_figures_of_a_chat(environment: dict[str, str]) -> None:
    told = json.loads(run(environment, "--chat", CHAT, "--since", "2026-01-01", "--json"))
    latest, first = told["days"]

    assert (first["day"], first["heard"], first["answered"], first["people"]) == (
        "2026-01-05", 3, 2, 2,
    )  # fmt: skip
    assert (first["conversations"], first["median_messages"], first["median_people"]) == (1, 3, 2)
    assert first["median_seconds"] == 40
    assert first["mentions_by"] == {"ou_ann": 1}
    assert first["answered_by"] == {"explicit_trigger": 1, "recent_followup": 1}

    assert (latest["day"], latest["heard"], latest["conversations"]) == ("2026-01-06", 3, 1)
    assert latest["silent_by"] == {"addressed_to_other": 1, "no_trigger": 1}
    assert (latest["about_sender"], latest["about_another"]) == (0, 1)
    assert latest["answers_about"] == {"ou_ann": 1}


@pytest.mark.usefixtures("said")
def test_feedback_counts_on_its_own_day(environment: dict[str, str]) -> None:
    told = json.loads(run(environment, "--chat", CHAT, "--since", "2026-01-01", "--json"))
    days = [(one["day"], one["heard"], one["helpful"], one["unhelpful"]) for one in told["days"]]
    assert days == [("2026-01-07", 0, 2, 1), ("2026-01-06", 3, 0, 0), ("2026-01-05", 3, 0, 0)]
    assert told["days"][0]["answered_by"] == {}


@pytest.mark.usefixtures("heard")
def test_they_are_shown_in_both_languages(environment: dict[str, str]) -> None:
    shown = run(environment, "--since", "2026-01-01", "--people", "--lang", "en")
    assert shown.splitlines()[0] == "conversations: 2 in 1 chat, 3 of 6 messages answered"
    assert "ou_bob\t1" in shown

    chinese = run(environment, "--since", "2026-01-01", "--lang", "zh")
    assert chinese.splitlines()[0] == "对话: 1 个群共 2 段，6 条消息中回答 3 条"
    assert "不回答的原因" in chinese


@pytest.fixture
def asked(heard: None, database_url: str) -> None:
    """Two threads with words; the third has none any more."""
    said = (
        ("om_0", "when is the <launch>?", "On 3 March, in the hall."),
        ("om_2", "什么时候发布？\n请回答", "三月三日。"),
    )
    with psycopg.connect(database_url) as db:
        for turn, question, answer in said:
            for role, text in (("user", question), ("assistant", answer)):
                db.execute(
                    "insert into agent_messages (conversation_id, user_id, chat_id, turn_id, role,"
                    " content, actor_id, status) select conversation_id, user_id, chat_id, id, %s,"
                    " %s, actor_id, 'sent' from agent_turns where id = %s",
                    (role, text, turn),
                )
        db.execute(
            "insert into chats (tenant_key, chat_id, chat_type, name)"
            " values ('', %s, 'group', 'Launch team')",
            (CHAT,),
        )
        db.execute(
            "insert into people (tenant_key, open_id, name, name_seen_at)"
            " values ('', 'ou_ann', 'Ann', now()), ('', 'ou_bob', 'Bob', now())"
        )


@pytest.mark.usefixtures("asked")
def test_names_stand_before_ids(environment: dict[str, str]) -> None:
    figures = run(environment, "--since", "2026-01-01", "--people", "--lang", "en")

    assert f"2026-01-06\tLaunch team ({CHAT})\t" in figures
    assert "\nBob (ou_bob)\t1" in figures


@pytest.mark.usefixtures("asked")
def test_conversations_are_listed_with_how_they_began(environment: dict[str, str]) -> None:
    told = run(environment, "--questions", "--since", "1d", "--lang", "en").splitlines()

    assert told[0] == "conversations: 3 conversations"
    columns, *rows = [line.split("\t")[1:] for line in told[2:] if line]
    assert columns == ["conversation", "person", "questions", "first question"]
    assert sorted(rows) == [
        [f"Launch team (feishu:{CHAT}:om_0)", "Ann (ou_ann)", "1", "when is the <launch>?"],
        [f"Launch team (feishu:{CHAT}:om_2)", "Ann (ou_ann)", "1", "什么时候发布？ 请回答"],
        [f"Launch team (feishu:{CHAT}:om_4)", "Ann (ou_ann)", "0", "-"],
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [("LAUNCH hall", {"om_0"}), ("发布", {"om_2"}), ("launch 发布", set()), ("%", set())],
)
@pytest.mark.usefixtures("asked")
def test_they_are_found_by_words_and_the_look_is_kept(
    environment: dict[str, str], database_url: str, words: str, found: set[str]
) -> None:
    told = json.loads(run(environment, "--words", words, "--since", "1d", "--json"))

    assert {one["conversation_id"].split(":")[2] for one in told["conversations"]} == found
    with psycopg.connect(database_url) as db:
        kept = db.execute("select admin, action, about from feishu_bot.console_audit").fetchall()
    [(admin, action, about)] = kept
    assert admin.endswith("(script)")
    assert (action, about) == ("search turns", "")


def test_a_database_without_decisions_has_none(environment: dict[str, str]) -> None:
    assert run(environment, "--chat", "oc_nobody", "--lang", "en").startswith(
        "conversations: nothing recorded yet"
    )
