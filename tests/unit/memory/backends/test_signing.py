"""The project's own signing key: what is taken, and that its public half verifies the tokens."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from memory.backends.supabase import (
    Credentials,
    MalformedKey,
    TokenMinter,
    key_of_jwk,
    signing_key,
)
from memory.scope import memory_context
from tests.support.rows import every_row

ALICE = memory_context(chat_id="oc_here", root="main", subject="ou_alice", actor="ou_bob")
PUBLIC = ("kty", "crv", "x", "y", "n", "e", "kid", "alg")


def es256(curve: ec.EllipticCurve | None = None, **more: object) -> dict[str, Any]:
    key = ec.generate_private_key(curve or ec.SECP256R1())
    return {**ECAlgorithm.to_jwk(key, as_dict=True), "kid": "key-1", "alg": "ES256", **more}


def rs256(bits: int = 2048, **more: object) -> dict[str, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return {**RSAAlgorithm.to_jwk(key, as_dict=True), "kid": "key-2", "alg": "RS256", **more}


def without(jwk: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in jwk.items() if name not in names}


def public_half(jwk: dict[str, Any]) -> dict[str, Any]:
    return {name: jwk[name] for name in PUBLIC if name in jwk}


@pytest.mark.parametrize("jwk", [es256(), rs256(), without(es256(), "alg")], ids=["ec", "rsa", ""])
def test_a_token_is_verified_with_the_public_half_of_the_key(jwk: dict[str, Any]) -> None:
    token = TokenMinter(key_of_jwk(json.dumps(jwk))).token(ALICE)

    header = jwt.get_unverified_header(token)
    assert (header["kid"], header["alg"]) == (jwk["kid"], {"EC": "ES256"}.get(jwk["kty"], "RS256"))
    public = jwt.PyJWK(public_half(jwk), algorithm=header["alg"])
    found = jwt.decode(token, public, algorithms=[header["alg"]], audience="authenticated")
    assert (found["sub"], found["actor"]) == ("ou_alice", "ou_bob")

    other = jwt.PyJWK(public_half(es256()), algorithm="ES256")
    with pytest.raises((jwt.InvalidSignatureError, jwt.InvalidAlgorithmError)):
        jwt.decode(token, other, algorithms=["ES256"], audience="authenticated")


def test_the_private_key_wins_over_the_secret_and_is_named_when_it_is_refused() -> None:
    both = signing_key(secret="the-legacy-secret-0123456789-0123456789", private_key=text(es256()))
    credentials = Credentials("publishable", "secret", both)

    headers = credentials.headers(ALICE)

    token = headers["Authorization"].removeprefix("Bearer ")
    assert jwt.get_unverified_header(token)["alg"] == "ES256"
    assert credentials.variables_of(headers).token == "SUPABASE_JWT_PRIVATE_KEY"
    assert signing_key(secret="legacy").algorithm == "HS256"


def text(jwk: object) -> str:
    return json.dumps(jwk)


@every_row(
    ("given", "problem"),
    [
        ("hush", "is no JSON"),
        (text([es256()]), "is not one JWK"),
        (text({"kty": "oct", "k": "hush", "kid": "1"}), "another kind than ES256 and RS256"),
        (text(es256(alg="ES384")), "another kind than ES256 and RS256"),
        (text(without(es256(), "d")), "the public half only"),
        (text(without(es256(), "kid")), "has no kid"),
        (text(es256(kid=7)), "has no kid"),
        (text(es256(x="hush")), "is damaged"),
        (text(without(es256(), "y")), "is damaged"),
        (text(without(rs256(), "n")), "is damaged"),
        (text(without(es256(ec.SECP384R1()), "alg")), "(damaged|another curve)"),
        (text(rs256(1024)), "fewer than 2048 bits"),
        ("", "neither SUPABASE_JWT_PRIVATE_KEY nor SUPABASE_JWT_SECRET"),
    ],
)
def test_what_is_no_private_key_is_refused_without_being_repeated(given: str, problem: str) -> None:
    with pytest.raises(MalformedKey, match=problem) as refused:
        signing_key(private_key=given)

    assert "hush" not in str(refused.value)


def test_a_key_is_not_shown() -> None:
    key = es256()

    assert key["d"] not in repr(key_of_jwk(text(key)))
    assert "legacy" not in repr(signing_key(secret="legacy"))
