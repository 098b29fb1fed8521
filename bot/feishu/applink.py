"""Links that open Feishu's client. Pure. Source: Feishu, AppLink protocol, “Open a chat page”.

A link opens a chat of which its reader is a member. The protocol documents none that opens a chat
at one message.
"""

from __future__ import annotations

from urllib.parse import quote


def applink(feishu_domain: str) -> str:
    """Where links to chats begin."""
    lark = "larksuite" in feishu_domain
    return f"https://applink.{'larksuite.com' if lark else 'feishu.cn'}/client/chat/open"


def chat_link(applink: str, chat_id: str) -> str:
    """The link to a chat; `applink` as above."""
    return f"{applink}?openChatId={quote(chat_id, safe='')}"
