"""The platform's REST interface: `/open-apis/...`.

Request and response shapes: open.feishu.cn, the page of each method. Every response carries
`X-Tt-Logid`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, current_app, g, request

from sandbox.errors import ApiError, not_played, scope_missing, scope_not_approved
from sandbox.http import (
    check_pace,
    current_platform,
    done,
    finish_call,
    json_body,
    json_response,
    new_log_id,
    note_call,
    refused,
    require_open_ids,
)
from sandbox.views import (
    agendas,
    authentication,
    cards,
    comments,
    directory,
    documents,
    messages,
    speech,
    tables,
)
from sandbox.world import scopes, user_scopes

TENANT, USER = "tenant", "user"
# Paths that look like that of one chat or person, and are calls that are not played.
_NO_IDS = ("/im/v1/chats/search", "/contact/v3/users/batch", "/contact/v3/users/find_by_department")
# Parameters of the calls below that are not played, with a value that changes nothing.
_NOT_PLAYED = {
    **dict.fromkeys(("only_thread_root_messages", "need_reaction", "need_relation")),
    **dict.fromkeys(("room_id", "event_organizer")),
    **dict.fromkeys(("description_rich", "docx_source", "positive_reminders")),
    "types": "group",
    "document_revision_id": "-1",
}
_ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
USER_TOKEN = "Bearer eyJ"  # noqa: S105 (how people's tokens begin)


@dataclass(frozen=True)
class ApiMethod:
    """One method of the platform; `scopes`: any one of them opens it, none are needed if empty.
    `user_scopes` are those that a person has to approve. `tokens`: whose it takes, if any."""

    method: str
    rule: str
    view: Callable[..., Any]
    scopes: tuple[str, ...] = ()
    user_scopes: tuple[str, ...] = ()
    tokens: tuple[str, ...] = (TENANT,)

    @property
    def name(self) -> str:
        return self.view.__name__


def open_apis() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("open_apis", __name__, url_prefix="/open-apis")
    blueprint.before_request(_before)
    blueprint.after_request(finish_call)
    blueprint.register_error_handler(ApiError, refused)
    for one in ENDPOINTS:
        blueprint.add_url_rule(one.rule, one.name, _locked(one.view), methods=[one.method])
    for rule in ("/<path:path>", *_NO_IDS):
        blueprint.add_url_rule(rule, "not_played", _not_played, methods=_ALL_METHODS)
    return blueprint


def _locked(view: Callable[..., Response | dict[str, Any]]) -> Callable[..., Response]:
    """The view under the world's lock, with what it returns under `data`."""

    def answer(**arguments: Any) -> Response:
        with current_platform().world.lock:
            found = view(**arguments)
        return done(found) if isinstance(found, dict) else found

    return answer


