"""Seals what the database keeps and may not read: people's tokens at Feishu.

AES-GCM (NIST SP 800-38D) with a nonce of its own for each seal. Whose token it is, and which, is
sealed with it: a seal that is given out for anybody else, or as another one, does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from memory.scope import FeishuPerson

if TYPE_CHECKING:  # 3 MB, for who has a key
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SealedKind = Literal["access", "refresh", "device"]

KEY_BYTES = 32
_NONCE_BYTES = 12
_PURPOSE = "feishu user token"


class TokenKeyInvalid(ValueError):
    """The text is no key of 32 bytes in base64; the message holds nothing of it."""


class SealBroken(Exception):
    """The seal is not of this person, of another kind, damaged, or of a key that is not at hand."""


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals with the key `name` and opens with all of `keys`, by name."""

    name: str
    keys: Mapping[str, AESGCM] = field(repr=False)

    @staticmethod
    def of(key: str, before: str = "") -> Sealer:
        """`key` seals; what was sealed with `before` still opens. Raises `TokenKeyInvalid`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        keys = {key_name(one): AESGCM(one) for one in map(_bytes, filter(None, (key, before)))}
        return Sealer(next(iter(keys)), keys)

    def seal(self, person: FeishuPerson, kind: SealedKind, text: str) -> str:
        """The text as only `open` with the same arguments gives it back, in base64."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        ciphertext = self.keys[self.name].encrypt(nonce, text.encode(), _bound(person, kind))
        return base64.b64encode(nonce + ciphertext).decode()

    def open(self, person: FeishuPerson, kind: SealedKind, key: str, ciphertext: str) -> str:
        """What was sealed. `key` is the name of the one it was sealed with. Raises `SealBroken`."""
        from cryptography.exceptions import InvalidTag

        if key not in self.keys:
            raise SealBroken(f"it was sealed with the key {key!r}, which is not given")
        try:
            data = base64.b64decode(ciphertext, validate=True)
            bound = _bound(person, kind)
            text = self.keys[key].decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], bound)
        except (InvalidTag, ValueError) as exc:
            raise SealBroken(f"the seal ({kind}) does not open for this person") from exc
        return text.decode()


def new_sealing_key() -> str:
    """A key as the settings take it."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def key_name(key: bytes) -> str:
    """By which a key is known where it is not: nothing of it can be told from this."""
    return hashlib.sha256(b"name of a key\0" + key).hexdigest()[:12]


def _bytes(key: str) -> bytes:
    try:
        data = base64.b64decode(key, validate=True)
    except binascii.Error as exc:
        raise TokenKeyInvalid("it is not base64") from exc
    if len(data) != KEY_BYTES:
        raise TokenKeyInvalid(f"it has {len(data)} bytes, not {KEY_BYTES}")
    return data


def _bound(person: FeishuPerson, kind: SealedKind) -> bytes:
    """Injective, whatever the ids contain."""
    return json.dumps([_PURPOSE, person.tenant_key, person.open_id, kind]).encode()
