"""What the tokens of persons are signed with: a key of the project's own, or its legacy secret.

Source: Supabase, “JWT signing keys”; RFC 7517 (JWK), RFC 7518 (ES256, RS256, HS256).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

SECRET = "SUPABASE_JWT_SECRET"  # noqa: S105 - the variable's name
PRIVATE_KEY = "SUPABASE_JWT_PRIVATE_KEY"
_ALGORITHMS = {"EC": "ES256", "RSA": "RS256"}
_LEAST_BITS = 2048  # RFC 7518, 3.3


class MalformedKey(ValueError):
    """Half a sentence that says what is wrong with a JWK, and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key, its algorithm, the id under which the project knows it ("": it has one secret), and
    the variable it comes from."""

    key: Any = field(repr=False)
    algorithm: str
    key_id: str
    variable: str

    def sign(self, claims: Mapping[str, object]) -> str:
        """The token, in compact form."""
        headers = {"kid": self.key_id} if self.key_id else None
        return jwt.encode(dict(claims), self.key, algorithm=self.algorithm, headers=headers)


def signing_key(*, secret: str = "", private_key: str = "") -> SigningKey:
    """The private key where there is one, else the secret. Raises `MalformedKey`."""
    return of_jwk(private_key) if private_key else of_secret(secret)


def of_secret(secret: str) -> SigningKey:
    """The shared secret of older projects."""
    if not secret:
        raise MalformedKey(f"neither {PRIVATE_KEY} nor {SECRET} is given")
    return SigningKey(secret, "HS256", "", SECRET)


def of_jwk(text: str) -> SigningKey:
    """A private key as a JWK: EC on P-256 or RSA, with its id. Raises `MalformedKey`."""
    try:
        jwk = json.loads(text)
    except ValueError:
        raise MalformedKey("is no JSON") from None
    if not isinstance(jwk, dict):
        raise MalformedKey("is not one JWK, a JSON object")
    algorithm = _ALGORITHMS.get(str(jwk.get("kty")), "")
    if not algorithm or jwk.get("alg", algorithm) != algorithm:
        raise MalformedKey("is a key of another kind than ES256 and RS256")
    if not jwk.get("d"):
        raise MalformedKey("holds the public half only")
    if not isinstance(jwk.get("kid"), str) or not jwk["kid"]:
        raise MalformedKey("has no kid, by which Supabase finds the public key")
    try:
        key = jwt.PyJWK(jwk, algorithm=algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        raise MalformedKey("is damaged: no key can be made of it") from None
    if key.key_size < _LEAST_BITS and algorithm == "RS256":
        raise MalformedKey(f"is an RSA key of fewer than {_LEAST_BITS} bits")
    if algorithm == "ES256" and jwk.get("crv") != "P-256":
        raise MalformedKey("is on another curve than P-256")
    return SigningKey(key, algorithm, jwk["kid"], PRIVATE_KEY)
