"""Looks into the memory of one person or one conversation, changes it, exports it, forgets it.

Examples:
  scripts/memory get --person ou_a1b2               what is kept about a person, and how much
  scripts/memory get --conversation feishu:oc_c3:om_d4 --history
  scripts/memory set --person ou_a1b2 '{"language": "zh", "old key": null}'
  scripts/memory set --person Alice --conversation feishu:oc_c3:main '{"on": 1}'
  scripts/memory clear --person ou_a1b2             empties the working memory, not the history
  scripts/memory summarise --conversation feishu:oc_c3:om_d4   folds what is no longer shown
  scripts/memory export --person ou_a1b2 -o a1b2.jsonl
  scripts/memory forget --person ou_a1b2            every row, after a question; --yes does not ask
  scripts/memory forget --conversation feishu:oc_c3:om_d4 --keep-notes
  scripts/memory forget --person ou_a1b2 --auth-user        their user of Supabase Auth, too
  scripts/memory embed                              vectors for what was said before there were any
  scripts/memory link-users                         gives everybody their user of Supabase Auth
  scripts/memory verify receipt.json --text said.txt   1 if anything of it survived
  scripts/memory receipts                           the chain of all receipts as JSON Lines
  scripts/memory receipt-key                        the public key that verifies them
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from bot.queue.operator_actions import Forgotten
from bot.settings import EXIT_STATUS, load_existing
from memory.errors import AuthUsersError
from memory.scope import own_context
from scripts.operating.arguments import (
    FINDINGS,
    add_language,
    in_language,
    language,
    parser,
    run_script,
)
from scripts.operating.console import Screen, print_json, progress, run
from scripts.operating.desk import OperatorDesk, open_desk, person_meant
from scripts.operating.memory_commands import (
    NothingToEmbedWith,
    NothingToFold,
    embed_everything,
    forget_auth_users,
    link_users,
    rows_there,
    show_person,
    summarise,
    tell_auth_users,
)
from scripts.operating.verifying import (
    add_receipt_commands,
    check_receipt,
    export_receipts,
    show_receipt_key,
)
from scripts.operating.words import counted

_OF_EVERYBODY = frozenset({"embed", "link-users", "verify", "receipts", "receipt-key"})

Work = Callable[[OperatorDesk, argparse.Namespace], Awaitable[int]]


class NotClear(Exception):
    """The arguments leave open what is meant; the message says what to give, `zh` in Chinese."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.zh = zh


