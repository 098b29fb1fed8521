"""REST views of the bot, chats, members and names (open.feishu.cn, bot-v3, im-v1, contact-v3)."""

from typing import Any

from flask import Response, request

from sandbox.config import AVATAR
from sandbox.errors import ApiError
from sandbox.http import (
    current_platform,
    json_body,
    json_response,
    require_open_ids,
)
from sandbox.world.entities import BOT, P2P, Chat, SandboxPerson
from sandbox.world.scopes import SCOPES
from sandbox.world.state import World

MAX_NAMES = 10
PER_PAGE = 20
MOST_PER_PAGE = 100
_PAGE = "page-"


def bot_info() -> Response:
    """The bot under `bot`, not under `data`."""
    bot = current_platform().world.bot
    shape = {
        "activate_status": 2,
        "app_name": bot.name,
        "avatar_url": AVATAR,
        "ip_white_list": [],
        "open_id": bot.open_id,
    }
    return json_response({"code": 0, "msg": "ok", "bot": shape})


def granted_scopes() -> dict[str, Any]:
    """GET /application/v6/scopes: 1 is granted, 2 is not."""
    world = current_platform().world
    with world.lock:
        granted = world.console.granted
        items = [
            {
                "scope_name": name,
                "grant_status": 1 if name in granted else 2,
                "scope_type": "tenant",
            }
            for name in sorted(SCOPES.keys() | granted)
        ]
    return {"scopes": items}


def online_connections() -> dict[str, Any]:
    """GET /event/v1/connection"""
    platform = current_platform()
    online = platform.world.console.connections + platform.connections.count
    return {"online_instance_cnt": online}


def get_chat(chat_id: str) -> dict[str, Any]:
    """GET /im/v1/chats/:id"""
    platform = current_platform()
    world = platform.world
    chat = _chat_of_the_bot(world, chat_id)
    kinds = [one.kind for one in world.member_names(chat)]
    shape = _listed(chat, world) | {
        "name": "" if chat.mode == P2P else chat.name,
        "i18n_names": {},
        "user_manager_id_list": [],
        "bot_manager_id_list": [],
        "group_message_type": "thread" if chat.has_topics else "chat",
        "chat_mode": chat.mode,
        "chat_type": "private",
        "chat_tag": "inner",
        "user_count": str(kinds.count("user")),
        "bot_count": str(kinds.count("bot")),
    }
    if chat.mode != P2P:
        shape |= _RULES | {"at_all_permission": _at_all(world)}
    return shape


def _listed(chat: Chat, world: World) -> dict[str, Any]:
    """What both the list of chats and the chat's own page say."""
    return {
        "avatar": AVATAR,
        "name": chat.name,
        "description": "",
        "owner_id_type": "open_id",
        "owner_id": next(iter(chat.members), ""),
        "external": world.is_external(chat),
        "tenant_key": world.config.tenant_key,
        "chat_status": "dissolved" if chat.dissolved else "normal",
    }


_ORDERS = ("ByCreateTimeAsc", "ByActiveTimeDesc")
# What a group allows where nobody has changed it.
_RULES = {
    **dict.fromkeys(("add_member_permission", "edit_permission"), "all_members"),
    **dict.fromkeys(("moderation_permission", "urgent_setting"), "all_members"),
    **dict.fromkeys(("video_conference_setting", "hide_member_count_setting"), "all_members"),
    **dict.fromkeys(("join_message_visibility", "leave_message_visibility"), "only_owner"),
    "share_card_permission": "allowed",
    "membership_approval": "no_approval_required",
}


def list_chats() -> dict[str, Any]:
    """GET /im/v1/chats: the groups that the bot is in, page by page."""
    world = current_platform().world
    order = request.args.get("sort_type") or _ORDERS[0]
    if order not in _ORDERS:
        raise ApiError(232001)
    groups = [
        one
        for one in world.chats.values()
        if one.mode != P2P and world.bot.open_id in one.members and not one.dissolved
    ]
    if order == _ORDERS[1]:
        groups.sort(key=lambda one: -_active_ms(one, world))
    start, end = _page(len(groups))
    items = [{"chat_id": one.chat_id} | _listed(one, world) for one in groups[start:end]]
    return {"items": items} | _rest(end, len(groups))


