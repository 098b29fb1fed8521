"""What people read of private look-ups, in the language of their question. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.languages import Language

# The card that offers a private answer. It does not repeat the question: nobody keeps which card
# it is, so it could not go with a question that is taken back.
OFFER: Mapping[Language, str] = {
    "zh": "你在别处告诉过我的内容，也许能帮上你刚才在群里问的问题。这条只有你能看到。",
    "en": "Something you told me elsewhere may help with what you just asked in the group. "
    "Only you can see this.",
}
SHOW: Mapping[Language, str] = {"zh": "给我看看", "en": "Show me"}
SHARE_HERE: Mapping[Language, str] = {"zh": "分享到这里", "en": "Share here"}
SHARE_THERE: Mapping[Language, str] = {"zh": "分享到群里", "en": "Share in the group"}
GONE: Mapping[Language, str] = {
    "zh": "那条消息已经不在了。",
    "en": "That message is no longer there.",
}
