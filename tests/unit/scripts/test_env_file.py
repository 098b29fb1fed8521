"""`.env` after set-up: the new values are read back, and nothing else is lost."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from scripts.connecting import env_file

NAMES = st.sampled_from(["FEISHU_APP_ID", "OPENAI_API_KEY", "OPENAI_MODEL", "MENTION_TEMPLATE"])
LINE = st.text(st.characters(exclude_categories=("C",), exclude_characters="\u2028\u2029\x85"))


def _read(text: str) -> dict[str, str | None]:
    return dotenv_values(stream=io.StringIO(text), interpolate=False)


@given(st.dictionaries(NAMES, LINE), st.dictionaries(NAMES, LINE))
def test_what_is_set_is_read_back_and_the_rest_stays(
    old: dict[str, str], new: dict[str, str]
) -> None:
    text = env_file.changed("# ours\nOTHER='a # b'  # remark\n", old)
    found = _read(env_file.changed(text, new))

    assert found == {"OTHER": "a # b", **old, **new}


def test_remarks_order_and_other_lines_stay() -> None:
    text = "# head\n\nexport A=1   # one\nB='x' # two\nA=2\n\nC=3"
    assert env_file.changed(text, {"A": "9", "B": "y z", "D": "4"}) == (
        "# head\n\nexport A=1   # one\nB='y z'  # two\nA=9\n\nC=3\nD=4\n"
    )


def test_a_line_inside_of_a_value_is_no_variable() -> None:
    text = 'TEXT="one\nA=2\nthree"\n'
    assert env_file.changed(text, {"A": "1"}) == f"{text}A=1\n"


def test_setting_the_same_again_changes_nothing() -> None:
    once = env_file.changed("A=1 # x\n", {"A": "2", "B": "c d"})
    assert env_file.changed(once, {"A": "2", "B": "c d"}) == once


def test_the_file_is_its_owners_and_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "secret.env", tmp_path / ".env"
    real.write_text("A=1\n", encoding="utf-8")
    real.chmod(0o644)
    link.symlink_to(real)
    env_file.write(link, {"B": "2"})

    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "A=1\nB=2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == [".env", "secret.env"]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="one line"):
        env_file.write(file, {"A": "2\n3"})

    assert file.read_text(encoding="utf-8") == "A=1\n"
    assert [one.name for one in tmp_path.iterdir()] == [".env"]
