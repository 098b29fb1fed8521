"""Every tool call leaves a record; every expected failure is a sentence the model can act on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from bot.agents.tools.deps import ToolDeps
from memory.errors import (
    AccessDenied,
    NoteInvalid,
    NoteNotFound,
    StoreError,
    StoreUnavailable,
    WorkingMemoryTooLarge,
)

_LONGEST_RESULT = 24_000

Tools = dict[str, ToolsetTool[ToolDeps]]


@dataclass
class RecordedTools(WrapperToolset[ToolDeps]):
    """Records the calls of the wrapped tools in `ToolDeps.calls`, in the order they began.

    A record is JSON: name, arguments, result, ok, ms (milliseconds).
    """

    wrapped: AbstractToolset[ToolDeps]

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[ToolDeps],
        tool: ToolsetTool[ToolDeps],
    ) -> Any:
        record = {
            "name": name,
            "arguments": storable({k: v for k, v in tool_args.items() if v is not None}),
            "result": "The call was interrupted.",
            "ok": False,
            "ms": 0,
        }
        ctx.deps.calls.append(record)
        started = time.perf_counter()
        try:
            result = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            record |= {"result": storable(result), "ok": True}
        except StoreError as exc:
            record["result"] = explained(exc)
            raise ToolFailed(explained(exc)) from exc
        except (ToolFailed, ModelRetry) as exc:
            record["result"] = storable(exc.message)
            raise
        finally:
            record["ms"] = round((time.perf_counter() - started) * 1000)
        return result


@dataclass
class FixedTools(RecordedTools):
    """Tools that are the same for every person and turn, so their list is made once."""

    _listed: Tools | None = field(default=None, init=False, repr=False)

    async def get_tools(self, ctx: RunContext[ToolDeps]) -> Tools:
        if self._listed is None:
            self._listed = await self.wrapped.get_tools(ctx)
        return self._listed


def explained(error: StoreError) -> str:
    """What a model is told about a failure of the memory: what happened and what to do now."""
    match error:
        case NoteNotFound():
            return f"Error: {error}. Use list_notes or search_notes to find the right ID."
        case NoteInvalid():
            return f"Error: {error}. Nothing was changed."
        case AccessDenied():
            return (
                "Error: this memory belongs to another person and only they can use it. "
                "Nothing was read or changed. Say so, and do not try again."
            )
        case WorkingMemoryTooLarge():
            return (
                "Error: the working memory is full. Nothing was changed. Remove keys that are no "
                "longer needed (null), or keep the text in a note."
            )
        case StoreUnavailable():
            return (
                "Error: the memory does not answer right now. Nothing was changed. Tell the person "
                "that it could not be done, and do not claim otherwise."
            )
        case _:
            return "Error: the memory refused this. Nothing was changed. Tell the person so."


def storable(value: Any) -> Any:
    """`value` as JSON that Postgres can keep: no NUL, no lone surrogates, long texts cut."""
    jsonable = to_jsonable_python(
        value, fallback=str, serialize_unknown=True, inf_nan_mode="null", bytes_mode="base64"
    )
    return _cleaned(jsonable)


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean_text(value)[:_LONGEST_RESULT]
        case dict():
            return {clean_text(str(key)): _cleaned(item) for key, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
        case _:
            return value


def clean_text(text: str) -> str:
    """`text` without what a database or JSON cannot carry."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
