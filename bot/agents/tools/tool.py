"""A tool: what a model is told about it, and what a call does.

@dataclass Tool      name, description, JSON schema, function
tool(function)       derives all of it from signature and docstring, once
Toolbox              the tools of an agent, with their JSON for requests made once
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from bot.agents.lenient_json import dumps

ERROR = "Error: "

_ARGUMENT = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


class ToolFailed(Exception):
    """The call did not do what was asked; the message is for the model, which may go on."""


class ArgumentsInvalid(Exception):
    """The arguments do not fit, so nothing was called; the message tells the model why."""


class FinalAnswer(str):
    """A result that is the answer of the whole run, if nothing else was called with it."""

    __slots__ = ()


# With the turn's `ToolDeps`, which name the tools of this turn and so cannot be named here.
Call = Callable[[Any, dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """`parameters` is a JSON schema. A sequential tool never runs beside another call. A tool that
    only `reads` changes nothing that outlives the answer; where nobody says so, it may.

    `valid` gives the arguments to call with, or raises `ArgumentsInvalid`. `call` returns what can
    be written as JSON, or raises `ToolFailed`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Call
    valid: Callable[[dict[str, Any]], dict[str, Any]] = dict
    sequential: bool = False
    reads: bool = False

    def described(self) -> dict[str, Any]:
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

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @cached_property
    def json(self) -> bytes:
        """The value of `tools` in a request."""
        return dumps([tool.described() for tool in self._tools.values()])


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
) -> Tool:
    """A tool that calls `function` with the turn's deps and its arguments.

    Schema and checks come from the signature, the descriptions from a docstring with `Args:`.
    """
    named = name or function.__name__
    about, _, rest = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    told = {key: " ".join(text.split()) for key, text in _ARGUMENT.findall(rest)}
    fields = _fields(function, told)
    arguments = create_model(named, __config__=ConfigDict(extra="forbid"), **fields)

    def valid(given: dict[str, Any]) -> dict[str, Any]:
        try:
            checked = arguments.model_validate(given)
        except ValidationError as exc:
            raise ArgumentsInvalid(_mistakes(exc)) from exc
        return {key: getattr(checked, key) for key in fields}

    async def call(deps: Any, given: dict[str, Any]) -> Any:
        return await function(deps, **given)

    schema = arguments.model_json_schema(schema_generator=_Untitled)
    told_of = description or about.strip()
    return Tool(named, told_of, _simple(schema), call, valid, sequential, reads)


class _Untitled(GenerateJsonSchema):
    """Titles repeat names and cost tokens in every request."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _fields(function: Callable[..., Any], told: Mapping[str, str]) -> dict[str, Any]:
    hints = get_type_hints(function)
    _, *parameters = inspect.signature(function).parameters.values()
    return {
        one.name: (
            hints[one.name],
            Field(... if one.default is one.empty else one.default, description=told[one.name]),
        )
        for one in parameters
    }


def _simple(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without its title and without null as a choice: what is optional is left out."""
    properties = {key: _not_null(value) for key, value in schema["properties"].items()}
    return {**{k: v for k, v in schema.items() if k != "title"}, "properties": properties}


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**choices[0], "description": schema["description"]}


def _mistakes(exc: ValidationError) -> str:
    """Where the arguments are wrong and how; what was given is not repeated."""
    found = exc.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
