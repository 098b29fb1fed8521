"""The files an operator writes beside the environment: specialists and `mcp.json`.

Light, because the start checks them before gunicorn forks.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from urllib.parse import quote

from bot.agents.mcp.config import (
    McpConfigInvalid,
    McpServer,
    load_servers,
    refuse_credentials,
    tool_patterns,
)
from bot.agents.specialists import FOLDER, Specialist, SpecialistInvalid, load_specialists
from bot.agents.tools.names import TOOL_NAMES
from bot.settings import Settings, SettingsError


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
        specialists(settings, load_own_servers(settings))
    except (SpecialistInvalid, McpConfigInvalid) as exc:
        raise SettingsError(str(exc), f"专家或 MCP 的配置文件有误：{exc}") from exc


def load_own_servers(settings: Settings) -> tuple[McpServer, ...]:
    """The servers of `mcp.json`. Raises `McpConfigInvalid`, also if one is given what only the bot
    may know."""
    servers = load_servers(settings.mcp_file)
    app, secret = settings.feishu_app_id, settings.feishu_app_secret
    basic = base64.b64encode(f"{app}:{secret}".encode()).decode() if secret else ""
    refuse_credentials(
        servers,
        {
            "FEISHU_APP_SECRET": (secret, quote(secret, safe=""), basic),
            "SUPABASE_SECRET_KEY": (settings.supabase_secret_key,),
        },
    )
    return servers


def specialists(settings: Settings, servers: Sequence[McpServer]) -> tuple[Specialist, ...]:
    """The specialists of this bot; they may list its tools and those of `servers`."""
    return load_specialists(settings.specialists_dir or FOLDER, TOOL_NAMES | tool_patterns(servers))
