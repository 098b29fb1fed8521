"""Set-up from the beginning to the doctor: app, `.env`, model, first events."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bot.operations.doctor import feishu
from bot.operations.doctor.checks import ExaminationWishes, run_checks
from bot.operations.doctor.http_exchange import NoHttpAnswer
from bot.operations.doctor.result import Check, findings
from bot.process import settings_values as rules
from bot.queue.connections import NotConfigured, database_url
from bot.queue.inbox import Inbox, QueueUnavailable
from bot.settings import EXIT_STATUS, Settings, SettingsError, load, require_form
from bot.text.languages import Sentence
from scripts.connecting import apps, choosing, env_file, listening, places
from scripts.connecting.apps import AppCredentials, NotRegistered
from scripts.connecting.choosing import Choice
from scripts.connecting.talk import Talk, Unanswered
from scripts.operating import checklist
from scripts.operating.arguments import FINDINGS, language
from scripts.operating.console import quiet

ENV = Path(".env")
_WAIT_S = 600.0


class NotWritten(Exception):
    """`.env` could not be changed; it is as it was."""

    def __init__(self, reason: str) -> None:
        self.sentence = Sentence(f".env cannot be written ({reason})", f".env 无法写入（{reason}）")
        super().__init__(self.sentence.en)


def run(given: argparse.Namespace) -> int:
    """The exit status: 0 when the bot can be started, 1 when something is to be fixed first."""
    quiet()
    talk = Talk(language(given.lang), asks=not given.yes)
    try:
        return _run(talk, given)
    except SettingsError as exc:
        print(f"setup: {exc.zh if talk.language == 'zh' else exc}", file=sys.stderr)
        return EXIT_STATUS
    except (Unanswered, NotRegistered, NotWritten, NoHttpAnswer) as exc:
        print(f"setup: {exc.sentence.said(talk.language)}", file=sys.stderr)
        return EXIT_STATUS if isinstance(exc, Unanswered) else FINDINGS
    except KeyboardInterrupt:
        print(f"\nsetup: {_STOPPED.said(talk.language)}", file=sys.stderr)
        return FINDINGS


def _run(talk: Talk, given: argparse.Namespace) -> int:
    if step := _SETTLING.get(given.only):
        settled = step(talk, given, again=True)
        status = _verdict(talk, run_checks(ExaminationWishes(running=False)))
        return status or (0 if settled else FINDINGS)
    kept = _kept()
    talk.step(_APP)
    app, is_new = _app(talk, given, kept)
    while found := _refused(app):
        talk.check(found)
        if not (given.by_hand and is_new and talk.asks and talk.confirmed(places.TRY_AGAIN)):
            return FINDINGS
        app = apps.asked_credentials(talk, app.domain)
    if is_new:
        _write(talk, _variables(app, kept))
    for step in () if given.only else _SETTLING.values():
        step(talk, given, again=False)
    return _first_events(talk, given, app, kept, is_new=is_new)


def _model(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    talk.step(_MODEL)
    kept = _kept()
    before = Choice(*(kept.get(name, "") for name in choosing.MODEL_VARIABLES))
    wanted = Choice(given.api_key, given.base_url, given.model)
    choice = choosing.choose_model(talk, wanted, before, again=again)
    if choice != before and (choice.key or before.key):
        _write(talk, choice.variables())
    return True


def _meaning(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    found = choosing.choose_embeddings(talk, given.embeddings, _kept(), again=again)
    _write(talk, found or {})
    return found is not None


def _accounts(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    _write(talk, choosing.choose_token_key(talk, given.connect, _kept(), again=again))
    return True


def _time_zone(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    kept = _kept()
    if given.time_zone or again or (talk.asks and not kept.get("TIMEZONE")):
        talk.step(_ZONE)
        usual = kept.get("TIMEZONE") or places.usual_zone(kept.get("FEISHU_DOMAIN", ""))
        with _unanswered_stays(again=again):
            _write(talk, places.choose_zone(talk, given.time_zone, default=usual))
    return True


def _memory(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    """Without anybody to ask the values come from `.env`, and the doctor tries them."""
    kept = _kept()
    if talk.asks and (again or not (kept.get("DATABASE_URL") or kept.get("SUPABASE_URL"))):
        talk.step(_KEEPING)
        with _unanswered_stays(again=again):
            found = places.choose_memory(talk, kept)
            _write(talk, found or {})
            return found is not None
    return True


def _administrators(talk: Talk, given: argparse.Namespace, *, again: bool) -> bool:
    kept = _kept()
    if given.admins or again or (talk.asks and "CONSOLE_ADMINS" not in kept):
        talk.step(_ADMINS)
        usual = kept.get("CONSOLE_ADMINS", "")
        with _unanswered_stays(again=again):
            _write(talk, places.choose_admins(talk, given.admins, default=usual))
    return True


@contextmanager
def _unanswered_stays(*, again: bool) -> Iterator[None]:
    """What nobody answers stays as it is, unless it is all that was asked for."""
    try:
        yield
    except Unanswered:
        if again:
            raise


# Each returns whether it did what it was asked for; nothing is written otherwise.
_SETTLING: Mapping[str, Callable[..., bool]] = {
    "model": _model,
    "meaning": _meaning,
    "accounts": _accounts,
    "time-zone": _time_zone,
    "memory": _memory,
    "administrators": _administrators,
}


def _app(
    talk: Talk, given: argparse.Namespace, kept: Mapping[str, str]
) -> tuple[AppCredentials, bool]:
    """The app, and whether it has to be written down. Raises `Unanswered`, `NotRegistered`."""
    domain = given.domain or (apps.LARK if given.lark else "")
    require_form(Settings(feishu_domain=domain))
    rules.require_url("--accounts", given.accounts, "https://accounts.feishu.cn")
    if given.app_id:
        secret = given.app_secret or talk.secret(apps.APP_SECRET, option="--app-secret")
        return AppCredentials(given.app_id, secret, domain), True
    known = AppCredentials(
        kept.get("FEISHU_APP_ID", ""),
        kept.get("FEISHU_APP_SECRET", ""),
        domain or kept.get("FEISHU_DOMAIN", ""),
    )
    if known.app_id and known.app_secret and not given.new and _keeps(talk, known):
        return _extended(talk, given, known), False
    if given.by_hand:
        return apps.made_by_hand(talk, domain=domain, optional=given.optional), True
    app = apps.register(
        talk, accounts=given.accounts, optional=given.optional, folder=_folder(kept)
    )
    talk.say(Sentence(f"Created: {app.app_id}", f"已创建：{app.app_id}"), indent="  ✓ ")
    return (
        app if not domain else AppCredentials(app.app_id, app.app_secret, domain, app.open_id)
    ), True


def _keeps(talk: Talk, known: AppCredentials) -> bool:
    name = known.app_id
    if _refused(known):
        talk.say(Sentence(f"Feishu refuses {name} from .env.", f"飞书拒绝 .env 中的 {name}。"))
        return False
    return talk.confirmed(
        Sentence(f"Keep the app {name} from .env?", f"保留 .env 中的应用 {name}？")
    )


def _extended(talk: Talk, given: argparse.Namespace, known: AppCredentials) -> AppCredentials:
    """A known app lacks scopes that came later: a scan grants them, if somebody wants to."""
    _, opened = feishu.credentials_check(_settings(known))
    lines = feishu.scope_checks(opened) if opened else []
    missing = [line for line in lines if line.state in ("warn", "fail")]
    for line in missing:
        talk.check(line)
    if missing and talk.asks and talk.confirmed(_GRANT):
        apps.register(
            talk, accounts=given.accounts, optional=given.optional, folder=_folder({}),
            app_id=known.app_id,
        )  # fmt: skip
    return known


def _first_events(
    talk: Talk,
    given: argparse.Namespace,
    app: AppCredentials,
    kept: Mapping[str, str],
    *,
    is_new: bool,
) -> int:
    """The test message, the ticks, and the doctor at the end."""
    talk.step(_EVENTS)
    wait_s = given.wait if given.wait is not None else (_WAIT_S if talk.asks else 0.0)
    if not is_new and kept.get("FEISHU_TRANSPORT", "webhook") != "websocket":
        talk.say(_BY_WEBHOOK)
        wait_s = 0
    elif online := _online(app):
        talk.say(_connected(online))
        wait_s = 0
    checks: list[Check] = []

    def examined(kinds: frozenset[str]) -> None:
        _note(kinds)
        checks.extend(run_checks(ExaminationWishes(running=False)))

    heard = asyncio.run(
        listening.listen(
            talk,
            app,
            wait_s=wait_s,
            before=lambda: apps.subscribe_by_hand(talk, app) if given.by_hand else None,
            after=examined,
        )
    )
    if heard.failure:
        talk.say(_not_open(heard.failure), indent="  ✗ ")
    if given.by_hand and (heard.failure or not wait_s):
        apps.subscribe_by_hand(talk, app)
    if is_new and not given.by_hand:
        apps.tell_menu(talk)
    return _verdict(talk, checks) or (FINDINGS if heard.failure else 0)


def _verdict(talk: Talk, checks: Sequence[Check]) -> int:
    """What the doctor says, and what to do next. Returns the exit status."""
    print()
    checklist.show(checks, talk.language)
    if any(check.state == "fail" for check in findings(checks)):
        return FINDINGS
    talk.title(_START)
    if talk.asks:
        talk.say(_SAY_THIS)
    return 0


def _note(kinds: frozenset[str]) -> None:
    """What arrived here has arrived; the embedded database is made for it."""
    try:
        settings = load()
        inbox = Inbox(database_url(settings))
    except (SettingsError, NotConfigured):
        return
    try:
        for kind in sorted(kinds):
            inbox.note_arrival(kind)
    except QueueUnavailable:
        pass  # the doctor says what is wrong with the database
    finally:
        inbox.close()


def _online(app: AppCredentials) -> int:
    _, opened = feishu.credentials_check(_settings(app))
    return feishu.connections_online(opened) or 0 if opened else 0


def _refused(app: AppCredentials) -> Check | None:
    """What Feishu has against the credentials."""
    check, opened = feishu.credentials_check(_settings(app))
    return None if opened else check


def _settings(app: AppCredentials) -> Settings:
    return Settings(
        feishu_app_id=app.app_id, feishu_app_secret=app.app_secret, feishu_domain=app.domain
    )


def _variables(app: AppCredentials, kept: Mapping[str, str]) -> dict[str, str]:
    """A new app gets the long connection, which needs neither a public address nor keys."""
    found = {"FEISHU_APP_ID": app.app_id, "FEISHU_APP_SECRET": app.app_secret}
    if app.domain or kept.get("FEISHU_DOMAIN"):
        found["FEISHU_DOMAIN"] = app.domain
    return found | {"FEISHU_TRANSPORT": "websocket"}


def _write(talk: Talk, values: Mapping[str, str]) -> None:
    if not values:
        return
    try:
        env_file.write(ENV, values)
    except (OSError, ValueError) as exc:
        raise NotWritten(getattr(exc, "strerror", None) or str(exc)) from exc
    listed = ", ".join(values)
    talk.say(Sentence(f"written to .env: {listed}", f"已写入 .env：{listed}"), indent="  ✓ ")
    for name, value in values.items():
        if os.environ.get(name, value) != value:
            talk.say(_overruled(name), indent="  ! ")


def _overruled(name: str) -> Sentence:
    return Sentence(
        f"{name} has another value in the environment, which takes precedence.",
        f"环境变量里的 {name} 是另一个值，以环境变量为准。",
    )


def _kept() -> dict[str, str]:
    """What `.env` says; the environment is not written down."""
    return {name: value or "" for name, value in rules.file_values().items()}


def _folder(kept: Mapping[str, str]) -> Path:
    return Path(os.environ.get("DATA_DIR") or kept.get("DATA_DIR") or "data")


def _connected(online: int) -> Sentence:
    return Sentence(
        f"Other processes of this app are already connected ({online}), so messages go to them.",
        f"本应用已有 {online} 个进程在线，消息会发给它们。",
    )


def _not_open(reason: str) -> Sentence:
    return Sentence(
        f"the long connection couldn't be opened: {reason}", f"无法打开长连接：{reason}"
    )


_APP = Sentence("The Feishu app", "飞书应用")
_MODEL = Sentence("The model", "模型")
_ZONE = Sentence("The time zone", "时区")
_KEEPING = Sentence("The memory", "记忆")
_ADMINS = Sentence("Administrators", "管理员")
_EVENTS = Sentence("The first message", "第一条消息")
_START = Sentence("Ready. Start the bot with scripts/start", "已就绪。启动机器人：scripts/start")
_SAY_THIS = Sentence(
    "Then add the bot to your group, and say there: @Memo remember that our launch is on 3 March",
    "然后把机器人加进群，在群里说：@Memo 记住我们的发布日是 3 月 3 日",
)
_STOPPED = Sentence(
    "stopped; what is written to .env stays. Run scripts/setup again to go on.",
    "已停止，已写入 .env 的内容保留。要继续，请再次运行 scripts/setup。",
)
_GRANT = Sentence("Grant them now by scanning a code?", "现在扫码开通这些权限？")
_BY_WEBHOOK = Sentence(
    "Events come by webhook. Start the bot, then check its address with scripts/doctor.",
    "事件通过 webhook 推送：请启动机器人，再用 scripts/doctor 检查地址。",
)
