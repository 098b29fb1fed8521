"""System messages: a template and the names that fill it, no ids. Pure.

Source: open.feishu.cn, im-v1/message/message-content-description, which shows one template, in
English though the names are Chinese. Apps report the others of `TEMPLATES`, templates in Chinese,
some whose names are not told (`{old_group_name}`), and blank ones.
"""

import json
import re
from collections.abc import Sequence

STARTED = "started"
INVITED = "invited"
REMOVED = "removed"
JOINED = "joined"
LEFT = "left"
RENAMED = "renamed"
BLANK = "blank"

# By what happened: in English, in Chinese.
TEMPLATES: dict[str, tuple[str, str]] = {
    STARTED: ("{from_user} started the group chat.", "{from_user} 创建了群聊"),
    INVITED: (
        "{from_user} invited {to_chatters} to this chat.",
        "{from_user} 邀请 {to_chatters} 加入了群聊",
    ),
    REMOVED: (
        "{from_user} removed {to_chatters} from this chat.",
        "{from_user} 将 {to_chatters} 移出了群聊",
    ),
    JOINED: (
        "{to_chatters} joined this chat via the group link shared by {from_user}.",
        "{to_chatters} 通过 {from_user} 分享的群链接加入了群聊",
    ),
    LEFT: ("{from_user} left this chat.", "{from_user} 退出了群聊"),
    RENAMED: (
        '{from_user} updated the group name from "{old_group_name}" to "{group_name}".',
        "{from_user} 将群名称由“{old_group_name}”修改为“{group_name}”",
    ),
    BLANK: (" ", " "),
}
_SLOT = re.compile(r"\{(\w*)\}")


def system_content(
    what: str, from_user: Sequence[str], to_chatters: Sequence[str] = (), *, chinese: bool = False
) -> str:
    """The content of a message that says what happened."""
    value = {
        "template": TEMPLATES[what][chinese],
        "from_user": list(from_user),
        "to_chatters": list(to_chatters),
        "divider_text": {},
    }
    return json.dumps(value, ensure_ascii=False)


def system_text(content: str) -> str:
    """The template with its names, for the page; what is not told is `…`."""
    try:
        value = json.loads(content)
        template = str(value["template"])
    except (ValueError, KeyError, TypeError):
        return ""

    def told(slot: re.Match[str]) -> str:
        names = value.get(slot[1])
        return ", ".join(map(str, names)) if isinstance(names, list) and names else "…"

    return _SLOT.sub(told, template)
