"""Whose memory and which thread: the naming rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scope import (
    MAIN_ROOT,
    conversation_id,
    document_chat,
    memory_context,
    split_conversation_id,
    thread_root,
)

ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=40)


def test_a_conversation_is_named_after_its_chat_and_root() -> None:
    assert conversation_id("oc_chat", "om_root") == "feishu:oc_chat:om_root"


@given(ids, ids, ids, ids)
def test_two_threads_have_one_name_only_when_they_are_the_same_thread(
    chat: str, root: str, other_chat: str, other_root: str
) -> None:
    same = conversation_id(chat, root) == conversation_id(other_chat, other_root)

    assert same == ((chat, root) == (other_chat, other_root))


@pytest.mark.parametrize("reply_in_thread", [True, False])
@pytest.mark.parametrize("chat_type", ["group", "p2p"])
def test_in_a_thread_the_conversation_is_the_threads(chat_type: str, reply_in_thread: bool) -> None:
    root = thread_root(
        message_id="om_self",
        root_id="om_root",
        thread_id="omt_thread",
        chat_type=chat_type,
        reply_in_thread=reply_in_thread,
    )

    assert root == "om_root"


@pytest.mark.parametrize("root_id", [None, "", "om_quoted"])
@pytest.mark.parametrize(
    ("chat_type", "reply_in_thread", "root"),
    [
        ("group", True, "om_self"),
        ("group", False, "main"),
        ("p2p", True, "main"),
        ("p2p", False, "main"),
    ],
)
def test_outside_of_threads_a_quotation_changes_nothing(
    root_id: str | None, chat_type: str, reply_in_thread: bool, root: str
) -> None:
    assert root == thread_root(
        message_id="om_self",
        root_id=root_id,
        chat_type=chat_type,
        reply_in_thread=reply_in_thread,
    )


@pytest.mark.parametrize("thread_id", [None, "omt_topic"])
@pytest.mark.parametrize("reply_in_thread", [True, False])
@pytest.mark.parametrize(
    ("root_id", "root"), [("om_topic", "om_topic"), (None, "om_self"), ("", "om_self")]
)
def test_in_a_topic_group_the_topic_is_the_conversation(
    root_id: str | None, root: str, reply_in_thread: bool, thread_id: str | None
) -> None:
    assert root == thread_root(
        message_id="om_self",
        root_id=root_id,
        thread_id=thread_id,
        topic_group=True,
        chat_type="group",
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


def test_the_claims_say_where_nobody_reads_what_others_said() -> None:
    context = memory_context(chat_id="oc_chat", root="main", subject="ou_ann", actor="ou_ann")

    assert context.claims("person") == context.claims() | {"sharing": "person"}
    assert "sharing" not in context.claims("chat")


def test_the_claims_of_a_guest_name_their_own_tenant_too() -> None:
    context = memory_context(
        chat_id="oc_chat",
        root="main",
        subject="ou_gus",
        actor="ou_gus",
        tenant_key="t",
        actor_tenant="theirs",
    )

    claims = context.claims()
    assert (claims["tenant_key"], claims["actor_tenant"]) == ("t", "theirs")


def test_a_thread_of_comments_is_one_conversation() -> None:
    chat = document_chat("doxx", "7")
    assert split_conversation_id(conversation_id(chat, MAIN_ROOT)) == (chat, MAIN_ROOT)
    assert split_conversation_id("feishu:oc_1:om_1") == ("oc_1", "om_1")
