"""Delivers one card: the text that is marked as sent is the text that was sent. A card that Feishu
refuses is simplified step by step, always in the same way.

A card Feishu refuses is degraded step by step, always the same way, so that a turn resumed after a
crash repeats the same steps with the same uuids and Feishu answers with the first message.

Source: Feishu, "Generic error codes" (11235), "Send message" (230018), "FAQ" of messages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from bot.feishu import cards, drawable_markdown, markup
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Action, FeishuError
from bot.feishu.other_events import CommentPlace
from bot.files.writing import file_bytes, is_image
from bot.outbox.texts import say, say_both
from bot.process import metrics
from bot.text.languages import language_of

log = structlog.get_logger()
REPLACING = 10  # beyond the versions that the steps below count up to
_STEPS = 9
_PERSON = "ou_"
_FINAL = frozenset(
    {
        Action.TERMINAL_MESSAGE,
        Action.TERMINAL_CHAT,
        Action.TERMINAL_USER,
        Action.WITHOUT_THREAD,
        Action.DEGRADE,
        Action.SPLIT,
        Action.REJECTED,
        Action.NEUTRAL_TEXT,
    }
)

AT_ALL = "<at id=all></at>"
_ONLY_ADMINS = 11235
_GROUP_SETTING = 230018  # does not say which setting: without the mention it may be taken
_SAYS_SO = re.compile(r"(?:mention|at|@)\s*@?all\b|@所有人", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """The message to reply to; "" where the card stands in the chat by itself. The `chat_id` of
    somebody whose p2p chat is not known is their open_id. `in_place`: that message is a card of
    the bot's, and the first card takes its place."""

    message_id: str
    chat_id: str
    in_thread: bool
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """One person: beside what is said in the group `chat_id`, where only they see it; where Feishu
    does not do that, and without a group, in p2p."""

    open_id: str
    chat_id: str = ""


@dataclass(frozen=True, slots=True)
class InComment:
    """A thread of comments in a document, and in it the reply that is answered."""

    place: CommentPlace
    reply_id: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was sent: its final text and Feishu's message_id. `aside`: to one person of a group."""

    content: str
    message_id: str
    aside: bool = False


