"""REST views of who can read a document (open.feishu.cn, drive-v2 permission-public, drive-v1
permission-member). A viewer may be kept from looking: 1063004."""

from flask import Response, request

from sandbox.errors import ApiError
from sandbox.http import current_platform, done
from sandbox.views.documents import caller
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import ACTIONS, BASE, DOCX, SHEET, WIKI, member_shape


def public_permission(token: str) -> Response:
    """GET /drive/v2/permissions/:token/public?type"""
    document = _shown(token)
    outside = document.link.startswith(("anyone_", "partner_"))
    shape = {
        "external_access_entity": "open" if outside else "closed",
        "security_entity": "anyone_can_view",
        "comment_entity": "anyone_can_view",
        "share_entity": "anyone",
        "manage_collaborator_entity": document.manage,
        "link_share_entity": document.link,
        "copy_entity": "anyone_can_view",
        "lock_switch": False,
    }
    return done({"permission_public": shape})


def permission_members(token: str) -> Response:
    """GET /drive/v1/permissions/:token/members?type; the owner is one of them."""
    document, fields = _shown(token), request.args.get("fields", "").split(",")
    owner = {"member_type": "openid", "member_id": document.owner, "perm": "full_access"}
    items = [member_shape(one, fields) for one in (owner, *document.members)]
    return done({"items": items})


def may_view(token: str) -> Response:
    """GET /drive/v1/permissions/:token/members/auth?type&action, for whoever calls alone."""
    action, platform = request.args.get("action", ""), current_platform()
    with platform.world.lock:
        document, library = _found(token), platform.library
        if action == "share":
            result = library.may_look_at_permissions(document, caller())
        elif action in ACTIONS:
            result = library.may(document, caller(), ACTIONS[action])
        else:
            raise ApiError(1063001)
    return done({"auth_result": result})


def _shown(token: str) -> SandboxDocument:
    platform = current_platform()
    with platform.world.lock:
        document = _found(token)
        if not platform.library.may_look_at_permissions(document, caller()):
            raise ApiError(1063004, status=403)
        return document


def _found(token: str) -> SandboxDocument:
    kind = request.args.get("type", "")
    if kind not in (DOCX, SHEET, BASE, WIKI):
        raise ApiError(1063001)
    document = current_platform().library.find(token, kind)
    if document is None:
        raise ApiError(1063001)
    if document.deleted:
        raise ApiError(1063005, status=404)
    return document
