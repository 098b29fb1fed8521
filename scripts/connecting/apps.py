"""The app: created by scanning a code (lark-oapi's `register_app`), or by hand in the console.

Source: Feishu, “Create an app in one click”: a link is good for ten minutes and for one person, who
may be at a computer as well as on the phone. App id and secret come back over the same channel.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import segno

from bot.feishu import manifest
from bot.text.languages import Sentence
from scripts.connecting.talk import Talk, require_answer

FEISHU, LARK = "https://open.feishu.cn", "https://open.larksuite.com"
_ACCOUNTS = {FEISHU: "https://accounts.feishu.cn", LARK: "https://accounts.larksuite.com"}
_NAME = "Memo"
_SOURCE = "feishu-memory-bot"


@dataclass(frozen=True, slots=True)
class AppCredentials:
    """The credentials; `domain` is "" for Feishu; `open_id` is who created it, "" when unknown."""

    app_id: str
    app_secret: str
    domain: str = ""
    open_id: str = ""

    def __repr__(self) -> str:
        return f"App({self.app_id})"


class NotRegistered(Exception):
    """No app came of it; `sentence` says why and what to do."""

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence


def register(
    talk: Talk, *, accounts: str, optional: bool, folder: Path, app_id: str = ""
) -> AppCredentials:
    """Shows the link and waits until somebody has said yes. Raises `NotRegistered`.

    `accounts`: the origin to ask instead of Feishu's; `optional`: with the scopes that an admin may
    decline; `folder`: for the code as a picture; `app_id`: extend this app instead of a new one.
    """
    talk.say(_LOADING)
    from lark_oapi.scene import registration  # 4 s of CPU, which only this needs
    from lark_oapi.scene.registration.errors import RegisterAppError

    picture = folder / "setup-qr.png"
    try:
        found: dict[str, Any] = registration.register_app(
            on_qr_code=lambda info: show(talk, info["url"], int(info["expire_in"]), picture),
            on_status_change=_told(talk),
            source=_SOURCE,
            domain=accounts or _ACCOUNTS[FEISHU],
            lark_domain=accounts or _ACCOUNTS[LARK],
            app_preset=None if app_id else {"name": _NAME},
            addons=manifest.registration_addons(optional=optional),
            app_id=app_id or None,
        )
    except RegisterAppError as exc:
        raise NotRegistered(_WHY.get(exc.code, _refused(exc.code))) from exc
    except (requests.RequestException, ValueError, KeyError) as exc:
        raise NotRegistered(_unreachable(type(exc).__name__)) from exc
    finally:
        picture.unlink(missing_ok=True)
    user = found.get("user_info") or {}
    domain = LARK if user.get("tenant_brand") == "lark" else ""
    return AppCredentials(
        found["client_id"], found["client_secret"], domain, str(user.get("open_id") or "")
    )


def show(talk: Talk, link: str, lives_s: int, picture: Path) -> None:
    """The link, and as a code to scan: drawn where the terminal is wide enough, else a picture."""
    minutes = lives_s // 60
    talk.say(
        Sentence(
            f"Scan this with Feishu, or open the link where you are logged in ({minutes} minutes, "
            "one person):",
            f"请用飞书扫码，或在已登录飞书的浏览器中打开链接（{minutes} 分钟内有效，仅限一人）：",
        )
    )
    code = segno.make(link, error="l", micro=False, boost_error=False)
    columns, _ = code.symbol_size(border=1)
    if sys.stdout.isatty() and columns <= os.get_terminal_size(sys.stdout.fileno()).columns:
        _draw(code)
    elif sys.stdout.isatty():
        picture.parent.mkdir(parents=True, exist_ok=True)
        code.save(str(picture), scale=6)
        talk.say(
            Sentence(
                f"The code needs {columns} columns here. You'll find it as a picture in {picture}.",
                f"此处显示二维码需要 {columns} 列；图片在 {picture}。",
            )
        )
    talk.raw(link)


def _draw(code: segno.QRCode) -> None:
    """Light on dark whatever the terminal's colours are: not every camera reads the opposite."""
    drawn = io.StringIO()
    code.terminal(drawn, border=1, compact=True)
    for line in drawn.getvalue().splitlines():
        print(f"\033[97;40m{line}\033[0m")
    sys.stdout.flush()


def _told(talk: Talk) -> Callable[[dict[str, Any]], None]:
    def told(info: dict[str, Any]) -> None:
        if info.get("status") == "domain_switched":
            talk.say(Sentence("This is a Lark tenant.", "这是 Lark 租户。"))

    return told


