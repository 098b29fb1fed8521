"""Only bot/outbox sends cards, and only bot/outbox says that they were sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_BOT = Path(__file__).parents[2] / "bot"
_SENDING = {"deliver", "reply", "send", "send_ephemeral"}  # of a client of Feishu, or by itself
_MARKING = {"mark_sent", "mark_failed"}


def calls(source: str) -> Iterator[str]:
    """What is called, as it is written, where it sends or marks."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        of_feishu = owner.endswith("feishu") or called == "deliver"
        if name in _MARKING or (name in _SENDING and of_feishu):
            yield called


# Its turns are nobody's, and their transaction is rolled back.
_UNDONE = "operations/maintenance.py"


def test_only_the_outbox_sends_and_marks() -> None:
    found = {
        str(path.relative_to(_BOT)): list(calls(path.read_text(encoding="utf-8")))
        for path in _BOT.rglob("*.py")
    }
    assert found.pop(_UNDONE) == ["store.mark_sent"]
    outside = {path: here for path, here in found.items() if here and path[:7] != "outbox/"}
    assert outside == {}
    sends = {path for path, here in found.items() if any("mark" not in one for one in here)}
    assert sends == {
        "outbox/delivery.py", "outbox/live_card.py", "outbox/sending.py",
    }  # fmt: skip
    assert [path for path, here in found.items() if any("mark" in one for one in here)] == [
        "outbox/sending.py"
    ]


def test_the_check_sees_what_it_looks_for() -> None:
    seen = """
services.feishu.send(1)
self._feishu.reply(1)
await feishu.send_ephemeral(1)
await deliver(feishu)
store.mark_sent(1)
services.store.mark_failed(1)
self.send(1)
connection.send(1)
"""
    assert list(calls(seen.replace("await ", ""))) == [
        "services.feishu.send", "self._feishu.reply", "feishu.send_ephemeral", "deliver",
        "store.mark_sent", "services.store.mark_failed",
    ]  # fmt: skip
