"""Figures, their tables, and the versions that the benchmark compares."""

from __future__ import annotations

import io
import json
import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from bot.feishu import crypto, events
from bot.listening.turn_request import TurnRequest
from lab.bench.__main__ import parser
from lab.bench.checkouts import NotACheckout, checkout_at
from lab.bench.checkouts import compared as version_beside
from lab.doubles.feishu_events import CREDENTIALS, TalkMention, delivery
from lab.doubles.processes import ROOT
from lab.figures import (
    Compared,
    FailedMeasure,
    Figure,
    combined,
    compared,
    comparison,
    percentile,
    report,
    shown,
    table,
)


def drawn(*figures: Figure) -> str:
    return printed(table(figures))


def printed(what: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(what)
    return out.getvalue()


def test_the_median_and_the_tail_are_samples_that_were_seen() -> None:
    samples = [float(n) for n in range(100, 0, -1)]
    assert percentile(samples, 0.5) == 50
    assert percentile(samples, 0.95) == 95
    assert percentile(samples, 0.99) == 99
    assert percentile([7.0], 0.99) == 7


def test_without_samples_there_is_no_percentile() -> None:
    assert math.isnan(percentile([], 0.5))


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_at_least_the_share_lies_at_or_below_a_percentile(
    samples: list[float], share: float
) -> None:
    found = percentile(samples, share)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= share * len(samples) - 1e-9


def test_a_bar_is_met_by_the_measured_value_not_by_the_shown_one() -> None:
    assert Figure("ack", 50.0, "ms", 50).verdict == "ok"
    assert Figure("ack", 50.001, "ms", 50).verdict == "miss"
    assert Figure("rate", 99.9, "", 100, at_least=True).verdict == "miss"
    assert Figure("rate", 100.0, "", 100, at_least=True).verdict == "ok"
    assert Figure("overhead", math.nan, "ms", 25).verdict == "miss"
    assert Figure("memory", 1.0, "MB").verdict == ""


def test_values_are_shown_with_three_digits() -> None:
    assert [shown(v) for v in (0, 0.01234, 1.234, 12.34, 123.4, 12345.6)] == [
        "0",
        "0.0123",
        "1.23",
        "12.3",
        "123",
        "12346",
    ]
    assert shown(math.nan) == "–"


def test_the_table_says_miss_in_words_and_shows_the_bar() -> None:
    text = drawn(
        Figure("overhead, p50", 31.4, "ms", 25, note="beyond 300 ms"),
        Figure("throughput", 120, "mentions/s", 100, at_least=True),
    )
    slow, fast = (line for line in text.splitlines() if "overhead" in line or "through" in line)
    assert all(part in slow for part in ("31.4 ms", "≤ 25 ms", "MISS", "beyond 300 ms"))
    assert all(part in fast for part in ("120 mentions/s", "≥ 100 mentions/s", "ok"))


def test_the_json_report_is_valid_json_whatever_was_measured() -> None:
    made = report(
        {"cores": 2}, [Figure("overhead", math.nan, "ms", 25)], [FailedMeasure("memory", "no disk")]
    )
    read = json.loads(json.dumps(made, allow_nan=False))
    assert read["figures"][0]["value"] is None
    assert read["figures"][0]["verdict"] == "miss"
    assert read["failed"] == [{"measure": "memory", "reason": "no disk"}]


def test_the_json_report_holds_the_other_version_beside_each_figure() -> None:
    this, other = Figure("CPU", 10.0, "ms", 12, runs=(9.0, 11.0)), Figure("CPU", 40.0, "ms", 12)
    alone = Figure("supervisor", 1.0)
    read = report({}, [this, alone], [], compared([this, alone], [other]))["figures"]
    assert (read[0]["ratio"], read[0]["against"]["value"], read[0]["runs"]) == (0.25, 40, [9, 11])
    assert (read[1]["ratio"], read[1]["against"]) == (None, None)


def test_several_runs_become_their_median_with_the_note_of_the_one_next_to_it() -> None:
    runs = [Figure("CPU", value, "ms", 12, note=f"run of {value}") for value in (9.0, 30.0, 10.0)]
    (one,) = combined(runs)
    assert (one.value, one.note, one.runs) == (10.0, "run of 10.0", (9.0, 30.0, 10.0))
    assert combined(runs[:1]) == runs[:1]


def test_versions_are_compared_figure_by_figure() -> None:
    alone, both = Figure("memory", 10.0), Figure("CPU", 18.0)
    rows = compared([alone, both], [Figure("CPU", 20.0)])
    assert [row.against is None for row in rows] == [True, False]
    assert rows[1].ratio == pytest.approx(0.9)
    assert math.isnan(rows[0].ratio)
    assert math.isnan(Compared(alone, Figure("memory", 0.0)).ratio)


def test_the_comparison_shows_both_versions_the_ratio_and_the_bar() -> None:
    this, other = Figure("CPU", 13.0, "ms", 12, note="web 2"), Figure("CPU", 52.0, "ms", 12)
    text = printed(comparison(compared([this], [other]), "this abc", "against def"))
    head, row = (line for line in text.splitlines() if "CPU" in line or "measure" in line)
    assert head.index("against def") < head.index("this abc")
    assert all(part in row for part in ("52.0 ms", "13.0 ms", "0.250 ×", "≤ 12 ms", "MISS"))


def test_a_failure_names_its_cause_even_when_many_failed_at_once() -> None:
    many = ExceptionGroup("people", [ExceptionGroup("one", [ConnectionError("503")])])
    assert FailedMeasure.by("run 1", many) == FailedMeasure("run 1", "ConnectionError: 503")


def test_a_version_is_named_by_git_and_a_folder_without_the_bot_is_refused(tmp_path: Path) -> None:
    assert checkout_at(ROOT, "against").title.startswith("against ")
    with pytest.raises(NotACheckout, match=r"has no app\.py: give a checkout"):
        checkout_at(tmp_path)


def test_a_revision_is_checked_out_beside_this_one_and_removed_afterwards(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(tmp_path), *name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    for name in ("app.py", "gunicorn.conf.py", "scripts/migrate.py", "requirements.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    git("init")
    git("add", ".")
    git("commit", "-m", "x")
    (tmp_path / "app.py").write_text("after")

    for _ in range(2):
        with version_beside("HEAD", tmp_path) as checkout:
            assert (checkout.root / "app.py").read_text() == "before"
        assert not (tmp_path / ".versions").exists()
        assert len(git("worktree", "list").splitlines()) == 1
    with (
        pytest.raises(NotACheckout, match="Needed a single revision"),
        version_beside("nothing", tmp_path),
    ):
        pass


def test_a_delivery_is_what_feishu_would_push() -> None:
    asked = TalkMention("om_2", "oc_1", "ou_alice", "and then?", root_id="om_1")
    head, _, body = delivery(asked).partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    key = CREDENTIALS["FEISHU_ENCRYPT_KEY"]
    assert crypto.verify_signature(
        timestamp=headers["X-Lark-Request-Timestamp"],
        nonce=headers["X-Lark-Request-Nonce"],
        signature=headers["X-Lark-Signature"],
        encrypt_key=key,
        body=body,
    )
    plain = json.loads(crypto.decrypt(key, json.loads(body)["encrypt"]))
    event = events.parse_message(events.parse_envelope(plain))
    assert (event.message_id, event.root_id, event.chat_id) == ("om_2", "om_1", "oc_1")
    assert event.sender_open_id == "ou_alice"
    assert TurnRequest.of(event).is_for("ou_bench_bot")
    assert events.question_text(event, "ou_bench_bot") == "and then?"


def test_the_command_line_refuses_what_would_never_end(capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args(["--model", "0.3", "30", "--rate", "5", "--only", "loads"])
    assert (options.model, options.rate, options.only) == ([0.3, 30], [5], ["loads"])
    for wrong in (["--rate", "0"], ["--model", "900"], ["--seconds", "1e6"], ["--only", "all"]):
        with pytest.raises(SystemExit):
            parser().parse_args(wrong)
    assert "give 0.5 to 200" in capsys.readouterr().err
