"""What the platform refuses, with its codes and words.

`ApiError` is the whole tree: Feishu tells callers apart by code only.
Source: the error tables of the pages under open.feishu.cn/document, im-v1, cardkit-v1,
authentication; "Generic error codes" for 9999xxxx.
"""

from collections.abc import Collection
from typing import Any

MESSAGES: dict[int, str] = {
    10002: "Your request contains an invalid request parameter.",
    10003: "invalid param",
    10014: "app secret invalid",
    11235: "This group is set to only admin can mention @All.",
    18051: "message has been deleted",
    18053: "chat can not be thread",
    40001: "param is invalid",
    41012: "user id invalid error",
    200220: "Failed to generate card content",
    200740: "The card entity does not exist",
    200770: "UUID conflict",
    200810: "The card is in an ongoing interaction and cannot be updated",
    200850: "Card streaming timeout",
    200860: "Card content exceeds limit.",
    230001: "Your request contains an invalid request parameter.",
    230002: "The bot can not be outside the group.",
    230011: "The message is recalled.",
    230020: "This operation triggers the frequency limit.",
    230025: "The length of the message content reaches its limit.",
    99991201: "The API is not played by the sandbox.",
    99991301: "The method of this API is not played by the sandbox.",
    230027: "Lack of necessary permissions",
    230026: "No permission to recall this message.",
    230031: "Message can only be modified within 14 days after sending.",
    230034: "The receive_id is invalid.",
    230054: "This operation is not supported for this message type.",
    230071: "The operator is not the sender of the message.",
    230073: "The thread is invisible to the operator.",
    231001: "reaction type is invalid.",
    231003: "The message is not found, maybe not exist or deleted.",
    231203: "The chat type is not supported.",
    231007: "The operator has no permission to delete this reaction.",
    231011: "The request has an invalid reaction_id.",
    232001: "Your request contains an invalid request parameter.",
    232006: "Your request specifies a chat_id which is invalid.",
    232009: "Your request specifies a chat which has already been dissolved.",
    232011: "Operator can NOT be out of the chat.",
    234001: "Invalid request param.",
    234003: "File not in message.",
    234006: "The file size exceeds the maximum value.",
    234010: "File's size can't be 0.",
    234038: "Do not allow downloading of message resources in restricted mode.",
    234043: "Unsupported message type.",
    300122: "Failed to update card configuration",
    300301: "Duplicate element_id in card component.",
    300302: "update_multi property is false",
    300303: "Only schema 2.0 is supported",
    300305: "The number of card components exceeds 200",
    300307: "The card DSL is empty",
    300309: "Card streaming closed",
    300310: "Only update text",
    300313: "Failed to update element properties",
    300314: "Failed to delete element",
    300315: "Failed to add element",
    300317: "The sequence number for operating on the card did not increment consecutively",
    90202: "validate RangeVal fail",
    90213: "PermissionFail",
    90214: "SpreadSheetNotFound",
    90215: "SheetIdNotFound",
    91402: "NOTEXIST",
    91403: "FORBIDDEN",
    131002: "param err",
    131005: "not found: node not found",
    131006: "permission denied: node permission denied",
    1040101: "invalid param",
    1063001: "Invalid parameter",
    1063004: "User has no share permission",
    1063005: "Resource is deleted",
    1069302: "param error",
    1069303: "forbidden",
    1069304: "docs had been deleted",
    1069307: "not exist",
    190002: "invalid parameters in request",
    190014: "invalid request parameters. check details for more info.",
    191000: "calendar not found",
    191001: "invalid calendar_id",
    191002: "no calendar access_role",
    193000: "invalid event_id",
    193001: "event not found",
    193002: "no permission to operate event",
    193003: "event is deleted",
    193103: "requested time exceeds the allowed range",
    194004: "invalid attendee type",
    195100: "user is dismiss or not exist in the tenant",
    1254001: "WrongRequestBody",
    1254041: "TableIdNotFound",
    1274001: "invalid param: missing required fields",
    1274002: "invalid param: illegal enum value",
    1310213: "Permission Fail",
    1310214: "SpreadSheet Not Found",
    1310249: "Spreadsheet Deleted",
    1470400: "Invalid Param",
    1470403: "Permission Denied",
    1470404: "Not Found",
    1470500: "Internal Server Error",
    1770001: "invalid param",
    1770002: "not found",
    1770003: "resource deleted",
    1770032: "forbidden",
    2889902: "no permission",
    2889904: "invalid param",
    2889906: "docs deleted",
    2889914: "doc token not found",
    2889925: "content size exceed limit",
    99991400: "request trigger frequency limit",
    99991661: "Missing access token for authorization. "
    "Please make a test attempt with the correct token.",
    99991663: "Invalid access token for authorization. "
    "Please make a test attempt with the correct token.",
    99991668: "Invalid access token for authorization. "
    "Please make a test attempt with the correct token.",
    99991677: "Authentication token expired",
}

