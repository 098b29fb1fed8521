"""A turn as it was: what its record and the memory still say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.scope import AgentMemoryContext, memory_context

# For one %(turn)s: by its id, by the question's Feishu message, or by a card of the answer.
FIND = """
select t.id from public.agent_turns t
join public.agent_messages q on q.turn_id = t.id and q.role = 'user'  -- gone when taken back
where t.id = %(turn)s
   or t.id = (select m.turn_id from public.agent_messages m where m.message_id = %(turn)s
           and m.role = 'assistant' limit 1)
limit 1
"""
OF_TURN = """
select t.id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id,
       coalesce(t.outcome, 'under_way') as outcome, t.outcome_reason, t.attempts,
       t.shown, t.created_at, t.updated_at, c.chat_type, c.root_id,
       bot_private.told_record(bot_private.whole_record(r.short),
         bot_private.given_ids(t.given_messages, t.given)) as record,
       (select k.name from public.chats k
        where k.chat_id = t.chat_id and k.tenant_key = t.tenant_key) as chat_name
from public.agent_turns t
join public.agent_chats c on c.id = t.conversation_id and c.user_id = t.user_id
  and c.tenant_key = t.tenant_key
left join public.agent_turn_records r on r.turn_id = t.id
where t.id = %(turn)s
"""
MESSAGES = """
select m.id, m.role, m.chunk, m.content, m.actor_id, m.actor_name, m.message_id, m.status, m.error,
       m.tool_calls, m.file, m.created_at, m.updated_at
from public.agent_messages m where m.turn_id = %(turn)s order by m.role desc, m.chunk
"""


@dataclass(frozen=True)
class RecordedTurn:
    """`record` is {} when TRACE_DAYS has passed; `answer` is the text of its cards."""

    id: str
    context: AgentMemoryContext
    at: datetime
    question: str
    answer: str
    record: Mapping[str, Any] = field(default_factory=dict)
    tool_calls: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_rows(cls, turn: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> RecordedTurn:
        """From the rows of `OF_TURN` and `MESSAGES`."""
        cards = [row for row in messages if row["role"] == "assistant"]
        questions = [row["content"] for row in messages if row["role"] == "user"]
        context = memory_context(
            chat_id=turn["chat_id"],
            root=turn["root_id"],
            subject=turn["user_id"],
            actor=turn["actor_id"],
            tenant_key=turn["tenant_key"],
            chat_type=turn["chat_type"] or "group",
        )
        return cls(
            id=turn["id"],
            context=context,
            at=turn["created_at"],
            question="\n".join(questions),
            answer="\n\n".join(row["content"] for row in cards),
            record=turn["record"] or {},
            tool_calls=tuple(cards[0]["tool_calls"]) if cards else (),
        )

    def ids(self, name: str) -> list[Any]:
        """A list of ids in the record."""
        recorded_ids = self.record.get(name)
        return list(recorded_ids) if isinstance(recorded_ids, list) else []
