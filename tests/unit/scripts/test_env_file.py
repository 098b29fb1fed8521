"""`.env` after set-up: the new values are read back, and nothing else is lost."""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from scripts.connecting import env_file

NAMES = st.sampled_from(["FEISHU_APP_ID", "OPENAI_API_KEY", "OPENAI_MODEL", "MENTION_TEMPLATE"])
LINE = st.text(st.characters(exclude_categories=("C",), exclude_characters="\u2028\u2029\x85"))


@given(st.dictionaries(NAMES, LINE), st.dictionaries(NAMES, LINE))
def test_what_is_set_is_read_back_and_the_rest_stays(
    old: dict[str, str], new: dict[str, str]
) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / ".env"
        file.write_text("# ours\nOTHER='a # b'  # remark\n", encoding="utf-8")
        env_file.write(file, old)
        env_file.write(file, new)

        assert file.read_text(encoding="utf-8").startswith("# ours\nOTHER='a # b'  # remark\n")
        found = dotenv_values(file, interpolate=False)
    assert found == {"OTHER": "a # b", **old, **new}


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


def test_a_new_file_is_its_owners(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    env_file.write(file, {"A": "1"})

    assert file.read_text(encoding="utf-8").endswith("\nA=1\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="one line"):
        env_file.write(file, {"B": "2", "A": "2\n3"})

    assert file.read_text(encoding="utf-8") == "A=1\n"
    assert [one.name for one in tmp_path.iterdir()] == [".env"]
