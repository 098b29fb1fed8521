"""Prints a link that signs you in to the operators' console, once, within ten minutes.

The console is reached on the machine of the bot; from elsewhere through `ssh -L`, see
docs/operating.md. CONSOLE_ADMINS names who may sign in; the sandbox has an operator.

Examples:
  scripts/console                 as the first of CONSOLE_ADMINS
  scripts/console --as grace      as somebody else of them; the audit says who looked
"""

from __future__ import annotations

import argparse
import sys

import psycopg

from bot.operations.console.context import Sessions
from bot.queue.connections import check_database, database_url, require_migrated
from bot.queue.looking import explain
from bot.settings import Settings, SettingsError, load_existing
from bot.text.languages import Sentence
from scripts.operating.arguments import add_language, language, parser, run_script
from scripts.operating.console import run

_NOBODY = (
    "There is no console: set CONSOLE_ADMINS to the names of those who may sign in, and start the "
    "bot again.",
    "没有控制台：请把 CONSOLE_ADMINS 设为可登录人员的名字，并重新启动机器人。",
)


def main() -> int:
    options = parser("console", __doc__)
    options.add_argument("--as", dest="admin", metavar="NAME", help="who signs in")
    add_language(options)
    return run(_invite, options.parse_args())


async def _invite(given: argparse.Namespace) -> int:
    settings = load_existing()
    admin = _admin(settings, given.admin)
    check_database(settings)
    url = database_url(settings)
    try:
        require_migrated(url)
        key = Sessions(url).invite(admin)
    except psycopg.Error as exc:
        raise explain(url, exc) from exc
    said = Sentence(
        f"Open this link within ten minutes; it works once and signs you in as {admin}:",
        f"请在十分钟内打开，只能用一次，登录身份：{admin}",
    )
    print(said.said(language(given.lang)), file=sys.stderr)
    print(f"http://127.0.0.1:{settings.port}/console/enter?key={key}")
    return 0


def _admin(settings: Settings, wanted: str | None) -> str:
    if not settings.admins:
        raise SettingsError(*_NOBODY)
    if wanted and wanted not in settings.admins:
        raise SettingsError(
            f"{wanted!r} is not among CONSOLE_ADMINS: {', '.join(settings.admins)}.",
            f"{wanted!r} 不在 CONSOLE_ADMINS 中：{'、'.join(settings.admins)}。",
        )
    return wanted or settings.admins[0]


if __name__ == "__main__":
    run_script(main)
