"""Links that open Feishu's client. Pure. Source: Feishu, AppLink protocol, “Open a chat page”.

A link opens a chat of which its reader is a member. The protocol's page has none that opens a chat
at one message; the links that Feishu gives with messages (`message_app_link`) add `position`, which
its computer clients follow and its phones overlook: they open the chat.
"""

from __future__ import annotations

from urllib.parse import quote


def applink(feishu_domain: str) -> str:
    """Where links to chats begin."""
    lark = "larksuite" in feishu_domain
    return f"https://applink.{'larksuite.com' if lark else 'feishu.cn'}/client/chat/open"


def chat_link(applink: str, chat_id: str, position: int = 0) -> str:
    """The link to a chat, at its message of that `position`; `applink` as above."""
    at = f"&position={position}" if position > 0 else ""
    return f"{applink}?openChatId={quote(chat_id, safe='')}{at}"
