"""People, chats and threads with names of their own, so that tests never meet in one database."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal

from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, memory_context


@dataclass(frozen=True, slots=True)
class Group:
    """A Feishu group of one test. The same name is the same person in every thread and chat."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:10])

    def person(self, name: str) -> str:
        """An open_id."""
        return f"ou_{name}_{self.mark}"

    def chat(self, name: str = "here") -> str:
        """A chat_id."""
        return f"oc_{name}_{self.mark}"

    def message(self, name: str) -> str:
        """A message_id."""
        return f"om_{name}_{self.mark}"

    def turn(
        self,
        subject: str = "alice",
        *,
        sender: str | None = None,
        thread: str = "thread",
        chat: str = "here",
        tenant: str = "tenant",
        chat_type: ChatType | Literal[""] = "",
    ) -> AgentMemoryContext:
        """The context of a turn in which `sender` (the subject unless named) asks."""
        return memory_context(
            chat_id=self.chat(chat),
            root=self.message(thread),
            subject=self.person(subject),
            actor=self.person(sender or subject),
            tenant_key=tenant,
            chat_type=chat_type,
        )

    def p2p(self, person: str = "alice", *, tenant: str = "tenant") -> AgentMemoryContext:
        """`person` alone with the bot."""
        return memory_context(
            chat_id=self.chat(f"p2p{person}"),
            root=MAIN_ROOT,
            subject=self.person(person),
            actor=self.person(person),
            tenant_key=tenant,
            chat_type="p2p",
        )

    def former_place(
        self, person: str = "alice", *, question: str = "asked", tenant: str = "tenant"
    ) -> AgentMemoryContext:
        """Where earlier versions kept what `person` alone was shown of a question."""
        return memory_context(
            chat_id=self.person(person),
            root=self.message(question),
            subject=self.person(person),
            actor=self.person(person),
            tenant_key=tenant,
            chat_type="p2p",
        )
