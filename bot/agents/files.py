"""The files an operator writes beside the environment: specialists and `mcp.json`.

Light, because the start checks them before gunicorn forks.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.agents.mcp.config import McpConfigInvalid, McpServer, load_servers, tool_patterns
from bot.agents.specialists import FOLDER, Specialist, SpecialistInvalid, load_specialists
from bot.agents.tools.names import TOOL_NAMES
from bot.settings import Settings, SettingsError


def check_files(settings: Settings) -> None:
    """Reads the files as a worker will. Raises `SettingsError` with file, line and reason."""
    if "mcp_config" in settings.model_fields_set and not settings.mcp_config.is_file():
        raise SettingsError(f"MCP_CONFIG is {str(settings.mcp_config)!r}: there is no such file.")
    if settings.specialists_dir and not settings.specialists_dir.is_dir():
        folder = str(settings.specialists_dir)
        raise SettingsError(f"SPECIALISTS_DIR is {folder!r}: there is no such folder.")
    try:
        specialists(settings, load_servers(settings.mcp_config))
    except (SpecialistInvalid, McpConfigInvalid) as exc:
        raise SettingsError(str(exc)) from exc


def specialists(settings: Settings, servers: Sequence[McpServer]) -> tuple[Specialist, ...]:
    """The specialists of this bot; they may list its tools and those of `servers`."""
    return load_specialists(settings.specialists_dir or FOLDER, TOOL_NAMES | tool_patterns(servers))
