"""Feishu's side: credentials, the bot, scopes, long connections. It needs no scope to ask.

Sources: “Custom apps obtain tenant_access_token”, “Obtain bot information”, “Query tenant
authorization status”, “Query the long connection”, “Generic error codes”.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bot.feishu import manifest
from bot.operations.doctor.http_exchange import TIMEOUT_S, HttpAnswer, NoHttpAnswer, http_request
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.settings import Settings

_TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105 - a path
_UNKNOWN_APP = (10003,)
_WRONG_SECRET = (10015, 99991543)
_APP_REFUSED = (10014, 10012, 10005)  # with a wrong secret too, and with an id that is none
_APP_OFF = (99991662, 99991673, 212100)
_ACTIVE = 2
# Feishu's signatures carry times, and a token for Supabase lives for five minutes.
_FAST_S, _WRONG_S = 30, 120


@dataclass(frozen=True, slots=True)
class FeishuApp:
    """The app as far as its token opens it; `clock` is the Date header of Feishu's answer."""

    settings: Settings
    token: str
    clock: str = ""

    def get(self, path: str) -> HttpAnswer:
        """Raises `Silent`."""
        url = f"{self.settings.domain}{path}"
        return http_request("GET", url, headers={"Authorization": f"Bearer {self.token}"})

    def page(self, name: str = "") -> str:
        """A page of the app in the developer console."""
        return manifest.console_url(self.settings.domain, self.settings.feishu_app_id, name)


def credentials_check(
    settings: Settings, *, timeout_s: float = TIMEOUT_S
) -> tuple[Check, FeishuApp | None]:
    """Whether Feishu takes app id and secret, which it says with HTTP 200 or 400; and the app."""
    body = {"app_id": settings.feishu_app_id, "app_secret": settings.feishu_app_secret}
    try:
        answer = http_request("POST", f"{settings.domain}{_TOKEN}", body=body, timeout_s=timeout_s)
    except NoHttpAnswer as exc:
        sentence = exc.sentence
        return (
            fail(
                "credentials",
                f"Feishu isn't answering: {sentence.en}. Check FEISHU_DOMAIN and the network.",
                f"飞书没有响应：{sentence.zh}。请检查 FEISHU_DOMAIN 和网络。",
            ),
            None,
        )
    if answer.code == 0:
        app = FeishuApp(settings, str(answer.body.get("tenant_access_token") or ""),
                  answer.headers.get("Date", ""))  # fmt: skip
        return ok("credentials", "Feishu accepts the App ID and App Secret.",
                  "飞书接受 App ID 和 App Secret。"), app  # fmt: skip
    return _refusal_check(settings, answer), None


def _refusal_check(settings: Settings, answer: HttpAnswer) -> Check:
    page = manifest.console_url(settings.domain, settings.feishu_app_id, "baseinfo")
    code = answer.code
    if answer.status >= 500:
        return fail(
            "credentials",
            f"Feishu answers with a server error (HTTP {answer.status}). It usually passes; if it "
            f"stays, look at its status page, and at the proxy in front of {settings.domain}.",
            f"飞书返回服务器错误（HTTP {answer.status}）。通常会自行恢复；如果一直如此，"
            f"请查看飞书的状态页，以及访问 {settings.domain} 所经过的代理。",
        )
    if code is None:
        return fail(
            "credentials",
            f"What answers at FEISHU_DOMAIN (HTTP {answer.status}) is not Feishu: set it to "
            "https://open.feishu.cn or https://open.larksuite.com.",
            f"FEISHU_DOMAIN 处应答的（HTTP {answer.status}）不是飞书："
            "请设为 https://open.feishu.cn 或 https://open.larksuite.com。",
        )
    if code in _WRONG_SECRET or (code in _APP_REFUSED and "secret" in answer.message.lower()):
        return fail(
            "credentials",
            f"FEISHU_APP_SECRET is wrong (code {code}): copy the App Secret once more.",
            f"FEISHU_APP_SECRET 不正确（code {code}）：请重新复制 App Secret。",
            link=page,
        )
    if code in _UNKNOWN_APP:
        return fail(
            "credentials",
            f"FEISHU_APP_ID is no app's id here (code {code}): copy it once more, and check "
            "FEISHU_DOMAIN (Feishu and Lark have separate apps).",
            f"FEISHU_APP_ID 不是这里的应用（code {code}）：请重新复制，并检查 FEISHU_DOMAIN"
            "（飞书与 Lark 的应用互不相通）。",
            link=f"{settings.domain}/app",
        )
    if code in (*_APP_REFUSED, *_APP_OFF):
        return fail(
            "credentials",
            f"Feishu refuses the app (code {code}): check the id, and that it is enabled and "
            "published.",
            f"飞书拒绝该应用（code {code}）：请检查 App ID，并确认应用已启用、已发布。",
            link=page,
        )
    return fail(
        "credentials",
        f"Feishu refuses the app's credentials (code {code}): copy id and secret once more.",
        f"飞书拒绝应用凭证（code {code}）：请重新复制 App ID 和 App Secret。",
        link=page,
    )


