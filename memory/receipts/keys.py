"""The key that signs receipts: 32 bytes in base64, from the environment or a file of the owner."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory.receipts.receipt import KEY_BYTES, key_name, public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE = "receipt_key"


class ReceiptKeyInvalid(ValueError):
    """The text is no key of 32 bytes in base64; the message holds nothing of it."""


def load_key(data_dir: Path, configured_key: str = "") -> Ed25519PrivateKey:
    """The key `configured_key`, or that of the file in `data_dir`, which is made with mode 0600 if
    missing.

    Workers that start together share one file: whoever links it first has made the key.
    """
    return read_key(configured_key or _from_file(data_dir / KEY_FILE))


def read_key(text: str) -> Ed25519PrivateKey:
    """The key in `text`. Raises `ReceiptKeyInvalid`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        seed = base64.b64decode(text.strip(), validate=True)
    except binascii.Error as exc:
        raise ReceiptKeyInvalid("the receipt key is not base64") from exc
    if len(seed) != KEY_BYTES:
        raise ReceiptKeyInvalid(f"the receipt key has {len(seed)} bytes, not {KEY_BYTES}")
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_keys(key: Ed25519PrivateKey, others: Sequence[str] = ()) -> Mapping[str, bytes]:
    """By name: that of `key`, and `others` in hex, of earlier keys."""
    keys = (public_key(key), *(bytes.fromhex(one) for one in others))
    return {key_name(one): one for one in keys}


def _from_file(file: Path) -> str:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600)
        draft.write_text(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())
        with suppress(FileExistsError):
            os.link(draft, file)
        draft.unlink()
    return file.read_text()
