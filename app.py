"""The web process: settings → adapters → routes; nothing else."""

from __future__ import annotations

from bot.process import logs  # before all that log: it loads structlog without Rich

# isort: split
import atexit
import os
from functools import partial
from typing import TYPE_CHECKING

from flask import Flask

from bot import webhook
from bot.intake import health
from bot.intake.acceptance import Intake, Presses
from bot.intake.health import Checks
from bot.operations.doctor.health import health_checks
from bot.process import plan
from bot.process.plan import RunDirectory
from bot.process.supervisor import LocalWorkers
from bot.queue.connections import database_url, open_rpc, require_migrated
from bot.queue.inbox import Arrivals, Inbox
from bot.settings import Settings, load

if TYPE_CHECKING:
    from bot.hooks import PageTexts
    from bot.intake.long_connection import Listener


def create_app(settings: Settings | None = None) -> Flask:
    """The WSGI application; raises `SettingsError`. Starts what runs beside it."""
    os.umask(0o077)  # whatever server this is: what lies in DATA_DIR is nobody else's
    settings = settings or load()
    logs.configure_logs(settings.log_level, settings.log_format)
    url = database_url(settings)
    inbox = Inbox(url)
    arrivals = Arrivals(inbox)
    presses = Presses(lambda: open_rpc(settings, url, size=4))
    beside = LocalWorkers() if settings.runs_worker and not plan.is_supervised() else None

    edge = webhook.Edge(
        encrypt_key=settings.feishu_encrypt_key,
        verification_token=settings.feishu_verification_token,
        intake=Intake(
            inbox,
            presses,
            settings.reply_in_thread,
            settings.feishu_app_id,
            arrivals=arrivals,
            requests_per_minute=settings.requests_per_minute,
        ),
    )
    listener = _listener(settings, edge.intake) if settings.long_connection else None

    app = Flask(__name__, static_folder=None)
    if listener is None:
        webhook.register(app, edge)
    health.register(
        app,
        Checks(
            settings=settings,
            inbox=inbox,
            workers=RunDirectory(settings.data_dir) if settings.runs_worker else None,
            connection=listener,
            migrated=partial(require_migrated, url),
            look=partial(health_checks, url, settings.zone),
        ),
    )
    if settings.admins:
        from bot.operations.console import install_console  # only where there is a console

        install_console(app, settings, url)
    if settings.sandbox:
        from bot.operations.sandbox import mount_sandbox  # only where there is no real Feishu

        mount_sandbox(app, settings, url, _page_texts)

    atexit.register(inbox.close)
    atexit.register(arrivals.close)
    atexit.register(presses.close)
    if beside:
        beside.start()
        atexit.register(beside.stop)
    if listener:
        listener.start()
        atexit.register(listener.stop)
    return app


def _page_texts() -> PageTexts:
    from bot.features.registry import (
        PAGE_TEXTS,  # a web process needs the features for nothing else
    )

    return PAGE_TEXTS


def _listener(settings: Settings, intake: Intake) -> Listener:
    from bot.intake.long_connection import Listener  # the websocket library is only for who uses it

    return Listener(settings, intake)
