"""The app made by hand in the developer console: what to click, in order, and what to paste."""

from __future__ import annotations

from bot.feishu import manifest
from bot.text.languages import Sentence
from scripts.connecting.registering import FEISHU, AppCredentials
from scripts.connecting.talk import Talk


def credentials(talk: Talk, *, domain: str, optional: bool) -> AppCredentials:
    """Leads to the app id and secret, and asks for them. Raises `Unanswered`."""
    origin = domain or FEISHU
    talk.say(_CREATE)
    talk.raw(f"  {origin}/app")
    talk.say(_SCOPES)
    talk.raw(manifest.scopes_json(optional=optional))
    app_id = talk.ask(Sentence("App ID (cli_…)", "App ID（cli_…）"), option="--app-id")
    secret = talk.secret(Sentence("App Secret", "App Secret"), option="--app-secret")
    return AppCredentials(app_id, secret, domain)


def subscribe(talk: Talk, app: AppCredentials) -> None:
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
