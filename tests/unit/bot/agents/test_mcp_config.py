"""What `mcp.json` may hold, and what a mistake in it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.agents.mcp.config import (
    McpConfigInvalid,
    McpServer,
    load_servers,
    refuse_credentials,
    tool_patterns,
)
from bot.agents.mcp.servers import ServerConnection, TimeLimits
from bot.agents.specialists import load_own_servers
from bot.agents.tool_types import Tool, Toolbox
from bot.settings import Settings
from tests.support.rows import every_row

DATABASE = "postgresql://p:long%20p%40ssword@db.test/x"
EXAMPLE = Path(__file__).parents[4] / "mcp.json.example"


def _file(folder: Path, content: object) -> Path:
    file = folder / "mcp.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_without_a_file_there_are_no_servers(tmp_path: Path) -> None:
    assert load_servers(tmp_path / "mcp.json") == ()


def test_the_example_can_be_read() -> None:
    files, tickets = load_servers(EXAMPLE, {"TICKETS_TOKEN": "t0ken"})

    assert files.command == "npx"
    assert "write_file" in files.confirm  # type: ignore[operator]
    assert tickets.headers == {"Authorization": "Bearer t0ken"}
    assert tickets.confirm is True
    assert tool_patterns([files, tickets]) == {"files__*", "tickets__*"}


def test_variables_are_filled_in_and_defaults_used(tmp_path: Path) -> None:
    entry = {"command": "${TOOL}", "args": ["${A:-x y}", "${B:-}"], "env": {"K": "${TOOL}"}}
    file = _file(tmp_path, {"mcpServers": {"one": entry}})

    assert load_servers(file, {"TOOL": "run"}) == (
        McpServer("one", command="run", args=("x y", ""), env={"K": "run"}),
    )


def test_a_disabled_server_is_left_out(tmp_path: Path) -> None:
    entry = {"command": "run", "disabled": True}
    assert load_servers(_file(tmp_path, {"mcpServers": {"one": entry}})) == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON"),
        ([], '"mcpServers"'),
        ({"mcpServers": []}, '"mcpServers"'),
        ({"mcpServers": {"one": "run"}}, "server 'one': it must be an object"),
        ({"mcpServers": {"one": {}}}, 'either "command" (stdio) or "url" (HTTP)'),
        ({"mcpServers": {"one": {"command": "a", "url": "http://b"}}}, "either"),
        ({"mcpServers": {"one": {"command": "a", "confrim": True}}}, "unknown key 'confrim'"),
        ({"mcpServers": {"a__b": {"command": "a"}}}, "its name may hold"),
        ({"mcpServers": {"a_": {"command": "a"}}}, "its name may hold"),
        ({"mcpServers": {"one": {"url": "ftp://x"}}}, "must start with https://"),
        ({"mcpServers": {"one": {"command": "a", "args": "b"}}}, '"args" must be a list'),
        ({"mcpServers": {"one": {"command": "a", "confirm": [1]}}}, '"confirm" must be a list'),
        ({"mcpServers": {"one": {"command": "${NO_SUCH}"}}}, "NO_SUCH is not set"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, content: object, says: str) -> None:
    with pytest.raises(McpConfigInvalid) as caught:
        load_servers(_file(tmp_path, content), {})
    assert says in str(caught.value)
    assert "mcp.json" in str(caught.value)


OWN = {"FEISHU_APP_SECRET": ("s3cret/x", "s3cret%2Fx", "Y2xpX2E6czNjcmV0L3g=")}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "lark-mcp", "-s", "s3cret/x"]},
        {"command": "npx", "args": ["--app-secret=s3cret/x"]},
        {"command": "npx", "env": {"APP_SECRET": "${FEISHU_APP_SECRET}"}},
        {"command": "npx s3cret/x"},
        {"url": "https://x.test/mcp?secret=s3cret%2Fx"},
        {"url": "https://x.test/mcp", "headers": {"Authorization": "Basic Y2xpX2E6czNjcmV0L3g="}},
    ],
)
def test_a_server_is_not_given_the_bots_own_secret_unless_it_is_named(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    def load(entry: dict[str, object]) -> tuple[McpServer, ...]:
        file = _file(tmp_path, {"mcpServers": {"one": entry}})
        return load_servers(file, {"FEISHU_APP_SECRET": "s3cret/x"})

    with pytest.raises(McpConfigInvalid, match="'one': it is given the bot's own FEISHU_APP"):
        refuse_credentials(load(entry), OWN)
    with pytest.raises(McpConfigInvalid):
        refuse_credentials(load({**entry, "allowCredentials": ["OTHER"]}), OWN)
    refuse_credentials(load({**entry, "allowCredentials": ["FEISHU_APP_SECRET"]}), OWN)
    refuse_credentials(load(entry), {"FEISHU_APP_SECRET": ("",)})


@every_row(
    ("confirm", "reading", "writing"),
    [
        (None, False, True),
        (True, True, True),
        (False, False, False),
        (frozenset({"put"}), False, True),
        (frozenset({"misspelt"}), True, True),
    ],
)
def test_what_is_not_declared_read_only_waits_unless_the_operator_says_otherwise(
    confirm: bool | frozenset[str] | None, reading: bool, writing: bool
) -> None:
    async def call(name: str, deps: object, arguments: dict[str, object]) -> None:
        raise AssertionError

    connection = ServerConnection(McpServer("desk", confirm=confirm), TimeLimits(), call)
    reads = {"get": True, "put": False}
    connection.tools = Toolbox(
        Tool(f"desk__{name}", "", {}, call, reads=reads[name]) for name in reads
    )
    connection._original = {f"desk__{name}": name for name in reads}
    assert connection.needs_confirmation("desk__get") is reading
    assert connection.needs_confirmation("desk__put") is writing


@every_row(
    ("settings", "given", "named"),
    [
        (
            Settings(feishu_app_id="cli_a", feishu_app_secret="s3cret"),
            "s3cret",
            "FEISHU_APP_SECRET",
        ),
        (Settings(supabase_jwt_secret="j" * 32), "j" * 32, "SUPABASE_JWT_SECRET"),
        (Settings(database_url=DATABASE), DATABASE, "DATABASE_URL"),
        (
            Settings(database_url=DATABASE),
            "postgresql://p@other/x?password=long p@ssword",
            "DATABASE_URL",
        ),
        (Settings(database_url="postgresql://postgres:postgres@db/x"), "server-postgres", ""),
    ],
)
def test_what_only_the_bot_may_know_is_refused_by_name(
    tmp_path: Path, settings: Settings, given: str, named: str
) -> None:
    file = _file(tmp_path, {"mcpServers": {"one": {"command": "npx", "args": [given]}}})
    own = replace(settings, mcp_config=file)
    if not named:
        assert load_own_servers(own)
        return
    with pytest.raises(McpConfigInvalid, match=f"own {named}"):
        load_own_servers(own)
