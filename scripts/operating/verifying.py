"""Receipts of deletions for operators: the public key, the chain, and whether a deletion holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from memory.receipts import (
    Receipt,
    ReceiptRefused,
    ReceiptStore,
    load_signing_key,
    public_key,
    public_keys_by_name,
    verify_chain,
    verify_receipt,
)
from scripts.operating.arguments import FINDINGS, text_file
from scripts.operating.console import print_json
from scripts.operating.desk import OperatorDesk
from scripts.operating.survivors import (
    DeletedWords,
    SurvivorSearch,
    SurvivorTrace,
    as_verifier,
    search_database,
    search_files,
)
from scripts.operating.words import counted


@dataclass(frozen=True, slots=True)
class Given:
    """What was handed in: a receipt, the salt if it came with one, and the deleted text."""

    receipt: Receipt
    salt: str
    text: str

    @property
    def names_text(self) -> bool | None:
        """Whether the receipt is committed to the text; None without a salt or a text."""
        if not (self.salt and self.text):
            return None
        return self.receipt.names_text(self.salt, self.text)


async def show_receipt_key(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """The public key, as `verify --public-key` takes it."""
    print(public_key(load_signing_key(desk.settings.data_dir, desk.settings.receipt_key)).hex())
    return 0


async def export_receipts(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """The whole chain as JSON Lines, or the copies of one person with their salts."""
    receipts = ReceiptStore(desk.rpc)
    await receipts.sign(load_signing_key(desk.settings.data_dir, desk.settings.receipt_key))
    if given.person:
        for copy in await receipts.take(given.person, given.tenant or ""):
            print(copy.text)
        return 0
    async for line in receipts.lines():
        print(line)
    return 0


async def check_receipt(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Verifies signature and chain, reads everything back, and names what survived."""
    try:
        handed_in = _given(given, _keys(desk, given))
        lines = [line async for line in ReceiptStore(desk.rpc).lines()]
        verify_chain(lines, _keys(desk, given), anchor=handed_in.receipt.hash)
        _require_named(handed_in)
        search = _searched(desk, given, handed_in)
    except ReceiptRefused as exc:
        print(f"refused: {exc}")
        return FINDINGS
    if given.json:
        print_json(_as_json(handed_in, search))
    else:
        _tell(handed_in, search, chain=len(lines))
    return FINDINGS if search.survivors else 0


def _require_named(handed_in: Given) -> None:
    if handed_in.names_text is False:
        raise ReceiptRefused("it does not name this text")


def _keys(desk: OperatorDesk, given: argparse.Namespace) -> Mapping[str, bytes]:
    key = load_signing_key(desk.settings.data_dir, desk.settings.receipt_key)
    try:
        return public_keys_by_name(key, given.public_key)
    except ValueError as exc:
        raise ReceiptRefused("a --public-key is no key in hex") from exc


def _given(given: argparse.Namespace, keys: Mapping[str, bytes]) -> Given:
    """The receipt in its file: a person's copy, or a line of the chain."""
    text = given.receipt.read_text(encoding="utf-8").strip()
    try:
        copy = json.loads(text)
    except ValueError as exc:
        raise ReceiptRefused("it is not JSON") from exc
    has_salt = isinstance(copy, dict) and set(copy) == {"receipt", "salt"}
    line, salt = (copy["receipt"], copy["salt"]) if has_salt else (text, "")
    said = given.text.read_text(encoding="utf-8").rstrip("\n") if given.text else ""
    return Given(verify_receipt(line, keys), salt, said)


def _searched(desk: OperatorDesk, given: argparse.Namespace, handed_in: Given) -> SurvivorSearch:
    fields = handed_in.receipt.fields
    search = SurvivorSearch(
        DeletedWords(
            tuple(filter(None, (handed_in.text, *given.also))),
            frozenset(fields["about"]),
            is_retraction=fields["kind"] == "retraction",
        )
    )
    with psycopg.connect(desk.url, autocommit=True) as connection:
        _require_memory(connection, handed_in.receipt)
        with as_verifier(connection):
            search_database(connection, search)
    search_files(desk.settings.data_dir, given.log, search)
    return search


def _require_memory(connection: psycopg.Connection[Any], receipt: Receipt) -> None:
    """Over Supabase's API the chain may come from elsewhere than the rows that are read."""
    query = "select 1 from agent_receipts where number = %s"
    if not connection.execute(query, [receipt.number]).fetchone():
        raise ReceiptRefused("DATABASE_URL is another database than the memory's")


def _tell(handed_in: Given, search: SurvivorSearch, *, chain: int) -> None:
    receipt = handed_in.receipt
    print(f"{receipt.label}: signature and chain of {counted(chain, 'receipt')} hold")
    if handed_in.names_text is None:
        print("not verified that the receipt names the text: that takes --text and a copy's salt")
    else:
        print("the receipt names this text")
    for title, findings in _sections(search):
        for one in findings:
            print(f"{title}: {one}")
    if not search.survivors:
        print("nothing survived" if handed_in.text else "nothing stands under its ids")


def _sections(search: SurvivorSearch) -> Sequence[tuple[str, Sequence[SurvivorTrace]]]:
    return (("SURVIVED", search.survivors), ("same words, another source", search.elsewhere))


def _as_json(handed_in: Given, search: SurvivorSearch) -> Mapping[str, object]:
    return {
        "receipt": handed_in.receipt.number,
        "hash": handed_in.receipt.hash,
        "names_text": handed_in.names_text,
        "survivors": list(map(str, search.survivors)),
        "same_words_elsewhere": list(map(str, search.elsewhere)),
    }


def add_receipt_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`verify`, `receipts` and `receipt-key`."""
    check = commands.add_parser("verify", help="verify a receipt, and that nothing survived")
    check.add_argument("receipt", type=text_file, metavar="RECEIPT", help="a file with the receipt")
    check.add_argument("--text", type=text_file, metavar="FILE", help="the text that was deleted")
    check.add_argument("--also", action="append", default=[], metavar="WORDS", help="part of it")
    check.add_argument("--log", type=text_file, action="append", default=[], metavar="FILE")
    check.add_argument(
        "--public-key", action="append", default=[], metavar="HEX", help="of an earlier key"
    )
    check.add_argument("--json", action="store_true", help="one JSON document")
    chain = commands.add_parser("receipts", help="the chain of all receipts as JSON Lines")
    chain.add_argument("--person", metavar="WHO", help="their newest copies; a salt comes once")
    chain.add_argument("--tenant", metavar="KEY", help="in this tenant")
    commands.add_parser("receipt-key", help="the public key that verifies receipts")
