"""Everything the environment decides, read once.

`load()` turns a missing or malformed value into one sentence that names it (`SettingsError`);
processes then exit with status 2. `.env` in the working directory is honoured.
"""

from __future__ import annotations

import json
import secrets
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

EXIT_STATUS = 2
_SANDBOX_APP = "cli_sandbox_"


class SettingsError(Exception):
    """A variable is missing or malformed; the message names it and what to do."""


class Settings(BaseSettings):
    """The environment variables of the service; names as in `.env.example`."""

    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True, case_sensitive=False
    )

    port: int = Field(8080, ge=1, le=65535)
    data_dir: Path = Path("data")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    inline_worker: bool | None = None
    workers: int = Field(1, ge=1, le=32)  # beside the web process; read with INLINE_WORKER=1
    worker_concurrency: int = Field(32, ge=1, le=256)
    metrics_port: int = Field(0, ge=0, le=65535)  # of a stand-alone worker; 0: none

    feishu_app_id: str = ""
    feishu_app_secret: str = ""
    feishu_encrypt_key: str = ""
    feishu_verification_token: str = ""
    feishu_domain: str = ""
    feishu_calls_per_second: int = Field(50, ge=1, le=10_000)  # of each API, for the whole app
    feishu_transport: Literal["webhook", "websocket"] = "webhook"

    supabase_url: str = ""
    supabase_publishable_key: str = ""
    supabase_secret_key: str = ""
    supabase_jwt_secret: str = ""
    supabase_auth_users: bool = False
    database_url: str = ""

    openai_api_key: str = ""
    openai_base_url: str = ""
    openai_model: str = "gpt-4.1-mini"
    openai_fallback_model: str = ""
    judge_model: str = ""
    summary_model: str = ""
    embedding_model: str = ""  # "": recall goes by words alone
    embedding_base_url: str = ""
    embedding_api_key: str = ""
    embedding_dimensions: int = Field(0, ge=0, le=16_000)  # 0: as many as the model has
    recall_vector_weight: float = Field(0.2, ge=0, le=1)
    openai_vision: bool = False
    model_timeout_seconds: float = Field(45, gt=0, le=55)
    mcp_config: Path = Path("mcp.json")  # need not exist unless it is set
    specialists_dir: Path | None = None  # None: those that come with the bot

    history_messages: int = Field(10, ge=1, le=200)
    summary_after_messages: int = Field(10, ge=0, le=1000)  # outside the window; 0: no summaries
    history_token_budget: int = Field(6000, ge=1500)
    conversation_timeout_seconds: int = Field(120, ge=1)
    followup_window_seconds: int = Field(60, ge=0)
    use_llm_judge: bool = False
    group_transcript: Literal["active", "off"] = "active"
    auto_mention: bool = True
    allow_mention_all: bool = False
    reply_in_thread: bool = True
    stream_replies: bool = True
    retention_days: int = Field(0, ge=0)

    @property
    def sandbox(self) -> bool:
        """No Feishu app is configured: a simulated group in the browser takes its place."""
        return self.feishu_app_id.startswith(_SANDBOX_APP)

    @property
    def long_connection(self) -> bool:
        """Events come over a connection that the bot opens; the simulated group has a webhook."""
        return self.feishu_transport == "websocket" and not self.sandbox

    @property
    def embedded_database(self) -> bool:
        """Postgres is started in `DATA_DIR`."""
        return not self.database_url

    @property
    def runs_worker(self) -> bool:
        """Whether workers run beside the web process (default: only without DATABASE_URL)."""
        return self.embedded_database if self.inline_worker is None else self.inline_worker

    @cached_property
    def domain(self) -> str:
        """Origin of the Feishu API, without a trailing slash."""
        if self.sandbox and not self.feishu_domain:
            return f"http://127.0.0.1:{self.port}"
        return (self.feishu_domain or "https://open.feishu.cn").rstrip("/")


def load(**overrides: object) -> Settings:
    """The settings of this process. Raises `SettingsError`."""
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as exc:
        raise SettingsError(_first_sentence(exc)) from exc
    _require_auth(settings)
    _require_embedding_endpoint(settings)
    if not settings.feishu_app_id:
        return settings.model_copy(update=_sandbox_credentials(settings.data_dir))
    _require_together(settings)
    return settings


def _first_sentence(exc: ValidationError) -> str:
    error = exc.errors(include_url=False)[0]
    name = ".".join(str(part) for part in error["loc"]).upper() or "the environment"
    return f"{name} is not valid: {error['msg']} (got {error.get('input')!r}). See .env.example."


def _require_together(settings: Settings) -> None:
    needed = {"FEISHU_APP_SECRET": settings.feishu_app_secret}
    if not settings.long_connection:
        needed |= {
            "FEISHU_ENCRYPT_KEY": settings.feishu_encrypt_key,
            "FEISHU_VERIFICATION_TOKEN": settings.feishu_verification_token,
        }
    where = "it is in the Feishu developer console (Credentials, and Events & Callbacks)"
    if settings.supabase_url:
        if not settings.supabase_url.startswith(("https://", "http://")):
            raise SettingsError("SUPABASE_URL must start with https:// (Project Settings, API).")
        needed_keys = {
            "SUPABASE_PUBLISHABLE_KEY": settings.supabase_publishable_key,
            "SUPABASE_SECRET_KEY": settings.supabase_secret_key,
        }
        _require(needed_keys, "it is in the Supabase dashboard (Project Settings, API keys)")
    _require(needed, where)
    if not settings.domain.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise SettingsError("FEISHU_DOMAIN must be an https:// origin, or http:// on this machine.")


def _require_auth(settings: Settings) -> None:
    if settings.supabase_auth_users:
        needed = {
            "SUPABASE_URL": settings.supabase_url,
            "SUPABASE_SECRET_KEY": settings.supabase_secret_key,
        }
        _require(needed, "SUPABASE_AUTH_USERS makes users in your Supabase project and needs it")


def _require_embedding_endpoint(settings: Settings) -> None:
    if settings.embedding_model and not (settings.embedding_base_url or settings.openai_api_key):
        raise SettingsError(
            "EMBEDDING_MODEL needs an endpoint: set OPENAI_API_KEY, or EMBEDDING_BASE_URL (with "
            "EMBEDDING_API_KEY where it asks for one). See .env.example."
        )


def _require(needed: dict[str, str], where: str) -> None:
    for name, value in needed.items():
        if not value:
            raise SettingsError(f"{name} is not set: {where}. See .env.example.")


def _sandbox_credentials(data_dir: Path) -> dict[str, str]:
    """Credentials of the simulated app, made once per `DATA_DIR` so that all processes agree."""
    file = data_dir / "sandbox.json"
    if not file.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        made = {
            "feishu_app_id": _SANDBOX_APP + secrets.token_hex(6),
            "feishu_app_secret": secrets.token_urlsafe(24),
            "feishu_encrypt_key": secrets.token_urlsafe(24),
            "feishu_verification_token": secrets.token_urlsafe(24),
        }
        with file.open("x", encoding="utf-8") as out:
            json.dump(made, out)
        file.chmod(0o600)
    credentials: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return credentials
