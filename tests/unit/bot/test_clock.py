"""One clock: half an hour after midnight in Shanghai it is still yesterday in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from bot.agents.prompts.prompt import circumstances
from bot.answering.between_turns import summary_line
from bot.process.settings_values import machine_zone
from bot.services import Services
from bot.settings import SettingsError, load
from memory.recall.dates import date_range
from memory.tables.derived import FoldedMessage
from scripts.operating.desk import OperatorDesk, since

AFTER_MIDNIGHT = datetime(2026, 11, 20, 16, 30, tzinfo=UTC)
FEISHU = {
    "feishu_app_id": "cli_a",
    "feishu_app_secret": "s",
    "feishu_encrypt_key": "e",
    "feishu_verification_token": "v",
}


def services(tmp_path: Path, zone: str) -> Services:
    nothing = cast(Any, None)
    return Services(
        settings=load(timezone=zone, data_dir=tmp_path),
        store=nothing,
        feishu=nothing,
        own_person=nothing,
        people=nothing,
        manager=nothing,
        rpc=nothing,
        hooks=nothing,
        clock=AFTER_MIDNIGHT.timestamp,
    )


@pytest.mark.parametrize(
    ("domain", "zone"),
    [
        ("", "Asia/Shanghai"),
        ("https://open.feishu.cn", "Asia/Shanghai"),
        ("https://open.larksuite.com", "UTC"),
        ("http://127.0.0.1:8900", "Asia/Shanghai"),
    ],
)
def test_the_zone_is_the_usual_one_of_the_tenant(tmp_path: Path, domain: str, zone: str) -> None:
    settings = load(data_dir=tmp_path, feishu_domain=domain, **FEISHU)

    assert settings.zone.key == zone


def test_the_sandbox_has_the_zone_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert load(data_dir=tmp_path).zone.key == "Europe/Berlin"
    assert load(data_dir=tmp_path, timezone="Asia/Tokyo").zone.key == "Asia/Tokyo"


def test_the_zone_of_the_machine_is_read_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    link, named = tmp_path / "localtime", tmp_path / "timezone"
    assert machine_zone(link, named) == ""
    named.write_text("Asia/Tokyo\n", encoding="utf-8")
    assert machine_zone(link, named) == "Asia/Tokyo"
    link.symlink_to("/usr/share/zoneinfo/Etc/UTC")
    assert machine_zone(link, named) == "UTC"
    monkeypatch.setenv("TZ", "nowhere")
    assert machine_zone(link, named) == "UTC"


def test_a_named_zone_counts_everywhere(tmp_path: Path) -> None:
    lark = "https://open.larksuite.com"

    named = load(data_dir=tmp_path, timezone="Europe/Oslo", feishu_domain=lark, **FEISHU)
    assert named.zone.key == "Europe/Oslo"


@pytest.mark.parametrize("name", ["Shanghai", "GMT+8", "../etc/passwd", "Asia/", "北京"])
def test_a_zone_that_is_none_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(data_dir=tmp_path, timezone=name)

    assert str(raised.value) == (
        "TIMEZONE is not the name of a time zone such as Asia/Shanghai or UTC. See .env.example."
    )


@pytest.mark.parametrize(("late_s", "shown"), [(0, False), (20, True), (5 * 3600, True)])
def test_the_prompt_says_when_a_late_question_was_asked(
    tmp_path: Path, late_s: int, shown: bool
) -> None:
    one = services(tmp_path, "Asia/Shanghai")
    midnight = one.now().replace(hour=0, minute=0, second=10)
    asked = midnight - timedelta(seconds=late_s)
    assert one.asked_at(int(asked.timestamp() * 1000)) == asked
    assert one.asked_at(0) == one.asked_at(10**14) == one.now()
    rules = circumstances("Alice", midnight, memory_away=False, asked_at=asked)
    assert (f"count from:\n{asked:%Y-%m-%d %H:%M}" in rules) == shown


@pytest.mark.parametrize(
    ("zone", "today", "yesterday"),
    [("Asia/Shanghai", "2026-11-21", "2026-11-20"), ("UTC", "2026-11-20", "2026-11-19")],
)
def test_prompt_recall_and_summaries_agree_on_what_day_it_is(
    tmp_path: Path, zone: str, today: str, yesterday: str
) -> None:
    one = services(tmp_path, zone)
    rules = circumstances("Alice", one.now(), memory_away=False)
    meant = date_range("昨天我说了什么？", one.now())
    said = FoldedMessage(
        id=1, role="user", content="hi", actor_id="ou_a", actor_name="Alice",
        created_at=AFTER_MIDNIGHT.isoformat(), rows=(1,),
    )  # fmt: skip

    assert f"Now:\n{today} " in rules
    assert meant
    assert meant.spans[0].since.date().isoformat() == yesterday
    assert summary_line(said, {}, one.settings.zone).day == today


def test_operators_read_and_give_times_in_the_zone(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path, timezone="Asia/Shanghai")
    desk = OperatorDesk(settings, "", "", cast(Any, None), cast(Any, None))

    assert desk.shown(AFTER_MIDNIGHT.isoformat()) == "2026-11-21 00:30"
    assert desk.shown(None) is None
    assert desk.since("2026-11-21") == "2026-11-21T00:00:00+08:00"
    assert since("30m", UTC, AFTER_MIDNIGHT) == "2026-11-20T16:00:00+00:00"
