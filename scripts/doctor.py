"""Looks at everything that can be wrong and says of each in one sentence what to do.

Checked: the settings; Feishu's credentials, bot, scopes, long connections and webhook; events and
clicks, proved by having arrived; the database, its migrations and the isolation of people;
Supabase's keys; the models; disk, clock and time zone.
Status 1 when people miss something now, 2 for wrong use; what only has to be looked at is 0.

Examples:
  scripts/doctor                              in the language of the terminal
  scripts/doctor --lang zh
  scripts/doctor --url https://bot.example.com    tries the webhook from outside
  scripts/doctor --json | jq '.checks[] | select(.state == "fail")'
"""

from __future__ import annotations

import argparse

from scripts.operating.arguments import FINDINGS, add_language, language, parser, run_script


def main() -> int:
    given = _arguments()
    from bot.operations.doctor.checks import (  # after --help, which needs none of it
        ExaminationWishes,
        run_checks,
    )
    from bot.operations.doctor.result import findings, verdict
    from scripts.operating import checklist
    from scripts.operating.console import print_json, quiet

    quiet()
    checks = run_checks(ExaminationWishes(public_url=given.url, probe=not given.no_probe))
    if given.json:
        said = verdict(checks)
        print_json(
            {
                "verdict": {"en": said.en, "zh": said.zh},
                "findings": len(findings(checks)),
                "checks": [check.as_json() for check in checks],
            }
        )
    else:
        checklist.show(checks, language(given.lang))
    return FINDINGS if any(check.state == "fail" for check in checks) else 0


def _arguments() -> argparse.Namespace:
    options = parser("doctor", __doc__)
    options.add_argument("--url", default="", metavar="https://…", help="instead of PUBLIC_URL")
    options.add_argument("--no-probe", action="store_true", help="write nothing, not even briefly")
    add_language(options)
    options.add_argument("--json", action="store_true", help="one JSON document")
    return options.parse_args()


if __name__ == "__main__":
    run_script(main)
