"""Names places, threads and people, and says whose memory a turn uses. Pure.

`conversation_id` is `feishu:{chat_id}:{root}`; a thread of comments is the chat
`doc:{file_token}:{comment_id}`. The subject is whose memory a turn uses, the actor is who wrote
the message. A person is an open_id in a tenant; the id of their Supabase Auth user follows from
those two alone, so every worker arrives at the same user."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ChatType = Literal["group", "p2p"]
Sharing = Literal["chat", "person"]  # whose words an answer draws on: everybody's, or the asker's
MAIN_ROOT = "main"
_DOCUMENT = "doc:"

# Made once for this purpose. Another value would give everybody another Auth user.
AUTH_NAMESPACE = uuid.UUID("6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88")
AUTH_PROVIDER = "feishu"

# RFC 2606 reserves .invalid: nobody can own the domain, and nothing can be delivered there.
_MAIL_DOMAIN = "feishu.invalid"
_MAIL_DIGITS = 40  # of a local part, which holds 64 at most (RFC 5321)


@dataclass(frozen=True, slots=True)
class AgentMemoryContext:
    """One person's memory in one thread. All ids are Feishu's (`oc_`, `om_`, `ou_`).

    `tenant_key` is the one that has the bot, `actor_tenant` the sender's own, "" where it is that
    one. `chat_type` says who reads an answer that is given here: in p2p the person alone. "" where
    it is not known; then nothing is reachable but what was said in this chat.
    """

    conversation_id: str
    user_scope_id: str
    chat_id: str
    root_id: str
    user_id: str
    actor_id: str
    tenant_key: str = ""
    chat_type: ChatType | Literal[""] = ""
    actor_tenant: str = ""

    @property
    def speaks_for_self(self) -> bool:
        """Whether the sender is the subject."""
        return self.user_id == self.actor_id

    def identity(self) -> dict[str, str]:
        """The arguments by which the SQL functions are told thread, subject and sender."""
        return {
            "p_conversation_id": self.conversation_id,
            "p_user_id": self.user_id,
            "p_actor_id": self.actor_id,
        }

    def claims(self, sharing: Sharing = "chat") -> dict[str, str]:
        """The claims of this turn's token; the policies in `sql/` read exactly these."""
        kind = {"chat_type": self.chat_type} if self.chat_type else {}
        sharing_claim = {"sharing": sharing} if sharing == "person" else {}
        guest = {"actor_tenant": self.actor_tenant} if self.actor_tenant else {}
        return {
            "sub": self.user_id,
            "actor": self.actor_id,
            "chat_id": self.chat_id,
            **kind,
            **sharing_claim,
            **guest,
            "tenant_key": self.tenant_key,
            "role": "authenticated",
        }


def conversation_id(chat_id: str, root: str) -> str:
    """`feishu:{chat_id}:{root}`; of a thread of comments `feishu:{chat_id}`."""
    return f"feishu:{chat_id}" if is_document_chat(chat_id) else f"feishu:{chat_id}:{root}"


def document_chat(file_token: str, comment_id: str) -> str:
    """The chat that a thread of comments is: `doc:{file_token}:{comment_id}`."""
    return f"{_DOCUMENT}{file_token}:{comment_id}"


def is_document_chat(chat_id: str) -> bool:
    """Whether a chat is a thread of comments in a document."""
    return chat_id.startswith(_DOCUMENT)


def split_conversation_id(conversation: str) -> tuple[str, str]:
    """Chat and root of a conversation_id. Raises ValueError for what is none."""
    _, place = conversation.split(":", 1)
    if is_document_chat(place):
        return place, MAIN_ROOT
    chat_id, root = place.split(":", 1)
    return chat_id, root


def thread_root(
    *,
    message_id: str,
    root_id: str | None,
    chat_type: str,
    reply_in_thread: bool,
    thread_id: str | None = None,
    topic_group: bool = False,
) -> str:
    """The root of the conversation a message belongs to.

    Every reply carries a `root_id`, a mere quotation too: only a `thread_id`, or a topic group,
    makes it a thread's. Elsewhere a message in a group opens a thread under itself, because the bot
    answers in a thread. A p2p chat, and a group without threads, is one conversation.
    """
    if thread_id or topic_group:
        return root_id or message_id
    if chat_type == "p2p" or not reply_in_thread:
        return MAIN_ROOT
    return message_id


def memory_context(
    *,
    chat_id: str,
    root: str,
    subject: str,
    actor: str,
    tenant_key: str = "",
    chat_type: ChatType | Literal[""] = "",
    actor_tenant: str = "",
) -> AgentMemoryContext:
    """The context of a turn: `subject`'s memory, asked by `actor`, in thread `root` of a chat."""
    return AgentMemoryContext(
        conversation_id=conversation_id(chat_id, root),
        user_scope_id=f"user:{subject}",
        chat_id=chat_id,
        root_id=root,
        user_id=subject,
        actor_id=actor,
        tenant_key=tenant_key,
        chat_type=chat_type,
        actor_tenant=actor_tenant,
    )


def private_context(
    person: str, tenant_key: str = "", actor_tenant: str = "", chat_id: str = ""
) -> AgentMemoryContext:
    """Where only the person reads: the main conversation of their p2p chat `chat_id`. Where none is
    known it is a place named by their open_id, so no token for it is anybody else's."""
    return memory_context(
        chat_id=chat_id or person,
        root=MAIN_ROOT,
        subject=person,
        actor=person,
        tenant_key=tenant_key,
        chat_type="p2p",
        actor_tenant=actor_tenant,
    )


def context_of_row(row: Mapping[str, str]) -> AgentMemoryContext:
    """The context of a stored row: its columns `chat_id`, `user_id`, `actor_id`, `tenant_key`, and
    `root_id` or `conversation_id`."""
    return memory_context(
        chat_id=row["chat_id"],
        root=row["root_id"]
        if "root_id" in row
        else split_conversation_id(row["conversation_id"])[1],
        subject=row["user_id"],
        actor=row["actor_id"],
        tenant_key=row["tenant_key"],
    )


def own_context(conversation: str, person: str, tenant_key: str = "") -> AgentMemoryContext:
    """`person` speaking for themselves in a conversation that is known by its id only.

    Raises ValueError for what is no conversation_id.
    """
    chat_id, root = split_conversation_id(conversation)
    return memory_context(
        chat_id=chat_id, root=root, subject=person, actor=person, tenant_key=tenant_key
    )


@dataclass(frozen=True, slots=True, order=True)
class FeishuPerson:
    """Somebody in a tenant; the same open_id in two tenants is two people."""

    tenant_key: str
    open_id: str

    @property
    def auth_user_id(self) -> uuid.UUID:
        """The id of their user in Supabase Auth (version 5)."""
        return uuid.uuid5(AUTH_NAMESPACE, self._encoded)

    @property
    def placeholder_email(self) -> str:
        """The address of that user. Auth wants one, and the bot knows none of people."""
        digest = hashlib.sha256(self._encoded.encode()).hexdigest()
        return f"{digest[:_MAIL_DIGITS]}@{_MAIL_DOMAIN}"

    @property
    def app_metadata(self) -> dict[str, str]:
        """What the user's `app_metadata` says; only the service can write that."""
        return {"provider": AUTH_PROVIDER, "tenant_key": self.tenant_key, "open_id": self.open_id}

    @property
    def _encoded(self) -> str:
        """Injective, whatever the ids contain, and plain ASCII."""
        return json.dumps([self.tenant_key, self.open_id])
