"""The processes that play scenes: for each profile and memory a bot, its platform and model."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from lab.doubles import lite
from lab.doubles.processes import eventually
from memory import migrations
from memory.sealing import new_sealing_key
from tests.acceptance.conftest import World, running_world
from tests.corpus.normalising import noon_zone
from tests.support import postgres

Memory = Literal["postgres", "supabase"]

DESK = Path(__file__).parents[1] / "data" / "mcp" / "desk_server.py"

_WITH_MODEL = {
    "HISTORY_MESSAGES": "6",
    "USE_LLM_JUDGE": "true",
    "OPENAI_FALLBACK_MODEL": "fallback-model",
}

# Environment of each bot beside the usual. `model` and `second` share the scenes.
PROFILES: Mapping[str, Mapping[str, str]] = {
    "model": {**_WITH_MODEL, "SUMMARY_AFTER_MESSAGES": "0"},
    "second": {**_WITH_MODEL, "SUMMARY_AFTER_MESSAGES": "4"},
    "offline": {"OPENAI_API_KEY": "", "PROACTIVE_HOURS": "0-24"},
    "strict": {
        "MEMORY_SHARING": "person",
        "REPLY_IN_THREAD": "false",
        "STREAM_REPLIES": "true",
        "CHAT_MODE": "mention",
        "REQUESTS_PER_MINUTE": "3",
        "USAGE_LIMIT_PERSON": "1000",
        "BOT_INSTRUCTIONS": "Answer like a harbour master.",
    },
}


@dataclass(frozen=True)
class Bot:
    """A running bot and the zone of its clock."""

    profile: str
    memory: Memory
    world: World
    zone: ZoneInfo


@dataclass(frozen=True)
class Town:
    """What all bots share: the database server and a migrated database to copy. `changes` are put
    on top of the environment of every bot."""

    server: postgres.Server
    template: str
    changes: Mapping[str, str] = field(default_factory=dict)
    zone: ZoneInfo = field(default_factory=lambda: noon_zone(datetime.now(UTC)))

    @classmethod
    @contextmanager
    def of_its_own(cls) -> Iterator[Town]:
        """With a server of its own, which goes with this process."""
        server = postgres.start_server()
        with server.fresh_database() as template:
            migrations.apply_migrations(template)
            yield cls(server, postgres.database_name(template))

    @contextmanager
    def bot(self, profile: str, memory: Memory) -> Iterator[Bot]:
        """A bot over a database of its own."""
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="bot-corpus-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            url = stack.enter_context(self.server.fresh_database(template=self.template))
            options = {**self._usual(folder), **PROFILES[profile], **self.changes}
            if memory == "supabase":
                socket_folder = self.server.socket_folder
                api = stack.enter_context(lite.run(url, socket_folder=socket_folder))
                options |= _supabase(api)
            world = stack.enter_context(running_world(folder, url, options, ("--no-rate-limits",)))
            if options.get("OPENAI_API_KEY") != "":
                output = world.bot.workers[0].output
                eventually(lambda: "mcp.connected" in output(), what="the desk is connected")
            yield Bot(profile, memory, world, self.zone)

    def _usual(self, folder: Path) -> dict[str, str]:
        desk = {
            "command": sys.executable,
            "args": [str(DESK), "stdio", str(folder / "board")],
            "confirm": ["publish"],
        }
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"desk": desk}}))
        return {
            "TIMEZONE": self.zone.key,
            "USER_TOKEN_KEY": new_sealing_key(),
            "MCP_CONFIG": str(folder / "mcp.json"),
            "FEISHU_CALLS_PER_SECOND": "500",
        }


def _supabase(api: lite.SupabaseLite) -> dict[str, str]:
    return {
        "SUPABASE_URL": api.url,
        "SUPABASE_PUBLISHABLE_KEY": api.publishable_key,
        "SUPABASE_SECRET_KEY": api.secret_key,
        "SUPABASE_JWT_SECRET": api.jwt_secret,
    }
