"""`python -m sandbox`: the stand-in platform as a process of its own."""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.platform import SandboxPlatform
from sandbox.server import HOST, SandboxServer


def parser() -> argparse.ArgumentParser:
    """The command line."""
    preset = SandboxConfig()
    made = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    made.add_argument("--port", type=int, default=8900, help="0 picks a free one (8900)")
    made.add_argument("--webhook-url", default="", help="where the app receives events")
    made.add_argument("--app-id", default=preset.app_id)
    made.add_argument("--app-secret", default=preset.app_secret)
    made.add_argument("--encrypt-key", default=preset.encrypt_key)
    made.add_argument("--verification-token", default=preset.verification_token)
    made.add_argument("--retry-scale", type=float, default=1.0, help="factor on 15 s … 6 h (1)")
    made.add_argument("--uuid-life", type=float, default=preset.uuid_life_s, help="seconds")
    made.add_argument("--journal", type=Path, help="file that lets the chat survive a restart")
    made.add_argument("--no-rate-limits", action="store_true", help="for benchmarks")
    made.add_argument("--mentions-only", action="store_true", help="without im:message.group_msg")
    return made


def config_from(options: argparse.Namespace) -> SandboxConfig:
    """The configuration that the command line describes."""
    return SandboxConfig(
        app_id=options.app_id,
        app_secret=options.app_secret,
        encrypt_key=options.encrypt_key,
        verification_token=options.verification_token,
        webhook_url=options.webhook_url,
        retry_scale=options.retry_scale,
        rate_limits=not options.no_rate_limits,
        uuid_life_s=options.uuid_life,
        all_group_messages=not options.mentions_only,
        journal=options.journal,
    )


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    options = parser().parse_args(arguments)
    os.umask(0o077)  # what is said in the simulated group is nobody else's either
    try:
        app = create_sandbox(config_from(options))
        server = SandboxServer(app, options.port, sys.stderr)
    except (OSError, OverflowError) as exc:
        sys.stderr.write(_unstartable(options, exc))
        return 2
    platform: SandboxPlatform = app.extensions["sandbox"]
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, name="serve", daemon=True).start()
    sys.stdout.write(f"sandbox platform on http://{HOST}:{server.port}\n")
    sys.stdout.flush()
    stop.wait()
    platform.close()
    server.shutdown()
    server.server_close()
    return 0


def _unstartable(options: argparse.Namespace, exc: OSError | OverflowError) -> str:
    if isinstance(exc, OSError) and exc.filename:
        return f"--journal is {options.journal}: nothing can be kept there ({exc.strerror}).\n"
    return f"--port is {options.port}, where nothing can listen: choose another number.\n"


if __name__ == "__main__":
    sys.exit(main())
