"""What the stand-in model is told to answer: replies, rules and their order. Pure.

A reply is a JSON object, every field optional:

    text, reasoning      what the model says and thinks
    tool_calls           [{"name": …, "arguments": {…} or text, "id": …}]; other fields go with it
    finish_reason, usage in place of those derived from the rest
    delay_s              seconds before the first byte
    chunk_delay_s        seconds between the chunks of a stream
    duration_s           seconds from the request to the end of the answer, in place of both delays;
                         the pieces of a streamed text come evenly within them
    status, body         in place of an answer; a body that is text is sent as it is, else as JSON
    content_type         of that body; "" for an empty header
    retry_after          value of the Retry-After header
    fault                "hang" (no answer at all), "cut" (connection closed in mid-body), "pause"
                         (half of a stream and then nothing more) or "malformed" (status 200 and
                         broken JSON)

A rule is a reply on its own, or {"when": [condition, …], "reply": reply, "times": n,
"after_tool": true or false}. All conditions must hold. A condition is {"contains": text} or
{"regex": pattern}, with "in": "last_user" (default), "last" (newest message of any role),
"system" or "prompt" (every message as `role: text`, one after the other). What the bot puts before
a question (`[Known for this answer]`) counts as system, not as the user's. `{{name}}` in texts and
arguments becomes the regex group of that name or number; `{{last_user}}` the last user message.

`steps` are rules taken in order, once each; a condition of the next step that does not hold is an
error, so that a test sees what the prompt lacked. `rules` are tried from the first for every
request; one that calls tools does not apply right after a tool's result unless it says so.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Body = Mapping[str, Any]
Mode = Literal["echo", "script", "rules"]

_FAULTS = (None, "hang", "cut", "pause", "malformed")
_PARTS = ("last_user", "last", "system", "prompt")
_KNOWLEDGE = re.compile(
    r"^\[Known for this answer\]\n(.*?)(?:\n\[The message to answer\]\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class BadScript(ValueError):
    """The script does not have the form that sandbox/model/model_script.py describes."""


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One answer; the module's docstring describes the fields."""

    text: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[Body, ...] = ()
    finish_reason: str | None = None
    usage: Body | None = None
    delay_s: float | None = None
    chunk_delay_s: float = 0.0
    duration_s: float | None = None
    status: int = 200
    body: Any = None
    content_type: str | None = None
    retry_after: str | float | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A pattern that has to occur in one part of the request."""

    pattern: re.Pattern[str]
    part: str


@dataclass(slots=True)
class Rule:
    """A reply and when it is given. `times` counts down; None is without limit."""

    when: tuple[Condition, ...]
    reply: ScriptedReply
    times: int | None = None
    after_tool: bool | None = None

    def match(self, request: Body) -> dict[str, str] | None:
        """The groups of its conditions, None where one does not hold."""
        if self.times == 0:
            return None
        if self.after_tool is not None and self.after_tool != _follows_tool(request):
            return None
        groups: dict[str, str] = {}
        for condition in self.when:
            found = condition.pattern.search(part_text(request, condition.part))
            if found is None:
                return None
            groups |= {str(number): text or "" for number, text in enumerate(found.groups(), 1)}
            groups |= {name: text or "" for name, text in found.groupdict().items()}
        return groups


class Playbook:
    """Chooses the reply to each request: an echo, the next step, or the first rule that applies."""

    def __init__(self) -> None:
        self.mode: Mode = "echo"
        self.steps: deque[Rule] = deque()
        self.rules: list[Rule] = []

    def load(self, script: object) -> None:
        """Take a list of steps, or an object with `steps` or `rules`, and switch to that mode.

        Raises BadScript and changes nothing when the form is wrong.
        """
        if isinstance(script, list):
            script = {"steps": script}
        if not isinstance(script, dict) or len(script.keys() & {"steps", "rules"}) != 1:
            raise BadScript("a script is a list of steps, or an object with steps or rules")
        try:
            if "steps" in script:
                self.steps = deque(_rule(entry) for entry in script["steps"])
                self.mode = "script"
            else:
                self.rules = [_once_per_question(_rule(entry)) for entry in script["rules"]]
                self.mode = "rules"
        except (TypeError, AttributeError, KeyError, re.error) as error:
            raise BadScript(f"it is not as model_script.py describes: {error!r}") from error

    def switch(self, mode: object) -> None:
        """Change how replies are chosen; raises BadScript for an unknown mode."""
        known = {name: name for name in get_args(Mode)}
        if not isinstance(mode, str) or mode not in known:
            raise BadScript(f"mode is one of {', '.join(known)}, not {mode!r}")
        self.mode = known[mode]

    def reply_to(self, request: Body) -> ScriptedReply:
        """The reply to `request`; status 400 and a reason when nothing fits."""
        if self.mode == "echo":
            return ScriptedReply(text=f"echo: {part_text(request, 'last_user')}")
        if self.mode == "script":
            return self._next_step(request)
        for rule in self.rules:
            groups = rule.match(request)
            if groups is not None:
                rule.times = None if rule.times is None else rule.times - 1
                return _filled(rule.reply, request, groups)
        return refusal("no rule applies to this request; end the rules with one without conditions")

    def _next_step(self, request: Body) -> ScriptedReply:
        if not self.steps:
            return refusal("the script is used up; post more steps to /control/script")
        groups = self.steps[0].match(request)
        if groups is None:
            patterns = [condition.pattern.pattern for condition in self.steps[0].when]
            return refusal(f"the next step expects {patterns!r}, which this request does not have")
        return _filled(self.steps.popleft().reply, request, groups)


def refusal(message: str) -> ScriptedReply:
    """An answer that clients do not retry, so that a wrong script is seen at once."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return ScriptedReply(status=400, body={"error": error})


