"""Loads the files that an operator writes: specialists and `mcp.json`. It is light, because the
start checks read them before gunicorn forks.

Light, because the start checks them before gunicorn forks.

A test compares them with the tools there are."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import yaml

from bot.agents.mcp.config import (
    McpConfigInvalid,
    McpServer,
    load_servers,
    refuse_credentials,
    tool_patterns,
)
from bot.agents.tool_types import TOOL_GROUPS
from bot.settings import Settings, SettingsError
from bot.text.roster import AutoMention, auto_mention_of

FOLDER = Path(__file__).with_suffix("")
_KEYS = ("name", "description", "tools", "model", "auto_mention")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_FENCE = "---"
_SHORT = 12  # characters: a shorter password may be a word of its own

TOOL_NAMES = frozenset(TOOL_GROUPS) - {"ask_specialist"}  # specialists ask nobody


class SpecialistInvalid(Exception):
    """A specialist's file cannot be used; the message names file, line and reason."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Specialist:
    """Who answers what: `tools` are the only tools it may use (`server__*`: all of a server's).

    `model` None: the manager's. `auto_mention`: whom its answers address; None: as set for all.
    """

    name: str
    description: str
    instructions: str
    tools: tuple[str, ...] = ()
    model: str | None = None
    auto_mention: AutoMention | None = None

    def may_use(self, tool: str) -> bool:
        return is_tool_listed(tool, self.tools)


def load_specialists(folder: Path, known_tools: Collection[str]) -> tuple[Specialist, ...]:
    """The specialists of `folder/*.md`, by name. Raises `SpecialistInvalid`.

    `known_tools` may hold `server__*` for the tools of a server that need not be running now.
    """
    specialists: dict[str, Specialist] = {}
    for file in sorted(folder.glob("*.md")):
        source = _Source(file)
        specialist = source.specialist(known_tools)
        if specialist.name in specialists:
            raise source.invalid("name", f"another specialist is named {specialist.name!r} already")
        specialists[specialist.name] = specialist
    return tuple(specialists.values())


def is_tool_listed(tool: str, names: Collection[str]) -> bool:
    """Whether `tool` is among `names`, by itself or through its server's `server__*`."""
    server, separator, _ = tool.partition("__")
    return tool in names or bool(separator and f"{server}__*" in names)


