"""The webhook's cryptography, against Feishu's published vector and our own encryption."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.crypto import (
    DecryptError,
    decrypt,
    verify_signature,
    verify_token,
    webhook_signature,
)
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "feishu"


def fixture(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def encrypt(key: str, plaintext: bytes, iv: bytes = bytes(16)) -> str:
    pad = 16 - len(plaintext) % 16
    cipher = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(iv))
    encryptor = cipher.encryptor()
    body = encryptor.update(plaintext + bytes([pad]) * pad) + encryptor.finalize()
    return base64.b64encode(iv + body).decode()


def check(pushed: dict[str, Any], **changed: Any) -> bool:
    headers = pushed["headers"]
    values: dict[str, Any] = {
        "timestamp": headers["X-Lark-Request-Timestamp"],
        "nonce": headers["X-Lark-Request-Nonce"],
        "signature": headers["X-Lark-Signature"],
        "encrypt_key": pushed["encrypt_key"],
        "body": pushed["raw_body"].encode(),
    }
    return verify_signature(**{**values, **changed})


def test_feishus_published_vector_decrypts_to_hello_world():
    vector = fixture("crypto_official_vector")
    assert decrypt(vector["key"], vector["encrypt"]) == vector["plaintext"].encode()


@every_row("name", ["webhook_encrypted_event", "webhook_encrypted_url_verification"])
def test_a_pushed_body_decrypts_to_its_plaintext(name):
    pushed = fixture(name)
    encrypted = json.loads(pushed["raw_body"])["encrypt"]
    assert json.loads(decrypt(pushed["encrypt_key"], encrypted)) == pushed["plaintext"]


def test_a_signed_push_is_accepted():
    assert check(fixture("webhook_encrypted_event"))


@every_row(
    "changed",
    [
        {"timestamp": "1770000002"},
        {"nonce": "other"},
        {"signature": "0" * 64},
        {"signature": "é" * 64},
        {"signature": "\udcff"},
        {"encrypt_key": "other"},
        {"body": b"{}"},
        {"timestamp": None},
        {"nonce": None},
        {"signature": None},
        {"signature": ""},
        {"encrypt_key": ""},
    ],
)
def test_a_push_with_anything_changed_or_missing_is_refused(changed):
    assert not check(fixture("webhook_encrypted_event"), **changed)


def test_an_empty_key_never_verifies_even_a_matching_signature():
    given_signature = webhook_signature("1", "2", "", b"{}")
    assert not verify_signature(
        timestamp="1", nonce="2", signature=given_signature, encrypt_key="", body=b"{}"
    )


@every_row("token", [None, "", 3, "wrong", "é", "tokenx"])
def test_a_wrong_or_absent_verification_token_is_refused(token):
    assert not verify_token("token", token)


def test_the_verification_token_is_accepted_and_an_unset_one_never_is():
    assert verify_token("token", "token")
    assert not verify_token("", "")


@given(st.binary(max_size=200), st.text(min_size=1, max_size=20))
def test_what_was_encrypted_comes_back(plaintext, key):
    key = key.encode("utf-8", "replace").decode()
    assert decrypt(key, encrypt(key, plaintext)) == plaintext


@given(st.one_of(st.text(max_size=80), st.none(), st.binary(max_size=80).map(base64.b64encode)))
def test_rubbish_raises_the_one_generic_error(rubbish):
    with pytest.raises(DecryptError) as caught:
        decrypt("key", rubbish)
    assert str(caught.value) == str(DecryptError())


@every_row("last", [0, 2, 17, 255])
def test_wrong_padding_raises_the_same_error_as_everything_else(last):
    blob = bytearray(base64.b64decode(encrypt("key", b"x" * 15)))
    blob[15] ^= 1 ^ last
    with pytest.raises(DecryptError):
        decrypt("key", base64.b64encode(bytes(blob)).decode())
