"""One receipt: what a deletion removed, in canonical JSON, signed with Ed25519 (RFC 8032).

A receipt is a single line. There is exactly one way to write it, so that any changed byte shows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # 3 MB, for who signs or verifies
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


def canonical(fields: Mapping[str, Any]) -> str:
    """The only JSON text of these fields: ASCII, sorted keys, no spaces, no floats."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def seal(
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
    signature = key.sign(canonical(fields).encode()).hex()
    return parse(canonical({**fields, "signature": signature}))


def parse(line: str) -> Receipt:
    """Reads a line without verifying its signature. Raises `ReceiptRefused`."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise ReceiptRefused("it is not JSON") from exc
    if not isinstance(fields, dict) or set(fields) != _FIELDS:
        raise ReceiptRefused("it does not have the fields of a receipt")
    if canonical(fields) != line:
        raise ReceiptRefused("it is not in canonical form")
    if fields["version"] != _VERSION or type(fields["number"]) is not int:
        raise ReceiptRefused("it is of another version")
    return Receipt(fields["number"], fields["previous"], fields["key"], fields, line)


def verify(line: str, public_keys: Mapping[str, bytes]) -> Receipt:
    """Reads a line and verifies its signature; `public_keys` by name. Raises `ReceiptRefused`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    receipt = parse(line)
    if receipt.key not in public_keys:
        raise ReceiptRefused("it was signed with a key that is not given")
    unsigned_fields = {name: one for name, one in receipt.fields.items() if name != "signature"}
    try:
        signature = bytes.fromhex(receipt.fields["signature"])
        if signature.hex() != receipt.fields["signature"]:
            raise ReceiptRefused("its signature is not in canonical form")
        key = Ed25519PublicKey.from_public_bytes(public_keys[receipt.key])
        key.verify(signature, canonical(unsigned_fields).encode())
    except (InvalidSignature, ValueError, TypeError) as exc:
        raise ReceiptRefused("its signature is wrong") from exc
    return receipt


def public_key(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes that verify what the key signs."""
    return key.public_key().public_bytes_raw()


def key_name(public: bytes) -> str:
    """How a receipt names the key that verifies it."""
    return hashlib.sha256(public).hexdigest()[:16]
