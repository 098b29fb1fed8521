"""Feishu's API as the bot uses it: one method per call, with token, pacing and retries inside.

Source: Feishu's API pages for im/v1 (messages, reactions, resources, chats), cardkit/v1, bot/v3,
contact/v3 users/basic_batch. Every method raises FeishuError, or Unreachable when the outcome is
unknown; repeating a send with the same uuid is safe for an hour.
"""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import structlog

from bot.feishu.calendars import CalendarCalls
from bot.feishu.caller import NO_RETRY, Caller, RetryPolicy, SpeechCalls
from bot.feishu.documents import CommentCalls, DocumentCalls
from bot.feishu.errors import Action, FeishuError, Unreachable
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.manifest import granted_names
from bot.feishu.models import (
    BotInfo,
    ChatInfo,
    HistoryPage,
    RawMessage,
    SentMessage,
    chat_info,
    history_page,
    members_of_page,
    raw_message,
    required_text,
    sent_message,
)
from bot.feishu.transport import (
    ApiRequest,
    Pacer,
    SharedPace,
    Timeouts,
    Transport,
    fractional_pacer,
    per_second_pacer,
)
from memory.scope import FeishuPerson

_MESSAGES = "/open-apis/im/v1/messages"
_CARDS = "/open-apis/cardkit/v1/cards"
_EPHEMERAL = "/open-apis/ephemeral/v1"
_EPHEMERAL_GONE = 18051
NAMES = "names"  # the one API here that does not count against a tenant's monthly calls
_NAMES_PER_CALL = 10
_NAMES_DENIED_S = 600
_MEMBERS_PER_PAGE = 100
_MESSAGES_PER_PAGE = 50
_OF_HISTORY = 5  # it gets one call of so many
_MOST_PAGES = 500

_log = structlog.get_logger(__name__)

ResourceType = Literal["image", "file"]