class Undeliverable(Exception):
    """Feishu will never take this reply here; `reason` is a code, without message text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Attempt:
    content: str
    in_thread: bool = False
    aside: bool = False
    in_place: bool = False
    version: int = 0
    msg_type: str = "interactive"
    resource: str = ""
    asked: str | None = None
    foot: cards.CardFoot | None = None


async def deliver(
    feishu: FeishuClient,
    target: Target | Aside,
    *,
    turn_id: str,
    chunk: int,
    content: str,
    names: Mapping[str, str],
    buttons: Sequence[cards.Button] = (),
    version: int = 0,
    file: Mapping[str, Any] | None = None,
    question: str | None = None,
    foot: cards.CardFoot | None = None,
) -> Delivered:
    """Sends one card, or `file` in its place: a sentence where Feishu does not take that.

    Raises `Undeliverable`, or a failure that is worth another attempt.

    `names`: open_id → name of people in at-tags, for when a tag must become plain. A card that ends
    as plain text has no `buttons`, and no `foot`. `version` is `REPLACING` when a card was sent and
    withdrawn. Only a card beside a group has no uuid: repeated, it is there twice.
    """
    attempt = replace(_first_attempt(target, content, version), asked=question, foot=foot)
    attempt = replace(attempt, in_place=attempt.in_place and chunk == 0 and not file)
    if file:
        attempt = await _with_file(feishu, attempt, file)
    for _ in range(_STEPS):
        try:
            message_id = await _send(feishu, target, attempt, buttons, turn_id, chunk)
        except FeishuError as error:
            metrics.FEISHU_ERRORS.labels(code=error.code).inc()
            log.warning(
                "delivery.refused",
                turn_id=turn_id,
                chunk=chunk,
                code=error.code,
                sub_code=error.sub_code,
                log_id=error.log_id,
                action=error.action.value,
            )
            attempt = _next(attempt, error, names)
        else:
            return Delivered(attempt.content, message_id, aside=attempt.aside)
    raise Undeliverable("no form of the reply was accepted")


async def _with_file(feishu: FeishuClient, attempt: _Attempt, file: Mapping[str, Any]) -> _Attempt:
    """Uploads the file; repeated after a crash it is another resource, and the same message."""
    try:
        data = await asyncio.to_thread(file_bytes, file)
        if is_image(file):
            key, msg_type = {"image_key": await feishu.upload_image(data)}, "image"
        else:
            key, msg_type = {"file_key": await feishu.upload_file(file["name"], data)}, "file"
    except FeishuError as error:
        if error.action.passes_by_itself:
            raise
        log.warning("delivery.file_refused", code=error.code, log_id=error.log_id)
        notice = say_both("file-not-sent", name=file["name"])
        return replace(attempt, content=notice, msg_type="text")
    return replace(attempt, msg_type=msg_type, resource=json.dumps(key))


def _first_attempt(target: Target | Aside, content: str, version: int) -> _Attempt:
    if isinstance(target, Aside):
        return _Attempt(content, aside=bool(target.chat_id), version=version)
    return _Attempt(content, in_thread=target.in_thread, in_place=target.in_place, version=version)


async def _send(
    feishu: FeishuClient,
    target: Target | Aside,
    attempt: _Attempt,
    buttons: Sequence[cards.Button],
    turn_id: str,
    chunk: int,
) -> str:
    """The message_id of what was sent."""
    uuid = cards.reply_uuid(turn_id, chunk, attempt.version)
    element = cards.answer_id(turn_id, chunk)
    card = cards.answer_card(
        attempt.content,
        element_id=element,
        buttons=buttons,
        asked_text=attempt.asked,
        foot=attempt.foot,
    )
    if attempt.resource:
        content = attempt.resource
    elif attempt.msg_type == "interactive":
        content = cards.card_content(card)
    else:
        content = cards.text_content(attempt.content)
    if isinstance(target, Aside):
        if attempt.aside:
            return await feishu.send_ephemeral(target.chat_id, target.open_id, card)
        sent_id = await feishu.send(
            target.open_id, "open_id", msg_type=attempt.msg_type, content=content, uuid=uuid
        )
        return sent_id.message_id
    if attempt.in_place:
        await feishu.patch_card(target.message_id, content)
        return target.message_id
    if not target.message_id:
        kind = "open_id" if target.chat_id.startswith(_PERSON) else "chat_id"
        sent_id = await feishu.send(
            target.chat_id, kind, msg_type=attempt.msg_type, content=content, uuid=uuid
        )
        return sent_id.message_id
    message_id = await feishu.reply(
        target.message_id,
        chat_id=target.chat_id,
        msg_type=attempt.msg_type,
        content=content,
        uuid=uuid,
        reply_in_thread=attempt.in_thread,
    )
    return message_id.message_id


def _next(attempt: _Attempt, error: FeishuError, names: Mapping[str, str]) -> _Attempt:
    """What to try after a refusal: pure, and the same on every attempt."""

    def changed(content: str, msg_type: str) -> _Attempt:
        return replace(attempt, content=content, msg_type=msg_type, version=attempt.version + 1)

    match error.action:
        case _ if attempt.aside:  # whyever it is refused there, p2p is another way
            return replace(attempt, aside=False)
        case _ if attempt.in_place:  # the card is too old or gone
            return replace(attempt, in_place=False)
        case Action.WITHOUT_THREAD if attempt.in_thread:
            return replace(attempt, in_thread=False)
        case Action.DEGRADE | Action.SPLIT | Action.REJECTED if attempt.resource:
            name = attempt.content.strip("[]").removeprefix("file: ")
            notice = say_both("file-not-sent", name=name)
            return replace(changed(notice, "text"), resource="")
        case _ if is_mention_of_all_forbidden(attempt.content, error):
            return changed(without_mention_of_all(attempt.content), attempt.msg_type)
        case action if drawable_markdown.should_drop_foot(error) and (
            attempt.foot or attempt.asked
        ):
            return replace(attempt, foot=None, asked=None, version=attempt.version + 1)
        case Action.DEGRADE | Action.SPLIT | Action.REJECTED if attempt.msg_type == "interactive":
            simpler = drawable_markdown.simpler_markdown(attempt.content, error, names)
            if simpler is not None:
                return changed(simpler, "interactive")
            return changed(markup.plain_text(attempt.content, names), "text")
        case Action.NEUTRAL_TEXT if attempt.content != (neutral := say_both("neutral")):
            return changed(neutral, "text")
        case action if action in _FINAL:
            raise Undeliverable(f"feishu {error.code}") from error
        case _:
            raise error


def is_mention_of_all_forbidden(content: str, error: FeishuError) -> bool:
    """Whether Feishu refuses the card for its mention of everybody."""
    codes = {error.code, error.sub_code}
    refuses = codes & {_ONLY_ADMINS, _GROUP_SETTING} or _SAYS_SO.search(error.msg)
    return AT_ALL in content and bool(refuses)


def without_mention_of_all(content: str) -> str:
    """The card without the mention, with one sentence on that."""
    left = content.replace(f"{AT_ALL} ", "").replace(AT_ALL, "")
    return f"{left}\n\n{say('all-not-mentioned', language_of([left]))}"
