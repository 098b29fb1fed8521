"""Whether people can connect their account: the key that seals their tokens."""

from __future__ import annotations

from collections.abc import Mapping

from bot.text.languages import Sentence
from memory.sealing import new_key
from scripts.connecting.talk import Talk, Unanswered

_WHETHER = Sentence(
    "Let people connect their account, so that the bot can read documents as them "
    "(makes USER_TOKEN_KEY)",
    "允许成员连接账号，让机器人以其身份读取文档（生成 USER_TOKEN_KEY）",
)


def choose(talk: Talk, given: str, kept: Mapping[str, str]) -> dict[str, str]:
    """The variable to write down; none to leave all as it is. `given`: yes or no, "" to ask; nobody
    there to be asked: no."""
    if kept.get("USER_TOKEN_KEY") or not (given or talk.asks):
        return {}
    try:
        wanted = given == "yes" if given else talk.confirmed(_WHETHER)
    except Unanswered:
        return {}
    return {"USER_TOKEN_KEY": new_key()} if wanted else {}
