"""Ids and addresses of Auth users: one for each person, the same everywhere."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from memory.scope import FeishuPerson

# Ids with separators, quotes and escapes in them, so that careless joins would meet.
ids = st.text(st.sampled_from('ou_1:,"\\[] /@é陈\ud800'), max_size=6) | st.text(max_size=12)
people = st.builds(FeishuPerson, ids, ids)


@given(people, people)
def test_two_people_never_share_a_user_or_an_address(
    one: FeishuPerson, other: FeishuPerson
) -> None:
    same = one == other
    assert (one.auth_user_id == other.auth_user_id) is same
    assert (one.placeholder_email == other.placeholder_email) is same
    assert (one.app_metadata == other.app_metadata) is same


@given(ids, ids, ids)
def test_a_separator_can_stand_anywhere(a: str, b: str, c: str) -> None:
    for separator in (":", ",", '", "', "\\"):
        left, right = FeishuPerson(a + separator + b, c), FeishuPerson(a, b + separator + c)
        if left != right:
            assert left.auth_user_id != right.auth_user_id
            assert left.placeholder_email != right.placeholder_email


@given(people)
def test_an_address_is_one_that_nobody_can_own_and_auth_accepts(person: FeishuPerson) -> None:
    local, _, host = person.placeholder_email.partition("@")
    assert host.endswith(".invalid")
    assert len(local) <= 64
    assert local.isascii()
    assert local.isalnum()
    assert local == local.lower()  # Auth lowers addresses
    assert person.auth_user_id.version == 5
    assert person.auth_user_id != uuid.UUID(int=0)


def test_the_id_of_a_person_is_the_same_on_every_machine_and_for_good() -> None:
    person = FeishuPerson("tenant", "ou_alice")
    assert str(person.auth_user_id) == "908eee1d-3d20-5ff4-873a-00518fe839f9"
    assert person.placeholder_email == "2ecac31ff8b0692c8d4ba3b722776699e5cbacc3@feishu.invalid"
