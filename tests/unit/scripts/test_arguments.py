"""What the operators' scripts take on their command line."""

from __future__ import annotations

import pytest

from scripts.operating.arguments import add_limit, parser


def limit(*given: str) -> int:
    options = parser("script", "")
    add_limit(options, 50)
    return int(options.parse_args(given).limit)


def test_a_limit_is_a_number_of_rows() -> None:
    assert [limit(), limit("--limit", "1"), limit("--limit", "1000000")] == [50, 1, 1_000_000]


@pytest.mark.parametrize("given", ["-3", "0", "1000001", "9" * 20, "many", "1.5", ""])
def test_any_other_limit_is_told_with_what_it_must_be(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        limit(f"--limit={given}")

    assert "no number from 1 to 1,000,000" in capsys.readouterr().err
