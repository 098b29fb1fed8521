"""Names stand before the ids of people, chats and conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.text.languages import Sentence
from scripts.operating.console import short_ids
from scripts.operating.names import NamedIds
from tests.support.rows import every_row

KNOWN = {
    "ou_alice": Sentence("Alice", "Alice"),
    "oc_launch": Sentence("Launch ou_alice", "Launch ou_alice"),
    "oc_alone": Sentence("private chat with Alice", "与 Alice 的单聊"),
}


class Names:
    """What was asked for, one list for each time."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, ids: Iterable[str]) -> Mapping[str, Sentence]:
        wanted = sorted(ids)
        if wanted:
            self.asked.append(wanted)
        return {one: KNOWN[one] for one in wanted if one in KNOWN}


@every_row(
    ("cell", "shown"),
    [
        ("ou_alice", "Alice (ou_alice)"),
        ("ou_alice, ou_bob", "Alice (ou_alice), ou_bob"),
        ("oc_launch", "Launch ou_alice (oc_launch)"),
        ("feishu:oc_alone:main", "private chat with Alice (feishu:oc_alone:main)"),
        ("feishu:oc_launch:om_1", "Launch ou_alice (feishu:oc_launch:om_1)"),
        ("feishu:ou_alice~private:main", "Alice (feishu:ou_alice~private:main)"),
        ("feishu:doc:x:y", "feishu:doc:x:y"),
        ('{"for": "ou_alice"}', '{"for": "ou_alice"}'),
        ("ask ou_alice", "ask ou_alice"),
        ("-", "-"),
        ("", ""),
    ],
)
def test_a_cell_that_holds_ids_has_their_names_first(cell: str, shown: str) -> None:
    assert NamedIds("en", Names()).put_into_cell(cell) == shown


def test_a_sentence_has_names_before_its_ids() -> None:
    named = NamedIds("zh", Names())

    assert named.put("3 of feishu:oc_alone:main: ou_bob") == (
        "3 of 与 Alice 的单聊 (feishu:oc_alone:main): ou_bob"
    )


def test_ids_are_looked_up_together_and_once() -> None:
    names = Names()
    named = NamedIds("en", names)
    named.learn(["ou_alice", "feishu:oc_launch:main", "ou_nobody"])
    named.put_into_cell("ou_alice, ou_nobody")

    assert names.asked == [["oc_launch", "ou_alice", "ou_nobody"]]


def test_on_a_terminal_the_id_behind_the_name_is_short() -> None:
    known = {f"oc_{'b' * 32}": Sentence("Launch", "Launch")}
    shown = NamedIds("en", lambda ids: known).put(f"feishu:oc_{'b' * 32}:om_{'c' * 32}")

    assert short_ids(shown) == "Launch (oc_bbbbbb…:om_cccccc…)"
