"""Looks at the XML of Word by names, of whichever namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def element_name(element: Any) -> str:
    """The name without its namespace; "" for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def named(element: Any, name: str) -> Iterator[Any]:
    """The children of that name; none of None."""
    return (one for one in (() if element is None else element) if element_name(one) == name)


def first(element: Any, name: str) -> Any:
    """The first child of that name, or None."""
    return next(named(element, name), None)


def attribute(element: Any, name: str) -> str:
    """An attribute in the namespace of its element; "" without one."""
    return element.get(element.tag.rpartition("}")[0] + "}" + name) or ""


def value_in(element: Any, name: str, default: str = "") -> str:
    """The `val` of the first child of that name, else the default."""
    child = first(element, name)
    return default if child is None else attribute(child, "val")
