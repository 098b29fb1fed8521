"""The memory port: every method is one SQL function and one round trip.

`MemoryStore` names the operations; an `Rpc` carries them (`memory.backends`).
All methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory.models import (
    ANSWERED_OUTCOME,
    MESSAGE_ORIGIN,
    Conversation,
    MemoryOverview,
    OpenTurn,
    Origin,
    QuestionEmbedding,
    Scope,
    StoredCard,
    StoredMessage,
    Summary,
    TurnOutcome,
    TurnState,
    WorkingMemory,
)
from memory.recall.passages import Passage, RecallScope, passages, recall_params
from memory.recall.selection import fitting_hits, hits_to_request, ordered_hits
from memory.rpc import Json, Rpc, Statement, call_as, can_join
from memory.scope import AgentMemoryContext
from memory.tables.cards import NewButton
from memory.tables.items import ItemStore
from memory.text import as_json


class MemoryStore:
    """Working memory, history and turns, for each person and thread."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def close(self) -> None:
        await self._rpc.close()

    async def ping(self) -> None:
        """Raises `StoreUnavailable` when the memory does not answer."""
        await self._rpc.call("list_conversations", _filters(limit=0), None)

    async def begin_turn(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        content: str,
        actor_name: str = "",
        history_limit: int = 10,
        fold_after: int = 0,
        hearing_args: Mapping[str, object] | None = None,
        decision: Mapping[str, object] | None = None,
        recent_s: int = 0,
        asked_ms: int = 0,
        recall: Mapping[str, object] | None = None,
        elsewhere: bool = False,
        origin: Origin = MESSAGE_ORIGIN,
        quotes: str = "",
    ) -> OpenTurn:
        """Begins the turn `turn_id`, or finds it as an earlier attempt left it. The id is the
        Feishu message's, unless the turn has another `origin`.

        First it records the message in the chat's conversation and stores the decision to answer
        it. `hearing_args` are the arguments of the SQL function `append_to_conversation`,
        `decision` those of `log_decision`; None skips that step. If an earlier decision on the
        message says no, the turn comes back as cancelled.

        Stores the question once. `asked_ms` (ms since epoch) is when it was written, 0: now.
        `history` holds what was said in the place: in a thread the thread and what came before it;
        with `recent_s` what was said in the chat in the last so many seconds. The question is last,
        and `history_limit` counts it and the asker's own messages. With `fold_after` the result has
        the summary of earlier messages, and `fold_due` is set when so many messages are in neither;
        0 leaves out both. `recall` is made by
        `memory.recall.passages.recall_at_once`. `elsewhere` asks whether the sender can read in
        other places. `quotes` is the message that the question replies to.
        """
        return _turn_of_row(
            await self._call(
                "begin_turn",
                context,
                p_turn_id=turn_id,
                **_place(context),
                p_actor_name=actor_name,
                p_content=content,
                p_history_limit=history_limit,
                p_fold_after=fold_after,
                p_heard=as_json(hearing_args) if hearing_args else None,
                p_decision=as_json(decision) if decision else None,
                p_recent_s=recent_s,
                p_asked_ms=asked_ms or None,
                **({"p_recall": as_json(recall)} if recall else {}),
                **({"p_elsewhere": True} if elsewhere else {}),
                **({"p_quotes": quotes} if quotes else {}),
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
        visible_card: Mapping[str, Any] | None = None,
        source_ids: Sequence[str] = (),
        means: TurnOutcome = ANSWERED_OUTCOME,
    ) -> tuple[TurnState, tuple[StoredCard, ...]]:
        """Stores the exact card texts as pending, before anything is sent.

        `buttons` belong to the last card. `files` ({content, file} as in `StoredCard`) follow the
        cards. `visible_card` is the note below the last card, which is no part of the answer.
        `source_ids` are the ids of the messages, besides the question, that the answer was made
        from. `means` is how the turn ends once the reply is delivered.

        The first writer wins. Returns the turn's state and the stored cards. If one of
        `source_ids` was taken back in the meantime, nothing is stored and the turn stays open.
        """
        with_buttons = (
            {"p_buttons": as_json([button.row() for button in buttons])} if buttons else {}
        )
        reply_row = await self._call(
            "record_reply_with_buttons" if buttons else "record_reply",
            context,
            p_turn_id=turn_id,
            p_cards=as_json([*cards, *files]),
            p_tool_calls=as_json(list(tool_calls)),
            **with_buttons,
            **({"p_shown": as_json(visible_card)} if visible_card else {}),
            **({"p_given": as_json(list(source_ids))} if source_ids else {}),
            **({"p_intended": as_json(row)} if (row := means.row()) else {}),
        )
        return reply_row["state"], _cards(reply_row["reply"])

    async def preface_reply(
        self, context: AgentMemoryContext, *, turn_id: str, note: str
    ) -> tuple[StoredCard, ...]:
        """Puts `note` before the text of the first card, unless it is there or the card is marked
        sent. Returns the cards as stored. Call it only if the card was certainly not sent."""
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
        telling: Mapping[str, object] | None = None,
        then: Statement | None = None,
        plain: bool = False,
        was_streamed: bool = True,
    ) -> tuple[TurnState, Json]:
        """Records that card `chunk` was delivered as `message_id` with the final text `content`,
        with the other writes of a delivered card in one transaction.

        `telling` are the arguments of the SQL function `tell_conversation`, which records the
        answer in the chat's conversation. `then` runs in the same transaction if the transport can
        do that (`joins`). Returns the turn's state and the result of `then`. `plain`: the card is
        the whole answer and has no buttons; unless `was_streamed`, no card of it was kept while it
        was written.
        """
        params = {
            **context.identity(),
            "p_turn_id": turn_id,
            "p_chunk": chunk,
            "p_content": content,
            "p_message_id": message_id,
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_told": as_json(telling) if telling else None,
            **({"p_plain": True, "p_streamed": was_streamed} if plain else {}),
        }
        result = None
        if then and can_join(self._rpc):
            call = self._rpc.call_and("mark_sent", params, context, then)
            row, result = await call
        else:
            row = await self._rpc.call("mark_sent", params, context)
        state: TurnState = row["state"]
        return state, result

    async def running_turns(
        self, context: AgentMemoryContext, *, turn_id: str, in_thread: bool = False
    ) -> tuple[str, ...]:
        """The ids of the chat's running turns that the actor asked or that are about the actor,
        except `turn_id`. `in_thread` limits them to this thread."""
        params = {
            "p_tenant_key": context.tenant_key,
            "p_turn_id": turn_id,
            "p_in_thread": in_thread,
        }
        return tuple(await self._call("running_turns", context, **params))

    async def note_done(self, context: AgentMemoryContext, turn_id: str, tool: str) -> None:
        """Notes that `tool` has changed something for the turn, which is not answered yet."""
        await self._call("note_done", context, p_turn_id=turn_id, p_tool=tool)

    @property
    def items(self) -> ItemStore:
        """The store of single facts and notes."""
        return ItemStore(self._rpc)

    @property
    def joins(self) -> bool:
        """Whether the caller can add a statement to the transaction of a call."""
        return can_join(self._rpc)

    async def mark_failed(self, context: AgentMemoryContext, *, turn_id: str, error: str) -> None:
        """Marks the pending cards as failed. `error` is a code and reason without message text."""
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
        likeness: QuestionEmbedding | None = None,
        newest_too: bool = False,
    ) -> tuple[Passage, ...]:
        """Earlier turns of anybody that match `query`, best first (see `memory.recall.passages`).

        `now` is aware, and its zone says where a day begins. The `scope` "everywhere" covers what
        may be read here: in a group that chat, in p2p also the groups the person is in. `before_id`
        limits the search of this conversation to earlier messages. `likeness` adds matches by
        meaning; without, hits that do not fit are dropped (`memory.recall.selection`). A query for
        a first or last time also selects by time (`memory.recall.selection`).
        Where little was said at all, `newest_too` gives the newest of it after what matches.
        """
        params = recall_params(
            context,
            query,
            now=now,
            scope=scope,
            k=hits_to_request(query, k),
            before_id=before_id,
            likeness=likeness,
            newest_too=newest_too,
        )
        passages_found = ordered_hits(
            passages(await self._call("recall", context, **params)), query, k
        )
        return tuple(passages_found if likeness else fitting_hits(passages_found, query))

    async def said(self, context: AgentMemoryContext, message_id: str) -> StoredMessage | None:
        """What a person or the bot said in this Feishu message of the chat; None if unknown."""
        row = await self._call(
            "said_message",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_message_id=message_id,
        )
        return _message(row) if row else None

    async def take_back(self, message_id: str, chat_id: str) -> TurnState | None:
        """Deletes a Feishu message that was taken back, and all that was made from it.

        Cancels its turn if that is not answered yet, and queues the cards that repeat the message
        for withdrawal (`memory.tables.cards`). The call has the rights of the service,
        because the event names no sender. Returns the turn's state, or None if there is no turn.
        """
        params = {"p_message_id": message_id, "p_chat_id": chat_id}
        state: TurnState | None = await self._rpc.call("recall_message", params, None)
        return state

    async def replace_message(
        self, message_id: str, chat_id: str, question: str, raw_words: str, *, by_turn: str
    ) -> bool:
        """Stores the new text of a message that its author edited in Feishu.

        `question` is the text without the bot's own mention, `raw_words` the whole of it.
        Everything made from the old text goes, as in `recall_message`. `by_turn` is the turn that
        noticed, which stays. The call has the rights of the service. Returns whether the stored
        text was another.
        """
        params = {"p_message_id": message_id, "p_chat_id": chat_id, "p_said": question}
        params |= {"p_heard": raw_words, "p_by_turn": by_turn}
        return bool(await self._rpc.call("replace_message", params, None))

    async def undo_kept(self, context: AgentMemoryContext, turn_id: str) -> None:
        """Restores facts, notes and reminders to their state before the turn, so that it can be
        answered again. The call has the rights of the service, so it can undo any change."""
        params = {"p_turn_id": turn_id, "p_chat_id": context.chat_id}
        await self._rpc.call("undo_kept", params, None)

    async def shared_groups(self, context: AgentMemoryContext, *, most: int) -> tuple[str, ...]:
        """The chat_ids of groups that the asker is in, where they ask in p2p; elsewhere none."""
        return tuple(await self._rpc.call("shared_groups", {"p_most": most}, context))

    async def working_memory(
        self, context: AgentMemoryContext, question: str = ""
    ) -> WorkingMemory:
        """The working memory about the subject, as far as it may be used here; with a `question`
        also the facts of the group that have its words."""
        row = await self._call(
            "get_working_memory",
            context,
            p_tenant_key=context.tenant_key,
            **({"p_question": question} if question else {}),
        )
        return WorkingMemory.from_row(row)

    async def merge_working_memory(
        self,
        context: AgentMemoryContext,
        *,
        scope: Scope,
        patch: Mapping[str, Any],
        turn_id: str = "",
        replaces: Sequence[str] = (),
    ) -> Mapping[str, Any]:
        """Applies a merge patch (RFC 7396) in the database; returns the whole scope.

        `turn_id` is the message that the patch comes from. When that message is taken back, the
        change is too. `replaces` are ids of `GroupFact`s: what the patch sets holds in their place;
        those that the sender may not replace stay. Raises `TakenBack`, `WorkingMemoryTooLarge`
        above 16 KB and `AccessDenied` for another person's `user` scope.
        """
        content: Mapping[str, Any] = await self._call(
            "merge_working_memory",
            context,
            p_chat_id=context.chat_id,
            p_tenant_key=context.tenant_key,
            p_scope=scope,
            p_patch=json.dumps(patch),  # escaped, so that the database refuses a lone surrogate
            p_turn_id=turn_id or None,
            **({"p_replaces": as_json(list(replaces))} if replaces else {}),
        )
        return content

    async def clear_working_memory(self, context: AgentMemoryContext, *, scope: Scope) -> None:
        """Empties one scope; the history stays."""
        await self._call(
            "clear_working_memory", context, p_tenant_key=context.tenant_key, p_scope=scope
        )

    async def start_afresh(self, context: AgentMemoryContext) -> None:
        """Makes the history of the conversation begin now; earlier messages stay stored."""
        await self._call("start_afresh", context)

    async def overview(self, context: AgentMemoryContext) -> MemoryOverview:
        """How much is stored about the subject. Raises `AccessDenied` if somebody else asks."""
        row = await self._call("memory_overview", context, p_tenant_key=context.tenant_key)
        return MemoryOverview(**row)

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


def _turn_of_row(row: Mapping[str, Any]) -> OpenTurn:
    if "turn" not in row:  # an earlier decision says not to answer
        return _open_turn_of(row)
    return _open_turn_of(row["turn"], row["conversation"])


def _open_turn_of(
    row: Mapping[str, Any], conversation: Mapping[str, Any] | None = None
) -> OpenTurn:
    summary = row.get("summary")
    return OpenTurn(
        state=row["state"],
        attempts=row["attempts"],
        reply=_cards(row["reply"]),
        history=tuple(map(_message, row.get("history", ()))),
        working_memory=WorkingMemory.from_row(row.get("working_memory", {})),
        registry=tuple(row.get("registry", ())),
        summary=Summary(**summary) if summary else None,
        fold_due=row.get("fold_due", False),
        rules=row.get("rules") or {},
        done=tuple(row.get("done") or ()),
        first_read=tuple(row.get("first_read") or ()),
        asked_in=row.get("asked_in") or "",
        shown=row.get("shown"),
        recalled=None if (rows := row.get("recalled")) is None else tuple(rows),
        elsewhere=row.get("elsewhere"),
        documents=row.get("documents", False),
        turn_id=row.get("turn_id", ""),
        conversation=conversation,
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
