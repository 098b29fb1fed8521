"""Set-up: what the doctor finds, live."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from flask import Flask, redirect
from werkzeug.wrappers import Response

from bot.operations.console.page_context import Desk, admin, draw
from bot.operations.doctor.checks import Wishes, examine
from bot.operations.doctor.result import Check, findings, verdict, without_repetition

_FRESH_S = 20.0


@dataclass
class _Examination:
    """The last one, made again when somebody looks and it is old; one at a time."""

    checks: list[Check] = field(default_factory=list)
    at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def latest(self, *, probe: bool = False) -> list[Check]:
        with self._lock:
            if probe or time.monotonic() - self.at > _FRESH_S or not self.checks:
                self.checks = examine(Wishes(probe=probe))
                self.at = time.monotonic()
            return self.checks


def add(app: Flask, desk: Desk) -> None:
    examination = _Examination()

    def show() -> str:
        return draw("setup.html")

    def checks() -> str:
        latest_checks = examination.latest()
        wrong = findings(latest_checks)
        others = [check for check in latest_checks if check not in wrong]
        checks_shown = without_repetition([*wrong, *others])
        return draw("setup_checks.html", checks=checks_shown, verdict=verdict(latest_checks),
                    good=not any(check.state == "fail" for check in latest_checks))  # fmt: skip

    def again() -> Response:
        examination.latest(probe=True)
        desk.reader.note(admin(), "run doctor", "")
        return redirect("/console/setup", 303)

    app.add_url_rule("/console/setup", "setup", show)
    app.add_url_rule("/console/setup/checks", "setup_checks", checks)
    app.add_url_rule("/console/setup", "setup_again", again, methods=["POST"])
