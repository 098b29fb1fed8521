"""A log line says what failed and where, and none of the words it failed on."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.rows import every_row

SECRET = "sentinel-confided"
BEGIN = f"""
import asyncio, logging, sys, threading, warnings
import structlog
from bot.process import logs
logs.configure_logs("INFO")
log, words = structlog.get_logger(), {SECRET!r}
def fail():
    try:
        {{words: 1}}[words + "!"]
    except KeyError as exc:
        raise ValueError(words) from exc
"""
WAYS = {
    "our own log.exception": """
try: fail()
except ValueError: log.exception("it.failed")
""",
    "a library's exception": """
try: fail()
except ValueError: logging.getLogger("library").exception("it failed on %s", words)
""",
    "a library's warning with an exception": """
try: fail()
except ValueError as exc: logging.getLogger("library").warning("no answer: %s after %d", exc, 7)
""",
    "a library's ready-made text": """
logging.getLogger("library").error(f"Unknown message: {words}")
""",
    "a task that nobody waited for": """
async def main():
    task = asyncio.get_running_loop().create_task(run())
    await asyncio.sleep(0.1)
async def run(): fail()
asyncio.run(main())
import gc; gc.collect()
""",
    "a thread that ends": """
thread = threading.Thread(target=fail)
thread.start(); thread.join()
""",
    "an object that cannot be thrown away": """
class Odd:
    def __del__(self): fail()
odd = Odd(); del odd
""",
    "a process that ends": "fail()",
    "a view of Flask": """
from flask import Flask
app = Flask("app")
app.add_url_rule("/webhook", "fail", fail)
assert app.test_client().get("/webhook").status_code == 500
""",
}


@every_row("way", WAYS)
def test_a_failure_is_told_by_kind_and_place(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + WAYS[way]], capture_output=True, text=True, timeout=180
    )
    said = done.stdout + done.stderr
    assert SECRET not in said
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert line["level"] in ("error", "warning")
    if way != "a library's ready-made text":
        assert "ValueError" in json.dumps(line)
    if "stack" in line:
        assert "fail" in line["stack"]
