"""The stand-in platform as one Flask application."""

from collections.abc import Callable
from typing import Any

from flask import Flask

from sandbox.api import open_apis
from sandbox.config import SandboxConfig
from sandbox.control import control_api
from sandbox.extras import Extras
from sandbox.grants import device_grants
from sandbox.own_origin import keep_to_own_origin
from sandbox.page import page
from sandbox.platform import SandboxPlatform
from sandbox.registration import accounts
from sandbox.views.authentication import connection_endpoint
from sandbox.world.push import Post


def create_sandbox(
    config: SandboxConfig,
    *,
    inspector: Callable[[str], dict[str, Any]] | None = None,
    extras: Extras | None = None,
    post: Post | None = None,
) -> Flask:
    """Everything under `/`, `/sandbox/`, `/oauth/`, `/callback/` and `/open-apis/`; nothing
    else is answered.

    State is in memory and belongs to this application: serve it from one process with threads
    (an open page occupies one). `app.extensions["sandbox"]` is the Platform; its `close()` ends
    the live streams and the pushing threads.

    Args:
        inspector: given a chat id, returns `{"sections": [{"title", "rows" | "text"}]}`;
            titles and cells are one text, or `{"en", "zh"}`.
        extras: what the app brings along for the page: its commands, and links for operators.
        post: how events reach the app; HTTP unless given.
    """
    app = Flask("sandbox", static_folder=None)
    app.extensions["sandbox"] = SandboxPlatform(config, post=post)
    keep_to_own_origin(app)
    app.register_blueprint(open_apis())
    app.register_blueprint(accounts())
    app.register_blueprint(device_grants())
    app.add_url_rule("/callback/ws/endpoint", view_func=connection_endpoint, methods=["POST"])
    app.register_blueprint(control_api(inspector, extras or Extras()))
    app.register_blueprint(page())
    return app
