"""The one list of scopes and events: what set-up asks for, and what the documents say."""

from __future__ import annotations

import itertools
import json
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from bot.features.registry import HOOKS
from bot.feishu import events, manifest
from bot.intake import acceptance
from bot.worker import EVENT_HANDLERS
from lab.doubles.processes import ROOT
from memory.text import has_han
from sandbox.api import ENDPOINTS
from sandbox.world import scopes, user_scopes
from sandbox.world.app_console import decoded
from scripts.connecting import apps
from scripts.connecting.talk import Talk
from tests.support.guide_rows import generated
from tests.support.rows import every_row

FIXTURES = Path(__file__).parents[3] / "data" / "feishu"


def _guide(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_guides_list_scopes_events_and_commands_as_the_code_does() -> None:
    for path, text in generated():
        assert path.read_text(encoding="utf-8") == text, "run python -m tests.support.guide_rows"


@every_row("name", ["setup-feishu.md", "zh/setup-feishu.md"])
def test_the_guide_to_do_it_by_hand_is_complete(name: str) -> None:
    guide = _guide(name)
    pasted = guide.partition("```json\n")[2].partition("```")[0]
    assert json.loads(pasted) == json.loads(manifest.scopes_json())
    assert all(f"`{callback}`" in guide for callback in manifest.subscription_names("callback"))


def test_setup_by_hand_says_every_scope_and_event() -> None:
    said: list[str] = []
    talk = SimpleNamespace(
        say=lambda sentence, **_: said.append(f"{sentence.en} {sentence.zh}"),
        raw=said.append,
        ask=lambda *_, **__: "cli_x",
        secret=lambda *_, **__: "s",
        ask_until=lambda _, ask: ask(),
    )
    app = apps.made_by_hand(cast(Talk, talk), domain="", optional=True)
    apps.subscribe_by_hand(cast(Talk, talk), app)

    told = "\n".join(said)
    for one in (*manifest.SCOPES, *manifest.SUBSCRIPTIONS):
        assert one.name in told, one.name


def test_what_opens_a_call_is_what_the_stand_in_read_from_the_same_pages() -> None:
    as_app = [one for one in ENDPOINTS if one.tokens == ("tenant",)]
    for_other_clients = {(), scopes.PEOPLE}  # the bot asks for names alone
    theirs = {frozenset(one.scopes) for one in as_app if one.scopes not in for_other_clients}
    events_of_both = (scopes.EVENTS, user_scopes.USER_EVENTS)
    theirs |= {frozenset(any_of) for one in events_of_both for any_of in one.values()}
    received = (
        scopes.PRIVATE_MESSAGES, scopes.MENTIONS, scopes.GROUP_MESSAGES,
        (scopes.MENTIONS_BY_BOTS,), (scopes.ALL_GROUP_MESSAGES,),
        ("im:chat.access_event.bot_p2p_chat:read",),
    )  # fmt: skip
    theirs |= {frozenset(any_of) for any_of in received}
    as_itself_too = (
        user_scopes.CONTENT, user_scopes.DOCX, user_scopes.COMMENT_THREADS, user_scopes.COMMENT,
        user_scopes.DELETE_COMMENT,
    )  # fmt: skip
    theirs |= {frozenset(any_of) for any_of in as_itself_too}
    ours = {frozenset(any_of) for scope in manifest.SCOPES for any_of in scope.opens}
    assert ours == theirs


def test_what_is_asked_for_covers_itself_and_each_alternative_covers_it_too() -> None:
    assert manifest.missing_scopes(manifest.scope_names()) == []
    for scope in manifest.SCOPES:
        assert all(scope.name in any_of for any_of in scope.opens), scope.name
        for choice in itertools.product(*scope.opens):
            assert scope.is_covered(choice), (scope.name, choice)


def test_only_what_is_granted_to_the_app_itself_counts() -> None:
    listed = [
        {"scope_name": "im:chat", "grant_status": 1},
        {"scope_name": "im:message.group_msg", "grant_status": 1, "scope_type": "tenant"},
        {"scope_name": "im:resource", "grant_status": 2, "scope_type": "tenant"},
        {"scope_name": "im:message", "grant_status": 1, "scope_type": "user"},
        "no object",
    ]
    assert manifest.granted_names(listed) == {"im:chat", "im:message.group_msg"}


def test_broad_scopes_are_enough_and_cover_no_more_than_feishu_says() -> None:
    granted = {"im:message", "im:chat"}
    missing = {one.name for one in manifest.missing_scopes(granted)}
    included = {one.name for one in manifest.included_scopes(granted)}

    assert included == {
        "im:message:send_as_bot", "im:message:readonly", "im:message.reactions:write_only",
        "im:chat:readonly", "im:chat.members:read", "im:chat.members:bot_access",
    }  # fmt: skip
    assert "im:message.reactions:read" in missing
    assert manifest.GROUP_MESSAGES in missing
    assert manifest.missing_scopes({"im:chat"}) != manifest.missing_scopes(set())


def test_every_purpose_is_said_in_both_languages() -> None:
    for one in (*manifest.SCOPES, *manifest.SUBSCRIPTIONS):
        assert has_han(one.purpose.zh), one.name
        assert not has_han(one.purpose.en), one.name


def test_what_the_bot_acts_on_is_asked_for() -> None:
    asked = {*manifest.subscription_names("event"), *manifest.subscription_names("callback")}

    assert {*acceptance.HANDLED_EVENTS, events.CARD_ACTION} - asked == set(), (
        "add it to bot/feishu/manifest.py"
    )
    assert manifest.MESSAGE.name == events.MESSAGE_RECEIVED
    assert manifest.CLICK.name == events.CARD_ACTION


def test_every_event_that_is_asked_for_has_a_handler() -> None:
    handled = EVENT_HANDLERS.keys() | HOOKS.events.keys()
    asked = {*manifest.subscription_names("event"), *manifest.subscription_names("callback")}
    assert asked - handled == set(), (
        "add it to EVENT_HANDLERS (bot/worker.py) or to `events` of a Feature"
    )


def test_every_event_is_one_that_feishu_has() -> None:
    sdk = find_spec("lark_oapi.event.dispatcher_handler")
    assert sdk is not None
    assert sdk.origin is not None
    known = set(re.findall(r'"p2\.([\w.]+)"', Path(sdk.origin).read_text(encoding="utf-8")))
    for file in FIXTURES.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        known |= set(re.findall(r'"event_type": "([^"]+)"', text))

    assert {one.name for one in manifest.SUBSCRIPTIONS} <= known


def test_lark_oapi_takes_the_addons_and_the_stand_in_reads_them() -> None:
    from lark_oapi.scene.registration import _encode_addons

    for optional in (True, False):
        asked = manifest.registration_addons(optional=optional)
        assert decoded(_encode_addons(asked)) == asked
        assert set(asked["scopes"]["tenant"]) <= scopes.SCOPES.keys()


def test_the_json_to_paste_is_what_the_console_takes() -> None:
    assert json.loads(manifest.scopes_json(optional=False)) == {
        "scopes": {"tenant": manifest.scope_names(optional=False), "user": []}
    }
    assert "im:message.group_msg" not in manifest.scope_names(optional=False)