def part_text(request: Body, part: str) -> str:
    """One part of the request as text: last_user, last, system or prompt."""
    messages: Sequence[Body] = request.get("messages") or ()
    messages = [piece for message in messages for piece in split_knowledge(message)]
    if part == "prompt":
        return "\n".join(f"{message.get('role')}: {_text(message)}" for message in messages)
    if part == "last":
        return _text(messages[-1]) if messages else ""
    if part == "system":
        return "\n".join(_text(m) for m in messages if m.get("role") in ("system", "developer"))
    return next((_text(m) for m in reversed(messages) if m.get("role") == "user"), "")


def split_knowledge(message: Body) -> list[Body]:
    """A message as it is; the bot's knowledge before a question as a system message of its own."""
    content = message.get("content")
    if message.get("role") != "user" or not content:
        return [message]
    first, *rest = content if isinstance(content, list) else [{"text": content}]
    found = _KNOWLEDGE.search(first.get("text") or "")
    if not found:
        return [message]
    text = first["text"][: found.start()] + first["text"][found.end() :]
    asked = [{**first, "text": text}, *rest] if isinstance(content, list) else text
    known = {"role": "system", "content": found[1]}
    return [known, {**message, "content": asked}] if asked else [known]


def _text(message: Body) -> str:
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(piece.get("text") or f"[{piece.get('type')}]" for piece in content)
    calls = (call.get("function", {}) for call in message.get("tool_calls") or ())
    return content + "".join(f"\n{call.get('name')}({call.get('arguments')})" for call in calls)


def _follows_tool(request: Body) -> bool:
    messages: Sequence[Body] = request.get("messages") or ()
    return bool(messages) and messages[-1].get("role") == "tool"


def _filled(reply: ScriptedReply, request: Body, groups: Mapping[str, str]) -> ScriptedReply:
    values = {"last_user": part_text(request, "last_user"), **groups}
    return replace(
        reply,
        text=_fill(reply.text, values),
        reasoning=_fill(reply.reasoning, values),
        tool_calls=_fill(reply.tool_calls, values),
    )


def _fill(template: Any, values: Mapping[str, str]) -> Any:
    if isinstance(template, str):
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)
    if isinstance(template, Mapping):
        return {key: _fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return type(template)(_fill(item, values) for item in template)
    return template


def _rule(entry: dict[str, Any]) -> Rule:
    if "reply" not in entry:
        return Rule((), _reply(entry))
    when = entry.get("when", [])
    conditions = tuple(_condition(**item) for item in (when if isinstance(when, list) else [when]))
    return Rule(conditions, _reply(entry["reply"]), entry.get("times"), entry.get("after_tool"))


def _once_per_question(rule: Rule) -> Rule:
    unless_said = False if rule.reply.tool_calls and rule.after_tool is None else rule.after_tool
    return replace(rule, after_tool=unless_said)


def _condition(contains: str = "", regex: str = "", **place: str) -> Condition:
    part = place.get("in", "last_user")
    if part not in _PARTS:
        raise BadScript(f"in is one of {', '.join(_PARTS)}, not {part!r}")
    return Condition(re.compile(regex or re.escape(contains)), part)


def _reply(entry: dict[str, Any]) -> ScriptedReply:
    reply = ScriptedReply(**entry | {"tool_calls": tuple(entry.get("tool_calls") or ())})
    if reply.fault not in _FAULTS:
        raise BadScript(f"fault is hang, cut, pause or malformed, not {reply.fault!r}")
    return reply
