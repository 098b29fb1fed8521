"""The chain of all receipts: each names the hash of the one before, and a head outside ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory.receipts.receipt import GENESIS, Receipt, ReceiptRefused, verify


def verify_chain(
    lines: Sequence[str], public_keys: Mapping[str, bytes], *, anchor: str = ""
) -> tuple[Receipt, ...]:
    """Verifies every receipt from the first to the last.

    `anchor` is a hash that was noted outside the database (a card, the log): the chain must
    contain it, or its tail was cut. Raises `ReceiptRefused`, which names the place.
    """
    receipts: list[Receipt] = []
    previous = GENESIS
    for number, line in enumerate(lines, start=1):
        try:
            receipt = verify(line, public_keys)
        except ReceiptRefused as exc:
            raise ReceiptRefused(f"R{number}: {exc}") from exc
        if (receipt.number, receipt.previous) != (number, previous):
            raise ReceiptRefused(f"R{number}: the chain has another receipt in this place")
        receipts.append(receipt)
        previous = receipt.hash
    if anchor and all(receipt.hash != anchor for receipt in receipts):
        raise ReceiptRefused("the chain ends before the anchored receipt")
    return tuple(receipts)
