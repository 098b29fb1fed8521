"""What is looked up after an answer, and how the offer reads."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

from bot.features.private_answers import offering
from bot.features.private_answers.offering import OfferJob, offer_job_of
from memory.rpc import Statement
from memory.scope import memory_context


def wanted(**different: Any) -> bool:
    """Whether a look-up follows Alice's question in a group, but for what is `different`."""
    context = memory_context(
        chat_id="oc_1", root="om_q", subject="ou_bob", actor="ou_alice", chat_type="group"
    )
    turn = {
        "id": "om_q",
        "in_group": True,
        "by_click": False,
        "question": "When is our launch?",
        "context": context,
        "sender_type": "user",
        "private_answers": True,
        "degraded": False,
        "elsewhere": None,
        **different,
    }
    services = SimpleNamespace(settings=SimpleNamespace(private_answers=turn["private_answers"]))
    request = SimpleNamespace(sender_type=turn["sender_type"], words_ms=0)
    opened = SimpleNamespace(degraded=turn["degraded"], elsewhere=turn["elsewhere"])
    asked = cast(Any, SimpleNamespace(request=request, **turn))
    return offer_job_of(cast(Any, services), asked, cast(Any, opened)) is not None


def test_a_look_up_follows_what_a_person_asked_in_a_group() -> None:
    assert wanted()
    assert not wanted(private_answers=False)
    assert not wanted(in_group=False)
    assert not wanted(by_click=True)
    assert not wanted(sender_type="bot")
    assert not wanted(degraded=True)
    assert wanted(elsewhere=True)
    assert not wanted(elsewhere=False)
    assert not wanted(question="/memory")


def test_the_place_of_a_look_up_is_the_person() -> None:
    asked = OfferJob("om_q", "feishu:oc_1:om_root", "ou_bob", "ou_alice", "t")

    assert asked.group.claims()["chat_type"] == "group"
    assert (asked.group.user_id, asked.group.actor_id) == ("ou_bob", "ou_alice")
    claims = asked.own_place.claims()
    assert claims["sub"] == claims["actor"] == claims["chat_id"] == "ou_alice"
    assert claims["chat_type"] == "p2p"
    assert asked.own_place.conversation_id == "feishu:ou_alice:main"


def test_a_job_that_failed_once_is_read_without_the_queues_note() -> None:
    asked = OfferJob("om_q", "feishu:oc_1:om_root", "ou_bob", "ou_alice", "t")

    assert OfferJob.of_job({**asdict(asked), "failed_once": True}) == asked


def test_the_offer_quotes_the_beginning_of_the_question_on_one_line() -> None:
    shown = offering.offer_text("What is\nthe wifi password? " + "x" * 100, "en")

    assert "“What is the wifi password? xx" in shown
    assert "…”" in shown
    assert len(shown) < 160


def test_what_a_question_holds_is_no_markup_of_the_offer() -> None:
    shown = offering.offer_text("<at id=all></at> ![x](img_1) why?", "en")

    assert "<at" not in shown


def test_two_statements_are_one_transaction_with_the_result_of_the_first() -> None:
    both = Statement("select %s", (1,)).then(Statement("select %s, %s", (2, 3)))

    assert both == Statement("select %s; select %s, %s", (1, 2, 3))
