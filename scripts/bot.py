"""One command for everything: runs one of the scripts beside it.

What can be run is found, not listed: each script with a `main()` and a description. A name may be
cut as long as only one begins so.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import scripts
from scripts.operating.arguments import fitted, in_help, in_language, run_script, wrapped

_WIDTH = 80
_PURPOSE = "Runs the bot, sets it up, looks after it. bot COMMAND --help says more."
_LATER = """
Examples:
  scripts/bot setup                 connect a Feishu app by a scan
  scripts/bot start                 run it
  scripts/bot doctor --lang zh      what is wrong, in one sentence each
"""
_EXIT_STATUS = 2


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A name, the module whose `main` it runs, and its first sentence."""

    name: str
    module: str
    summary: str


_WAYS_IN = {"bot", "installed"}  # to all the others

# Programs of other packages that belong to the same command.
_PROGRAMS = {
    "start": "bot.process.supervisor",
    "sandbox": "sandbox.__main__",
    "import": "scripts.operating.importing",  # no name for a module that others import
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of the command; 2 when there is none of that name."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text(commands()))
        return 0 if given else _EXIT_STATUS
    name, *rest = given
    known = commands()
    found = matching(name, known)
    if len(found) != 1:
        sys.stderr.write(_unknown(name, found, known))
        return _EXIT_STATUS
    if found[0].name == "start" and {"-h", "--help"} & {*rest}:
        sys.stdout.write(
            f"{in_help('usage: ')}bot start [GUNICORN ARGUMENTS]\n\n{found[0].summary}\n"
        )
        return 0
    run = _main_of(found[0])
    sys.argv = [found[0].name, *rest]
    return run()


def commands() -> list[ShellCommand]:
    """Everything that can be run, without importing it."""
    found = {one.name for one in pkgutil.iter_modules(scripts.__path__) if not one.ispkg}
    names = found - _WAYS_IN
    modules = {name.replace("_", "-"): f"scripts.{name}" for name in names} | _PROGRAMS
    listed = [(name, module, _summary(module)) for name, module in sorted(modules.items())]
    return [ShellCommand(name, module, summary) for name, module, summary in listed if summary]


def matching(name: str, known: Sequence[ShellCommand]) -> list[ShellCommand]:
    """The command of that name, or those whose names begin so."""
    wanted = name.replace("_", "-")
    exact = [one for one in known if one.name == wanted]
    return exact or [one for one in known if one.name.startswith(wanted)]


def help_text(known: Sequence[ShellCommand]) -> str:
    """The list of commands, within 80 columns."""
    wide = max(len(one.name) for one in known) + 4
    lines = []
    for one in known:
        body = wrapped(one.summary, _WIDTH - wide)
        lines.append(f"  {one.name:<{wide - 2}}{body[0]}")
        lines += [" " * wide + line for line in body[1:]]
    usage = f"{in_help('usage: ')}bot COMMAND [OPTION …]\n\n{in_help(_PURPOSE)}\n"
    return "\n".join([usage, in_help("Commands:"), *lines, "", fitted(_LATER), ""])


def _unknown(name: str, found: Sequence[ShellCommand], known: Sequence[ShellCommand]) -> str:
    if found:
        names = ", ".join(one.name for one in found)
        return in_language(
            f"bot: {name} is cut too short: {names}\n", f"bot：{name} 太短，可能是：{names}\n"
        )
    near = difflib.get_close_matches(name, [one.name for one in known], n=1)
    hint, hint_zh = (f" Was {near[0]} meant?", f"是 {near[0]} 吗？") if near else ("", "")
    return in_language(
        f"bot: there is no command {name!r}.{hint} bot --help lists them.\n",
        f"bot：没有命令 {name!r}。{hint_zh}bot --help 会列出所有命令。\n",
    )


def _main_of(command: ShellCommand) -> Callable[[], int]:
    module = importlib.import_module(command.module)
    if command.name == "start":
        return lambda: int(module.main(sys.argv[1:]))
    return lambda: int(module.main() or 0)


def _summary(module: str) -> str:
    """The first sentence of its description; "" for what cannot be run."""
    spec = find_spec(module)
    source = getattr(spec.loader, "get_source", None) if spec else None
    tree = ast.parse(source(module) if source else "")
    runs = any(isinstance(one, ast.FunctionDef) and one.name == "main" for one in tree.body)
    text = in_help(" ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split()))
    if not runs or not text:
        return ""
    stop = "." if text.isascii() else "。"
    return text.partition(". " if stop == "." else stop)[0].rstrip(stop) + stop


if __name__ == "__main__":
    run_script(main)
