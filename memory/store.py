"""The memory port: every method is one SQL function and one round trip.

`MemoryStore` names the operations; an `Rpc` carries them (`memory.backends`).
All methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.models import (
    Conversation,
    Likeness,
    OpenTurn,
    Overview,
    Scope,
    StoredCard,
    StoredMessage,
    Summary,
    TurnState,
    WorkingMemory,
)
from memory.origins import MESSAGE, Origin
from memory.outcomes import ANSWERED, TurnOutcome
from memory.recall.ordinals import enough_for, in_order
from memory.recall.passages import Passage, RecallScope, passages, recall_params
from memory.rpc import JoiningRpc, Json, Rpc, Statement, call_as
from memory.scope import AgentMemoryContext
from memory.tables.buttons import NewButton
from memory.tables.items import ItemStore
from memory.text import as_json


class MemoryStore:
    """Working memory, history and the state of turns, person by person and thread by thread."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def close(self) -> None:
        await self._rpc.close()

    async def ping(self) -> None:
        """Raises `StoreUnavailable` when the memory does not answer."""
        await self._rpc.call("list_conversations", _filters(limit=0), None)

    async def open_turn(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        content: str,
        actor_name: str = "",
        history_limit: int = 10,
        fold_after: int = 0,
        origin: Origin = MESSAGE,
    ) -> OpenTurn:
        """Begins the turn `turn_id`, or finds it as an earlier attempt left it. The id is the
        Feishu message's, unless the turn has another `origin`.

        Stores the question once. `history` holds the last `history_limit` messages, oldest first,
        the question last. With `fold_after` comes the summary of what was before, and `fold_due`
        when so many messages are in neither; 0 leaves out both.
        """
        return _opened(
            await self._call(
                "open_turn",
                context,
                p_turn_id=turn_id,
                **_place(context),
                p_actor_name=actor_name,
                p_content=content,
                p_history_limit=history_limit,
                p_fold_after=fold_after,
                **origin.params(),
            )
        )

    async def begin_turn(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        content: str,
        actor_name: str = "",
        history_limit: int = 10,
        fold_after: int = 0,
        heard: Mapping[str, object] | None = None,
        decision: Mapping[str, object] | None = None,
        recent_s: int = 0,
        recall: Mapping[str, object] | None = None,
        elsewhere: bool = False,
        origin: Origin = MESSAGE,
    ) -> OpenTurn:
        """`open_turn` together with what comes before it: the message is recorded in the chat's
        conversation, and the decision to answer it is stored.

        `heard` are the arguments of the SQL function `append_to_conversation`, `decision` those of
        `log_decision`; None: that was done before, or is not to be done. Where an earlier decision
        on the message says no, the turn comes back as cancelled. With `recent_s` comes what sender
        and bot said in other threads of the chat in so many seconds before. `recall`: as
        `memory.recall.passages.recall_at_once` makes it. `elsewhere`: whether the sender reads in
        other places is wanted, too.
        """
        return _begun(
            await self._call(
                "begin_turn",
                context,
                p_turn_id=turn_id,
                **_place(context),
                p_actor_name=actor_name,
                p_content=content,
                p_history_limit=history_limit,
                p_fold_after=fold_after,
                p_heard=as_json(heard) if heard else None,
                p_decision=as_json(decision) if decision else None,
                p_recent_s=recent_s,
                **({"p_recall": as_json(recall)} if recall else {}),
                **({"p_elsewhere": True} if elsewhere else {}),
                **origin.params(),
                p_short=True,
            )
        )

    async def record_reply(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        cards: Sequence[str],
        tool_calls: Sequence[Mapping[str, Any]] = (),
        buttons: Sequence[NewButton] = (),
        files: Sequence[Mapping[str, Any]] = (),
        shown: Mapping[str, Any] | None = None,
        given: Sequence[str] = (),
        means: TurnOutcome = ANSWERED,
    ) -> tuple[TurnState, tuple[StoredCard, ...]]:
        """Stores the exact card texts as pending, before anything is sent; `buttons` are of the
        last card. `files` ({content, file} as in `StoredCard`) follow the cards. `shown` is what
        stands below the last card, nobody's words. `given` are the messages, besides the question,
        that the answer was made with; `means` is how the turn ends once people have it.

        The first writer wins: returned are the turn's state and the cards that are stored. The turn
        is still open, and nothing is stored, when one of `given` was taken back meanwhile.
        """
        with_buttons = (
            {"p_buttons": as_json([button.row() for button in buttons])} if buttons else {}
        )
        kept = await self._call(
            "record_reply_with_buttons" if buttons else "record_reply",
            context,
            p_turn_id=turn_id,
            p_cards=as_json([*cards, *files]),
            p_tool_calls=as_json(list(tool_calls)),
            **with_buttons,
            **({"p_shown": as_json(shown)} if shown else {}),
            **({"p_given": as_json(list(given))} if given else {}),
            **({"p_intended": as_json(row)} if (row := means.row()) else {}),
        )
        return kept["state"], _cards(kept["reply"])

    async def preface_reply(
        self, context: AgentMemoryContext, *, turn_id: str, note: str
    ) -> tuple[StoredCard, ...]:
        """Puts `note` before the first card unless it stands there or the card is sent; the cards
        as they are stored then. Only for a card that was certainly not sent."""
        row = await self._call("preface_reply", context, p_turn_id=turn_id, p_note=note)
        return _cards(row["reply"])

    async def mark_sent(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        chunk: int,
        content: str,
        message_id: str,
    ) -> TurnState:
        """Card `chunk` was delivered as `message_id` with the final text `content`."""
        row = await self._call(
            "mark_sent",
            context,
            p_turn_id=turn_id,
            p_chunk=chunk,
            p_content=content,
            p_message_id=message_id,
        )
        state: TurnState = row["state"]
        return state

    async def mark_sent_and_tell(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        chunk: int,
        content: str,
        message_id: str,
        told: Mapping[str, object] | None = None,
        then: Statement | None = None,
        plain: bool = False,
    ) -> tuple[TurnState, Json]:
        """`mark_sent`, and what else is written when a card was delivered, in one transaction.

        `told`, the arguments of the SQL function `tell_conversation`, records the answer in the
        chat's conversation. `then` is run in the same transaction where the transport can
        (`joins`); its result comes second. `plain`: the card is the whole answer, has no buttons
        and was never streamed.
        """
        params = {
            **context.identity(),
            "p_turn_id": turn_id,
            "p_chunk": chunk,
            "p_content": content,
            "p_message_id": message_id,
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_told": as_json(told) if told else None,
            **({"p_plain": True} if plain else {}),
        }
        result = None
        if then and isinstance(self._rpc, JoiningRpc):
            call = self._rpc.call_and("mark_sent_and_tell", params, context, then)
            row, result = await call
        else:
            row = await self._rpc.call("mark_sent_and_tell", params, context)
        state: TurnState = row["state"]
        return state, result

    async def running_turns(
        self, context: AgentMemoryContext, *, turn_id: str, in_thread: bool = False
    ) -> tuple[str, ...]:
        """Ids of the turns of the chat, or of this thread, that are being answered to the actor, or
        about them, but for the turn `turn_id` itself."""
        params = {
            "p_tenant_key": context.tenant_key,
            "p_turn_id": turn_id,
            "p_in_thread": in_thread,
        }
        return tuple(await self._call("running_turns", context, **params))

    async def note_done(self, context: AgentMemoryContext, turn_id: str, tool: str) -> None:
        """A tool has changed something for the turn, which is not answered yet."""
        await self._call("note_done", context, p_turn_id=turn_id, p_tool=tool)

    @property
    def items(self) -> ItemStore:
        """The facts and notes one by one."""
        return ItemStore(self._rpc)

    @property
    def joins(self) -> bool:
        """Whether a statement of the caller's can be part of a call's transaction."""
        return isinstance(self._rpc, JoiningRpc)

    async def mark_failed(self, context: AgentMemoryContext, *, turn_id: str, error: str) -> None:
        """What is pending will never be delivered. `error`: a code and reason, no message text."""
        await self._call("mark_failed", context, p_turn_id=turn_id, p_error=error)

    async def find(
        self,
        context: AgentMemoryContext,
        query: str,
        *,
        now: datetime,
        scope: RecallScope = "thread",
        k: int = 5,
        before_id: int | None = None,
        likeness: Likeness | None = None,
    ) -> tuple[Passage, ...]:
        """Earlier turns that fit `query`, whoever asked, best first (see `memory.recall.passages`).

        `now` is aware: in its zone days begin and end. `scope` everywhere is what may be read here:
        in a group that chat, in p2p also the groups the person is in. With `before_id` this
        conversation is searched only before that message. `likeness` finds by meaning too. Asked
        for a first or last time, some are chosen by their time (`memory.recall.ordinals`).
        """
        params = recall_params(
            context,
            query,
            now=now,
            scope=scope,
            k=enough_for(query, k),
            before_id=before_id,
            likeness=likeness,
        )
        return in_order(passages(await self._call("recall", context, **params)), query, k)

    async def said(self, context: AgentMemoryContext, message_id: str) -> StoredMessage | None:
        """What somebody said to the bot, or was told, in the Feishu message of that id in this
        chat."""
        row = await self._call(
            "said_message",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_message_id=message_id,
        )
        return _message(row) if row else None

    async def take_back(self, message_id: str, chat_id: str) -> TurnState | None:
        """A Feishu message was taken back: it goes with all that was made from it, an unanswered
        turn is cancelled, the cards that repeat it await withdrawal (`memory.tables.withdrawals`).

        For the service: the event names no sender. Returns the turn's state, None without a turn.
        """
        params = {"p_message_id": message_id, "p_chat_id": chat_id}
        state: TurnState | None = await self._rpc.call("recall_message", params, None)
        return state

    async def undo_kept(self, context: AgentMemoryContext, turn_id: str) -> None:
        """Facts, notes and reminders are as they were before the turn, which is answered anew. For
        the service, whatever the turn may change."""
        params = {"p_turn_id": turn_id, "p_chat_id": context.chat_id}
        await self._rpc.call("undo_kept", params, None)

    async def working_memory(self, context: AgentMemoryContext) -> WorkingMemory:
        """What is kept of the subject, as far as it may be used here."""
        row = await self._call("get_working_memory", context, p_tenant_key=context.tenant_key)
        return WorkingMemory.from_row(row)

    async def merge_working_memory(
        self,
        context: AgentMemoryContext,
        *,
        scope: Scope,
        patch: Mapping[str, Any],
        turn_id: str = "",
    ) -> Mapping[str, Any]:
        """Applies a merge patch (RFC 7396) in the database; returns the whole scope.

        `turn_id` is the message it comes from: taken back, so is the change. Raises `TakenBack`,
        `WorkingMemoryTooLarge` above 16 KB and `AccessDenied` for another person's `user` scope.
        """
        content: Mapping[str, Any] = await self._call(
            "merge_working_memory",
            context,
            p_chat_id=context.chat_id,
            p_tenant_key=context.tenant_key,
            p_scope=scope,
            p_patch=json.dumps(patch),  # escaped: a lone surrogate is the database's to refuse
            p_turn_id=turn_id or None,
        )
        return content

    async def clear_working_memory(self, context: AgentMemoryContext, *, scope: Scope) -> None:
        """Empties one scope; the history stays."""
        await self._call(
            "clear_working_memory", context, p_tenant_key=context.tenant_key, p_scope=scope
        )

    async def start_afresh(self, context: AgentMemoryContext) -> None:
        """From now on the history of the conversation begins here; what was said stays stored."""
        await self._call("start_afresh", context)

    async def overview(self, context: AgentMemoryContext) -> Overview:
        """How much is kept of the person. Raises `AccessDenied` unless they ask themselves."""
        row = await self._call("memory_overview", context, p_tenant_key=context.tenant_key)
        return Overview(**row)

    async def list_conversations(
        self,
        *,
        chat_id: str | None = None,
        conversation_id: str | None = None,
        user_id: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> tuple[Conversation, ...]:
        """For operators: conversations, latest first. `since` is an ISO 8601 time."""
        filters = _filters(chat_id, conversation_id, user_id, since, limit)
        rows = await self._rpc.call("list_conversations", filters, None)
        return tuple(Conversation(**row) for row in rows)

    async def list_messages(
        self, conversation_id: str, user_id: str | None = None, *, limit: int = 200
    ) -> tuple[Mapping[str, Any], ...]:
        """For operators: the rows of `agent_messages` of a conversation, oldest first."""
        params = {
            "p_conversation_id": conversation_id,
            "p_user_id": user_id,
            "p_limit": limit,
        }
        return tuple(await self._rpc.call("list_messages", params, None))

    async def _call(self, function: str, context: AgentMemoryContext, **params: object) -> Json:
        return await call_as(self._rpc, function, context, **params)


def _place(context: AgentMemoryContext) -> dict[str, object]:
    return {
        "p_chat_id": context.chat_id,
        "p_root_id": context.root_id,
        "p_tenant_key": context.tenant_key,
    }


def _begun(row: Mapping[str, Any]) -> OpenTurn:
    if "turn" not in row:  # an earlier decision says no
        return _opened(row)
    return replace(_opened(row["turn"]), conversation=row["conversation"])


def _opened(row: Mapping[str, Any]) -> OpenTurn:
    summary = row.get("summary")
    return OpenTurn(
        state=row["state"],
        attempts=row["attempts"],
        reply=_cards(row["reply"]),
        history=tuple(map(_message, row.get("history", ()))),
        recent=tuple(map(_message, row.get("recent", ()))),
        working_memory=WorkingMemory.from_row(row.get("working_memory", {})),
        registry=tuple(row.get("registry", ())),
        summary=Summary(**summary) if summary else None,
        fold_due=row.get("fold_due", False),
        rules=row.get("rules") or {},
        done=tuple(row.get("done") or ()),
        first_read=tuple(row.get("first_read") or ()),
        asked_in=row.get("asked_in") or "",
        shown=row.get("shown"),
        recalled=None if (found := row.get("recalled")) is None else tuple(found),
        elsewhere=row.get("elsewhere"),
        turn_id=row.get("turn_id", ""),
        means=TurnOutcome.from_row(row.get("intended")),
    )


def _filters(
    chat_id: str | None = None,
    conversation_id: str | None = None,
    user_id: str | None = None,
    since: str | None = None,
    limit: int = 100,
) -> dict[str, object]:
    return {
        "p_chat_id": chat_id,
        "p_conversation_id": conversation_id,
        "p_user_id": user_id,
        "p_since": since,
        "p_limit": limit,
    }


def _cards(rows: Sequence[Mapping[str, Any]]) -> tuple[StoredCard, ...]:
    return tuple(map(StoredCard.from_row, rows))


def _message(row: Mapping[str, Any]) -> StoredMessage:
    return StoredMessage(**{**row, "tool_calls": tuple(row["tool_calls"])})