# What the token endpoint says instead of `msg` (get-user-access-token, refresh-user-access-token).
DESCRIPTIONS: dict[int, str] = {
    20001: "The request is missing a required parameter.",
    20002: "The client secret is invalid.",
    20026: "The refresh token passed is invalid. Please check the value.",
    20036: "The specified grant_type is not supported.",
    20037: "The refresh token passed has expired. Please generate a new one.",
    20043: "The provided scope list contains invalid or malformed scopes. "
    "Please ensure all scopes are valid.",
    20048: "The specified app does not exist.",
    20063: "The request is malformed. Please check your request.",
    20064: "The refresh token has been revoked. "
    "Please note that a refresh token can only be used once.",
    20067: "The provided scope list contains duplicate scopes. "
    "Please ensure all scopes are unique.",
    20068: "The provided scope list contains scopes that are not permitted. "
    "Please ensure all scopes are allowed.",
    20070: "Multiple authentication methods were provided. Please only use one to proceed.",
    20073: "The refresh token has been used. "
    "Please note that a refresh token can only be used once.",
    20074: "The specified app is not allowed to refresh token.",
}
_DEVICE_GRANT = {
    "authorization_pending": "The user has not yet completed the authorization.",
    "slow_down": "The device polls too often. Please slow down.",
    "access_denied": "The user denied the authorization.",
    "expired_token": "The device code has expired.",
}


def not_played(what: str) -> "ApiError":
    """What Feishu would do and the sandbox does not: refused by its name, not ignored."""
    return ApiError(99991201, f"The sandbox does not play {what}.")


def not_an_option(name: str, value: str, options: Collection[str]) -> "ApiError":
    """99992402: a parameter has a value that is none of its options."""
    told = f"{name} is optional, options: [{','.join(options)}]"
    violation = {"field": name, "value": value, "description": told}
    error = {"field_violations": [violation]}
    return ApiError(99992402, "field validation failed", extra={"error": error})


class ApiError(Exception):
    """A refusal: `code` and `msg` of the body, HTTP status, extra headers and body fields."""

    def __init__(
        self,
        code: int,
        msg: str | None = None,
        *,
        status: int = 400,
        headers: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.code = code
        self.msg = MESSAGES.get(code, "error") if msg is None else msg
        self.status = status
        self.headers = headers or {}
        self.extra = extra or {}
        super().__init__(f"{code} {self.msg}")

    def body(self) -> dict[str, Any]:
        """The JSON body Feishu sends with this refusal."""
        return {"code": self.code, "msg": self.msg, **self.extra}


class GrantRefused(ApiError):
    """What the OAuth endpoints refuse: `error` and `error_description` in place of `msg`. The four
    answers of the device grant carry no code."""

    def __init__(self, error: str, code: int = 0) -> None:
        self.error = error
        super().__init__(code, DESCRIPTIONS.get(code) or _DEVICE_GRANT[error])

    def body(self) -> dict[str, Any]:
        """The JSON body of the OAuth endpoints."""
        coded = {"code": self.code} if self.code else {}
        return {**coded, "error": self.error, "error_description": self.msg}


def invalid(reason: str) -> ApiError:
    """230001 with the reason Feishu puts behind `ext=`."""
    return ApiError(230001, f"{MESSAGES[230001]} ext={reason}")


def card_refused(sub_code: int, reason: str, value: str = "", path: str = "") -> ApiError:
    """230099: the card was not accepted; the true code stands in the text (`ErrCode: n`)."""
    where = f"ErrPath: {path}; " if path else ""
    what = f"ErrorValue: {value}; " if value else ""
    text = (
        f"Failed to create card content, ext=ErrCode: {sub_code}; {where}ErrMsg: {reason}; {what}"
    )
    return ApiError(230099, text)


def too_fast_for_gateway(reset_s: int) -> ApiError:
    """99991400 with the header that says when to come back (seconds)."""
    headers = {"x-ogw-ratelimit-limit": "100", "x-ogw-ratelimit-reset": str(reset_s)}
    return ApiError(99991400, status=429, headers=headers)


def scope_missing(app_id: str, any_of: Collection[str], kind: str = "tenant") -> ApiError:
    """99991672: the app lacks every one of the scopes; with the link that requests them. `kind`:
    whose tokens they are for, `tenant` or `user`."""
    violations = [{"type": "action_scope_required", "subject": scope} for scope in any_of]
    names = ", ".join(any_of)
    link = f"https://open.feishu.cn/app/{app_id}/auth?q={','.join(any_of)}"
    identity = "应用" if kind == "tenant" else "用户"
    text = (
        f"Access denied. One of the following scopes is required: [{names}]."
        f"应用尚未开通所需的{identity}身份权限：[{names}]，点击链接申请并开通任一权限即可："
        f"{link}&op_from=openapi&token_type={kind}"
    )
    return ApiError(99991672, text, extra={"error": {"permission_violations": violations}})


def scope_not_approved(any_of: Collection[str], log_id: str) -> ApiError:
    """99991679: the person has approved none of the scopes (obtain-oauth-code)."""
    violations = [{"type": "action_privilege_required", "subject": scope} for scope in any_of]
    text = (
        "Unauthorized. You do not have permission to perform the requested operation on the "
        "resource. Please request user re-authorization and try again. "
        f"required one of these privileges: [{', '.join(any_of)}]"
    )
    error = {"log_id": log_id, "permission_violations": violations}
    return ApiError(99991679, text, extra={"error": error})


def scope_missing_for_group(scope: str) -> ApiError:
    """230027: a further scope is needed here; only the text names it."""
    return ApiError(230027, f"{MESSAGES[230027]}, ext=need scope: {scope}")
