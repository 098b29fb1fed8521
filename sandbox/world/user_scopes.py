"""The scopes that a person can grant to the app, and which of them a call as that person needs.

Source: “required scopes” on the page of each API on open.feishu.cn: any one of those listed is
enough. A person can grant what an administrator has opened to the app for people's tokens.
"""

OFFLINE = "offline_access"

# In English and Chinese, for the page where people approve.
USER_SCOPES: dict[str, tuple[str, str]] = {
    OFFLINE: ("Stay connected without asking again", "保持授权，无需重复确认"),
    "docs:document.content:read": ("View the content of documents", "查看云文档内容"),
    "docx:document:readonly": ("View documents", "查看新版文档"),
    "docs:document.comment:read": ("View comments in documents", "获取云文档中的评论"),
    "docs:permission.setting:read": ("See how documents are shared", "查询云文档权限设置"),
    "docs:permission.member:retrieve": (
        "See the collaborators of documents",
        "查看云文档的协作者列表",
    ),
    "docs:permission.member:auth": (
        "Check whether you may open a document",
        "判断当前用户是否有云文档权限",
    ),
    "wiki:node:read": ("View pages of the wiki", "查看知识空间节点信息"),
    "sheets:spreadsheet:readonly": ("View sheets", "查看、评论和导出电子表格"),
    "bitable:app:readonly": ("View Bases", "查看、评论和导出多维表格"),
    "base:app:read": ("View what a Base is", "获取多维表格信息"),
    "base:table:read": ("View the tables of a Base", "获取数据表信息"),
    "base:field:read": ("View the fields of a Base", "获取字段信息"),
    "base:record:retrieve": ("View the records of a Base", "根据条件搜索记录"),
    "search:docs:read": ("Search documents", "搜索云文档"),
    "calendar:calendar:readonly": (
        "View calendars, events and free/busy",
        "获取日历、日程及忙闲信息",
    ),
    "calendar:calendar.free_busy:read": ("View free/busy", "读取日历忙闲信息"),
    "calendar:calendar.event:create": ("Create events", "创建日程"),
    "calendar:calendar.event:update": ("Change events", "更新日程"),
    "calendar:calendar.event:delete": ("Delete events", "删除日程"),
    "task:task:read": ("View tasks", "查看任务信息"),
    "task:task:write": ("View, create, change and delete tasks", "查看、创建、更新、删除任务"),
    "contact:user.employee_id:readonly": ("See your user ID", "获取用户 user ID"),
}

# Any one of them opens the calls that read; broad scopes are listed as the pages name them.
CONTENT = ("docs:document.content:read",)
DOCX = ("docx:document", "docx:document:readonly")
WIKI = ("wiki:node:read", "wiki:wiki", "wiki:wiki:readonly")
COMMENTS = (
    "docs:doc", "docs:doc:readonly", "docs:document.comment:read", "drive:drive",
    "drive:drive:readonly", "sheets:spreadsheet", "sheets:spreadsheet:readonly",
)  # fmt: skip
COMMENT_THREADS = ("docs:document.comment:read", "drive:drive", "drive:drive:readonly")
COMMENT = (
    "docs:doc", "docs:doc:readonly", "docs:document.comment:create", "drive:drive",
    "drive:drive:readonly", "sheets:spreadsheet", "sheets:spreadsheet:readonly",
)  # fmt: skip
DELETE_COMMENT = (
    "docs:doc", "docs:doc:readonly", "docs:document.comment:delete",
    "docs:document.comment:write_only", "drive:drive", "drive:drive:readonly",
    "sheets:spreadsheet", "sheets:spreadsheet:readonly",
)  # fmt: skip
SHEETS = (
    "drive:drive", "drive:drive:readonly", "sheets:spreadsheet", "sheets:spreadsheet:readonly",
)  # fmt: skip
BASE_APP = ("base:app:read", "bitable:app", "bitable:app:readonly")
BASE_TABLES = ("base:table:read", "bitable:app", "bitable:app:readonly")
BASE_FIELDS = ("base:field:read", "bitable:app", "bitable:app:readonly")
BASE_RECORDS = ("base:record:retrieve", "bitable:app", "bitable:app:readonly")
LINK_SHARING = (
    "wiki:wiki", "docs:doc", "docs:permission.setting:read", "docx:document", "drive:drive",
    "drive:drive:readonly", "drive:file", "sheets:spreadsheet", "bitable:bitable",
)  # fmt: skip
COLLABORATORS = (
    "bitable:app", "wiki:wiki", "docs:doc", "docs:permission.member:retrieve", "drive:drive",
    "sheets:spreadsheet", "bitable:bitable",
)  # fmt: skip
OWN_PERMISSION = (
    "bitable:app", "wiki:wiki", "docs:doc", "docs:permission.member:auth", "drive:drive",
    "sheets:spreadsheet", "bitable:bitable",
)  # fmt: skip
SEARCH = ("search:docs:read",)
PRIMARY_CALENDAR = ("calendar:calendar:read", "calendar:calendar:readonly")
FREE_BUSY = (
    "calendar:calendar", "calendar:calendar.free_busy:read", "calendar:calendar:readonly",
)  # fmt: skip
READ_EVENTS = ("calendar:calendar", "calendar:calendar.event:read", "calendar:calendar:readonly")
CREATE_EVENTS = ("calendar:calendar", "calendar:calendar.event:create")
CHANGE_EVENTS = ("calendar:calendar", "calendar:calendar.event:update")
DELETE_EVENTS = ("calendar:calendar", "calendar:calendar.event:delete")
READ_TASKS = ("task:task:read", "task:task:write")
WRITE_TASKS = ("task:task:write", "task:task:writeonly")
DELETE_TASKS = ("task:task:write",)

# Events of people's tokens, with the scopes of the app of which they need one.
USER_EVENTS: dict[str, tuple[str, ...]] = {
    "auth.user_access_token.revoked_v4": ("auth:user_access_token:read",),
}
