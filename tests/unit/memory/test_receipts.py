"""A receipt and its chain: whatever is changed, moved, left out or cut off is refused."""

from __future__ import annotations

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.receipts import (
    GENESIS,
    KEY_FILE,
    ReceiptKeyInvalid,
    ReceiptRefused,
    commitment,
    load_signing_key,
    public_key,
    public_keys_by_name,
    read_signing_key,
    seal_receipt,
    verify_chain,
    verify_receipt,
)
from tests.support.rows import every_row

KEY = read_signing_key(base64.b64encode(bytes(range(32))).decode())
KEYS = public_keys_by_name(KEY)


@cache
def chain(length: int = 8) -> tuple[str, ...]:
    lines: list[str] = []
    previous = GENESIS
    for number in range(1, length + 1):
        draft = {
            "kind": "retraction",
            "at": "2026-11-28T05:00:00Z",
            "about": [f"om_{number}"],
            "counts": {"agent_messages": {"deleted": number, "changed": 0}},
            "unreachable": ["backups", "model provider"],
            "commitments": [commitment("salt", f"the gym code is {number}")],
        }
        receipt = seal_receipt(draft, number=number, previous=previous, key=KEY)
        previous = receipt.hash
        lines.append(receipt.line)
    return tuple(lines)


def head() -> str:
    return verify_receipt(chain()[-1], KEYS).hash


def test_an_untouched_chain_holds_and_reaches_its_anchor() -> None:
    receipts = verify_chain(chain(), KEYS, anchor=head())
    assert [one.number for one in receipts] == list(range(1, 9))
    assert receipts[-1].label == f"R8 · {head()[:8]}…"


@given(st.data())
def test_any_changed_byte_is_refused(data: st.DataObject) -> None:
    lines = list(chain())
    which = data.draw(st.integers(0, len(lines) - 1))
    raw = bytearray(lines[which].encode())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 127).filter(lambda one: one != raw[place]))
    lines[which] = raw.decode()
    with pytest.raises(ReceiptRefused):
        verify_receipt(lines[which], KEYS)
    with pytest.raises(ReceiptRefused):
        verify_chain(lines, KEYS)


def test_every_byte_of_a_receipt_counts() -> None:
    line = chain()[2]
    for place in range(len(line)):
        for other in ("0", " ", "A", "f"):
            if line[place] != other:
                with pytest.raises(ReceiptRefused):
                    verify_receipt(line[:place] + other + line[place + 1 :], KEYS)


@given(st.permutations(range(8)).filter(lambda order: list(order) != list(range(8))))
def test_another_order_is_refused(order: list[int]) -> None:
    with pytest.raises(ReceiptRefused):
        verify_chain([chain()[place] for place in order], KEYS)


@given(st.sets(st.integers(0, 7), min_size=1))
def test_whatever_is_left_out_is_refused(gone: set[int]) -> None:
    lines = [line for place, line in enumerate(chain()) if place not in gone]
    with pytest.raises(ReceiptRefused):
        verify_chain(lines, KEYS, anchor=head())


@given(st.integers(0, 7))
def test_a_cut_tail_is_refused(length: int) -> None:
    with pytest.raises(ReceiptRefused, match="ends before"):
        verify_chain(chain()[:length], KEYS, anchor=head())


@given(st.binary(min_size=32, max_size=32).filter(lambda one: one != bytes(range(32))))
def test_a_receipt_of_another_key_is_refused(seed: bytes) -> None:
    other = read_signing_key(base64.b64encode(seed).decode())
    with pytest.raises(ReceiptRefused, match="key"):
        verify_receipt(chain()[0], public_keys_by_name(other))


def test_receipts_of_an_earlier_key_verify_with_its_public_key() -> None:
    other = read_signing_key(base64.b64encode(bytes(32)).decode())
    assert (
        verify_receipt(chain()[0], public_keys_by_name(other, [public_key(KEY).hex()])).number == 1
    )


@given(st.text(), st.text())
def test_a_commitment_names_its_text_and_no_other(text: str, other: str) -> None:
    text, other = (one.encode(errors="ignore").decode() for one in (text, other))
    receipt = verify_receipt(chain()[0], KEYS)
    assert receipt.names_text("salt", "the gym code is 1")
    assert not receipt.names_text("salt", other)
    assert not receipt.names_text("other salt", "the gym code is 1")
    assert (commitment("salt", text) == commitment("salt", other)) == (text == other)


def test_workers_that_start_together_share_one_key_that_only_the_owner_reads(
    tmp_path: Path,
) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = {public_key(one) for one in pool.map(load_signing_key, [tmp_path] * 16)}
    assert len(keys) == 1
    assert [one.name for one in tmp_path.iterdir()] == [KEY_FILE]
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


@every_row("text", ["no base64", "c2hvcnQ=", ""])
def test_what_is_no_key_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ReceiptKeyInvalid) as refusal:
        read_signing_key(text)
    assert not text or text not in str(refusal.value)
