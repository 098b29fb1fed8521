"""Every code that a function refuses with is one of ours, and has a name in Python."""

from __future__ import annotations

import re

from memory.errors import StoreError, from_sqlstate
from memory.migrations import FOLDER

_RAISED = re.compile(r"errcode\s*=\s*'(\w+)'")


def test_functions_refuse_with_codes_of_ours_that_have_a_name() -> None:
    files = [*FOLDER.glob("*.sql"), *FOLDER.glob("functions/*.sql")]
    codes = {code for file in files for code in _RAISED.findall(file.read_text(encoding="utf-8"))}

    assert {code[:2] for code in codes} == {"PT"}
    unnamed = [code for code in codes if type(from_sqlstate(code, "f: no")) is StoreError]
    assert unnamed == []
