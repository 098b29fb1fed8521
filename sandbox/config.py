"""What can be set when the stand-in platform is started."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Clients refuse an empty address; nothing fetches it.
AVATAR = "https://sandbox.invalid/avatar.png"


@dataclass(frozen=True)
class SandboxConfig:
    """One simulated Feishu app in one simulated tenant.

    Args:
        webhook_url: where events are pushed; empty means nowhere.
        card_webhook_url: where card callbacks go; None means `webhook_url`.
        retry_scale: factor on Feishu's retry schedule (15 s, 5 min, 1 h, 6 h).
        push_deadline_s: how long the app may take to acknowledge an event.
        rate_limits: refuse what Feishu refuses for being too fast.
        token_life_s: life of a tenant access token.
        stream_life_s: after how long a streaming card closes by itself.
        reconnect_interval_s: what long connections are told of how long to wait between attempts;
            Feishu says 120.
        uuid_life_s: for how long a repeated uuid is answered with the first message.
        sse_life_s: how long one live-update connection of the page is kept;
            the page reconnects by itself, and a server stops quickly.
        documents_host: where the links of documents lead, which nobody can open.
        timezone: IANA name of the zone in which the page shows times.
        offline_model: the page says once that no language model answers.
        journal: append-only JSON Lines file, so that the chat survives a restart.
        clock: seconds since the epoch.
    """

    app_id: str = "cli_5a4d0b0c5a4d0001"
    app_secret: str = "sandbox-app-secret"  # noqa: S105 (a simulated app has a public secret)
    encrypt_key: str = "sandbox-encrypt-key"
    verification_token: str = "sandbox-verification-token"  # noqa: S105 (as above)
    webhook_url: str = ""
    card_webhook_url: str | None = None
    bot_name: str = "Memo"
    tenant_key: str = "sandbox00tenant1"
    retry_scale: float = 1.0
    push_deadline_s: float = 3.0
    push_threads: int = 16
    rate_limits: bool = True
    token_life_s: int = 7200
    stream_life_s: float = 600.0
    reconnect_interval_s: int = 1
    uuid_life_s: float = 3600.0
    sse_life_s: float = 5.0
    all_group_messages: bool = True
    documents_host: str = "sandbox.feishu.cn"
    timezone: str = "Asia/Shanghai"
    offline_model: bool = False
    journal: Path | None = None
    clock: Callable[[], float] = time.time
