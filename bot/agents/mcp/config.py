"""`mcp.json`: which outside servers there are, and what needs a person's confirmation. Pure but for
reading the file and the environment variables it names.

The format is the usual `mcpServers`, with two keys of ours. `"confirm"` is true, false or a list of
tool names; without it, every tool waits for a confirmation that its server does not declare
read-only. `"allowCredentials"` lists variables of the bot whose values the server may be given.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_|$)){0,29}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}")
_ALLOWED = "allowCredentials"
_STDIO_KEYS = frozenset({"command", "args", "env", "cwd"})
_HTTP_KEYS = frozenset({"url", "headers"})
_KEYS = _STDIO_KEYS | _HTTP_KEYS | {"type", "transport", "disabled", "confirm", _ALLOWED}


class McpConfigInvalid(Exception):
    """`mcp.json` cannot be used; the message names file, server and what to change."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: a command to start (stdio) or a URL (streamable HTTP, or SSE at `…/sse`)."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    confirm: bool | frozenset[str] | None = None
    allowed: frozenset[str] = frozenset()

    def texts(self) -> Iterator[str]:
        """Everything that the server is given."""
        yield from (self.command, *self.args, self.url)
        yield from (*self.env.values(), *self.headers.values())


def load_servers(file: Path, environment: Mapping[str, str] | None = None) -> tuple[McpServer, ...]:
    """The enabled servers of `file`; none when it does not exist. Raises `McpConfigInvalid`.

    `${NAME}` and `${NAME:-default}` stand for environment variables.
    """
    if not file.exists():
        return ()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise McpConfigInvalid(f"{file.name} is not JSON: {exc}") from exc
    servers = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise McpConfigInvalid(f'{file.name} must hold an object "mcpServers"')
    variables = os.environ if environment is None else environment
    read = (_ServerEntry(file.name, name, entry, variables) for name, entry in servers.items())
    return tuple(entry.server() for entry in read if not entry.disabled)


def refuse_credentials(
    servers: Iterable[McpServer], credentials: Mapping[str, Sequence[str]]
) -> None:
    """Raises `McpConfigInvalid` if a server is given one of the bot's own `credentials`, which are
    its values by the name of the variable. With them it acts as the bot: it can read every chat
    that the bot is in, and show it to anybody who asks."""
    for server in servers:
        server_texts = "\n".join(server.texts())
        for name, values in credentials.items():
            if name not in server.allowed and any(
                value and value in server_texts for value in values
            ):
                raise McpConfigInvalid(
                    f"mcp.json, server {server.name!r}: it is given the bot's own {name}, so it "
                    "could read all chats of the bot, private ones too. Give it credentials of its "
                    f'own. To allow this all the same, add "{_ALLOWED}": ["{name}"].'
                )


def tool_patterns(servers: Iterable[McpServer]) -> frozenset[str]:
    """`server__*` for each server: what a specialist may list of it."""
    return frozenset(f"{server.name}__*" for server in servers)


class _ServerEntry:
    """One entry of `mcpServers` being read."""

    def __init__(self, file: str, name: str, content: Any, variables: Mapping[str, str]) -> None:
        self._where = f"{file}, server {name!r}"
        self._name = name
        self._variables = variables
        if not isinstance(content, dict):
            raise self._invalid("it must be an object")
        if unknown := sorted(set(content) - _KEYS):
            raise self._invalid(f"unknown key {unknown[0]!r}; allowed: {', '.join(sorted(_KEYS))}")
        self._content: dict[str, Any] = self._expand(content)

    @property
    def disabled(self) -> bool:
        return self._content.get("disabled") is True

    def server(self) -> McpServer:
        if not _NAME.fullmatch(self._name):
            raise self._invalid(
                "its name may hold letters, digits, - and single _ inside (at most 30)"
            )
        has_command, has_url = "command" in self._content, "url" in self._content
        if has_command == has_url:
            raise self._invalid('it needs either "command" (stdio) or "url" (HTTP)')
        return McpServer(
            name=self._name,
            command=self._text("command"),
            args=tuple(self._texts("args")),
            env=self._mapping("env"),
            cwd=self._text("cwd") or None,
            url=self._url(),
            headers=self._mapping("headers"),
            confirm=self._confirm(),
            allowed=frozenset(self._texts(_ALLOWED)),
        )

    def _url(self) -> str:
        url = self._text("url")
        if url and not url.startswith(("https://", "http://")):
            raise self._invalid('"url" must start with https:// or http://')
        return url

    def _confirm(self) -> bool | frozenset[str] | None:
        value = self._content.get("confirm")
        if value is None or isinstance(value, bool):
            return value
        return frozenset(self._texts("confirm"))

    def _text(self, key: str) -> str:
        value = self._content.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._invalid(f'"{key}" must be a text')
        return value

    def _texts(self, key: str) -> list[str]:
        value = self._content.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._invalid(f'"{key}" must be a list of texts')
        return value

    def _mapping(self, key: str) -> dict[str, str]:
        value = self._content.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self._invalid(f'"{key}" must map names to texts')
        return value

    def _expand(self, value: Any) -> Any:
        match value:
            case str():
                return _VARIABLE.sub(self._variable, value)
            case list():
                return [self._expand(item) for item in value]
            case dict():
                return {key: self._expand(item) for key, item in value.items()}
            case _:
                return value

    def _variable(self, match: re.Match[str]) -> str:
        name, default = match[1], match[3]
        if name in self._variables:
            return self._variables[name]
        if match[2] is None:
            raise self._invalid(f"the environment variable {name} is not set")
        return default or ""

    def _invalid(self, reason: str) -> McpConfigInvalid:
        return McpConfigInvalid(f"{self._where}: {reason}")