def _active_ms(chat: Chat, world: World) -> int:
    """When the newest message of the chat was written; 0 where there is none."""
    said = world.by_chat.get(chat.chat_id)
    return world.messages[said[-1]].create_ms if said else 0


def _at_all(world: World) -> str:
    """Who may mention everybody in a group."""
    return "only_owner" if world.switches.all_by_owner else "all_members"


def list_members(chat_id: str) -> dict[str, Any]:
    """GET /im/v1/chats/:id/members, page by page.

    Pages are cut before the bots are left out: one may hold fewer people than were asked for.
    """
    require_open_ids(request.args.get("member_id_type") or "open_id")
    world = current_platform().world
    chat = _chat_of_the_bot(world, chat_id)
    if chat.dissolved:
        raise ApiError(232009)
    members = world.member_names(chat)
    start, end = _page(len(members))
    items = [_member(one, world) for one in members[start:end] if one.kind != BOT]
    data = {
        "items": items,
        "member_total": sum(one.kind != BOT for one in members),
    }
    return data | _rest(end, len(members))


def _chat_of_the_bot(world: World, chat_id: str) -> Chat:
    """Raises ApiError 232006 for no chat, 232011 for one that the bot is not in."""
    chat = world.chats.get(chat_id)
    if chat is None:
        raise ApiError(232006)
    if world.bot.open_id not in chat.members:
        raise ApiError(232011)
    return chat


def _page(total: int) -> tuple[int, int]:
    """Where the page that was asked for begins and ends. Raises ApiError 232001."""
    size, token = (
        request.args.get("page_size", str(PER_PAGE)),
        request.args.get("page_token"),
    )
    start = (token or f"{_PAGE}0").removeprefix(_PAGE)
    if not (size.isdigit() and 1 <= int(size) <= MOST_PER_PAGE):
        raise ApiError(232001)
    if not start.isdigit() or (token and (not token.startswith(_PAGE) or int(start) >= total)):
        raise ApiError(232001)
    return int(start), min(int(start) + int(size), total)


def _rest(end: int, total: int) -> dict[str, Any]:
    """Whether there is more than was sent, and where."""
    return {"has_more": True, "page_token": f"{_PAGE}{end}"} if end < total else {"has_more": False}


def _member(person: SandboxPerson, world: World) -> dict[str, str]:
    return {
        "member_id_type": "open_id",
        "member_id": person.open_id,
        "name": person.name,
        "tenant_key": world.tenant_of(person),
    }


def get_person(user_id: str) -> Response:
    """GET /contact/v3/users/:id, with all ids of the person. Raises ApiError 41012 for nobody."""
    world = current_platform().world
    person = world.people.get(user_id)
    if person is None or person.kind == BOT or person.tenant_key:
        raise ApiError(41012)
    sizes = ("avatar_72", "avatar_240", "avatar_640", "avatar_origin")
    user = {
        "open_id": person.open_id,
        "union_id": person.union_id,
        "user_id": person.user_id,
        "name": person.name,
        "en_name": person.en_name,
        "nickname": "",
        "avatar": dict.fromkeys(sizes, AVATAR),
        "gender": 0,
        "mobile_visible": True,
        "department_ids": ["0"],
        "leader_user_id": "",
        "status": {
            "is_frozen": False,
            "is_resigned": person.resigned,
            "is_activated": True,
            "is_exited": False,
            "is_unjoin": False,
        },
        "is_tenant_manager": False,
        "employee_type": 1,
    }
    return json_response({"code": 0, "msg": "success", "data": {"user": user}})


def basic_batch() -> dict[str, Any]:
    """POST /contact/v3/users/basic_batch: names of at most ten people; unknown ids are left out."""
    platform, ids = current_platform(), json_body().get("user_ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MAX_NAMES:
        raise ApiError(40001)
    found = [platform.world.people[one] for one in ids if one in platform.world.people]
    users = [
        {
            "user_id": one.open_id,
            "name": one.name,
            "i18n_name": {"zh_cn": one.name, "ja_jp": "", "en_us": one.en_name or one.name},
        }
        for one in found
        if one.kind == "user"
    ]
    return {"users": users}