def bot_check(app: FeishuApp) -> Check:
    """Whether the app has the bot feature, and the tenant has it switched on."""
    answer = app.get("/open-apis/bot/v3/info")
    bot_fields = answer.body.get("bot")
    if answer.code != 0 or not isinstance(bot_fields, dict) or not bot_fields.get("open_id"):
        return fail(
            "bot",
            f"The app has no bot (code {answer.code}): add the Bot feature, then publish a "
            "version.",
            f"该应用没有机器人能力（code {answer.code}）：请添加“机器人”能力，然后发布版本。",
            link=app.page("bot"),
        )
    status = bot_fields.get("activate_status")
    if status != _ACTIVE:
        en, zh = _NOT_ACTIVE.get(
            status if isinstance(status, int) else -1, ("it is not enabled", "未启用")
        )
        return fail(
            "bot",
            f"The bot is not switched on: {en} (activate_status {status}).",
            f"机器人没有启用：{zh}（activate_status {status}）。",
            link=app.page("version"),
        )
    name = str(bot_fields.get("app_name") or "")
    return ok("bot", f"The bot {name!r} is switched on.", f"机器人“{name}”已启用。")


_NOT_ACTIVE = {
    0: ("no version has been published", "还没有发布版本"),
    1: ("an administrator has stopped the app", "管理员已停用该应用"),
    3: ("it is installed and waits to be enabled", "已安装，等待启用"),
    4: ("an upgrade waits to be enabled", "升级等待启用"),
    5: ("its licence has expired", "许可已过期"),
    6: ("the tenant's plan has ended", "租户套餐已到期"),
}


def scope_checks(app: FeishuApp) -> list[Check]:
    """One line for each missing scope that people would miss, and one for those that are there."""
    answer = app.get("/open-apis/application/v6/scopes")
    scope_rows = (answer.body.get("data") or {}).get("scopes")
    if answer.code != 0 or not isinstance(scope_rows, list):
        return [_scopes_unknown(app, answer)]
    granted_scopes = manifest.granted_names(scope_rows)
    missing = manifest.missing_scopes(granted_scopes)
    needed_scopes = [one for one in missing if one.level != "optional" or one.without]
    settings = app.settings
    link = manifest.request_url(
        settings.domain, settings.feishu_app_id, [one.name for one in needed_scopes]
    )
    return [
        *(_missing(scope, link) for scope in needed_scopes),
        _granted_check(granted_scopes, missing),
    ]


def _missing(scope: manifest.Scope, link: str) -> Check:
    say = fail if scope.level == "required" else warn
    loss = scope.without or scope.purpose
    return say(
        "scope",
        f"{scope.name} is not granted: {loss.en}; request it, then publish a version.",
        f"未获授权：{scope.name}（{loss.zh}）；请申请后发布版本。",
        link=link,
    )


