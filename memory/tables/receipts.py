"""The chain of receipts: signs what deletions drafted, and gives receipts to whom they are for."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.receipts.receipts import GENESIS, Receipt, canonical_json, parse_receipt, seal_receipt
from memory.rpc import Rpc

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Copy:
    """A receipt with the salt of its commitments; "" if the salt was given out before."""

    receipt: Receipt
    salt: str

    @property
    def text(self) -> str:
        """The person's copy, as `scripts/memory verify` reads it."""
        return canonical_json({"receipt": self.receipt.line, "salt": self.salt})


def new_salt() -> str:
    """A salt that nobody can guess."""
    return secrets.token_hex(32)


class ReceiptStore:
    """Every call has the rights of the service. Methods raise `StoreError`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def has_drafts(self) -> bool:
        """Whether anything waits for a signature."""
        return bool((await self._call("receipts_to_sign", p_limit=1))["drafts"])

    async def sign(self, key: Ed25519PrivateKey) -> tuple[Receipt, ...]:
        """Signs every draft, oldest first, and returns the receipts.

        Another process may sign at the same time: whoever is second begins again at the new end.
        """
        signed_receipts: list[Receipt] = []
        while (waiting := await self._call("receipts_to_sign", p_limit=_PAGE))["drafts"]:
            signed_receipts += await self._append(waiting, key)
        return tuple(signed_receipts)

    async def copy(self, salt: str) -> Copy | None:
        """The signed receipt that a deletion drafted with this salt."""
        mark = hashlib.sha256(salt.encode()).hexdigest()
        line = await self._call("receipt_of", p_mark=mark)
        return Copy(parse_receipt(line), salt) if line else None

    async def take(
        self, person: str, tenant_key: str, *, limit: int = 20, turn_id: str = ""
    ) -> tuple[Copy, ...]:
        """The person's receipts, those with a salt to give out first, the newest of them first.

        Each salt is given out once. The turn `turn_id` that shows them keeps no words once it is
        over.
        """
        params = {"p_person": person, "p_tenant_key": tenant_key, "p_limit": limit}
        rows = await self._call("take_receipts", **params, p_by_turn=turn_id or None)
        return tuple(Copy(parse_receipt(row["line"]), row["salt"] or "") for row in rows)

    async def own(
        self, person: str, tenant_key: str, *, after: int = 0, limit: int = 20
    ) -> tuple[Receipt, ...]:
        """The person's newest receipts above number `after`, first to last, without salts."""
        params = {"p_person": person, "p_tenant_key": tenant_key, "p_after": after}
        rows = await self._call("own_receipts", **params, p_limit=limit)
        return tuple(map(parse_receipt, rows))

    async def page(self, *, before: int = 0, limit: int) -> tuple[Receipt, ...]:
        """Everybody's receipts below number `before` (0: the newest), newest first."""
        last = before - 1 if before else (await self._call("receipts_to_sign", p_limit=0))["number"]
        after = max(0, last - limit)
        rows = await self._call("list_receipts", p_after=after, p_limit=last - after)
        return tuple(map(parse_receipt, reversed(rows)))

    async def lines(self) -> AsyncIterator[str]:
        """The whole chain, first to last."""
        after = 0
        while page := await self._call("list_receipts", p_after=after, p_limit=_PAGE):
            for line in page:
                yield line
            after += len(page)

    async def _append(
        self, waiting: Mapping[str, Any], key: Ed25519PrivateKey
    ) -> tuple[Receipt, ...]:
        number, previous = waiting["number"], waiting["hash"] or GENESIS
        receipts: list[Receipt] = []
        for draft in waiting["drafts"]:
            receipt = seal_receipt(draft["draft"], number=number + 1, previous=previous, key=key)
            params = {
                "p_id": draft["id"],
                "p_number": receipt.number,
                "p_previous": previous,
                "p_line": receipt.line,
            }
            if not await self._call("keep_receipt", **params):
                break
            receipts.append(receipt)
            number, previous = receipt.number, receipt.hash
        return tuple(receipts)

    async def _call(self, function: str, **params: object) -> Any:
        return await self._rpc.call(function, params, None)
