"""The one list of scopes and events: what set-up asks for, and what the documents say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bot.feishu import events, manifest
from memory.text import has_han
from sandbox.world.app_console import SCOPES, decoded
from tests.support.processes import ROOT

FIXTURES = Path(__file__).parents[3] / "data" / "feishu"
GUIDE = (ROOT / "docs" / "feishu-app.md").read_text(encoding="utf-8")


def _rows(heading: str) -> list[tuple[str, ...]]:
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `([^`]+)` \| (.+?) \| (\w+) \|$", section, re.MULTILINE)
    return [tuple(row) for row in found]


def test_the_guide_lists_every_scope_as_the_code_does() -> None:
    assert _rows("Scopes") == [(one.name, one.purpose.en, one.level) for one in manifest.SCOPES]


def test_the_guide_lists_every_event_as_the_code_does() -> None:
    assert _rows("Events and callbacks") == [
        (one.name, one.purpose.en, one.kind) for one in manifest.SUBSCRIPTIONS
    ]


def test_every_purpose_is_said_in_both_languages() -> None:
    for one in (*manifest.SCOPES, *manifest.SUBSCRIPTIONS):
        assert has_han(one.purpose.zh), one.name
        assert not has_han(one.purpose.en), one.name


def test_what_the_bot_acts_on_is_asked_for() -> None:
    asked = {*manifest.names("event"), *manifest.names("callback")}

    assert {events.MESSAGE_RECEIVED, events.MESSAGE_RECALLED, events.CARD_ACTION} <= asked
    assert manifest.MESSAGE.name == events.MESSAGE_RECEIVED
    assert manifest.CLICK.name == events.CARD_ACTION


def test_every_event_is_one_that_feishu_has() -> None:
    known = set()
    for file in FIXTURES.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        known |= set(re.findall(r'"event_type": "([^"]+)"', text))

    assert {one.name for one in manifest.SUBSCRIPTIONS} <= known


def test_lark_oapi_takes_the_addons_and_the_stand_in_reads_them() -> None:
    from lark_oapi.scene.registration import _encode_addons

    for optional in (True, False):
        asked = manifest.addons(optional=optional)
        assert decoded(_encode_addons(asked)) == asked
        assert set(asked["scopes"]["tenant"]) <= SCOPES


def test_the_json_to_paste_is_what_the_console_takes() -> None:
    assert json.loads(manifest.scopes_json(optional=False)) == {
        "scopes": {"tenant": manifest.scope_names(optional=False), "user": []}
    }
    assert "im:message.group_msg" not in manifest.scope_names(optional=False)
