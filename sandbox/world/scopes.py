"""The scopes that an app can be granted, and which of them an event or a call needs.

Source: “required scopes” on the page of each API and event on open.feishu.cn. Any one of
those listed is enough. Messages of groups also need im:message.group_msg, and say so with 230027.
"""

from collections.abc import Collection

# What an administrator can grant, in English and Chinese. All but `EXTRA` are granted at first.
SCOPES: dict[str, tuple[str, str]] = {
    "im:message.p2p_msg:readonly": ("Receive private messages", "接收单聊消息"),
    "im:message.group_at_msg:readonly": ("Receive mentions in groups", "接收群里 @ 机器人的消息"),
    "im:message.group_msg": (
        "Receive and read all messages of its groups",
        "接收和读取所在群的全部消息",
    ),
    "im:message.group_at_msg.include_bot:readonly": (
        "Receive mentions by other bots",
        "接收其他机器人 @ 它的消息",
    ),
    "im:message.group_msg.include_bot:read": (
        "Receive all messages of other bots",
        "接收其他机器人的全部消息",
    ),
    "im:message:send_as_bot": ("Send, edit and recall its messages", "发送、编辑和撤回自己的消息"),
    "im:message:readonly": (
        "Read messages; of groups with group_msg",
        "读取消息（群消息还需要 group_msg）",
    ),
    "im:message.reactions:read": ("Hear of reactions", "接收表情回复"),
    "im:message.reactions:write_only": ("Add reactions", "添加表情回复"),
    "im:resource": ("Upload files and pictures", "上传文件和图片"),
    "im:chat:readonly": ("Read groups and their members", "读取群信息和群成员"),
    "im:chat.members:read": ("Read members of groups", "读取群成员"),
    "im:chat.members:bot_access": ("Hear of joining and leaving groups", "接收机器人进群、退群"),
    "im:chat.access_event.bot_p2p_chat:read": (
        "Hear who opens the private chat",
        "接收用户打开单聊",
    ),
    "contact:user.basic_profile:readonly": ("Read names of people", "读取成员姓名"),
    "contact:contact.base:readonly": ("Read people's profiles", "读取成员的个人信息"),
    "cardkit:card:write": ("Create and stream cards", "创建和流式更新卡片"),
    "speech_to_text:speech": ("Recognise speech", "识别语音"),
    "auth:user_access_token:read": (
        "Hear who revoked their approval",
        "接收用户撤销授权的事件",
    ),
    "docs:document.comment:read": (
        "Hear of and read comments in documents",
        "接收和读取云文档中的评论",
    ),
    "docs:document.comment:create": ("Reply to comments in documents", "回复云文档中的评论"),
    "docs:document.comment:delete": ("Delete its comments", "删除自己的评论"),
    "docs:document.content:read": ("Read the content of documents", "查看云文档内容"),
    "docx:document:readonly": ("Read documents", "查看新版文档"),
    "sheets:spreadsheet:readonly": ("Read sheets", "查看、评论和导出电子表格"),
    "im:message": ("Send and read messages (broad)", "收发消息（包含其他消息权限）"),
    "im:chat:read": ("Read groups", "读取群信息"),
    "im:chat": ("Read and change groups (broad)", "读取和修改群（包含其他群权限）"),
}
EXTRA = frozenset({"im:message", "im:chat", "im:chat:read"})

ALL_GROUP_MESSAGES = "im:message.group_msg"
MENTIONS_BY_BOTS = "im:message.group_at_msg.include_bot:readonly"
MESSAGES_OF_BOTS = "im:message.group_msg.include_bot:read"

PRIVATE_MESSAGES = ("im:message.p2p_msg:readonly", "im:message.p2p_msg")
GROUP_MESSAGES = (ALL_GROUP_MESSAGES, "im:message.group_msg:readonly")
MENTIONS = (
    "im:message.group_at_msg:readonly",
    "im:message.group_at_msg",
    MENTIONS_BY_BOTS,
    *GROUP_MESSAGES,
)

SEND = ("im:message", "im:message:send_as_bot", "im:message:send")
CHANGE = ("im:message", "im:message:send_as_bot", "im:message:update")
RECALL = ("im:message", "im:message:recall", "im:message:send_as_bot")
READ = ("im:message", "im:message:readonly")
HISTORY = (*READ, "im:message.history:readonly")
UPLOAD = ("im:resource", "im:resource:upload")
REACT = ("im:message", "im:message.reactions:write_only")
REACTIONS = ("im:message.reactions:read", "im:message:readonly")
CHAT = ("im:chat", "im:chat:read", "im:chat:readonly")
MEMBERS = ("im:chat", "im:chat:readonly", "im:chat.members:read", "im:chat.group_info:readonly")
MEMBER_EVENTS = ("im:chat", "im:chat.members:read", "im:chat:readonly")
BOT_EVENTS = ("im:chat", "im:chat.members:bot_access", "im:chat:readonly")
SPEECH = ("speech_to_text:speech",)
PEOPLE = (
    "contact:contact.base:readonly",
    "contact:contact:access_as_app",
    "contact:contact:readonly",
    "contact:contact:readonly_as_app",
)
NAMES = ("contact:user.basic_profile:readonly",)
CARDKIT = ("cardkit:card:write",)

# im.message.receive_v1 depends on the message as well; see `Actors`.
EVENTS: dict[str, tuple[str, ...]] = {
    "im.message.recalled_v1": READ,
    "im.message.reaction.created_v1": REACTIONS,
    "im.message.reaction.deleted_v1": REACTIONS,
    "im.chat.member.bot.added_v1": BOT_EVENTS,
    "im.chat.member.bot.deleted_v1": BOT_EVENTS,
    "im.chat.member.user.added_v1": MEMBER_EVENTS,
    "im.chat.member.user.deleted_v1": MEMBER_EVENTS,
    "im.chat.member.user.withdrawn_v1": MEMBER_EVENTS,
    "im.chat.updated_v1": CHAT,
    "im.chat.disbanded_v1": CHAT,
    "drive.notice.comment_add_v1": ("docs:document.comment:read",),
}


def suffice(granted: Collection[str], any_of: Collection[str]) -> bool:
    """Whether `granted` holds one of the scopes; where none is needed, it does."""
    return not any_of or any(scope in granted for scope in any_of)
