"""What Feishu would push: encrypted, signed deliveries."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ENCRYPT_KEY = "delivery-encrypt-key"
TOKEN = "delivery-verification-token"


def encrypt(payload: object, key: str = ENCRYPT_KEY) -> str:
    """base64 of IV and AES-256-CBC ciphertext (Feishu: Encrypt Key)."""
    padder = padding.PKCS7(128).padder()
    plain = json.dumps(payload, ensure_ascii=False).encode()
    padded = padder.update(plain) + padder.finalize()
    iv = secrets.token_bytes(16)
    encryptor = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(iv))
    context = encryptor.encryptor()
    return base64.b64encode(iv + context.update(padded) + context.finalize()).decode()


@dataclass
class Delivery:
    """A genuine delivery of `payload`; a test then spoils one thing."""

    payload: Any
    key: str = ENCRYPT_KEY
    timestamp: str = field(default_factory=lambda: str(int(time.time())))
    nonce: str = field(default_factory=lambda: secrets.token_hex(6))
    body: bytes = b""

    def __post_init__(self) -> None:
        self.body = self.body or json.dumps({"encrypt": encrypt(self.payload, self.key)}).encode()

    @property
    def headers(self) -> dict[str, str]:
        head = f"{self.timestamp}{self.nonce}{self.key}".encode()
        return {
            "Content-Type": "application/json; charset=utf-8",
            "X-Lark-Request-Timestamp": self.timestamp,
            "X-Lark-Request-Nonce": self.nonce,
            "X-Lark-Signature": hashlib.sha256(head + self.body).hexdigest(),
        }


def message_event(
    text: str = "hello",
    *,
    message_id: str = "",
    event_id: str = "",
    token: str = TOKEN,
    app_id: str = "cli_1",
    **more: Any,
) -> dict[str, Any]:
    """An im.message.receive_v1 event in a p2p chat; `more` goes into the message."""
    message = {
        "message_id": message_id or f"om_{secrets.token_hex(8)}",
        "chat_id": "oc_1",
        "chat_type": "p2p",
        "message_type": "text",
        "create_time": str(int(time.time() * 1000)),
        "content": json.dumps({"text": text}, ensure_ascii=False),
        **more,
    }
    return {
        "schema": "2.0",
        "header": {
            "event_id": event_id or secrets.token_hex(16),
            "event_type": "im.message.receive_v1",
            "create_time": message["create_time"],
            "token": token,
            "app_id": app_id,
            "tenant_key": "tenant",
        },
        "event": {
            "sender": {
                "sender_id": {"open_id": "ou_alice"},
                "sender_type": "user",
                "tenant_key": "tenant",
            },
            "message": message,
        },
    }
