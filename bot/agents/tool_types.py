"""Defines tools, their calls and the outcomes of calls.

Pure. A language model tells people of a result itself. Where none does (the offline model, a
pressed button), a `Wording` makes the text from kind and fields.

@dataclass Tool      name, description, JSON schema, function
tool(function)       derives all of it from signature and docstring, once
Toolbox              the tools of an agent, with their JSON for requests made once
ToolCall             what a model wants called"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from bot.feishu.markup import quotable
from bot.text.json_text import dump_json
from bot.text.languages import Catalogue, Language, join_list

_IDS = re.compile(r" ?\(ID: [^()\s]*\)")
_COMMON = Catalogue(__file__)
Fields = Mapping[str, Any]
Teller = Callable[[Fields, Language], str]

ERROR = "Error: "
_SIMPLE: Mapping[type, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
}
_ARGUMENT = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)

Group = Literal["clock", "files", "documents", "calendar", "specialists", "reminders", "notes"]
# Every tool of the bot; those of no group are sent with every question (`bot.agents.choice`).
TOOL_GROUPS: Mapping[str, Group | None] = {
    "read_working_memory": None,
    "update_working_memory": None,
    "forget_fact": None,
    "recall": None,
    "suggest_follow_ups": None,
    "current_time": "clock",
    "send_file": "files",
    "read_document": "documents",
    "search_documents": "documents",
    "look_at_calendar": "calendar",
    "list_due_tasks": "calendar",
    "book_meeting": "calendar",
    "make_task": "calendar",
    "ask_specialist": "specialists",
    "set_reminder": "reminders",
    "list_reminders": "reminders",
    "change_reminder": "reminders",
    "cancel_reminder": "reminders",
    "create_note": "notes",
    "get_note": "notes",
    "list_notes": "notes",
    "search_notes": "notes",
    "update_note": "notes",
    "delete_note": "notes",
    "share_note": "notes",
}

# With the turn's `ToolDeps`, which name the tools of this turn and so cannot be named here.
Call = Callable[[Any, dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`result` is what the model is given: a text, or JSON. `kind` and `fields` (JSON) say the same
    as data; what has no kind speaks for itself. Not `ok`: it was not done."""

    result: Any
    kind: str = ""
    fields: Fields = field(default_factory=dict)
    ok: bool = True


