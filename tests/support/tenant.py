"""A simulated tenant over real HTTP, in threads of this process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
from flask import Flask, request

from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.platform import SandboxPlatform
from sandbox.server import SandboxServer
from tests.support.gateway import Gateway

APP_ID, APP_SECRET = "cli_a1b2c3d4e5f6a7b8", "tenant-app-secret"
ENCRYPT_KEY, TOKEN = "tenant-encrypt-key", "tenant-verification-token"


@dataclass
class Tenant:
    """`control` is the sandbox's own interface."""

    url: str
    platform: SandboxPlatform

    def control(self, method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, f"{self.url}/sandbox/api{path}", json=body, timeout=10)
        assert answer.ok, answer.text
        return answer.json()

    def trouble(self, path: str, body: Any, *, status: int = 200) -> None:
        """The path answers so from now on."""
        self.control(
            "POST",
            "/faults",
            {"path_prefix": path, "status": status, "body": body, "times": 0, "code": 1},
        )

    def console(self, **changes: Any) -> Any:
        return self.control("POST", "/console", changes)


@contextmanager
def serving(app: Flask) -> Iterator[str]:
    """The application on a free port of loopback; its origin."""
    server = SandboxServer(app, 0, sys.stderr)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running_tenant(gateway: Gateway | None = None) -> Iterator[Tenant]:
    """With `gateway` the tenant's long connections lead there."""
    config = SandboxConfig(
        app_id=APP_ID, app_secret=APP_SECRET, encrypt_key=ENCRYPT_KEY, verification_token=TOKEN
    )
    app = create_sandbox(config)
    platform: SandboxPlatform = app.extensions["sandbox"]
    if gateway:

        def endpoint() -> tuple[Any, int]:
            status, answer = gateway._endpoint(request.get_json())
            return answer, status

        app.view_functions["connection_endpoint"] = endpoint
    with serving(app) as url:
        yield Tenant(url, platform)
    platform.close()