_LOADING = Sentence("Asking Feishu for a code …", "正在向飞书申请二维码…")
_WHY = {
    "access_denied": Sentence(
        "It was declined on the phone. Run scripts/setup again, or use --by-hand.",
        "扫码的人选择了拒绝：请重新运行 scripts/setup，或使用 --by-hand。",
    ),
    "expired_token": Sentence(
        "Nobody confirmed in time. Run scripts/setup again for a new code.",
        "没有人在有效期内确认：请重新运行 scripts/setup 获取新的二维码。",
    ),
    "unsupported_auth_method": Sentence(
        "Feishu doesn't offer this here. Use --by-hand.",
        "飞书在此不支持扫码创建：请使用 --by-hand。",
    ),
}


def _refused(code: str) -> Sentence:
    return Sentence(
        f"Feishu didn't create the app ({code}). Use --by-hand.",
        f"飞书没有创建应用（{code}）：请使用 --by-hand。",
    )


def _unreachable(kind: str) -> Sentence:
    return Sentence(
        f"Feishu's accounts do not answer ({kind}): check the network, or use --by-hand.",
        f"飞书账号服务没有响应（{kind}）：请检查网络，或使用 --by-hand。",
    )


def made_by_hand(talk: Talk, *, domain: str, optional: bool) -> AppCredentials:
    """Leads to the app id and secret, and asks for them. Raises `Unanswered`."""
    origin = domain or FEISHU
    talk.say(_CREATE)
    talk.raw(f"  {origin}/app")
    talk.say(_SCOPES)
    talk.raw(manifest.scopes_json(optional=optional))
    return asked_credentials(talk, domain)


def asked_credentials(talk: Talk, domain: str) -> AppCredentials:
    """The app id and secret that somebody copies from the console. Raises `Unanswered`."""
    app_id = talk.ask_until(require_answer, lambda: talk.ask(_APP_ID, option="--app-id"))
    secret = talk.ask_until(require_answer, lambda: talk.secret(APP_SECRET, option="--app-secret"))
    return AppCredentials(app_id, secret, domain)


def subscribe_by_hand(talk: Talk, app: AppCredentials) -> None:
    """What to click while the long connection is open: the console saves that mode only then."""
    origin = app.domain or FEISHU
    talk.say(_EVENTS)
    talk.raw(f"  {manifest.console_url(origin, app.app_id, 'event')}")
    for one in manifest.SUBSCRIPTIONS:
        if one.kind == "event":
            talk.say(Sentence(f"{one.purpose.en}  {one.name}", f"{one.purpose.zh}  {one.name}"),
                     indent="    ")  # fmt: skip
    talk.say(_CALLBACKS)
    tell_menu(talk)
    talk.say(_PUBLISH)
    talk.raw(f"  {manifest.console_url(origin, app.app_id, 'version')}")


def tell_menu(talk: Talk) -> None:
    """The menu of the private chat, which no app can set up by itself."""
    talk.say(_MENU)
    for one in manifest.MENU:
        talk.say(Sentence(f"{one.key}  {one.name.en}", f"{one.key}  {one.name.zh}"), indent="    ")


_MENU = Sentence(
    "Bot, Bot custom menu (only the console can do it): switch it on and add these items, each "
    "with the action “Push event” and this key, and publish a version:",
    "“机器人”→“机器人自定义菜单”（只能在后台设置）：开启并添加以下菜单项，响应动作选“推送事件”，"
    "填写对应的 key，然后发布版本：",
)
_APP_ID = Sentence("App ID (cli_…)", "App ID（cli_…）")
APP_SECRET = Sentence("App Secret", "App Secret")
_CREATE = Sentence(
    "1. Create a custom app and add the feature Bot:",
    "1. 创建企业自建应用，并添加“机器人”能力：",
)
_SCOPES = Sentence(
    "2. Permissions & Scopes, Batch import/export: paste this, then Credentials & Basic Info.",
    "2. “权限管理”→“批量导入/导出权限”：粘贴以下内容；然后打开“凭证与基础信息”。",
)
_EVENTS = Sentence(
    "3. Events & Callbacks, Event Configuration: choose “Receive events through persistent "
    "connection” (it can be saved now, for the connection is open) and add these events:",
    "3. “事件与回调”→“事件配置”：选择“使用长连接接收事件”（连接已打开，现在可以保存），"
    "并添加以下事件：",
)
_CALLBACKS = Sentence(
    "4. Callback Configuration: the same mode, and Card action (card.action.trigger).",
    "4. “回调配置”：选择同样的方式，并添加“卡片回传交互”（card.action.trigger）。",
)
_PUBLISH = Sentence(
    "5. Version Management & Release: create a version and publish it:",
    "5. “版本管理与发布”：创建版本并发布：",
)
