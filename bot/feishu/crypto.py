"""Signature and encryption of what Feishu pushes to the webhook.

Source: Feishu, "Encrypt Key" (event subscription): the signature is a plain SHA-256 over the raw
body as received, and the body is AES-256-CBC with SHA-256(encrypt key) as key and the first
sixteen bytes as IV.
"""

import base64
import binascii
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK = 16


class DecryptError(Exception):
    """The encrypted body cannot be decrypted; check that FEISHU_ENCRYPT_KEY is the console's."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def webhook_signature(timestamp: str, nonce: str, encrypt_key: str, body: bytes) -> str:
    """Lower-case hex of SHA-256 over timestamp, nonce, key and the raw (still encrypted) body."""
    head = f"{timestamp}{nonce}{encrypt_key}".encode("utf-8", "replace")
    return hashlib.sha256(head + body).hexdigest()


def verify_signature(
    *,
    timestamp: str | None,
    nonce: str | None,
    signature: str | None,
    encrypt_key: str,
    body: bytes,
) -> bool:
    """True if `signature` (X-Lark-Signature) is right; False if a header or the key is missing."""
    if not (timestamp and nonce and signature and encrypt_key):
        return False
    expected_signature = webhook_signature(timestamp, nonce, encrypt_key, body)
    return hmac.compare_digest(expected_signature.encode(), signature.encode("utf-8", "replace"))


def verify_token(expected_token: str, received_token: object) -> bool:
    """Whether `received_token` is the verification token, in constant time; False for anything but
    text."""
    if not expected_token or not isinstance(received_token, str):
        return False
    return hmac.compare_digest(expected_token.encode(), received_token.encode("utf-8", "replace"))


def decrypt(encrypt_key: str, ciphertext: object) -> bytes:
    """Plaintext of the `encrypt` field (base64 of IV and ciphertext, PKCS7).

    Raises DecryptError, always the same one, so that a caller cannot tell padding from encoding.
    """
    try:
        blob = base64.b64decode(str(ciphertext), validate=True)
    except (binascii.Error, ValueError):
        raise DecryptError from None
    if len(blob) < 2 * _BLOCK or len(blob) % _BLOCK:
        raise DecryptError
    key = hashlib.sha256(encrypt_key.encode()).digest()
    decryptor = Cipher(algorithms.AES(key), modes.CBC(blob[:_BLOCK])).decryptor()
    return _unpad(decryptor.update(blob[_BLOCK:]) + decryptor.finalize())


def encrypt(encrypt_key: str, plain: bytes) -> str:
    """The `encrypt` field as Feishu makes it, with a fresh IV; for a challenge of our own."""
    count = _BLOCK - len(plain) % _BLOCK
    key, start = hashlib.sha256(encrypt_key.encode()).digest(), os.urandom(_BLOCK)
    encryptor = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor()
    padded_text = plain + bytes([count]) * count
    return base64.b64encode(start + encryptor.update(padded_text) + encryptor.finalize()).decode()


def _unpad(padded_text: bytes) -> bytes:
    count = padded_text[-1]
    if not 1 <= count <= _BLOCK or padded_text[-count:] != bytes([count]) * count:
        raise DecryptError
    return padded_text[:-count]
