"""A rule that a line of the table and words in the catalogues add: whole turns over the simulated
platform and a real database show it, change it, keep it and tell it to the model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.features import chat_settings
from bot.listening.chat_rules import RULES, ChatRule
from bot.text.languages import Catalogue
from sandbox.world.actors import Speech
from sandbox.world.wire import card_of
from tests.support.whole_turns import Stage, stage

pytestmark = pytest.mark.anyio

SAMPLE = ChatRule(
    "sample",
    "示例",
    {"full": "long 详细", "short": "brief 简短"},
    "full",
    prompts={"short": "Answer in one sentence."},
)
WORDS = {
    "en": {
        "rule-sample": "How long I answer",
        "choice-sample-full": "as long as it takes",
        "choice-sample-short": "in one sentence",
    },
    "zh": {
        "rule-sample": "我回答多长",
        "choice-sample-full": "说清楚为止",
        "choice-sample-short": "只用一句话",
    },
}


@dataclass
class Chat:
    """A group whose owner Ann added the bot to it; Bob is a member."""

    on: Stage
    ann: str
    bob: str
    chat_id: str

    async def say(self, who: str, text: str) -> dict[str, Any]:
        """The card that answers."""
        platform = self.on.town.platform
        platform.actors.say(Speech(who, self.chat_id, f"@{platform.world.bot.name} {text}"))
        return await self._answer()

    async def submit(self, who: str, **chosen: str) -> dict[str, Any]:
        """The card that answers the form of the newest card."""
        message = self._cards()[-1]
        self.on.town.platform.clicks.click(who, message, value=None, index=0, form=chosen)
        return await self._answer()

    async def work(self) -> None:
        await self.on.handle_all()

    async def _answer(self) -> dict[str, Any]:
        before = len(self._cards())
        await self.work()
        (answer,) = self._cards()[before:]
        world = self.on.town.platform.world
        card = card_of(world, world.messages[answer])
        assert card
        return card

    def _cards(self) -> list[str]:
        world = self.on.town.platform.world
        listed = world.by_chat.get(self.chat_id, [])
        return [one for one in listed if world.messages[one].sender == world.bot.open_id]

    def stored(self) -> list[tuple[Any, ...]]:
        return self.on.database.execute("select choices from chat_rules").fetchall()


def read(card: dict[str, Any]) -> str:
    return json.dumps(card, ensure_ascii=False)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rule stands in the table, its words in copies of the catalogues."""
    for language, words in WORDS.items():
        catalogue = Path(chat_settings.__file__).with_suffix(f".{language}.po")
        more = "".join(f'\nmsgid "{key}"\nmsgstr "{text}"\n' for key, text in words.items())
        (tmp_path / catalogue.name).write_text(catalogue.read_text("utf-8") + more, "utf-8")
    monkeypatch.setitem(RULES, SAMPLE.name, SAMPLE)
    monkeypatch.setattr(chat_settings, "say", Catalogue(str(tmp_path / "chat_settings.py")).say)


@pytest.fixture
async def chat(added: None, database_url: str) -> AsyncIterator[Chat]:
    async with stage(database_url) as on:
        actors = on.town.platform.actors
        ann, bob = (actors.add_person(name).open_id for name in ("Ann", "Bob"))
        group = on.town.platform.groups.add("Garden", [ann, bob]).chat_id
        found = Chat(on, ann, bob, group)
        await found.work()
        yield found


async def test_a_command_sets_it_and_takes_it_back(chat: Chat) -> None:
    shown = read(await chat.say(chat.bob, "/settings"))
    assert "**How long I answer**: as long as it takes" in shown
    assert "Only the group owner" in read(await chat.say(chat.bob, "/settings sample short"))
    assert chat.stored() == []

    assert "Saved." in read(await chat.say(chat.ann, "/settings sample Brief"))
    assert chat.stored() == [({"sample": "short"},)]
    usage = read(await chat.say(chat.ann, "/settings sample endless"))
    assert "`/settings sample` followed by one of these: full, short, default" in usage
    assert "Saved." in read(await chat.say(chat.ann, "/settings sample default"))
    assert chat.stored() == [({},)]

    saved = read(await chat.say(chat.ann, "/设置 示例 简短"))
    assert "已保存。" in saved
    assert "**我回答多长**：只用一句话" in saved
    assert chat.stored() == [({"sample": "short"},)]


async def test_the_form_shows_and_saves_it(chat: Chat) -> None:
    form = read(await chat.say(chat.ann, "/settings sample"))
    assert form.count('"select_static"') == 1
    assert "In one sentence" in form

    await chat.say(chat.ann, "/settings")
    saved = read(await chat.submit(chat.ann, sample="short", mode="all"))
    assert '"initial_option": "short"' in saved
    assert chat.stored() == [({"sample": "short"},)]
    assert "These are the current settings" in read(await chat.submit(chat.ann))
    await chat.submit(chat.ann, sample="full")
    assert chat.stored() == [({},)]


async def test_what_reads_it_is_told(chat: Chat) -> None:
    prompts: list[str] = []
    chat.on.model.look = prompts.append
    await chat.say(chat.bob, "when do we plant?")
    await chat.say(chat.ann, "/settings sample short")
    await chat.say(chat.bob, "and when do we harvest?")

    assert ["Answer in one sentence." in one for one in prompts] == [False, True]


async def test_a_stored_choice_that_the_table_lost_does_not_count(chat: Chat) -> None:
    await chat.say(chat.ann, "/settings sample short")
    stored = json.dumps({"sample": "endless", "gone": "on"})
    chat.on.database.execute("update chat_rules set choices = %s", [stored])

    shown = read(await chat.say(chat.bob, "/settings"))
    assert "**How long I answer**: as long as it takes" in shown