def main() -> int:
    return run(_work, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("memory", __doc__)
    commands = options.add_subparsers(dest="command", required=True, metavar="COMMAND")
    get = _command(commands, "get", "show working memory and how much is stored")
    get.add_argument("--history", action="store_true", help="also who changed what, and when")
    change = _command(commands, "set", "apply a merge patch (RFC 7396); null removes a key")
    change.add_argument("patch", help="a JSON object, or - to read it from standard input")
    _command(commands, "clear", "empty the working memory; the history stays")
    _command(commands, "summarise", "fold a long conversation now, and show its summary")
    forget = _command(commands, "forget", "delete a person or a conversation for good")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    forget.add_argument(
        "--keep-notes", action="store_true", help="keep the notes made in the conversation"
    )
    forget.add_argument(
        "--auth-user",
        action="store_true",
        help="delete their user of Supabase Auth, too, which other apps may use",
    )
    export = _command(commands, "export", "everything about a person as JSON Lines")
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of stdout")
    embed = commands.add_parser("embed", help="embed every message that has no embedding yet")
    embed.add_argument(
        "--model",
        metavar="NAME",
        help="prepare this one while EMBEDDING_MODEL goes on answering; set it there afterwards",
    )
    embed.add_argument("--base-url", metavar="https://…", help="where --model is, as far as /v1")
    embed.add_argument("--json", action="store_true", help="one JSON document")
    link = commands.add_parser("link-users", help="give everybody their user of Supabase Auth")
    link.add_argument(
        "--all", action="store_true", help="also who is linked: a user deleted since is made again"
    )
    link.add_argument("--json", action="store_true", help="one JSON document")
    add_receipt_commands(commands)
    return options.parse_args()


def _command(commands: Any, name: str, help: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    command.add_argument(
        "--person", metavar="WHO", help="whose memory: open_id, its beginning, or name"
    )
    command.add_argument("--conversation", metavar="ID", help="feishu:oc_…:om_… or …:main")
    command.add_argument("--tenant", metavar="KEY", help="in this tenant only")
    command.add_argument("--json", action="store_true", help="one JSON document")
    add_language(command)
    return command


async def _work(given: argparse.Namespace) -> int:
    work: dict[str, Work] = {
        "get": show_person,
        "set": _set,
        "clear": _clear,
        "summarise": _summarise,
        "forget": _forget,
        "export": _export,
        "embed": embed_everything,
        "link-users": link_users,
        "verify": check_receipt,
        "receipts": export_receipts,
        "receipt-key": show_receipt_key,
    }
    try:
        if given.command not in _OF_EVERYBODY:
            _require_target(given)
        async with open_desk(load_existing()) as desk:
            if getattr(given, "person", None) and not _may_be_forgotten_already(given):
                given.person = await person_meant(desk, given.person, given.tenant)
            return await work[given.command](desk, given)
    except (NotClear, NothingToFold, NothingToEmbedWith, AuthUsersError) as exc:
        said = in_language(str(exc), getattr(exc, "zh", str(exc)), getattr(given, "lang", None))
        print(f"memory {given.command}: {said}", file=sys.stderr)
        return EXIT_STATUS


def _may_be_forgotten_already(given: argparse.Namespace) -> bool:
    """Whose Auth user goes may have been forgotten by everything else before."""
    forgets_user = given.command == "forget" and given.auth_user
    return bool(forgets_user) and given.person.startswith("ou_")


def _is_conversation(given: str) -> bool:
    return given.count(":") == 2 + given.startswith("feishu:doc:")


def _require_target(given: argparse.Namespace) -> None:
    if not given.person and not given.conversation:
        raise NotClear(
            "give --person ou_…, or --conversation feishu:oc_…:om_…, or both",
            "请给出 --person ou_… 或 --conversation feishu:oc_…:om_…，也可以都给",
        )
    if given.conversation and not _is_conversation(given.conversation):
        raise NotClear(
            f"{given.conversation!r} is no conversation: it is feishu:oc_…:om_…",
            f"{given.conversation!r} 不是对话：格式为 feishu:oc_…:om_…",
        )
    if given.command == "set":
        given.patch = _patch(sys.stdin.read() if given.patch == "-" else given.patch)
    if given.command == "export" and (not given.person or given.conversation):
        raise NotClear(
            "an export is about one person: give --person ou_… alone",
            "导出只针对一个人：请只给 --person ou_…",
        )
    if given.command == "summarise" and not given.conversation:
        raise NotClear(
            "a summary is of one conversation: give --conversation feishu:oc_…:om_…",
            "摘要只针对一个对话：请给出 --conversation feishu:oc_…:om_…",
        )
    if given.command == "forget" and given.auth_user and (not given.person or given.conversation):
        raise NotClear(
            "an Auth user belongs to one person: give --person ou_… alone",
            "Auth 用户属于一个人：请只给 --person ou_…",
        )


async def _set(desk: OperatorDesk, given: argparse.Namespace) -> int:
    person, tenant = await _owner(desk, given)
    content = await desk.operations.merge_working_memory(
        given.patch, user_id=person, conversation_id=given.conversation, tenant_key=tenant
    )
    print_json(content) if given.json else print(_dump(content, indent=2))
    return 0


async def _clear(desk: OperatorDesk, given: argparse.Namespace) -> int:
    person, tenant = await _owner(desk, given)
    await desk.operations.clear_working_memory(
        user_id=person, conversation_id=given.conversation, tenant_key=tenant
    )
    emptied = in_language("emptied; the history stays", "已清空，历史保留", given.lang)
    print_json({}) if given.json else print(emptied)
    return 0


async def _summarise(desk: OperatorDesk, given: argparse.Namespace) -> int:
    person, tenant = await _owner(desk, given)
    return await summarise(desk, given, own_context(given.conversation, person, tenant))


async def _export(desk: OperatorDesk, given: argparse.Namespace) -> int:
    counts = await desk.operations.count_person(given.person, given.tenant)
    waiting = desk.queue.export(given.person)
    total = sum(counts.values()) + len(waiting)
    with _output(given.output) as out, progress("rows", total) as step:
        async for table, row in desk.operations.export_person(given.person, given.tenant):
            out.write(_dump({"table": table, "row": row}) + "\n")
            step()
        for table, row in waiting:
            out.write(_dump({"table": table, "row": row}) + "\n")
            step()
    if given.output:
        en, zh = (
            f"{counted(total, 'row')} in {given.output}",
            f"已写入 {given.output}，共 {total} 行",
        )
        print(in_language(en, zh, given.lang), file=sys.stderr)
    return 0


async def _forget(desk: OperatorDesk, given: argparse.Namespace) -> int:
    if not given.yes and not await _confirmed(desk, given):
        print(in_language("nothing was deleted", "没有删除任何内容", given.lang), file=sys.stderr)
        return FINDINGS
    auth = await forget_auth_users(desk, given)
    # The queue first, so that nothing new comes of it, and again for what was being written.
    first = _forget_in_queue(desk, given)
    counts = await _forget_in_memory(desk, given)
    last = _forget_in_queue(desk, given)
    counts["jobs in the queue"] = first.jobs + last.jobs
    counts["turns that waited for the memory"] = first.turns + last.turns
    if given.json:
        print_json({"deleted": counts, "running": last.running, "auth_users": auth.ids()})
    else:
        Screen(language(given.lang)).table("Deleted", ("where", "rows"), rows_there(counts))
        tell_auth_users(auth)
    if last.running:
        again = in_language(
            f"{last.running} of their messages are being answered right now: "
            "run this again in a minute",
            f"有 {last.running} 条消息正在回答：请一分钟后再运行一次",
            given.lang,
        )
        print(again, file=sys.stderr)
    return FINDINGS if last.running else 0


def _forget_in_queue(desk: OperatorDesk, given: argparse.Namespace) -> Forgotten:
    return desk.queue.forget(open_id=given.person, conversation_id=given.conversation)


async def _forget_in_memory(desk: OperatorDesk, given: argparse.Namespace) -> dict[str, int]:
    if given.conversation:
        return await desk.operations.forget_conversation(
            given.conversation, given.person, keep_notes=given.keep_notes
        )
    return await desk.operations.forget_person(given.person, given.tenant)


async def _confirmed(desk: OperatorDesk, given: argparse.Namespace) -> bool:
    if given.conversation:
        stored = await desk.memory.list_conversations(
            conversation_id=given.conversation, user_id=given.person
        )
        count, whose = sum(one.messages for one in stored), given.conversation
        what, what_zh = "messages", "条消息"
    else:
        counts = await desk.operations.count_person(given.person, given.tenant)
        count, whose, what = sum(counts.values()), given.person, "rows"
        what_zh = "行数据"
    en, zh = desk.named(f"{count} {what} of {whose}"), desk.named(f"{whose} 的 {count} {what_zh}")
    if not sys.stdin.isatty():
        raise NotClear(
            f"this would delete {en}: add --yes to do it", f"这将删除 {zh}：确认请加 --yes"
        )
    question = in_language(
        f"Delete {en} for good? Type yes: ", f"彻底删除 {zh}？请输入 yes：", given.lang
    )
    answer = await asyncio.to_thread(input, question)
    return answer.strip().lower() == "yes"


async def _owner(desk: OperatorDesk, given: argparse.Namespace) -> tuple[str, str]:
    """The person and the tenant meant. Raises `NotClear` when the memory knows more than one."""
    known = await desk.memory.list_conversations(
        conversation_id=given.conversation, user_id=given.person
    )
    people = {given.person} if given.person else {c.user_id for c in known}
    tenants = {given.tenant} if given.tenant is not None else {c.tenant_key for c in known}
    if len(people) != 1:
        raise NotClear(
            f"{len(people)} people have this conversation: give --person ou_…",
            f"有 {len(people)} 个人参与这个对话：请给出 --person ou_…",
        )
    if len(tenants) > 1:
        names = ", ".join(sorted(tenants))
        raise NotClear(f"give --tenant, one of {names}", f"请给出 --tenant，可选：{names}")
    return people.pop(), tenants.pop() if tenants else ""


def _patch(text: str) -> Mapping[str, Any]:
    try:
        patch = json.loads(text)
    except ValueError as exc:
        raise NotClear(f"the patch is not JSON: {exc}", f"补丁不是 JSON：{exc}") from exc
    if not isinstance(patch, dict):
        raise NotClear(
            'the patch is a JSON object, such as {"language": "zh"}',
            '补丁须是 JSON 对象，例如 {"language": "zh"}',
        )
    return patch


@contextlib.contextmanager
def _output(file: Path | None) -> Iterator[IO[str]]:
    """The file, readable by its owner only, or standard output."""
    if file is None:
        yield sys.stdout
        return
    file.touch(mode=0o600)
    with file.open("w", encoding="utf-8") as out:
        yield out


def _dump(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


if __name__ == "__main__":
    run_script(main)
