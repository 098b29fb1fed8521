"""Which facts of a group a new statement replaces, where no model says so."""

from __future__ import annotations

from memory.models import GroupFact, Scope
from memory.recall.changes import replaced_facts
from tests.support.rows import every_row


def fact(key: str, value: object, *, by: str = "ou_a", scope: Scope = "chat") -> GroupFact:
    return GroupFact("1-x", key, value, scope, by, by, "2026-11-28T05:00:00+00:00")


@every_row(
    ("key", "value", "said", "patch"),
    [
        ("handover_date", "3 March", "the handover moved to 10 March", {"handover": "10 March"}),
        ("handover", "the handover is on 3 March", "the handover is on 10 March now", {}),
        ("交接", "交接在3月3号", "请记住：交接改到3月10号了", {"交接": "3月10号"}),
        ("handover_date", "3月3号", "交接改到3月10号了", {"Handover date": "3月10号"}),
        ("spec_reviewer", "Tomas", "Vera reviews the spec now", {"spec_reviewer": "Vera"}),
    ],
)
def test_a_word_of_change_replaces_what_a_colleague_had_kept(
    key: str, value: str, said: str, patch: dict[str, object]
) -> None:
    assert replaced_facts([fact(key, value)], patch, statement=said, author="ou_b") == ("1-x",)


def test_without_a_word_of_change_only_the_authors_own_fact_is_replaced() -> None:
    held, said = [fact("order", "300 chairs")], "remember that the order is 320 chairs"

    assert replaced_facts(held, {"order": "320 chairs"}, statement=said, author="ou_b") == ()
    assert replaced_facts(held, {"order": "320 chairs"}, statement=said, author="ou_a") == ("1-x",)


@every_row(
    ("key", "value", "said", "patch"),
    [
        ("venue", "Harbour House", "the handover moved to 10 March", {"handover": "10 March"}),
        ("patient_allergy", "none", "the patient is now on ibuprofen", {"patient": "ibuprofen"}),
        ("budget", 40, "the handover moved to 10 March", {"handover": None}),
        ("places", ["a", "b"], "the handover moved to 10 March", {}),
    ],
)
def test_another_matter_is_not_replaced(
    key: str, value: object, said: str, patch: dict[str, object]
) -> None:
    assert replaced_facts([fact(key, value)], patch, statement=said, author="ou_b") == ()


def test_nobody_replaces_what_a_colleague_had_kept_about_themselves() -> None:
    own = [fact("extension", "203", scope="user")]
    patch, said = {"extension": "417"}, "the extension changed to 417"

    assert replaced_facts(own, patch, statement=said, author="ou_b") == ()
    assert replaced_facts(own, patch, statement=said, author="ou_a") == ("1-x",)