def issue_token() -> Response:
    """Token at the top level of the body, not under `data`."""
    platform, body = current_platform(), json_body()
    token, left_s = platform.tokens.issue(body.get("app_id"), body.get("app_secret"))
    return json_response({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": left_s})


def issue_app_token() -> Response:
    """The same token under both names, as Feishu gives it to an app of one tenant."""
    answer = issue_token()
    found = answer.get_json()
    return json_response({**found, "app_access_token": found["tenant_access_token"]})


def _not_played(path: str = "") -> Response:
    """Refuses a call that the sandbox does not play as Feishu refuses unknown paths and methods."""
    adapter = current_app.url_map.bind("")
    played = (adapter.match(request.path, method)[0] for method in _ALL_METHODS)
    is_path = bool(path) and any(endpoint != request.endpoint for endpoint in played)
    raise ApiError(99991301 if is_path else 99991201, status=404)


def _before() -> Response | None:
    if (answer := note_call()) is not None:
        return answer
    if (method := _METHODS.get(str(request.endpoint))) is None:
        return None
    require_open_ids(request.args.get("user_id_type") or "open_id")
    if method.tokens:
        with current_platform().world.lock:
            _authorise(method, request.headers.get("Authorization", ""))
            check_pace(str(request.endpoint))
    _refuse_parameters()
    return None


def _refuse_parameters() -> None:
    """Refuses by name what would change the answer of Feishu and is not played here."""
    body = request.get_json(silent=True)
    asked = {**request.args, **(body if isinstance(body, dict) else {})}
    for name in _NOT_PLAYED:
        if asked.get(name) not in (None, "", "false", False, [], _NOT_PLAYED[name]):
            raise not_played(name)


def _authorise(method: ApiMethod, authorization: str) -> None:
    """Whose token it is, in `g.user`: None is the app's. Raises ApiError."""
    platform = current_platform()
    g.user = None
    if not authorization.startswith(USER_TOKEN):
        platform.tokens.check(authorization)
        if TENANT not in method.tokens:
            raise ApiError(99991663, "tenant access token not support")
        if not platform.world.may(method.scopes):
            raise scope_missing(platform.config.app_id, method.scopes)
        return
    if USER not in method.tokens:
        raise ApiError(99991668, "user access token not support")
    g.user = platform.user_tokens.identify(authorization.removeprefix("Bearer ").strip())
    if scopes.suffice(g.user.scopes, method.user_scopes):
        return
    if not scopes.suffice(platform.user_tokens.openable, method.user_scopes):
        raise scope_missing(platform.config.app_id, method.user_scopes, USER)
    raise scope_not_approved(method.user_scopes, new_log_id())


def _document(
    method: str, rule: str, view: Callable[..., Any], any_of: tuple[str, ...]
) -> ApiMethod:
    """A call that takes either token; each needs the scope, granted to the app or by the person."""
    return ApiMethod(method, rule, view, any_of, any_of, (TENANT, USER))


def _personal(
    method: str, rule: str, view: Callable[..., Any], any_of: tuple[str, ...]
) -> ApiMethod:
    """A call that is played for people's tokens alone."""
    return ApiMethod(method, rule, view, user_scopes=any_of, tokens=(USER,))


_DOCX = "/docx/v1/documents/<document_id>"
_COMMENTS = "/drive/v1/files/<file_token>/comments"
_REPLIES = _COMMENTS + "/<comment_id>/replies"
_SHEET, _BASE = "/spreadsheets/<spreadsheet_token>", "/bitable/v1/apps/<app_token>/tables"
_CALENDARS, _TASKS = "/calendar/v4/calendars", "/task/v2/tasks"
_EVENTS = _CALENDARS + "/<calendar_id>/events"
_MESSAGES, _CARDS = "/im/v1/messages", "/cardkit/v1/cards"


ENDPOINTS = (
    ApiMethod("POST", "/auth/v3/tenant_access_token/internal", issue_token, tokens=()),
    ApiMethod("POST", "/auth/v3/app_access_token/internal", issue_app_token, tokens=()),
    ApiMethod("POST", "/authen/v2/oauth/token", authentication.oauth_token, tokens=()),
    ApiMethod("GET", "/authen/v1/user_info", authentication.user_info, tokens=(USER,)),
    ApiMethod("GET", "/bot/v3/info", directory.bot_info),
    ApiMethod("GET", "/application/v6/scopes", directory.granted_scopes),
    ApiMethod("GET", "/event/v1/connection", directory.online_connections),
    ApiMethod("POST", _MESSAGES, messages.create_message, scopes.SEND),
    ApiMethod("GET", _MESSAGES, messages.list_messages, scopes.HISTORY),
    ApiMethod("GET", _MESSAGES + "/<message_id>", messages.get_message, scopes.READ),
    ApiMethod("POST", _MESSAGES + "/<message_id>/reply", messages.reply_message, scopes.SEND),
    ApiMethod("PATCH", _MESSAGES + "/<message_id>", messages.patch_message, scopes.CHANGE),
    ApiMethod("DELETE", _MESSAGES + "/<message_id>", messages.delete_message, scopes.RECALL),
    ApiMethod(
        "POST", _MESSAGES + "/<message_id>/reactions", messages.create_reaction, scopes.REACT
    ),
    ApiMethod(
        "DELETE",
        _MESSAGES + "/<message_id>/reactions/<reaction_id>",
        messages.delete_reaction,
        scopes.REACT,
    ),
    ApiMethod(
        "GET",
        _MESSAGES + "/<message_id>/resources/<file_key>",
        messages.get_resource,
        scopes.HISTORY,
    ),
    ApiMethod("POST", "/ephemeral/v1/send", messages.send_ephemeral, scopes.CHANGE),
    ApiMethod("POST", "/ephemeral/v1/delete", messages.delete_ephemeral, scopes.CHANGE),
    ApiMethod("POST", "/im/v1/images", messages.upload_image, scopes.UPLOAD),
    ApiMethod("POST", "/im/v1/files", messages.upload_file, scopes.UPLOAD),
    ApiMethod("GET", "/im/v1/chats", directory.list_chats, scopes.CHAT),
    ApiMethod("GET", "/im/v1/chats/<chat_id>", directory.get_chat, scopes.CHAT),
    ApiMethod("GET", "/im/v1/chats/<chat_id>/members", directory.list_members, scopes.MEMBERS),
    ApiMethod("GET", "/contact/v3/users/<user_id>", directory.get_person, scopes.PEOPLE),
    ApiMethod("POST", "/contact/v3/users/basic_batch", directory.basic_batch, scopes.NAMES),
    ApiMethod("POST", _CARDS, cards.create_card, scopes.CARDKIT),
    ApiMethod("PUT", _CARDS + "/<card_id>", cards.update_card, scopes.CARDKIT),
    ApiMethod(
        "PUT",
        _CARDS + "/<card_id>/elements/<element_id>/content",
        cards.stream_text,
        scopes.CARDKIT,
    ),
    ApiMethod("PATCH", _CARDS + "/<card_id>/settings", cards.card_settings, scopes.CARDKIT),
    ApiMethod("POST", _CARDS + "/<card_id>/batch_update", cards.batch_update, scopes.CARDKIT),
    ApiMethod(
        "POST",
        "/speech_to_text/v1/speech/file_recognize",
        speech.recognise_speech,
        scopes.SPEECH,
    ),
    _document("GET", "/docs/v1/content", documents.document_content, user_scopes.CONTENT),
    _document("GET", _DOCX, documents.get_document, user_scopes.DOCX),
    _document("GET", _DOCX + "/blocks", documents.list_blocks, user_scopes.DOCX),
    _document("GET", "/wiki/v2/spaces/get_node", documents.get_node, user_scopes.WIKI),
    _document("GET", _COMMENTS, comments.list_comments, user_scopes.COMMENTS),
    _document("POST", _COMMENTS, comments.create_comment, user_scopes.COMMENT),
    _document(
        "POST", _COMMENTS + "/batch_query", comments.query_comments, user_scopes.COMMENT_THREADS
    ),
    _document("GET", _REPLIES, comments.list_replies, user_scopes.COMMENT_THREADS),
    _document("POST", _REPLIES, comments.create_reply, user_scopes.COMMENT),
    _document(
        "DELETE", _REPLIES + "/<reply_id>", comments.delete_reply, user_scopes.DELETE_COMMENT
    ),
    _document("GET", "/sheets/v3" + _SHEET, tables.get_spreadsheet, user_scopes.SHEETS),
    _document(
        "GET", "/sheets/v3" + _SHEET + "/sheets/query", tables.list_sheets, user_scopes.SHEETS
    ),
    _document("GET", "/sheets/v2" + _SHEET + "/metainfo", tables.sheet_meta, user_scopes.SHEETS),
    _document(
        "GET", "/sheets/v2" + _SHEET + "/values/<cells>", tables.sheet_values, user_scopes.SHEETS
    ),
    _document("GET", "/bitable/v1/apps/<app_token>", tables.get_base, user_scopes.BASE_APP),
    _document("GET", _BASE, tables.base_tables, user_scopes.BASE_TABLES),
    _document("GET", _BASE + "/<table_id>/fields", tables.base_fields, user_scopes.BASE_FIELDS),
    _document(
        "POST", _BASE + "/<table_id>/records/search", tables.base_records, user_scopes.BASE_RECORDS
    ),
    _document(
        "GET",
        "/drive/v2/permissions/<token>/public",
        documents.public_permission,
        user_scopes.LINK_SHARING,
    ),
    _document(
        "GET",
        "/drive/v1/permissions/<token>/members",
        documents.permission_members,
        user_scopes.COLLABORATORS,
    ),
    _document(
        "GET",
        "/drive/v1/permissions/<token>/members/auth",
        documents.may_view,
        user_scopes.OWN_PERMISSION,
    ),
    ApiMethod(
        "POST",
        "/search/v2/doc_wiki/search",
        documents.search_documents,
        user_scopes=user_scopes.SEARCH,
        tokens=(USER,),
    ),
    _personal(
        "POST", _CALENDARS + "/primary", agendas.primary_calendar, user_scopes.PRIMARY_CALENDAR
    ),
    _personal(
        "POST", _CALENDARS + "/primarys", agendas.primary_calendars, user_scopes.PRIMARY_CALENDAR
    ),
    _personal("POST", "/calendar/v4/freebusy/list", agendas.free_busy, user_scopes.FREE_BUSY),
    _personal("GET", _EVENTS + "/instance_view", agendas.instance_view, user_scopes.READ_EVENTS),
    _personal("POST", _EVENTS, agendas.create_event, user_scopes.CREATE_EVENTS),
    _personal(
        "POST",
        _EVENTS + "/<event_id>/attendees",
        agendas.add_attendees,
        user_scopes.CHANGE_EVENTS,
    ),
    _personal("DELETE", _EVENTS + "/<event_id>", agendas.delete_event, user_scopes.DELETE_EVENTS),
    _personal("POST", _TASKS, agendas.create_task, user_scopes.WRITE_TASKS),
    _personal("GET", _TASKS, agendas.list_tasks, user_scopes.READ_TASKS),
    _personal("DELETE", _TASKS + "/<task_guid>", agendas.delete_task, user_scopes.DELETE_TASKS),
)
_METHODS = {f"open_apis.{one.name}": one for one in ENDPOINTS}
