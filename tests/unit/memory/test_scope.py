"""Whose memory and which thread: the naming rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scope import conversation_id, memory_context, thread_root

ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=40)


def test_a_conversation_is_named_after_its_chat_and_root() -> None:
    assert conversation_id("oc_chat", "om_root") == "feishu:oc_chat:om_root"


@given(ids, ids, ids, ids)
def test_two_threads_have_one_name_only_when_they_are_the_same_thread(
    chat: str, root: str, other_chat: str, other_root: str
) -> None:
    same = conversation_id(chat, root) == conversation_id(other_chat, other_root)

    assert same == ((chat, root) == (other_chat, other_root))


@pytest.mark.parametrize(
    ("root_id", "chat_type", "reply_in_thread", "root"),
    [
        ("om_root", "group", True, "om_root"),
        ("om_root", "group", False, "om_root"),
        ("om_root", "p2p", True, "om_root"),
        (None, "group", True, "om_self"),
        ("", "group", True, "om_self"),
        (None, "group", False, "main"),
        (None, "p2p", True, "main"),
        ("", "p2p", False, "main"),
    ],
)
def test_the_root_is_the_replied_to_root_or_the_message_itself_or_main(
    root_id: str | None, chat_type: str, reply_in_thread: bool, root: str
) -> None:
    assert root == thread_root(
        message_id="om_self",
        root_id=root_id,
        chat_type=chat_type,
        reply_in_thread=reply_in_thread,
    )


def test_a_turn_about_somebody_works_on_their_memory_in_this_thread() -> None:
    context = memory_context(
        chat_id="oc_chat", root="om_root", subject="ou_john", actor="ou_alice", tenant_key="t"
    )

    assert context.conversation_id == "feishu:oc_chat:om_root"
    assert context.user_scope_id == "user:ou_john"
    assert (context.user_id, context.actor_id) == ("ou_john", "ou_alice")
    assert (context.chat_id, context.root_id, context.tenant_key) == ("oc_chat", "om_root", "t")


@given(ids, ids)
def test_only_who_is_sender_and_subject_speaks_for_themselves(subject: str, actor: str) -> None:
    context = memory_context(chat_id="oc_chat", root="main", subject=subject, actor=actor)

    assert context.speaks_for_self == (subject == actor)


def test_the_claims_are_those_the_policies_read() -> None:
    context = memory_context(
        chat_id="oc_chat", root="om_root", subject="ou_john", actor="ou_alice", tenant_key="t"
    )

    assert context.claims() == {
        "sub": "ou_john",
        "actor": "ou_alice",
        "chat_id": "oc_chat",
        "tenant_key": "t",
        "role": "authenticated",
    }