def _granted_check(granted_scopes: Collection[str], missing: list[manifest.Scope]) -> Check:
    total = len(manifest.SCOPES)
    count, en, zh = total - len(missing), "", ""
    if included_names := [one.name for one in manifest.included_scopes(granted_scopes)]:
        en = f"; included in broader ones: {', '.join(included_names)}"
        zh = f"；已包含在其他权限中：{'、'.join(included_names)}"
    if declined_scopes := [one for one in missing if one.level == "optional" and not one.without]:
        names = [f"{one.name} ({one.purpose.en})" for one in declined_scopes]
        names_zh = [f"{one.name}（{one.purpose.zh}）" for one in declined_scopes]
        en += f"; optional and absent: {'; '.join(names)}"
        zh += f"；可选但未授权：{'；'.join(names_zh)}"
    return ok("scopes", f"{count} of {total} granted{en}.", f"已授权 {count}/{total}{zh}。")


def _scopes_unknown(app: FeishuApp, answer: HttpAnswer) -> Check:
    if answer.code in _APP_OFF:
        return fail(
            "scopes",
            f"The app is not installed in this tenant (code {answer.code}): publish a version.",
            f"该应用未安装到本租户（code {answer.code}）：请发布版本。",
            link=app.page("version"),
        )
    return unknown(
        "scopes",
        f"Feishu doesn't say which scopes are granted (code {answer.code}): look in the "
        "developer console.",
        f"飞书没有返回已授权的权限（code {answer.code}）：请在开发者后台查看。",
        link=app.page("auth"),
    )


def connections_online(app: FeishuApp) -> int | None:
    """How many long connections of the app there are; None when Feishu does not say."""
    answer = app.get("/open-apis/event/v1/connection")
    count = (answer.body.get("data") or {}).get("online_instance_cnt")
    return count if answer.code == 0 and isinstance(count, int) else None


def connections_check(app: FeishuApp) -> Check:
    """How many long connections are online, against what the transport of the settings expects."""
    count = connections_online(app)
    if count is None:
        return unknown(
            "connections",
            "Feishu doesn't say how many long connections are online.",
            "飞书没有返回在线的长连接数。",
        )
    if app.settings.long_connection:
        return _expected_scopes_check(app, count)
    if count:
        return warn(
            "connections",
            f"{count} long connections of this app are online although FEISHU_TRANSPORT is "
            "webhook: if the console is set to them, events go there.",
            f"FEISHU_TRANSPORT 是 webhook，但本应用有 {count} 个长连接在线："
            "若后台选择了长连接，事件会发到那里。",
            link=app.page("event"),
        )
    return ok("connections", "No long connection is online, as it should be with a webhook.",
              "没有长连接在线，使用 webhook 时应当如此。")  # fmt: skip


def _expected_scopes_check(app: FeishuApp, count: int) -> Check:
    if count == 0:
        return fail(
            "connections",
            "No long connection is online: start the bot; then choose “persistent connection” on "
            "both tabs of Events & Callbacks.",
            "没有在线的长连接：请启动机器人；然后在“事件与回调”的两个标签页都选择“长连接”。",
            link=app.page("event"),
        )
    if count > 1:
        return warn(
            "connections",
            f"{count} long connections are online, and each event goes to one of them: stop what "
            "is not this bot.",
            f"有 {count} 个长连接在线，每个事件只会发到其中一个：请停掉不属于本机器人的进程。",
        )
    return ok("connections", "One long connection is online.", "有 1 个长连接在线。")


def clock_check(header: str, now: datetime) -> Check:
    """`header`: the Date of an answer of Feishu's that came just now; "" when there was none."""
    try:
        theirs = parsedate_to_datetime(header)
    except ValueError:
        return unknown("clock", "Feishu didn't say what time it is.", "飞书没有返回时间。")
    theirs = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    off = (now - theirs).total_seconds()
    seconds = f"{abs(off):,.0f} s"
    if abs(off) < _FAST_S:
        return ok("clock", "This machine's clock agrees with Feishu's.", "本机时间与飞书一致。")
    en = f"This machine is {seconds} {'ahead of' if off > 0 else 'behind'} Feishu: switch NTP on."
    zh = f"本机时间比飞书{'快' if off > 0 else '慢'} {seconds}：请启用 NTP。"
    say = fail if abs(off) > _WRONG_S else warn
    return say("clock", en, zh, command="timedatectl set-ntp true")
