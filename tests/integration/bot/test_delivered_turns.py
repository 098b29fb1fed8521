"""What a turn leaves once its answer is delivered: in the memory, in the chat, and in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.feishu import transport
from sandbox.world.actors import Speech
from tests.support.whole_turns import Stage, handle_pushed, stage

pytestmark = pytest.mark.anyio


@dataclass
class Garden:
    """A group in which Ann asks the bot."""

    stage: Stage
    ann: str
    chat: str

    async def ask(
        self, question: str, *acts: tuple[str, dict[str, Any]], reply_to: str = ""
    ) -> str:
        """Returns the question's message_id."""
        self.stage.model.acts = list(acts)
        return await self.stage.mention(self.ann, self.chat, question, reply_to)

    def pushed(self, question: str) -> dict[str, Any]:
        """The event of a question that nobody has handled yet."""
        platform = self.stage.town.platform
        platform.actors.say(Speech(self.ann, self.chat, f"@{platform.world.bot.name} {question}"))
        [event] = self.stage.town.events
        self.stage.town.events.clear()
        return dict(event)

    def cards(self) -> list[Any]:
        """The answers that are there."""
        world = self.stage.town.platform.world
        said = [world.messages[one] for one in world.by_chat[self.chat]]
        answers = [one for one in said if one.sender == world.bot.open_id and one.parent_id]
        return [one for one in answers if not one.deleted]

    def column(self, query: str, *params: object) -> list[Any]:
        return [row[0] for row in self.stage.database.execute(query.encode(), params)]

    def given(self, turn_id: str) -> list[str]:
        """What the turn's answer was made with, besides its question."""
        query = "select bot_private.given_ids(given_messages, given) from agent_turns where id = %s"
        [ids] = self.column(query, turn_id)
        return list(ids)


@pytest.fixture
async def garden(database_url: str) -> AsyncIterator[Garden]:
    async with stage(database_url) as here:
        platform = here.town.platform
        ann = platform.actors.add_person("Ann").open_id
        chat = platform.groups.add("Garden", [ann]).chat_id
        await here.handle_all()
        yield Garden(here, ann, chat)


async def test_a_question_that_is_delivered_twice_counts_as_answered_once(garden: Garden) -> None:
    event = garden.pushed("what else?")

    with capture_logs() as lines:
        for attempt in (1, 2):
            await handle_pushed(garden.stage.services, event, attempt=attempt)

    outcomes = [line["outcome"] for line in lines if line["event"] == "turn"]
    assert outcomes == ["answered", "duplicate"]
    assert len(garden.cards()) == 1


async def test_a_bot_that_is_told_to_be_quiet_does_not_begin_a_conversation_by_saying_so(
    garden: Garden,
) -> None:
    heard = "select content from chat_transcript where author_id = %s"
    bot = garden.stage.town.platform.world.bot.open_id

    await garden.ask("be quiet")
    assert len(garden.cards()) == 1
    assert not garden.column(heard, bot)

    await garden.ask("what else?")
    assert garden.column(heard, bot)


async def test_the_buttons_of_an_answer_know_its_card(garden: Garden) -> None:
    await garden.ask(
        "what else?", ("set_reminder", {"text": "stretch", "at": "the day after tomorrow at 9am"})
    )

    [card] = garden.cards()
    assert set(garden.column("select message_id from agent_buttons")) == {card.message_id}


async def test_the_card_of_a_question_that_was_taken_back_meanwhile_is_withdrawn_at_once(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = garden.stage.services
    connection: Any = services.feishu._transport
    send = connection.send

    async def taking_back(request: transport.ApiRequest, token: str = "") -> Any:
        answer = await send(request, token)
        if request.path.endswith("/reply"):
            question = request.path.split("/")[-2]
            await services.store.take_back(question, garden.chat)
        return answer

    monkeypatch.setattr(connection, "send", taking_back)
    await garden.ask("what else?")

    assert garden.cards() == []


async def test_a_quoted_message_that_was_taken_back_is_not_shown_although_feishu_still_has_it(
    garden: Garden,
) -> None:
    platform, prompts = garden.stage.town.platform, list[str]()
    said = platform.actors.say(Speech(garden.ann, garden.chat, "the plums are ripe")).message_id
    garden.stage.model.look = prompts.append
    question = Speech(garden.ann, garden.chat, f"@{platform.world.bot.name} what?", reply_to=said)

    for is_gone in (False, True):
        if is_gone:
            await garden.stage.services.store.take_back(said, garden.chat)
        platform.actors.say(replace(question, quote=True))
        await garden.stage.handle_all()
        assert ("plums" in prompts[-1]) is not is_gone


class Hiding:
    """A check of sources by which one message may not be told."""

    sources = frozenset[str]()

    def __init__(self, hidden: str) -> None:
        self._hidden = frozenset([hidden])

    async def untellable(self, sources: Iterable[str]) -> frozenset[str]:
        return self._hidden & frozenset(sources)

    async def may_be_told(self, sources: Collection[str]) -> bool:
        return not await self.untellable(sources)

    async def still_open(self) -> bool:
        return True


@pytest.mark.parametrize("is_hidden", [False, True])
async def test_a_thread_that_lapsed_is_read_from_feishu_without_what_may_not_be_told(
    garden: Garden, is_hidden: bool
) -> None:
    here, prompts = garden.stage, list[str]()
    await garden.ask("what else?")
    [card] = garden.cards()
    in_thread = Speech(garden.ann, garden.chat, "the plums are ripe", reply_to=card.message_id)
    unheard = here.town.platform.actors.say(in_thread).message_id
    here.town.events.clear()
    here.database.execute("delete from chat_transcript")
    here.services.transcripts.drop(garden.chat)
    if is_hidden:
        checks = {"sources": lambda *_: Hiding(unheard)}
        hooks = replace(here.services.hooks, checks=checks)
        here.services = replace(here.services, hooks=hooks)
    here.model.look = prompts.append

    here.town.platform.actors.say(replace(in_thread, text="What does that mean?"))
    await here.handle_all()

    assert ("plums" in prompts[-1]) is not is_hidden


class TestAnAnswerIsStoredWithWhatItWasMadeOf:
    async def test_earlier_messages_of_its_thread(self, garden: Garden) -> None:
        first = await garden.ask("the plums are ripe")
        [card] = garden.cards()

        second = await garden.ask("what else?", reply_to=card.message_id)

        assert first in garden.given(second)

    async def test_facts_that_were_kept_long_before(self, garden: Garden) -> None:
        kept = {"scope": "person", "patch": {"fruit": "plums"}}
        first = await garden.ask("I like plums", ("update_working_memory", kept))
        for _ in range(3):  # until its history does not reach back so far
            last = await garden.ask("what else?")

        assert first in garden.given(last)

    async def test_notes_that_are_listed(self, garden: Garden) -> None:
        note = {"title": "fruit", "body": "plums", "tags": ["a"]}
        await garden.ask("note it", ("create_note", note))
        [note_id] = garden.column("select id from agent_notes")

        given = garden.given(await garden.ask("what else?"))

        assert [one for one in given if str(note_id) in one]