class _Source:
    """One file being read; knows on which line each key stands."""

    def __init__(self, file: Path) -> None:
        self._file = file.name
        self._lines: dict[str, int] = {}
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as exc:
            raise SpecialistInvalid(self._file, 1, "the file is not UTF-8 text") from exc
        front, self._body, self._body_line = self._split(text.splitlines())
        self._values = self._front_matter(front)

    def invalid(self, key: str, reason: str) -> SpecialistInvalid:
        return SpecialistInvalid(self._file, self._lines.get(key, 1), reason)

    def specialist(self, known_tools: Collection[str]) -> Specialist:
        if not self._body:
            raise SpecialistInvalid(
                self._file, self._body_line, "the instructions are empty: write them below ---"
            )
        name = self._text("name")
        if not _NAME.fullmatch(name):
            raise self.invalid("name", f"the name {name!r} must match {_NAME.pattern}")
        return Specialist(
            name=name,
            description=" ".join(self._text("description").split()),
            instructions=self._body,
            tools=self._tools(known_tools),
            model=self._text("model") if "model" in self._values else None,
            auto_mention=self._auto_mention(),
        )

    def _split(self, lines: list[str]) -> tuple[str, str, int]:
        if not lines or lines[0].strip() != _FENCE:
            raise SpecialistInvalid(self._file, 1, "the front matter must begin with --- here")
        for number, line in enumerate(lines[1:], start=2):
            if line.strip() == _FENCE:
                body = "\n".join(lines[number:]).strip()
                return "\n".join(lines[1 : number - 1]), body, number + 1
        raise SpecialistInvalid(self._file, len(lines), "the front matter has no closing ---")

    def _front_matter(self, text: str) -> dict[str, Any]:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            values = yaml.safe_load(text)
        except yaml.YAMLError as exc:
            mark = getattr(exc, "problem_mark", None)
            line = mark.line + 2 if mark else 2
            problem = getattr(exc, "problem", None) or "it cannot be read"
            raise SpecialistInvalid(self._file, line, f"the YAML is broken: {problem}") from exc
        if not isinstance(node, yaml.MappingNode):
            raise SpecialistInvalid(self._file, 2, "the front matter must be key: value lines")
        for key, _ in node.value:
            self._add_key(str(key.value), key.start_mark.line + 2)
        result: dict[str, Any] = values
        return result

    def _add_key(self, key: str, line: int) -> None:
        if key in self._lines:
            raise SpecialistInvalid(self._file, line, f"the key {key!r} stands here twice")
        if key not in _KEYS:
            allowed_keys = ", ".join(_KEYS)
            raise SpecialistInvalid(
                self._file, line, f"unknown key {key!r}; allowed: {allowed_keys}"
            )
        self._lines[key] = line

    def _text(self, key: str) -> str:
        value = self._values.get(key)
        if value is None:
            raise self.invalid(key, f"{key} is missing")
        if not isinstance(value, str) or not value.strip():
            raise self.invalid(key, f"{key} must be a text that is not empty, not {value!r}")
        return value.strip()

    def _auto_mention(self) -> AutoMention | None:
        value = self._values.get("auto_mention")
        try:
            return None if value is None else auto_mention_of(value)
        except ValueError as exc:
            raise self.invalid("auto_mention", f"auto_mention: {exc}") from exc

    def _tools(self, known_tools: Collection[str]) -> tuple[str, ...]:
        value = self._values.get("tools") or []
        if not isinstance(value, list) or not all(isinstance(tool, str) for tool in value):
            raise self.invalid("tools", "tools must be a list of tool names")
        for tool in value:
            if not is_tool_listed(tool, known_tools):
                tool_names = ", ".join(sorted(known_tools))
                raise self.invalid("tools", f"unknown tool {tool!r}; known: {tool_names}")
        return tuple(value)


def check_files(settings: Settings) -> None:
    """Reads the files as a worker will. Raises `SettingsError` with file, line and reason."""
    if settings.mcp_config and not settings.mcp_config.is_file():
        file = str(settings.mcp_config)
        raise SettingsError(
            f"MCP_CONFIG is {file!r}: there is no such file.",
            f"MCP_CONFIG 是 {file!r}：没有这个文件。",
        )
    if settings.specialists_dir and not settings.specialists_dir.is_dir():
        folder = str(settings.specialists_dir)
        raise SettingsError(
            f"SPECIALISTS_DIR is {folder!r}: there is no such folder.",
            f"SPECIALISTS_DIR 是 {folder!r}：没有这个文件夹。",
        )
    try:
        load_own_specialists(settings, load_own_servers(settings))
    except (SpecialistInvalid, McpConfigInvalid) as exc:
        raise SettingsError(str(exc), f"专家或 MCP 的配置文件有误：{exc}") from exc


def load_own_servers(settings: Settings) -> tuple[McpServer, ...]:
    """The servers of `mcp.json`. Raises `McpConfigInvalid`, also if one is given what only the bot
    may know."""
    servers = load_servers(settings.mcp_file)
    app, secret = settings.feishu_app_id, settings.feishu_app_secret
    password = unquote(urlsplit(settings.database_url).password or "")
    basic = base64.b64encode(f"{app}:{secret}".encode()).decode() if secret else ""
    refuse_credentials(
        servers,
        {
            "FEISHU_APP_SECRET": (secret, quote(secret, safe=""), basic),
            "SUPABASE_SECRET_KEY": (settings.supabase_secret_key,),
            "SUPABASE_JWT_SECRET": (settings.supabase_jwt_secret,),
            "DATABASE_URL": (settings.database_url, password if len(password) > _SHORT else ""),
        },
    )
    return servers


def load_own_specialists(
    settings: Settings, servers: Sequence[McpServer]
) -> tuple[Specialist, ...]:
    """The specialists of this bot; they may list its tools and those of `servers`."""
    return load_specialists(settings.specialists_dir or FOLDER, TOOL_NAMES | tool_patterns(servers))
