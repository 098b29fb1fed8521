"""What the environment and `.env` say, as the values they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from bot.process import settings_values
from bot.settings import SettingsError, read
from tests.support.rows import every_row


@every_row(
    ("said", "kind", "value"),
    [
        ("8080", int, 8080),
        (" 8080 ", int, 8080),
        ("2.0", int, 2),
        ("0.5", float, 0.5),
        (3, float, 3.0),
        ("true", bool, True),
        ("Yes", bool | None, True),
        ("on", bool, True),
        ("0", bool, False),
        ("OFF", bool | None, False),
        (None, bool | None, None),
        ("a/b", Path, Path("a/b")),
        (Path("a"), Path | None, Path("a")),
        (" a text ", str, " a text "),
        ("null", str, "null"),
        ("INFO", Literal["INFO", "ERROR"], "INFO"),
    ],
)
def test_a_text_becomes_a_value(said: object, kind: type, value: object) -> None:
    made = settings_values.value_of(said, kind)
    assert (made, type(made)) == (value, type(value))


@every_row(
    ("said", "kind", "wanted"),
    [
        ("many", int, "a whole number, at least 1, at most 32"),
        ("0", int, "a whole number, at least 1, at most 32"),
        ("33", int, "a whole number, at least 1, at most 32"),
        ("1.5", int, "a whole number, at least 1, at most 32"),
        ("soon", float, "a number, at least 1, at most 32"),
    ],
)
def test_a_number_has_limits(said: str, kind: type, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"^it must be {wanted}$"):
        settings_values.value_of(said, kind, ge=1, le=32)


def test_what_does_not_fit_is_told_in_words() -> None:
    with pytest.raises(ValueError, match=r"^it must be INFO or ERROR$"):
        settings_values.value_of("info", Literal["INFO", "ERROR"])
    with pytest.raises(ValueError, match=r"^it must be true or false$"):
        settings_values.value_of("maybe", bool | None)
    with pytest.raises(ValueError, match=r"^it must be a number, more than 0, at most 55$"):
        settings_values.value_of("0", float, gt=0, le=55)


def test_the_environment_wins_over_the_file_and_what_is_empty_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("PORT=1\nopenai_model='of the file'\nWORKERS=\nTIMEZONE\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("port", "2")
    monkeypatch.setenv("OPENAI_MODEL", "")
    monkeypatch.setenv("SOMEBODY_ELSES", "3")

    settings = read()
    assert (settings.port, settings.openai_model, settings.workers) == (2, "of the file", 1)


def test_what_is_given_wins_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "2")
    assert read(port=3).port == 3


def test_a_wrong_value_is_named_with_what_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS", "many")
    with pytest.raises(SettingsError) as raised:
        read()
    assert str(raised.value) == (
        "WORKERS is not valid: it must be a whole number, at least 1, at most 32 (got 'many'). "
        "See .env.example."
    )