class Wording:
    """The words of a room for the outcomes of its tools.

    `catalogue` has a text a kind; a kind that takes more than one has its own teller. Kinds that
    are not of the room, such as a memory that does not answer, are common to all. `whole`: what the
    room refuses is said in whole sentences, which need no “I couldn't do that”.
    """

    def __init__(
        self,
        catalogue: Catalogue = _COMMON,
        tellers: Mapping[str, Teller] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._catalogue = catalogue
        self._tellers = tellers or {}
        self._whole = whole

    def tell(self, outcome: ToolOutcome, language: Language) -> str:
        """What a person reads; ids stay between the models."""
        words = self._outcome_words(outcome, language)
        if outcome.ok or (self._whole and self._catalogue.has(outcome.kind)):
            return words
        return _COMMON.say("not-done", language, reason=words)

    def _outcome_words(self, outcome: ToolOutcome, language: Language) -> str:
        kind, fields = outcome.kind, outcome.fields
        if not kind:
            return _IDS.sub("", str(outcome.result))
        if teller := self._tellers.get(kind):
            return teller(fields, language)
        catalogue = self._catalogue if self._catalogue.has(kind) else _COMMON
        return catalogue.say(kind, language, **_visible_fields(fields, language))


def _visible_fields(fields: Fields, language: Language) -> Fields:
    """A list is shown as one text."""
    return {name: _visible_field(value, language) for name, value in fields.items()}


def _visible_field(value: Any, language: Language) -> Any:
    if isinstance(value, list | tuple):
        return join_list(map(quotable, map(str, value)), language)
    return quotable(value) if isinstance(value, str) else value


def _forgotten_facts(fields: Fields, language: Language) -> str:
    facts = join_list((_fact(key, value, language) for key, value in fields["facts"]), language)
    return _COMMON.say("fact-forgotten", language, facts=facts)


def _fact(key: str, value: str, language: Language) -> str:
    """The words that were kept, after their name unless they say it."""
    if all(word in value.lower() for word in key.lower().split("_")):
        return f"“{quotable(value)}”"
    name = key.replace("_", " ")
    return _COMMON.say("named-fact", language, name=quotable(name), value=quotable(value))


COMMON = Wording(tellers={"fact-forgotten": _forgotten_facts})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model calls. `arguments` is JSON as the model wrote it, valid or not. `extra` are
    fields of the endpoint's own, such as signatures, which it wants back with the call; those under
    `function` belong there.
    """

    id: str
    name: str
    arguments: str = "{}"
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


class ToolFailed(Exception):
    """The call did not do what was asked; the message is for the model, which may go on. `kind` and
    `fields` are those of a `ToolOutcome`."""

    def __init__(self, message: str, kind: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.fields = fields


class ArgumentsInvalid(Exception):
    """The arguments do not fit, so nothing was called; the message tells the model why."""


class FinalAnswer(str):
    """A result that is the answer of the whole run, if nothing else was called with it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """`parameters` is a JSON schema. A sequential tool never runs beside another call. A tool that
    only `reads` changes nothing that outlives the answer; where nobody says so, it may. What one
    gives is stored nowhere unless `is_stored`: it is for this answer alone.

    `valid` gives the arguments to call with, or raises `ArgumentsInvalid`. `call` returns what can
    be written as JSON or a `ToolOutcome`, or raises `ToolFailed`. `wording` tells people of it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Call
    valid: Callable[[dict[str, Any]], dict[str, Any]] = dict
    sequential: bool = False
    reads: bool = False
    wording: Wording = COMMON
    is_stored: bool = True

    def declaration(self) -> dict[str, Any]:
        """The tool as Chat Completions wants it. `strict` is left out: it would forbid optional
        arguments and free objects, and not every endpoint knows it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


class Toolbox:
    """Tools by name; the same box serves many turns."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._parts: dict[tuple[str, ...], Toolbox] = {}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def part(self, names: tuple[str, ...]) -> Toolbox:
        """Only these tools, in this order; the same box for the same names."""
        if names not in self._parts:
            self._parts[names] = Toolbox(self._tools[name] for name in names)
        return self._parts[names]

    def without(self, names: Collection[str]) -> Toolbox:
        """The other tools; the same box where none of them is in it."""
        if not any(name in self for name in names):
            return self
        return self.part(tuple(name for name in self if name not in names))

    @cached_property
    def json(self) -> bytes:
        """The value of `tools` in a request."""
        return dump_json([tool.declaration() for tool in self._tools.values()])


NO_TOOLS = Toolbox()


def as_error(message: str) -> str:
    """What a model is told of a call that failed, so that it cannot be taken for a result."""
    return message if message.startswith(ERROR) else f"{ERROR}{message}"


def tool(
    function: Callable[..., Awaitable[Any]],
    *,
    name: str = "",
    description: str = "",
    sequential: bool = False,
    reads: bool = False,
    wording: Wording = COMMON,
    is_kept: bool = True,
) -> Tool:
    """A tool that calls `function` with the turn's deps and its arguments.

    Schema and checks come from the signature, the descriptions from a docstring with `Args:`.
    """
    about, _, rest = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    arguments = _arguments(function, rest)

    async def call(deps: Any, arguments_given: dict[str, Any]) -> Any:
        return await function(deps, **arguments_given)

    return Tool(
        name or function.__name__,
        description or about.strip(),
        _schema(arguments),
        call,
        partial(_check_arguments, arguments),
        sequential,
        reads,
        wording,
        is_kept,
    )


@dataclass(frozen=True, slots=True)
class _Argument:
    """`default` is `inspect.Parameter.empty` for what has to be given; `fits` a JSON schema."""

    kind: Any
    default: Any
    fits: Mapping[str, Any]
    about: str

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def declaration(self) -> dict[str, Any]:
        usual = {} if self.is_required or self.default is None else {"default": self.default}
        return {**usual, "description": self.about, **self.fits}


def _arguments(function: Callable[..., Any], docstring: str) -> dict[str, _Argument]:
    """By name; `docstring`: the lines of the docstring about them."""
    about = {key: " ".join(text.split()) for key, text in _ARGUMENT.findall(docstring)}
    kinds = get_type_hints(function)
    _, *parameters = inspect.signature(function).parameters.values()
    return {
        one.name: _Argument(
            kinds[one.name], one.default, _fitting(kinds[one.name]), about[one.name]
        )
        for one in parameters
    }


def _fitting(kind: Any) -> dict[str, Any]:
    """The schema of a type, without null as a choice: what is optional is left out."""
    origin, of = get_origin(kind), get_args(kind)
    if NoneType in of:
        return _fitting(*(one for one in of if one is not NoneType))
    if origin is Literal:
        return {"enum": list(of), "type": "string"}
    if origin is list:
        return {"items": _fitting(*of), "type": "array"}
    return {"type": "object"} if origin is dict else _SIMPLE[kind]


def _schema(arguments: Mapping[str, _Argument]) -> dict[str, Any]:
    """Without titles and what `_checked` sees to anyway: they cost tokens in every request."""
    required_names = [name for name, one in arguments.items() if one.is_required]
    return {
        "properties": {name: one.declaration() for name, one in arguments.items()},
        **({"required": required_names} if required_names else {}),
        "type": "object",
    }


def _check_arguments(
    arguments: Mapping[str, _Argument], arguments_given: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments to call with. Raises `ArgumentsInvalid`, which repeats nothing of the given."""
    values: dict[str, Any] = {}
    mistakes = [
        f"{name}: there is no such argument" for name in arguments_given if name not in arguments
    ]
    for name, one in arguments.items():
        if name not in arguments_given and one.is_required:
            mistakes.append(f"{name}: it has to be given")
            continue
        try:
            values[name] = msgspec.convert(
                arguments_given.get(name, one.default), one.kind, strict=False
            )
        except msgspec.ValidationError:
            mistakes.append(f"{name}: it has to fit {dump_json(one.fits).decode()}")
    if mistakes:
        raise ArgumentsInvalid("; ".join(mistakes))
    return values
