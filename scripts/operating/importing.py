"""Reads the past of a chat from Feishu, so that the bot can be asked about it; takes it out again.

A worker does the reading. This starts it, shows how far it is and may be ended at any time. Before
anything is kept it says how much there is and asks. The chat is told in a card when it is done.

Examples:
  scripts/bot import                                all imports, and how far they are
  scripts/bot import --chat oc_a1b2 --since 30d     the last thirty days, after a preview
  scripts/bot import --chat oc_a1b2 --since 2024-01-31 --yes
  scripts/bot import --chat oc_a1b2 --since all     everything; more goes on top of what is there
  scripts/bot import --chat oc_a1b2 --status        how far it is
  scripts/bot import --chat oc_a1b2 --pause         and --resume, also after an error
  scripts/bot import --chat oc_a1b2 --remove        takes all of it out again, after a question
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from bot.features.history_import.importing import Estimate, extrapolate, look_at_dates
from bot.features.history_import.reporting import (
    import_refusal,
    reason_against,
)
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.queue.table import JobTable
from bot.settings import EXIT_STATUS, load_existing
from bot.text.languages import Sentence
from memory.backends.postgres import connection_pool
from memory.tables.directory import ChatStore, KnownChat
from memory.tables.imports import Chat, HistoryImport, ImportStore
from scripts.operating.arguments import add_language, in_language, language, parser, run_script
from scripts.operating.console import FINDINGS, Screen, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk, since
from scripts.operating.words import counted

_LOOK_EVERY_S = 1.0
_STANDS_STILL_S = 150.0  # a worker looks for imports every minute
_YEARS = re.compile(r"(\d{1,2})y")
_COLUMNS = ("chat", "state", "phase", "messages", "pages", "since", "changed", "error")

_STATES = {
    "running": Sentence("being read", "读取中"),
    "paused": Sentence("paused", "已暂停"),
    "removing": Sentence("being removed", "移除中"),
    "done": Sentence("done", "已完成"),
    "failed": Sentence("failed", "失败"),
}
_NOBODY_READS = Sentence(
    "; nobody is told of it: Feishu does not say who is in the group (scope im:chat.members:read),"
    " and its owner has not sent /settings history shown",
    "；暂时没有人能问到：飞书没有告知群成员（权限 im:chat.members:read），"
    "群主也没有发送 /settings history shown",
)
_REFUSALS = {
    "not_offered": Sentence(
        "groups are not imported here: MEMORY_SHARING is person, or GROUP_TRANSCRIPT is off",
        "这里不导入历史：MEMORY_SHARING 为 person，或 GROUP_TRANSCRIPT 为 off",
    ),
    "secret_mode": Sentence(
        "the group is in secret mode, in which Feishu lists no messages",
        "该群开启了保密模式，飞书不提供消息列表",
    ),
    "no_scope": Sentence(
        "the app lacks the scope im:message.group_msg: grant it and publish a version",
        "应用缺少权限 im:message.group_msg：请开通并发布版本",
    ),
    "not_in_chat": Sentence(
        "the bot is not in that chat: add it there first", "机器人不在该群：请先把它加进群"
    ),
    "unintelligible": Sentence(
        "Feishu's list did not lead on: --resume tries again",
        "飞书的列表没有给出后续页面：用 --resume 再试",
    ),
    "refused": Sentence("Feishu refused: the log says why", "飞书拒绝了请求：原因见日志"),
    "defect": Sentence(
        "an error of the bot's: the log says where; --resume tries again",
        "机器人出错：位置见日志；可用 --resume 再试",
    ),
}


class NotDone(Exception):
    """What was asked cannot be done; `sentence` says why."""

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence


def main() -> int:
    return run(_work, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("bot import", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="whose past")
    options.add_argument(
        "--since", type=_moment, metavar="TIME", help="30d, 1y, all, or a date such as 2024-01-31"
    )
    what = options.add_mutually_exclusive_group()
    for name, help in (
        ("status", "how far it is"),
        ("pause", "read no more for now"),
        ("resume", "go on, also after an error"),
        ("remove", "delete it with all that was made from it"),
    ):
        what.add_argument(f"--{name}", dest="what", action="store_const", const=name, help=help)
    options.add_argument("--yes", action="store_true", help="do not ask")
    options.add_argument(
        "--quiet", action="store_true", help="with --remove: tell the chat nothing"
    )
    options.add_argument("--json", action="store_true", help="one JSON document, and no waiting")
    add_language(options)
    given = options.parse_args()
    asked = given.what or given.since is not None
    if not given.chat and asked:
        options.error(in_language("give the chat: --chat oc_…", "请给出会话：--chat oc_…"))
    if given.chat and not asked:
        options.error(
            in_language(
                "give --since 30d, 1y, all or a date, or one of --status … --remove",
                "请给出 --since 30d、1y、all 或日期，或 --status … --remove 之一",
            )
        )
    return given


def _moment(text: str) -> str:
    """What `--since` takes, as ISO 8601; "" for everything."""
    if text.strip().casefold() == "all":
        return ""
    if years := _YEARS.fullmatch(text.strip()):
        return (datetime.now(UTC) - timedelta(days=365 * int(years[1]))).isoformat()
    try:
        return since(text, UTC)
    except (ValueError, OverflowError) as exc:
        sentence = in_language(
            f"{text!r} is no time: give 30d, 1y, all, or a date such as 2024-01-31",
            f"{text!r} 不是时间：请给出 30d、1y、all，或日期，如 2024-01-31",
        )
        raise argparse.ArgumentTypeError(sentence) from exc


async def _work(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        try:
            return await _Errand(desk, given).run()
        except NotDone as exc:
            print(exc.sentence.said(language(given.lang)), file=sys.stderr)
            return EXIT_STATUS
        except FeishuFailure as exc:
            print(f"{exc}", file=sys.stderr)
            return EXIT_STATUS


class _Errand:
    """What the operator asked for, at their desk."""

    def __init__(self, desk: OperatorDesk, given: argparse.Namespace) -> None:
        self._desk = desk
        self._given = given
        self._language = language(given.lang)
        self._screen = Screen(self._language, desk.names_of)
        self._store = ImportStore(desk.rpc)

    async def run(self) -> int:
        if not self._given.chat:
            return await self._list()
        known = await self._known()
        chat = (known.tenant_key, self._given.chat)
        if self._given.since is not None and not self._given.what:
            return await self._start(chat, known)
        found = await self._store.of_chat(chat, None)
        if found is None:
            raise NotDone(Sentence("that chat has no import", "该群没有导入过历史"))
        changes: dict[str, Callable[[Chat], Awaitable[HistoryImport | None]]] = {
            "pause": lambda chat: self._store.pause(chat, None),
            "resume": lambda chat: self._store.resume(chat, None),
        }
        if self._given.what == "remove":
            return await self._remove(found)
        if change := changes.get(self._given.what):
            found = await change(chat) or found
        if self._given.what == "resume":
            await self._queue(found.id)
        return self._show(found)

    async def _list(self) -> int:
        every = await self._store.every()
        if self._given.json:
            print_json(every)
            return 0
        self._screen.table("Imports", _COLUMNS, [self._cells(one) for one in every])
        return 0

    async def _known(self) -> KnownChat:
        """Raises `NotDone` for a chat that the bot has never met."""
        known = await ChatStore(self._desk.rpc).known(self._given.chat)
        if not known:
            raise NotDone(
                Sentence(
                    f"the bot knows no chat {self._given.chat}: add it there, or write in it",
                    f"机器人不认识 {self._given.chat}：请先把它加进群，或在其中发一条消息",
                )
            )
        return known[0]

    async def _start(self, chat: Chat, known: KnownChat) -> int:
        if reason := reason_against(self._desk.settings):
            raise NotDone(_REFUSALS[reason])
        until_ms = int(time.time() * 1000)
        begins = datetime.fromisoformat(self._given.since) if self._given.since else None
        since_ms = int(begins.timestamp() * 1000) if begins else None
        expected = await self._preview(chat, since_ms, until_ms)
        self._tell(_preview(expected, self._desk))
        if not expected.messages:
            return 0
        if not self._may(Sentence("Read and keep them?", "读取并保存？")):
            return FINDINGS
        found = await self._store.start(
            chat,
            known.chat_type or "group",
            context=None,
            since_ms=since_ms,
            until_ms=until_ms,
            estimate=expected.messages,
        )
        if found.state == "removing":
            raise NotDone(Sentence("it is being removed: wait for its end", "正在移除：请等它结束"))
        await self._queue(found.id)
        return await self._follow(found)

    async def _preview(self, chat: Chat, since_ms: int | None, until_ms: int) -> Estimate:
        settings = self._desk.settings
        async with _feishu(self._desk) as feishu:
            try:
                samples = await look_at_dates(feishu, chat[1], since_ms, until_ms)
            except FeishuError as error:
                refusal = import_refusal(error)
                raise NotDone(_REFUSALS[refusal]) if refusal else error from error
        return extrapolate(samples, until_ms, settings.import_page_s)

    async def _remove(self, found: HistoryImport) -> int:
        many = found.messages
        question = Sentence(
            f"Delete {many} imported messages and all that was made from them?",
            f"删除导入的 {many} 条消息，以及由此产生的一切？",
        )
        if not self._may(question):
            return FINDINGS
        await self._store.remove(found.chat, None)
        await self._queue(found.id, **({"quiet": True} if self._given.quiet else {}))
        return await self._follow(found)

    def _may(self, question: Sentence) -> bool:
        if self._given.yes:
            return True
        if not sys.stdin.isatty():
            raise NotDone(
                Sentence("nobody can be asked here: give --yes", "此处无法询问：请加 --yes")
            )
        return input(f"{question.said(self._language)} [y/N] ").strip().casefold() in ("y", "yes")

    async def _queue(self, import_id: int, **note: object) -> None:
        async with connection_pool(self._desk.url, size=1) as pool:
            await JobTable(pool).queue_import(import_id, note)

    async def _follow(self, found: HistoryImport) -> int:
        """Shows how it goes on until its end; Ctrl-C ends the showing alone."""
        if self._given.json:
            return self._show(await self._store.get(found.id) or found)
        try:
            return await self._watch(found)
        except asyncio.CancelledError:
            self._tell(
                Sentence(
                    "It goes on without this: --status says how far it is, --pause stops it.",
                    "读取仍在继续：用 --status 查看进度，用 --pause 暂停。",
                )
            )
            return 0

    async def _watch(self, found: HistoryImport) -> int:
        page_s, last, warned = self._desk.settings.import_page_s, "", False
        changed_s = time.monotonic()
        now: HistoryImport | None = found
        while (now := await self._store.get(found.id)) and now.state in ("running", "removing"):
            _heed_cancelling()
            line = _progress(now, page_s).said(self._language)
            if line != last:
                self._line(line)
                last, changed_s, warned = line, time.monotonic(), False
            elif time.monotonic() - changed_s > _STANDS_STILL_S and not warned:
                warned = True
                self._tell(
                    Sentence("It stands still: does a worker run?", "没有进展：worker 在运行吗？")
                )
            await asyncio.sleep(_LOOK_EVERY_S)
        if now is None:
            self._tell(Sentence("It is gone, with all that came of it.", "已全部移除。"))
            return 0
        return self._show(now)

    def _line(self, line: str) -> None:
        """One line that changes on a terminal, a line each elsewhere."""
        end = "\r" if self._screen.is_terminal else "\n"
        print(f"{line:<78}", end=end, flush=True)

    def _show(self, found: HistoryImport) -> int:
        """The import as it is; status 1 when it has failed."""
        if self._given.json:
            print_json(found)
        else:
            self._tell(_told(found))
        return FINDINGS if found.state == "failed" else 0

    def _tell(self, sentence: Sentence) -> None:
        self._screen.say(sentence.said(self._language))

    def _cells(self, found: HistoryImport) -> list[object]:
        began = self._shown(found.since_ms) if found.since_ms is not None else "all"
        return [
            found.chat_id,
            _STATES[found.state].said(self._language),
            found.phase,
            found.messages,
            found.pages,
            began,
            self._shown(found.updated_ms),
            found.error,
        ]

    def _shown(self, at_ms: int) -> str | None:
        return self._desk.shown(datetime.fromtimestamp(at_ms / 1000, UTC).isoformat())


@asynccontextmanager
async def _feishu(desk: OperatorDesk) -> AsyncIterator[FeishuClient]:
    settings = desk.settings
    client = FeishuClient(
        settings.domain,
        settings.feishu_app_id,
        settings.feishu_app_secret,
        calls_per_second=settings.feishu_calls_per_second,
    )
    try:
        yield client
    finally:
        await client.close()


def _preview(expected: Estimate, desk: OperatorDesk) -> Sentence:
    if expected.oldest_ms is None:
        return Sentence("There is nothing to read in that time.", "该时段没有可读取的消息。")
    at = datetime.fromtimestamp(expected.oldest_ms / 1000, UTC).isoformat()
    began = desk.shown(at)
    return Sentence(
        f"About {counted(expected.messages, 'message')} since {began}, without answers in threads: "
        f"{counted(expected.pages, 'page')}, about {expected.minutes} min. Texts, names and times "
        "are kept, files are not. The chat is told in a card.",
        f"约 {expected.messages} 条消息（自 {began} 起，话题回复未计入）：{expected.pages} 页，"
        f"约 {expected.minutes} 分钟。保存文字、姓名和时间，不保存文件。完成后会在群里用卡片告知。",
    )


def _progress(found: HistoryImport, page_s: float) -> Sentence:
    if found.state == "removing":
        return Sentence(
            f"being removed: {counted(found.messages, 'message')} left",
            f"移除中：还剩 {found.messages} 条",
        )
    now = datetime.now(UTC)
    end = found.expected_end(now, page_s)
    left = round((end - now).total_seconds() / 60) if end else None
    ends = "" if left is None else f", about {left} min left"
    ends_zh = "" if left is None else f"，约剩 {left} 分钟"
    return Sentence(
        f"{found.phase}: {_read_so_far(found)}{ends}",
        f"{found.phase}：{found.messages} 条消息，{found.pages} 页{ends_zh}",
    )


def _read_so_far(found: HistoryImport) -> str:
    return f"{counted(found.messages, 'message')}, {counted(found.pages, 'page')}"


def _heed_cancelling() -> None:
    """A cancelling that comes with an answer of Postgres is lost: `asyncio.wait_for` returns the
    answer instead, up to Python 3.11."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _told(found: HistoryImport) -> Sentence:
    state = _STATES[found.state]
    error = _REFUSALS.get(found.error, Sentence(found.error, found.error))
    why = (f": {error.en}", f"：{error.zh}") if found.error else ("", "")
    kinds = sorted(found.report.items() - {("members_unknown", 1)})
    left_out = ", ".join(f"{kind} {count}" for kind, count in kinds)
    rest = (f"; left out: {left_out}", f"；未保存：{left_out}") if left_out else ("", "")
    unread = _NOBODY_READS if found.report.get("members_unknown") else Sentence("", "")
    return Sentence(
        f"{state.en}{why[0]}; {_read_so_far(found)}{rest[0]}{unread.en}",
        f"{state.zh}{why[1]}；{found.messages} 条消息，{found.pages} 页{rest[1]}{unread.zh}",
    )


if __name__ == "__main__":
    run_script(main)
