"""Feishu's own SDK as a description of the platform: which calls, fields and types there are.

Importing lark-oapi takes two seconds and 170 MB, so only the tests of the contract do it.
"""

from __future__ import annotations

import importlib
import re
import typing
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_SERVICES = ("im.v1", "cardkit.v1", "contact.v3", "application.v6", "auth.v3", "event.v1")
_CALLBACKS = "lark_oapi.event.callback.model.p2_card_action_trigger"
_PART = re.compile(rb'name="([^"]+)"(?!; filename=")|name="([^"]+)"; filename=')


@contextmanager
def lark_oapi() -> Iterator[Any]:
    """The SDK's package, which warns on import and leaves an event loop of its own open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lark = importlib.import_module("lark_oapi")
        for service in _SERVICES:
            importlib.import_module(f"lark_oapi.api.{service}")
    yield lark
    lark.ws.client.loop.close()


@dataclass(frozen=True)
class Endpoint:
    """A call as the SDK builds it; `queries` are name → type, `body` is a model or None."""

    method: str
    template: str
    queries: Mapping[str, Any]
    body: Any

    def takes(self, method: str, path: str) -> bool:
        pattern = "/".join(
            "[^/]+" if part.startswith(":") else re.escape(part)
            for part in self.template.split("/")
        )
        return method == self.method and re.fullmatch(pattern, path) is not None


@dataclass
class Findings:
    """What the SDK says of the values that were looked at.

    `digits`: a number may come as text. Feishu's answers bring 64-bit numbers so (the examples of
    its pages), and the SDK's models call them int.
    """

    digits: bool = False
    fields: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)

    def look(self, name: str, kind: Any, value: Any) -> None:
        """Compares `value`, which is called `name`, with what the SDK has there, to its leaves."""
        self.fields.add(name)
        shape = getattr(kind, "_types", None)
        if shape is not None and isinstance(value, Mapping):
            for key, inner in value.items():
                self.within(f"{name}.{key}", shape, key, inner)
        elif typing.get_origin(kind) is list and isinstance(value, list):
            for inner in value:
                self.look(f"{name}[]", typing.get_args(kind)[0], inner)
        elif not _is(kind, value) and not (self.digits and _is_number(kind, value)):
            self.wrong.add(f"{name}: {type(value).__name__} instead of {kind}")

    def within(self, name: str, shape: Mapping[str, Any], key: str, value: Any) -> None:
        if key in shape:
            self.look(name, shape[key], value)
        else:
            self.fields.add(name)
            self.unknown.add(name)


def endpoints(lark: Any) -> list[Endpoint]:
    """All calls of the services that the bot uses."""
    found = []
    for service in _SERVICES:
        model = importlib.import_module(f"lark_oapi.api.{service}.model")
        for name, request in vars(model).items():
            is_call = isinstance(request, type) and issubclass(request, lark.BaseRequest)
            if is_call and request is not lark.BaseRequest and name.endswith("Request"):
                found.append(_endpoint(request))
    return found


def _endpoint(request: Any) -> Endpoint:
    builder = request.builder()
    built = builder.build()
    hints = {
        name: next(iter(kinds.values()), None)
        for name, made in vars(type(builder)).items()
        if not name.startswith("_") and name not in ("build",)
        if (kinds := {k: v for k, v in typing.get_type_hints(made).items() if k != "return"})
    }
    body = hints.pop("request_body", None)
    in_path = {part[1:] for part in built.uri.split("/") if part.startswith(":")}
    queries = {name: kind for name, kind in hints.items() if name not in in_path}
    return Endpoint(built.http_method.name, built.uri, queries, body)


def endpoint_of(call: Mapping[str, Any], known: list[Endpoint]) -> Endpoint | None:
    """The SDK's call for a recorded one ({method, path, query, body}); a fixed path comes first."""
    fitting = [one for one in known if one.takes(call["method"], call["path"])]
    return min(fitting, key=lambda one: one.template.count(":"), default=None)


def compare_call(call: Mapping[str, Any], endpoint: Endpoint, findings: Findings) -> None:
    """Compares query and body of a recorded call with what the SDK's builders take."""
    place = f"{endpoint.method} {endpoint.template}"
    for name, text in call["query"].items():
        findings.within(f"{place} ?{name}", endpoint.queries, name, _from_query(text))
    body, shape = call["body"], getattr(endpoint.body, "_types", {})
    if isinstance(body, str):
        parts = {a or b for a, b in _PART.findall(body.encode())}
        body = {part.decode(): shape.get(part.decode()) and _ANYTHING for part in parts}
    for name, value in (body or {}).items():
        findings.within(f"{place} {name}", shape, name, value)


_ANYTHING = object()  # a part of a form: always text or a file


def _from_query(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def _is(kind: Any, value: Any) -> bool:
    if value is _ANYTHING or kind is Any:
        return True
    if typing.get_origin(kind) is dict:
        return isinstance(value, Mapping)
    if kind is str:  # a query's digits are text as well
        return isinstance(value, str | int) and not isinstance(value, bool)
    if not isinstance(kind, type):
        return True
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _is_number(kind: Any, value: Any) -> bool:
    return kind is int and isinstance(value, str) and value.isdigit()


class Noting(dict[str, Any]):
    """A JSON object that notes which keys are read, with their way from the top."""

    def __init__(self, value: Mapping[str, Any], way: str, read: set[str]) -> None:
        super().__init__({k: noting(v, f"{way}.{k}".lstrip("."), read) for k, v in value.items()})
        self._way, self._read = way, read

    def _note(self, key: str) -> None:
        self._read.add(f"{self._way}.{key}".lstrip("."))

    def __getitem__(self, key: str) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key)
        return super().get(key, default)


def noting(value: Any, way: str, read: set[str]) -> Any:
    """`value`, whose objects note in `read` what is taken out of them."""
    if isinstance(value, dict):
        return Noting(value, way, read)
    if isinstance(value, list):
        return [noting(one, f"{way}[]", read) for one in value]
    return value


def event_types(lark: Any, kind: str) -> dict[str, Any]:
    """The fields of an event at its top (header and event), as the SDK's dispatcher builds it."""
    if kind == "card.action.trigger":
        made = importlib.import_module(_CALLBACKS).P2CardActionTrigger
    else:
        words = re.split(r"[._]", kind)
        models = importlib.import_module(f"{lark.__name__}.api.{words[0]}.{words[-1]}")
        made = getattr(models, "P2" + "".join(one[:1].upper() + one[1:] for one in words))
    made()  # completes the types with those of its base class
    return dict(made._types)


def is_known(way: str, model: Any) -> bool:
    """Whether the SDK's `model` has the field that `way` (`a.b[].c`) leads to."""
    for part in way.split("."):
        if model is Any or typing.get_origin(model) is dict or model is dict:
            return True
        shape = fields_of(model)
        name = part.removesuffix("[]")
        if name not in shape:
            return False
        model = shape[name]
        if typing.get_origin(model) is list:
            model = typing.get_args(model)[0]
    return True


def fields_of(model: Any) -> Mapping[str, Any]:
    """Name → type of a model's fields; the few written by hand there tell no types."""
    shape: Mapping[str, Any] = getattr(model, "_types", {})
    if not shape and isinstance(model, type) and model.__module__.startswith("lark_oapi"):
        return dict.fromkeys(vars(model()), Any)
    return shape