class FeishuClient:
    """One app at one domain. For one event loop; `close` when done.

    `clock` is monotonic seconds; `sleep` waits; `jitter` gives numbers in [0, 1). `pace` is what
    the app's workers share of Feishu's limits; `calls_per_second` is the limit of each API; `count`
    is told the name of each call that Feishu counts. `documents` and `calendars` are the calls as a
    person, `comments` those of comments in documents, `speech` those of the recognition.
    """

    def __init__(
        self,
        domain: str,
        app_id: str,
        app_secret: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        policy: RetryPolicy | None = None,
        pace: SharedPace | None = None,
        calls_per_second: int = 50,
        timeouts: Timeouts | None = None,
        count: Callable[[str], None] = lambda api: None,
    ) -> None:
        pace = pace or SharedPace()
        self._transport = Transport(domain, timeouts=timeouts)
        self._caller = Caller(
            self._transport,
            app_id,
            app_secret,
            clock=clock,
            sleep=sleep,
            jitter=jitter,
            policy=policy,
            app=per_second_pacer("app", calls_per_second, pace, clock=clock, sleep=sleep),
            count=count,
        )
        self.documents = DocumentCalls(self._caller, pace, clock=clock, sleep=sleep)
        self.comments = CommentCalls(self._caller, pace, clock=clock, sleep=sleep)
        self.speech = SpeechCalls(self._caller, pace, clock=clock, sleep=sleep)
        self.calendars = CalendarCalls(self._caller, pace, clock=clock, sleep=sleep)
        self._clock = clock
        self._chats = Pacer("chat", 5, pace, clock=clock, sleep=sleep)
        self._edits = Pacer("edit", 5, pace, clock=clock, sleep=sleep)
        self._lookups = Pacer("lookup", 5, pace, clock=clock, sleep=sleep)
        self._cards = Pacer("card", 10, pace, clock=clock, sleep=sleep)
        self._history = fractional_pacer(
            "history", calls_per_second, _OF_HISTORY, pace, clock=clock, sleep=sleep
        )
        self._names_denied_until = 0.0

    async def close(self) -> None:
        """Close the connections; calls still running fail."""
        await self._transport.close()

    # Who we are

    async def bot_info(self) -> BotInfo:
        """The bot's own open_id and name; needs no scope."""
        answer = await self._caller.call(
            ApiRequest("GET", "/open-apis/bot/v3/info", api="bot info")
        )
        bot = as_dict(answer.get("bot"))
        return BotInfo(required_text(bot, "open_id"), as_text(bot.get("app_name")))

    async def granted_scopes(self) -> frozenset[str]:
        """The scopes that the tenant has granted the app; needs none itself."""
        request = ApiRequest("GET", "/open-apis/application/v6/scopes", api="scopes")
        scopes = as_list(_data(await self._caller.call(request)).get("scopes"))
        return granted_names(scopes)

    # Messages

    async def reply(
        self,
        message_id: str,
        *,
        chat_id: str,
        msg_type: str,
        content: str,
        uuid: str,
        reply_in_thread: bool,
    ) -> SentMessage:
        """Reply to a message. `content` is JSON as text; `uuid` has at most 50 characters.

        `chat_id` is only for pacing. A reply to a message in a thread stays in it either way.
        """
        body = {
            "content": content,
            "msg_type": msg_type,
            "reply_in_thread": reply_in_thread,
            "uuid": uuid,
        }
        path = f"{_MESSAGES}/{_part(message_id)}/reply"
        request = ApiRequest("POST", path, body=body, api="reply")
        return sent_message(_data(await self._caller.call(request, self._chats, chat_id)))

    async def send(
        self, receive_id: str, receive_id_type: str, *, msg_type: str, content: str, uuid: str
    ) -> SentMessage:
        """Send to a chat or person. `receive_id_type` is chat_id, open_id, union_id, …"""
        query = {"receive_id_type": receive_id_type}
        body = {"receive_id": receive_id, "msg_type": msg_type, "content": content, "uuid": uuid}
        request = ApiRequest("POST", _MESSAGES, query, body, api="send")
        return sent_message(_data(await self._caller.call(request, self._chats, receive_id)))

    async def send_ephemeral(self, chat_id: str, open_id: str, card: Mapping[str, Any]) -> str:
        """Show a card to one member of an ordinary group; gives its message_id.

        Feishu takes no uuid here: a repeated call shows a second card, so it is not repeated when
        the outcome is unknown.
        """
        body = {"chat_id": chat_id, "open_id": open_id, "msg_type": "interactive", "card": card}
        request = ApiRequest("POST", f"{_EPHEMERAL}/send", body=body, api="ephemeral")
        return required_text(_data(await self._caller.call(request, policy=NO_RETRY)), "message_id")

    async def delete_ephemeral(self, message_id: str) -> None:
        """Take such a card away; one that is already gone is fine."""
        body = {"message_id": message_id}
        request = ApiRequest("POST", f"{_EPHEMERAL}/delete", body=body, api="delete ephemeral")
        try:
            await self._caller.call(request)
        except FeishuError as error:
            if error.code != _EPHEMERAL_GONE:
                raise

    async def patch_card(self, message_id: str, card_json: str) -> None:
        """Replace the card of an own message, up to 14 days old; 5 a second per message."""
        path = f"{_MESSAGES}/{_part(message_id)}"
        request = ApiRequest("PATCH", path, body={"content": card_json}, api="patch")
        await self._caller.call(request, self._edits, message_id)

    async def get_message(
        self, message_id: str, user_card_content: bool = False, *, of_history: bool = False
    ) -> list[RawMessage]:
        """The message; for a merged forward also its children, linked by `upper_message_id`.

        With `user_card_content` a card comes as the JSON that was sent. `of_history`: at the pace
        of `history_page`.
        """
        query = {"card_msg_content_type": "user_card_content"} if user_card_content else {}
        request = ApiRequest("GET", f"{_MESSAGES}/{_part(message_id)}", query, api="get message")
        pacer = self._history if of_history else None
        return _messages(_data(await self._caller.call(request, pacer, "messages")))

    async def history_page(
        self,
        container_id_type: str,
        container_id: str,
        *,
        page_token: str = "",
        start_s: int | None = None,
        end_s: int | None = None,
        page_size: int = _MESSAGES_PER_PAGE,
    ) -> HistoryPage:
        """One page of the history of a `chat` or `thread`, the oldest first, cards as they were
        sent and names with them; times are seconds since the epoch, for chats only.

        It goes at a pace of its own, a fifth of the app's limit, so that nobody waits for it.
        Raises Unintelligible for an answer that is no page.
        """
        query: dict[str, str | int] = {
            "container_id_type": container_id_type,
            "container_id": container_id,
            "sort_type": "ByCreateTimeAsc",
            "page_size": min(page_size, _MESSAGES_PER_PAGE),
            "card_msg_content_type": "user_card_content",
            "with_sender_name": "true",
        }
        bounds = {"start_time": start_s, "end_time": end_s}
        query.update({name: str(at) for name, at in bounds.items() if at is not None})
        if page_token:
            query["page_token"] = page_token
        request = ApiRequest("GET", _MESSAGES, query, api="list messages")
        return history_page(_data(await self._caller.call(request, self._history, "messages")))

    async def list_messages(
        self,
        container_id_type: str,
        container_id: str,
        *,
        start_s: int | None = None,
        end_s: int | None = None,
        descending: bool = False,
        page_size: int = 50,
        max_items: int = 50,
        user_card_content: bool = False,
    ) -> list[RawMessage]:
        """History of a `chat` or `thread`; times are seconds since the epoch, for chats only.

        In ordinary groups a chat lists only the roots of its threads. `user_card_content` as for
        `get_message`.
        """
        query: dict[str, str | int] = {
            "container_id_type": container_id_type,
            "container_id": container_id,
            "sort_type": "ByCreateTimeDesc" if descending else "ByCreateTimeAsc",
            "page_size": min(page_size, _MESSAGES_PER_PAGE),
        }
        if user_card_content:
            query["card_msg_content_type"] = "user_card_content"
        bounds = {"start_time": start_s, "end_time": end_s}
        query.update({name: str(at) for name, at in bounds.items() if at is not None})
        messages: list[RawMessage] = []
        while len(messages) < max_items:
            request = ApiRequest("GET", _MESSAGES, dict(query), api="list messages")
            page = _data(await self._caller.call(request))
            messages += _messages(page)
            next_page = as_text(page.get("page_token"))
            if page.get("has_more") is not True or not next_page:
                break
            query["page_token"] = next_page
        return messages[:max_items]

    async def delete_message(self, message_id: str) -> None:
        """Recall an own message; a message that is already gone is fine."""
        path = f"{_MESSAGES}/{_part(message_id)}"
        try:
            await self._caller.call(ApiRequest("DELETE", path, api="recall"))
        except FeishuError as error:
            if error.code not in (230011, 230110):
                raise

    async def download_resource(
        self, message_id: str, file_key: str, type: ResourceType, max_bytes: int
    ) -> bytes:
        """An image or file of a message. Raises ResourceTooLarge beyond `max_bytes`."""
        path = f"{_MESSAGES}/{_part(message_id)}/resources/{_part(file_key)}"
        request = ApiRequest("GET", path, {"type": type}, max_bytes=max_bytes, api="download")
        return (await self._caller.exchange(request, is_file=True)).body

    async def upload_file(self, name: str, data: bytes) -> str:
        """Up to 30 MB, not empty; gives the file_key for a message."""
        form: dict[str, str | bytes] = {"file_type": "stream", "file_name": name, "file": data}
        request = ApiRequest("POST", "/open-apis/im/v1/files", form=form, api="upload")
        return required_text(_data(await self._caller.call(request)), "file_key")

    async def upload_image(self, data: bytes) -> str:
        """Up to 10 MB, not empty; gives the image_key for a message."""
        form: dict[str, str | bytes] = {"image_type": "message", "image": data}
        request = ApiRequest("POST", "/open-apis/im/v1/images", form=form, api="upload image")
        return required_text(_data(await self._caller.call(request)), "image_key")

    # Reactions

    async def add_reaction(self, message_id: str, emoji_type: str) -> str:
        """React to a message as the bot; gives the reaction_id."""
        body = {"reaction_type": {"emoji_type": emoji_type}}
        path = f"{_MESSAGES}/{_part(message_id)}/reactions"
        request = ApiRequest("POST", path, body=body, api="add reaction")
        return required_text(_data(await self._caller.call(request)), "reaction_id")

    async def delete_reaction(self, message_id: str, reaction_id: str) -> None:
        """Take back an own reaction."""
        path = f"{_MESSAGES}/{_part(message_id)}/reactions/{_part(reaction_id)}"
        await self._caller.call(ApiRequest("DELETE", path, api="delete reaction"))

    # People and chats

    async def names(self, open_ids: Iterable[str]) -> dict[str, str]:
        """Names by open_id; who is not known is absent.

        Without the scope contact:user.basic_profile:readonly the answer is {} and Feishu is not
        asked again for ten minutes.
        """
        unique_ids = list(dict.fromkeys(filter(None, open_ids)))
        names_by_id: dict[str, str] = {}
        for start in range(0, len(unique_ids), _NAMES_PER_CALL):
            if self._clock() < self._names_denied_until:
                break
            names_by_id |= await self._names(unique_ids[start : start + _NAMES_PER_CALL])
        return names_by_id

    async def _names(self, open_ids: list[str]) -> dict[str, str]:
        request = ApiRequest(
            "POST",
            "/open-apis/contact/v3/users/basic_batch",
            {"user_id_type": "open_id"},
            {"user_ids": open_ids},
            api=NAMES,
        )
        try:
            data = _data(await self._caller.call(request, self._lookups, "names"))
        except FeishuError as error:
            if error.action not in (Action.ALERT, Action.REJECTED):
                raise
            if error.action is Action.ALERT:
                self._names_denied_until = self._clock() + _NAMES_DENIED_S
            _log.warning("feishu.names_unavailable", code=error.code, log_id=error.log_id)
            return {}
        users = [as_dict(user) for user in as_list(data.get("users"))]
        pairs = ((as_text(user.get("user_id")), as_text(user.get("name"))) for user in users)
        return {open_id: name for open_id, name in pairs if open_id and name}

    async def chat_info(self, chat_id: str) -> ChatInfo:
        """Name and kind of a chat the bot is in."""
        request = ApiRequest("GET", f"/open-apis/im/v1/chats/{_part(chat_id)}", api="chat info")
        return chat_info(_data(await self._caller.call(request, self._lookups, "chats")))

    async def chat_members(self, chat_id: str) -> list[FeishuPerson]:
        """Everybody in a group the bot is in, without bots: the whole list or an error."""
        return list(await self.member_names(chat_id))

    async def member_names(self, chat_id: str) -> dict[FeishuPerson, str]:
        """The same with their names, "" where Feishu gives none."""
        path = f"/open-apis/im/v1/chats/{_part(chat_id)}/members"
        query = {"member_id_type": "open_id", "page_size": str(_MEMBERS_PER_PAGE)}
        names_by_person: dict[FeishuPerson, str] = {}
        for _ in range(_MOST_PAGES):
            request = ApiRequest("GET", path, dict(query), api="members")
            page = _data(await self._caller.call(request, self._lookups, "members"))
            names_by_person |= members_of_page(page)
            if page.get("has_more") is not True:
                return names_by_person
            query["page_token"] = required_text(page, "page_token")
        raise Unreachable(f"a list of members that does not end after {_MOST_PAGES} pages")

    # CardKit

    async def create_card(self, card: Mapping[str, Any]) -> str:
        """A card entity from card JSON 2.0; gives its card_id, which can be sent once."""
        request = ApiRequest("POST", _CARDS, body=_card_data(card), api="create card")
        return required_text(_data(await self._caller.call(request)), "card_id")

    async def stream_text(
        self, card_id: str, element_id: str, content: str, sequence: int, uuid: str
    ) -> None:
        """Show the full text so far. Not retried: the next frame brings what this one lost."""
        path = f"{_CARDS}/{_part(card_id)}/elements/{_part(element_id)}/content"
        body = {"content": content, "sequence": sequence, "uuid": uuid}
        request = ApiRequest("PUT", path, body=body, api="stream")
        await self._caller.call(request, self._cards, card_id, NO_RETRY)

    async def card_settings(
        self, card_id: str, settings: Mapping[str, Any], sequence: int, uuid: str
    ) -> None:
        """Change a card's config, such as `{"config": {"streaming_mode": false}}`."""
        body = {"settings": _compact(settings), "sequence": sequence, "uuid": uuid}
        path = f"{_card_path(card_id)}/settings"
        await self._operate(card_id, ApiRequest("PATCH", path, body=body, api="card settings"))

    async def batch_update_card(
        self, card_id: str, actions: Sequence[Mapping[str, Any]], sequence: int, uuid: str
    ) -> None:
        """Change settings and elements of a card in one call (`cards.closing_actions`)."""
        body = {"actions": _compact(actions), "sequence": sequence, "uuid": uuid}
        path = f"{_card_path(card_id)}/batch_update"
        await self._operate(card_id, ApiRequest("POST", path, body=body, api="batch update card"))

    async def update_card(
        self, card_id: str, card: Mapping[str, Any], sequence: int, uuid: str
    ) -> None:
        """Replace the whole card."""
        body = {"card": _card_data(card), "sequence": sequence, "uuid": uuid}
        request = ApiRequest("PUT", _card_path(card_id), body=body, api="update card")
        await self._operate(card_id, request)

    async def _operate(self, card_id: str, request: ApiRequest) -> None:
        """An operation on a card; one that Feishu has already done under this uuid is fine."""
        try:
            await self._caller.call(request, self._cards, card_id)
        except FeishuError as error:
            if error.action is not Action.DUPLICATE:
                raise


def _part(value: str) -> str:
    """An id as one path segment, whatever it holds."""
    return quote(value, safe="")


def _card_path(card_id: str) -> str:
    return f"{_CARDS}/{_part(card_id)}"


def _compact(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _card_data(card: Mapping[str, Any]) -> dict[str, str]:
    return {"type": "card_json", "data": _compact(card)}


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    return as_dict(answer.get("data"))


def _messages(data: dict[str, Any]) -> list[RawMessage]:
    return [raw_message(as_dict(item)) for item in as_list(data.get("items"))]
