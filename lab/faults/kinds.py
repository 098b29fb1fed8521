"""Experiments of many kinds at once: nonsense in events, tables that refuse, models, platform."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from bot.feishu.errors import ACTIONS, Action
from lab.faults.counting import Count, CountedQuestion
from lab.faults.scene import FaultScene

_OTHERS_ASK_S = 10.0
Change = Callable[[dict[str, Any]], None]


def _setting(*path: str, to: Any) -> Change:
    """Puts a value at a path of the envelope."""

    def change(envelope: dict[str, Any]) -> None:
        place = envelope
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to

    return change


_MESSAGE = ("event", "message")
_DEEP = "[" * 3000 + "]" * 3000

SPOILS: Mapping[str, Change] = {
    "no_open_id": _setting("event", "sender", "sender_id", "open_id", to=""),
    "no_sender_id": _setting("event", "sender", "sender_id", to=None),
    "no_sender": _setting("event", "sender", to=None),
    "sender_a_list": _setting("event", "sender", to=[]),
    "other_tenant": _setting("header", "tenant_key", to="somebody-else"),
    "no_tenant": _setting("header", "tenant_key", to=None),
    "content_no_json": _setting(*_MESSAGE, "content", to="{not json"),
    "content_a_list": _setting(*_MESSAGE, "content", to="[1, 2]"),
    "content_a_number": _setting(*_MESSAGE, "content", to=7),
    "content_null": _setting(*_MESSAGE, "content", to=None),
    "content_deep": _setting(*_MESSAGE, "content", to=_DEEP),
    "text_nul": _setting(*_MESSAGE, "content", to='{"text": "@_user_1 a\\u0000b"}'),
    "text_surrogate": _setting(*_MESSAGE, "content", to='{"text": "@_user_1 a\\ud800b"}'),
    "text_huge": _setting(*_MESSAGE, "content", to='{"text": "@_user_1 ' + "x" * 140_000 + '"}'),
    "text_a_list": _setting(*_MESSAGE, "content", to='{"text": ["a"]}'),
    "mentions_null": _setting(*_MESSAGE, "mentions", to=None),
    "mentions_a_text": _setting(*_MESSAGE, "mentions", to="@Memo"),
    "mentions_empty_ids": _setting(*_MESSAGE, "mentions", to=[{"key": "@_user_1", "id": None}]),
    "time_words": _setting(*_MESSAGE, "create_time", to="yesterday"),
    "time_negative": _setting(*_MESSAGE, "create_time", to="-5"),
    "time_far": _setting(*_MESSAGE, "create_time", to="99999999999999999"),
    "chat_type_unknown": _setting(*_MESSAGE, "chat_type", to="galaxy"),
    "type_unknown": _setting(*_MESSAGE, "message_type", to="hologram"),
    "no_chat": _setting(*_MESSAGE, "chat_id", to=""),
    "no_message": _setting("event", "message", to=None),
    "no_event": _setting("event", to=None),
    "root_itself": lambda e: e["event"]["message"].update(
        root_id=e["event"]["message"]["message_id"]
    ),
}


def poison(scene: FaultScene, count: Count, rounds: int) -> None:
    """Each kind of nonsense, then a question in the same chat, which is answered as always; and
    tables that refuse one question for good."""
    scene.start()
    asked: list[CountedQuestion] = []
    for name in list(SPOILS)[:rounds]:
        chat = scene.new_chat()
        asked.append(scene.ask(f"spoil={name}", chat, may_end=True, unstored=True))
        asked.append(scene.ask("and after that?", chat))
        count.rounds += 1
    for number, at in enumerate(("insert", "update")):
        _refuse(scene, at)
        chat = scene.new_chat()
        asked.append(scene.ask("refused for good", chat, unstored=True))
        time.sleep(6)
        scene.execute("drop function public.refuse_row() cascade")
        asked.append(scene.ask(f"and after it {number}?", chat))
        count.rounds += 1
    scene.count(count, asked)
    failed = scene.rows("select count(*) from feishu_bot.jobs where status = 'failed'")
    count.notes.append(f"{failed[0][0]} dead letters")


def _refuse(scene: FaultScene, at: str) -> None:
    scene.execute(f"""
        create function public.refuse_row() returns trigger language plpgsql as $$
        begin
          if new.content like '%refused for good%' then raise 'a fault'; end if;
          return new;
        end $$;
        create trigger refuse_row before {at} on public.agent_messages
          for each row execute function public.refuse_row()
    """)


def _choice(**choice: Any) -> dict[str, Any]:
    return {"body": {"choices": [choice]}}


def _error(status: int, **error: Any) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"message": "trouble", **error}}}


MODELS: Mapping[str, dict[str, Any]] = {
    "hang": {"fault": "hang"},
    "cut": {"fault": "cut"},
    "malformed": {"fault": "malformed"},
    "slow": {"text": "at last", "delay_s": 20},
    "empty": {"text": ""},
    "blank": {"text": " \n "},
    "no_choices": {"body": {"choices": []}},
    "null_choices": {"body": {"choices": None}},
    "no_message": _choice(finish_reason="stop"),
    "null_content": _choice(message={"role": "assistant", "content": None}),
    "refusal": _choice(message={"role": "assistant", "refusal": "no"}),
    "filtered": _choice(message={"content": "Well"}, finish_reason="content_filter"),
    "error_in_200": {"body": {"error": {"message": "trouble"}}},
    "a_list": {"body": []},
    "html_200": {"body": "<html>hello</html>"},
    "wrong_key": _error(401),
    "forbidden": _error(403),
    "not_found": _error(404),
    "too_long": _error(400, code="context_length_exceeded"),
    "filtered_prompt": _error(400, code="content_filter"),
    "rate_limited": _error(429),
    "quota": _error(429, code="insufficient_quota"),
    "patience": {**_error(429), "retry_after": "30"},
    "trouble": _error(500),
    "gateway": {"status": 502, "body": "<html>bad gateway</html>"},
    "overloaded": _error(529),
    "unknown_tool": {"tool_calls": [{"name": "no_such_tool", "arguments": {}}]},
    "bad_arguments": {"tool_calls": [{"name": "create_note", "arguments": "{never"}]},
    "cut_short": {"text": "so far", "finish_reason": "length"},
    "huge": {"text": "word " * 40_000},
}


def model(scene: FaultScene, count: Count, rounds: int) -> None:
    """Every kind of trouble that a model can make, each for one question, all at once."""
    names = list(MODELS)[:rounds]
    rules = [
        {"when": [{"contains": f"kind={name}."}], "reply": MODELS[name]} for name in names
    ]  # fmt: skip
    scene.model.control("script", {"rules": [*rules, {"reply": {"text": "fine"}}]})
    scene.model.control("mode", {"mode": "rules"})
    scene.start()
    asked = [
        scene.ask(f"kind={name}.", scene.chats[number % len(scene.chats)])
        for number, name in enumerate(names)
    ]
    count.rounds += len(names)
    scene.count(count, asked)


def hung(scene: FaultScene, count: Count, rounds: int) -> None:
    """So many people at once ask a model that never answers, and others meanwhile one that does.
    Everybody has a card; those of the first say that there is no answer."""
    silent = {"when": [{"contains": "kind=hang."}], "reply": {"fault": "hang"}}
    scene.model.control("script", {"rules": [silent, {"reply": {"text": "fine"}}]})
    scene.model.control("mode", {"mode": "rules"})
    scene.start(MODEL_TIMEOUT_SECONDS="45")
    waiting = [scene.ask(f"kind=hang. {number}", scene.new_chat()) for number in range(rounds)]
    others: list[CountedQuestion] = []
    with scene.asking(others, per_s=3, text="kind=fine."):
        time.sleep(_OTHERS_ASK_S)
    for name, asked in (("hung", waiting), ("others", others)):
        part = scene.count(Count(name, scene.bot_id), asked)
        half = median(part.silences_s) if part.silences_s else float("nan")
        count.notes.append(f"{name}: p50 {half:.1f} s, longest {part.longest_s:.1f} s")
    count.rounds += rounds
    scene.count(count, [*waiting, *others])


_ENDS = {Action.TERMINAL_MESSAGE, Action.TERMINAL_CHAT, Action.TERMINAL_USER, Action.ALERT}
_HTTP: Mapping[str, dict[str, Any]] = {
    **{f"HTTP {status}": {"status": status, "body": "<html></html>"}
       for status in (301, 400, 403, 404, 413, 429, 500, 502, 503, 504)},
    "cut": {"drop": True},
    "cut twice": {"drop": True, "times": 2},
    "no JSON": {"body": "hello"},
    "a list": {"body": []},
    "no code": {"body": {"msg": "ok"}},
    "code a text": {"body": {"code": "0"}},
    "no message_id": {"body": {"code": 0, "data": {}}},
    "data null": {"body": {"code": 0, "data": None}},
    "slow": {"delay_s": 4},
    "slower than we wait": {"delay_s": 25},
    "unknown code": {"code": 987654},
    "rate limit with reset": {"code": 99991400, "status": 429,
                              "headers": {"x-ogw-ratelimit-reset": "1"}},
}  # fmt: skip


def platform(scene: FaultScene, count: Count, rounds: int) -> None:
    """Every code of Feishu's and every kind of bad answer, each for the reply to one question."""
    kinds: list[tuple[str, dict[str, Any], bool]] = [
        (str(code), {"code": code, "times": 0 if action in _ENDS else 1}, action in _ENDS)
        for code, action in ACTIONS.items()
    ] + [(name, fault, False) for name, fault in _HTTP.items()]
    scene.model.control("mode", {"mode": "echo", "delay_s": 1.5})
    scene.start()
    asked: list[CountedQuestion] = []
    for name, fault, ends in kinds[:: max(1, len(kinds) // rounds)]:
        one = scene.ask(f"kind {name}", scene.chats[len(asked) % len(scene.chats)], may_end=ends)
        path = f"/open-apis/im/v1/messages/{one.message_id}/reply"
        scene.platform.post("/faults", path_prefix=path, method="POST", **fault)
        asked.append(one)
        count.rounds += 1
    # What only an operator can mend is waited for, a day long: here it is mended after a while.
    time.sleep(min(30, 5 + len(asked) / 2))
    scene.platform.forget_faults()
    scene.count(count, asked)
