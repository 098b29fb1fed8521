"""Every pattern of the product, with the methods the code calls on it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bot", "memory")
_SCANS = ("search", "finditer", "sub", "split", "match", "fullmatch")
_METHODS = frozenset((*_SCANS, "findall", "subn"))
_ALL = frozenset(("finditer", "match", "fullmatch"))


class Use(NamedTuple):
    """A pattern, where it is, and one way the code uses it."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def examine(self, text: str) -> object:
        given: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        match self.method:
            case "match" | "fullmatch" | "search":
                return getattr(self.pattern, self.method)(given)
            case "split":
                return self.pattern.split(given)
        return sum(1 for _ in self.pattern.finditer(given))


def uses() -> Iterator[Use]:
    """Each pattern once for each method that is called on it."""
    called = _methods_called()
    seen = set()
    for module in modules():
        here = _imported(_tree(module))
        for name, value in vars(module).items():
            if name in here:
                continue  # it is found where it is made
            named = (f"{module.__name__}.{name}", f"*.{name}")
            methods = {method for one in named for method in called.get(one, ())}
            for pattern in _patterns(value, set()):
                for method in sorted(methods or _ALL):
                    if (key := (pattern.pattern, pattern.flags, method)) not in seen:
                        seen.add(key)
                        yield Use(f"{module.__name__}.{name}", pattern, method)
        yield from _written_in_calls(module, seen)


def modules() -> list[types.ModuleType]:
    """All modules of the product that hold code."""
    return [importlib.import_module(name) for name in sorted(_names())]


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, _parsed(path)


@functools.cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def patterns_made_in_functions() -> Iterator[str]:
    """The places that make a pattern of something other than a literal, while the process works."""
    for path, tree in sources():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in _re_calls(function):
                    if not isinstance(call.args[0], ast.Constant):
                        yield f"{path.relative_to(ROOT)}: {function.name}"


def _names() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.name not in ("__main__.py",):
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _patterns(value: Any, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    for one in _within(value):
        if isinstance(one, re.Pattern):
            yield one
        else:
            yield from _patterns(one, seen)


def _within(value: Any) -> list[Any]:
    match value:
        case re.Pattern():
            return [value]
        case str() | bytes() | int() | float() | types.ModuleType():
            return []
        case Mapping():
            return [*value.keys(), *value.values()]
        case tuple() | list() | set() | frozenset():
            return list(value)
        case types.BuiltinMethodType():
            return [value.__self__] if isinstance(value.__self__, re.Pattern) else []
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return [*cells, *(value.__defaults__ or ())]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return []


@functools.cache
def _methods_called() -> Mapping[str, set[str]]:
    """The methods called on a name, by `module.NAME`; by `*.NAME` where an object has the name."""
    called: dict[str, set[str]] = {}
    for path, tree in sources():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        imported, looped = _imported(tree), _looped(tree)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and node.attr in _METHODS):
                continue
            method = "finditer" if node.attr in ("findall", "sub", "subn") else node.attr
            if isinstance(node.value, ast.Name):
                over = () if method == "split" else looped.get(node.value.id, ())  # texts split too
                for one in (node.value.id, *over):
                    called.setdefault(imported.get(one, f"{module}.{one}"), set()).add(method)
            elif isinstance(node.value, ast.Attribute):
                called.setdefault(f"*.{node.value.attr}", set()).add(method)
    return called


@functools.cache
def _imported(tree: ast.Module) -> dict[str, str]:
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _looped(tree: ast.Module) -> dict[str, set[str]]:
    """For the variable of a loop over names, these names."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension | ast.For) and isinstance(node.target, ast.Name):
            several = getattr(node.iter, "elts", [node.iter])
            names = {one.id for one in several if isinstance(one, ast.Name)}
            found.setdefault(node.target.id, set()).update(names)
    return found


def _tree(module: types.ModuleType) -> ast.Module:
    return _parsed(Path(str(module.__file__)))


def _written_in_calls(module: types.ModuleType, seen: set[Any]) -> Iterator[Use]:
    for call in _re_calls(_tree(module)):
        if isinstance(call.args[0], ast.Constant) and call.func.attr != "compile":
            pattern = re.compile(call.args[0].value)
            method = call.func.attr if call.func.attr in ("match", "fullmatch") else "finditer"
            if (key := (pattern.pattern, pattern.flags, method)) not in seen:
                seen.add(key)
                yield Use(f"{module.__name__}:{call.lineno}", pattern, method)


def _re_calls(tree: ast.AST) -> Iterator[Any]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and getattr(node.func.value, "id", None) == "re"
            and node.func.attr in (_METHODS | {"compile"})
            and node.args
        ):
            yield node
