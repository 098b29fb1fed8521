"""Tokens of a turn: whose they are, how long they live, that nobody gets another's."""

from __future__ import annotations

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.backends.supabase import TokenMinter, key_of_secret
from memory.scope import AgentMemoryContext, memory_context

SECRET = "a-signing-key-that-only-these-tests-know-0123456789"
NOW = 1_800_000_000.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def context(
    subject: str = "ou_alice", actor: str = "ou_alice", chat: str = "oc_here", tenant: str = "t"
) -> AgentMemoryContext:
    return memory_context(
        chat_id=chat, root="om_root", subject=subject, actor=actor, tenant_key=tenant
    )


def claims(token: str, secret: str = SECRET) -> dict[str, object]:
    """The token's claims; its lifetime is judged by the test, not by the machine's clock."""
    decoded: dict[str, object] = jwt.decode(
        token,
        secret,
        algorithms=["HS256"],
        audience="authenticated",
        options={"verify_exp": False, "verify_iat": False},
    )
    return decoded


def test_a_token_carries_the_identity_of_its_turn_for_five_minutes() -> None:
    token = TokenMinter(key_of_secret(SECRET), clock=Clock()).token(context(actor="ou_bob"))

    assert claims(token) == {
        "sub": "ou_alice",
        "actor": "ou_bob",
        "chat_id": "oc_here",
        "tenant_key": "t",
        "role": "authenticated",
        "aud": "authenticated",
        "iat": int(NOW),
        "exp": int(NOW) + 300,
    }


def test_a_token_is_signed_with_the_projects_secret() -> None:
    token = TokenMinter(key_of_secret(SECRET), clock=Clock()).token(context())

    with pytest.raises(jwt.InvalidSignatureError):
        claims(token, secret="another-key-that-is-long-enough-0123456789ab")


def test_a_token_is_used_again_until_half_of_its_life_is_over() -> None:
    clock = Clock()
    minter = TokenMinter(key_of_secret(SECRET), clock=clock)
    first = minter.token(context())

    clock.now += 149
    assert minter.token(context()) == first

    clock.now += 2
    second = minter.token(context())
    assert second != first
    assert claims(second)["exp"] == int(clock.now) + 300


@given(
    st.lists(
        st.builds(
            context,
            subject=st.sampled_from(["ou_a", "ou_b"]),
            actor=st.sampled_from(["ou_a", "ou_b"]),
            chat=st.sampled_from(["oc_1", "oc_2"]),
            tenant=st.sampled_from(["", "t"]),
        ),
        max_size=40,
    ),
    st.lists(st.integers(0, 400), min_size=40, max_size=40),
)
def test_whatever_was_asked_before_everyone_gets_a_live_token_of_their_own(
    asked: list[AgentMemoryContext], pauses: list[int]
) -> None:
    clock = Clock()
    minter = TokenMinter(key_of_secret(SECRET), clock=clock)
    for each, pause in zip(asked, pauses, strict=False):
        clock.now += pause
        found = claims(minter.token(each))

        assert {name: found[name] for name in each.claims()} == each.claims()
        assert 150 <= float(str(found["exp"])) - clock.now <= 300


def test_a_crowd_does_not_fill_the_process_with_tokens() -> None:
    minter = TokenMinter(key_of_secret(SECRET), clock=Clock())

    for number in range(2500):
        minter.token(context(subject=f"ou_{number}"))

    assert len(minter._cache) <= 2000
