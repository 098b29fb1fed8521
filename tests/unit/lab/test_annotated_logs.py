"""Annotated chat logs: read and learned from."""

import json
from pathlib import Path

import pytest

from lab.corpora.logs import logs_in
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


def test_weights_are_learned_and_written_as_a_data_file(folder: Path):
    said: list[str] = []
    model = learn(logs_in(folder) * 5, said.append)
    losses = [float(line.split()[-1]) for line in said if line.startswith("epoch")]
    assert losses[4] < losses[0]
    first, pair = model
    written = json.loads(file_of(model))
    assert [len(table) for table in written["first"].values()] == [len(table) for table in first]
    assert [len(table) for table in written["pair"].values()] == [len(table) for table in pair]
