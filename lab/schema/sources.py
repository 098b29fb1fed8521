"""What the numbered files say and the catalogue does not keep: comments, functions as written."""

from __future__ import annotations

import re

_ABOUT = r"(?P<about>(?:^-- [^\n]*\n)*)"
_CREATED = re.compile(
    _ABOUT + r"^create (?:table|view) (?P<name>\S+)(?P<columns>.*?);$", re.M | re.S
)
_COLUMN = re.compile(
    r'(?P<about>(?:^  -- .*\n)*)^  "?(?P<name>\w+)"? [^-\n]*(?: -- (?P<beside>.+))?$', re.M
)
_ALTERED = re.compile(
    _ABOUT + r"^alter table (?P<table>\S+)\s+(?P<changes>add column .*?;(?: *--[^\n]*)?)$",
    re.M | re.S,
)
_ADDED = re.compile(r"add column (?P<name>\w+)\b.*?(?: -- (?P<beside>.+))?$", re.M)
# Its body stands between $$ or begins with return.
_FUNCTION = re.compile(
    r"^create (?:or replace )?function (?P<name>[\w.]+)\(.*?(?:\$\$;|^return\b[^;]*;)$", re.M | re.S
)


def comments(text: str) -> dict[str, str]:
    """By table (`public.people`) and column (`public.people.name`): what is said of them."""
    found = {}
    for table in _CREATED.finditer(text):
        found[table["name"]] = _said(table["about"])
        for column in _COLUMN.finditer(table["columns"]):
            about = column["beside"] or _said(column["about"])
            found[f"{table['name']}.{column['name']}"] = about
    for changes in _ALTERED.finditer(text):
        about = _said(changes["about"])
        for column in _ADDED.finditer(changes["changes"]):
            found[f"{changes['table']}.{column['name']}"] = column["beside"] or about
            about = ""  # what stands above is of the first
    return {name: about for name, about in found.items() if about}


def functions(text: str) -> list[str]:
    """Each as it was defined last."""
    found = {match["name"]: match[0] for match in _FUNCTION.finditer(text)}
    return list(found.values())


def _said(comment: str) -> str:
    return " ".join(line.strip().removeprefix("-- ") for line in comment.splitlines())
