"""REST views of messages, reactions and resources (open.feishu.cn, im-v1)."""

import base64
from typing import Any

from flask import Response, request

from sandbox.errors import ApiError
from sandbox.http import current_platform, draft, json_body, part_of_form
from sandbox.world.entities import P2P, Resource, new_id
from sandbox.world.wire import rest_message, rest_messages

# Source: open.feishu.cn, im-v1/file/create and im-v1/image/create.
MOST_FILE = 30 * 1024 * 1024
MOST_IMAGE = 10 * 1024 * 1024
FILE_TYPES = frozenset({"opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"})


def create_message() -> dict[str, Any]:
    """POST /im/v1/messages?receive_id_type="""
    platform, body = current_platform(), json_body()
    receive_id = str(body.get("receive_id", ""))
    id_type = request.args.get("receive_id_type", "")
    message = platform.messenger.send(receive_id, id_type, draft(body))
    return rest_message(platform.world, message)


def reply_message(message_id: str) -> dict[str, Any]:
    """POST /im/v1/messages/:id/reply"""
    platform, body = current_platform(), json_body()
    message = platform.messenger.reply(
        message_id, draft(body), reply_in_thread=body.get("reply_in_thread", False)
    )
    return rest_message(platform.world, message)


def patch_message(message_id: str) -> dict[str, Any]:
    """PATCH /im/v1/messages/:id (cards)"""
    platform, body = current_platform(), json_body()
    size = len(request.get_data())
    platform.messenger.patch(message_id, body.get("content"), size)
    return {}


def delete_message(message_id: str) -> dict[str, Any]:
    """DELETE /im/v1/messages/:id (own messages)"""
    platform = current_platform()
    platform.messenger.recall(message_id)
    return {}


def get_message(message_id: str) -> dict[str, Any]:
    """GET /im/v1/messages/:id; a recalled message has `deleted` true."""
    platform = current_platform()
    message = platform.world.shared(message_id)
    if message is None:
        raise ApiError(230001)
    platform.messenger.readable_chat(message.chat_id, single=True)
    items = rest_messages(platform.world, message, original_card=_original_cards())
    return {"items": items}


def list_messages() -> dict[str, Any]:
    """GET /im/v1/messages?container_id_type=&container_id="""
    platform = current_platform()
    page, token = platform.messenger.history(request.args.to_dict())
    original = _original_cards()
    items = [rest_message(platform.world, one, original_card=original) for one in page]
    more = {"page_token": token} if token else {}
    return {"has_more": bool(token), **more, "items": items}


def send_ephemeral() -> dict[str, Any]:
    """POST /ephemeral/v1/send"""
    platform, body = current_platform(), json_body()
    message = platform.ephemeral.send(body, len(request.get_data()))
    return {"message_id": message.message_id}


def delete_ephemeral() -> dict[str, Any]:
    """POST /ephemeral/v1/delete"""
    platform, body = current_platform(), json_body()
    platform.ephemeral.delete(body.get("message_id"))
    return {}


def create_reaction(message_id: str) -> dict[str, Any]:
    """POST /im/v1/messages/:id/reactions"""
    platform, body = current_platform(), json_body()
    kind = body.get("reaction_type")
    emoji_type = kind.get("emoji_type") if isinstance(kind, dict) else None
    reaction = platform.messenger.react(message_id, emoji_type)
    return _reaction_shape(reaction.reaction_id, reaction.action_ms, reaction.emoji_type)


def delete_reaction(message_id: str, reaction_id: str) -> dict[str, Any]:
    """DELETE /im/v1/messages/:id/reactions/:reaction_id"""
    platform = current_platform()
    reaction = platform.messenger.unreact(message_id, reaction_id)
    return _reaction_shape(reaction_id, reaction.action_ms, reaction.emoji_type)


def get_resource(message_id: str, file_key: str) -> Response:
    """GET /im/v1/messages/:id/resources/:file_key?type=image|file"""
    platform = current_platform()
    if request.args.get("type") not in ("image", "file"):
        raise ApiError(234001)
    message = platform.messenger.living(message_id)
    chat = platform.messenger.open_chat(message.chat_id)
    if chat.mode != P2P and platform.world.switches.secret_chats:
        raise ApiError(234038)
    if message.msg_type in ("interactive", "merge_forward", "sticker"):
        raise ApiError(234043)
    found = platform.world.resources.get(file_key)
    if found is None or found.message_id != message_id:
        raise ApiError(234003)
    answer = Response(base64.b64decode(found.data), content_type=found.mime)
    answer.headers["Content-Disposition"] = "attachment"
    return answer


def upload_image() -> dict[str, Any]:
    """POST /im/v1/images (multipart: image_type, image)"""
    platform = current_platform()
    upload, mime = part_of_form("image")
    if upload is None or request.form.get("image_type") not in ("message", "avatar"):
        raise ApiError(234001)
    data = _uploaded(upload, MOST_IMAGE)
    resource = Resource(new_id("img_v3_"), mime or "image/png", data)
    platform.world.put(resource)
    return {"image_key": resource.key}


def upload_file() -> dict[str, Any]:
    """POST /im/v1/files (multipart: file_type, file_name, file)"""
    platform = current_platform()
    (upload, _), name = part_of_form("file"), request.form.get("file_name", "")
    if upload is None or not name or request.form.get("file_type") not in FILE_TYPES:
        raise ApiError(234001)
    data = _uploaded(upload, MOST_FILE)
    resource = Resource(new_id("file_v3_"), "application/octet-stream", data, name=name)
    platform.world.put(resource)
    return {"file_key": resource.key}


def _uploaded(data: bytes, most: int) -> str:
    if not data:
        raise ApiError(234010)
    if len(data) > most:
        raise ApiError(234006)
    return base64.b64encode(data).decode()


def _reaction_shape(reaction_id: str, action_ms: int, emoji_type: str) -> dict[str, Any]:
    operator = {"operator_id": current_platform().config.app_id, "operator_type": "app"}
    return {
        "reaction_id": reaction_id,
        "operator": operator,
        "action_time": str(action_ms),
        "reaction_type": {"emoji_type": emoji_type},
    }


def _original_cards() -> bool:
    return request.args.get("card_msg_content_type") == "user_card_content"
