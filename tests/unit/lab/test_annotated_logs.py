"""Annotated chat logs: read, scored as the corpus does, and learned from."""

import json
import math
from pathlib import Path

import pytest

from lab.corpora.logs import links_of, logs_in
from lab.evaluate.__main__ import main
from lab.evaluate.topics import (
    LinkScore,
    best_overlap,
    conversations,
    information_kept,
    matched,
    score_links,
)
from lab.learning.link_weights import file_of, learn

LOG = """[10:00] <ann> how do I mount a disk?
=== zed has joined #ubuntu
[10:01] <bob> what time is it?
[10:01] <cyd> ann: with mount /dev/sdb1 /mnt
[10:02] <dan> bob: noon
[10:02] <ubottu> For mounting see the manual
"""
LINKS = "0 0 -\n1 1 -\n2 2 -\n0 3 -\n3 3 -\n2 4 -\n5 5 -\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.ascii.txt").write_text(LOG)
    (tmp_path / "a.annotation.txt").write_text(LINKS)
    (tmp_path / "unannotated.ascii.txt").write_text(LOG)
    return tmp_path


def test_lines_of_people_are_read_and_links_of_every_line(folder: Path):
    (log,) = logs_in(folder)
    assert list(log.messages) == [0, 2, 3, 4, 5]
    assert [line for line, one in log.messages.items() if one.is_bot] == [5]
    assert log.links[3] == {0, 3}
    assert logs_in(folder / "a.annotation.txt") == [log]


def test_links_are_scored_as_the_corpus_does(folder: Path):
    (log,) = logs_in(folder)
    found = {0: 0, 2: 0, 3: 0, 4: 2, 5: 3}
    assert score_links(log, found) == LinkScore(gold=7, found=6, right=4)
    assert score_links(log, found, people_only=True) == LinkScore(gold=6, found=5, right=3)
    assert score_links(log, found).precision == pytest.approx(4 / 6)
    assert score_links(log, found).f1 == pytest.approx(8 / 13)


def test_conversations_hang_together_over_links():
    gold = conversations(links_of(["900 1000 -", "900 1001 -", "1002 1002 -", "1001 1003 -"]))
    assert sorted(map(sorted, gold)) == [[1000, 1001, 1003], [1002]]


def test_conversations_are_compared():
    gold = [frozenset({1, 2}), frozenset({3, 4})]
    assert matched(gold, gold) == LinkScore(2, 2, 2)
    assert information_kept([(gold, gold)]) == 1
    assert best_overlap([(gold, gold)]) == 1
    mixed = [frozenset({1, 2, 3, 4})]
    assert matched(gold, mixed) == LinkScore(2, 1, 0)
    assert information_kept([(gold, mixed)]) == pytest.approx(1 - 1 / math.log2(4))
    assert best_overlap([(gold, mixed)]) == pytest.approx(2 / 3)


def test_weights_are_learned_and_written_as_a_data_file(folder: Path):
    said: list[str] = []
    model = learn(logs_in(folder) * 5, said.append)
    losses = [float(line.split()[-1]) for line in said if line.startswith("epoch")]
    assert losses[4] < losses[0]
    first, pair = model
    written = json.loads(file_of(model))
    assert [len(table) for table in written["first"].values()] == [len(table) for table in first]
    assert [len(table) for table in written["pair"].values()] == [len(table) for table in pair]


def test_a_folder_without_logs_says_what_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["topics", "--chat-logs", str(tmp_path)]) == 1
    assert "annotation.txt" in capsys.readouterr().out


def test_the_figures_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["topics", "--chat-logs", str(folder), "--json"]) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)["figures"]}
    assert found["links, all lines: F1"]["note"].endswith("right of 6 found, 7 annotated")
