"""Signs, chains, stores and verifies receipts of deletions, and loads the key that signs them.

A receipt is one line of canonical JSON, signed with Ed25519 (RFC 8032), that names the hash of
the receipt before it. There is exactly one way to write it, so that any changed byte shows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.rpc import Rpc

if TYPE_CHECKING:  # cryptography takes 3 MB, which only signing and verifying need
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

GENESIS = "0" * 64  # the hash before the first receipt
KEY_BYTES = 32
_FIELDS = {
    "about",
    "at",
    "commitments",
    "counts",
    "key",
    "kind",
    "number",
    "previous",
    "signature",
    "unreachable",
    "version",
}
_VERSION = 1

KEY_FILE = "receipt_key"
_PAGE = 100


class ReceiptRefused(ValueError):
    """The receipt is damaged, forged, or not where the chain has it; the message says which."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt as it stands in its line. `key` names the public key, `fields` are all of it."""

    number: int
    previous: str
    key: str
    fields: Mapping[str, Any]
    line: str

    @property
    def hash(self) -> str:
        """What the next receipt names as `previous`."""
        return hashlib.sha256(self.line.encode()).hexdigest()

    @property
    def label(self) -> str:
        """How a card names it."""
        return f"R{self.number} · {self.hash[:8]}…"

    def names_text(self, salt: str, text: str) -> bool:
        """Whether the deletion says that it deleted `text`."""
        text_commitment = commitment(salt, text)
        return any(hmac.compare_digest(text_commitment, one) for one in self.fields["commitments"])


def commitment(salt: str, text: str) -> str:
    """Binds the receipt to a text that nobody without the salt can guess."""
    return hashlib.sha256((salt + text).encode()).hexdigest()


def canonical_json(fields: Mapping[str, Any]) -> str:
    """The only JSON text of these fields: ASCII, sorted keys, no spaces, no floats."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def seal_receipt(
    draft: Mapping[str, Any], *, number: int, previous: str, key: Ed25519PrivateKey
) -> Receipt:
    """Signs a draft as the next of the chain.

    A draft says kind, at, about, counts, unreachable and commitments.
    """
    fields = {
        **draft,
        "number": number,
        "previous": previous,
        "key": key_name(public_key(key)),
        "version": _VERSION,
    }
    signature = key.sign(canonical_json(fields).encode()).hex()
    return parse_receipt(canonical_json({**fields, "signature": signature}))


def parse_receipt(line: str) -> Receipt:
    """Reads a line without verifying its signature. Raises `ReceiptRefused`."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise ReceiptRefused("it is not JSON") from exc
    if not isinstance(fields, dict) or set(fields) != _FIELDS:
        raise ReceiptRefused("it does not have the fields of a receipt")
    if canonical_json(fields) != line:
        raise ReceiptRefused("it is not in canonical form")
    if fields["version"] != _VERSION or type(fields["number"]) is not int:
        raise ReceiptRefused("it is of another version")
    return Receipt(fields["number"], fields["previous"], fields["key"], fields, line)


def verify_receipt(line: str, public_keys: Mapping[str, bytes]) -> Receipt:
    """Reads a line and verifies its signature; `public_keys` by name. Raises `ReceiptRefused`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    receipt = parse_receipt(line)
    if receipt.key not in public_keys:
        raise ReceiptRefused("it was signed with a key that is not given")
    unsigned_fields = {name: one for name, one in receipt.fields.items() if name != "signature"}
    try:
        signature = bytes.fromhex(receipt.fields["signature"])
        if signature.hex() != receipt.fields["signature"]:
            raise ReceiptRefused("its signature is not in canonical form")
        key = Ed25519PublicKey.from_public_bytes(public_keys[receipt.key])
        key.verify(signature, canonical_json(unsigned_fields).encode())
    except (InvalidSignature, ValueError, TypeError) as exc:
        raise ReceiptRefused("its signature is wrong") from exc
    return receipt


def public_key(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes that verify what the key signs."""
    return key.public_key().public_bytes_raw()


def key_name(public: bytes) -> str:
    """How a receipt names the key that verifies it."""
    return hashlib.sha256(public).hexdigest()[:16]


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
            receipt = verify_receipt(line, public_keys)
        except ReceiptRefused as exc:
            raise ReceiptRefused(f"R{number}: {exc}") from exc
        if (receipt.number, receipt.previous) != (number, previous):
            raise ReceiptRefused(f"R{number}: the chain has another receipt in this place")
        receipts.append(receipt)
        previous = receipt.hash
    if anchor and all(receipt.hash != anchor for receipt in receipts):
        raise ReceiptRefused("the chain ends before the anchored receipt")
    return tuple(receipts)


class ReceiptKeyInvalid(ValueError):
    """The text is no key of 32 bytes in base64; the message holds nothing of it."""


def load_signing_key(data_dir: Path, configured_key: str = "") -> Ed25519PrivateKey:
    """The key `configured_key`, or that of the file in `data_dir`, which is made with mode 0600 if
    missing.

    Workers that start together share one file: whoever links it first has made the key.
    """
    return read_signing_key(configured_key or _key_from_file(data_dir / KEY_FILE))


def read_signing_key(text: str) -> Ed25519PrivateKey:
    """The key in `text`. Raises `ReceiptKeyInvalid`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        seed = base64.b64decode(text.strip(), validate=True)
    except binascii.Error as exc:
        raise ReceiptKeyInvalid("the receipt key is not base64") from exc
    if len(seed) != KEY_BYTES:
        raise ReceiptKeyInvalid(f"the receipt key has {len(seed)} bytes, not {KEY_BYTES}")
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_keys_by_name(key: Ed25519PrivateKey, others: Sequence[str] = ()) -> Mapping[str, bytes]:
    """By name: that of `key`, and `others` in hex, of earlier keys."""
    keys = (public_key(key), *(bytes.fromhex(one) for one in others))
    return {key_name(one): one for one in keys}


def _key_from_file(file: Path) -> str:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600)
        draft.write_text(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())
        with suppress(FileExistsError):
            os.link(draft, file)
        draft.unlink()
    return file.read_text()


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
