"""A worker that is killed while it answers a rule, a form or a reaction: each is done once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lab.doubles.processes import eventually
from memory.models import Origin
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_chat_rules import group, set_rule
from tests.acceptance.test_commands import click
from tests.acceptance.test_reactions import react

__all__ = ["group"]  # the fixture

pytestmark = pytest.mark.slow

UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"
RULES = "select mode, language from chat_rules where chat_id = %s"


@pytest.fixture(autouse=True)
def model(world: World) -> Iterator[None]:
    asks = {"when": [{"contains": "the plan"}], "reply": {"text": "Shall I write it down?"}}
    world.model.control("script", {"rules": [asks, {"reply": {"text": "It is written down."}}]})
    world.model.control("mode", {"mode": "rules"})
    yield
    world.platform.forget_faults()


MESSAGES = "/open-apis/im/v1/messages"
EPHEMERAL = "/open-apis/ephemeral/v1/send"


def killed_while_it_sends(
    group: World, act: Callable[[], object], arrives: bool, *, path: str = MESSAGES
) -> None:
    """Does something whose answer the worker does not live to see sent; another one takes over."""
    eventually(lambda: said(group), what="the first words")
    eventually(lambda: not group.rows(UNFINISHED), what="the jobs before are done")
    fault = {"delay_s": 2} if arrives else {"delay_s": 2, "status": 503}
    group.platform.post("/faults", path_prefix=path, method="POST", **fault)
    before = len(group.platform.calls(path, "POST"))
    act()
    eventually(
        lambda: len(group.platform.calls(path, "POST")) > before, what="an answer is being sent"
    )
    group.bot.workers[-1].kill()
    group.bot.start_worker()
    begun = "select 1 from agent_messages where role = 'assistant' and status = 'pending'"
    eventually(lambda: not group.rows(begun), what="it is sent")
    eventually(lambda: not group.rows(UNFINISHED), what="the jobs are done")


def said(group: World) -> list[str]:
    return [markdown(m) for m in group.platform.messages(group.group) if is_from_bot(m)]


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrives", "it does not"])
def test_a_mode_is_set_and_confirmed_once(group: World, arrives: bool) -> None:
    command = f"@{group.bot_name} /mode mention"
    killed_while_it_sends(group, lambda: group.say("Alice", command), arrives)

    assert group.rows(RULES, group.group) == [{"mode": "mention", "language": None}]
    assert sum("Saved." in card for card in said(group)) == 1


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrives", "it does not"])
def test_a_form_is_saved_once(group: World, arrives: bool) -> None:
    set_rule(group, "Alice", "/mode threads")
    form = group.ask_alone("Alice", "/settings")
    chosen = {"mode": "all", "language": "zh"}
    act = lambda: click(group, "Alice", form, index=0, form=chosen)  # noqa: E731
    killed_while_it_sends(group, act, arrives, path=EPHEMERAL)

    assert group.rows(RULES, group.group) == [{"mode": "all", "language": "zh"}]
    shown = markdown(group.ask_alone("Bob", "/settings"))
    assert "所有消息（对别人说的除外）" in shown
    assert "**回答语言**：中文" in shown


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrives", "it does not"])
def test_a_reaction_is_answered_once(group: World, arrives: bool) -> None:
    question, _ = group.ask("Alice", "what is the plan?")
    group.settled(question)
    card = group.answers(question)[0]["message_id"]
    killed_while_it_sends(group, lambda: react(group, "Alice", card, "THUMBSUP"), arrives)

    assert len(group.under(question)) == 2
    yes = "select content from agent_messages where turn_id = %s and role = 'user'"
    assert group.rows(yes, Origin("reaction", question).turn_id) == [{"content": "Yes"}]
