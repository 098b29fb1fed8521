"""What the bot sends a card for, on the simulated platform: each up to the job that sends it."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import psycopg

from bot.features.timers import queue_due
from bot.queue.inbox import Inbox
from bot.queue.operator_actions import QueueOperations, Reference
from memory.scope import memory_context
from memory.tables.timers import TimerPlan, TimerStore
from sandbox.world.actors import Speech
from sandbox.world.clicks import buttons
from sandbox.world.comments import elements_of
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import new_token
from sandbox.world.wire import card_of
from tests.support.mortal_worker import LAST_WORD, MESSAGE, Worker
from tests.support.whole_turns import Town


@dataclass
class Scene:
    """A new group with Alice and Bob, a worker that has seen nothing of what another one did."""

    town: Town
    worker: Worker
    database: psycopg.Connection
    inbox: Inbox
    alice: str = ""
    bob: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        platform = self.town.platform
        self.alice, self.bob = (platform.actors.add_person(n).open_id for n in ("Alice", "Bob"))
        self.group = platform.groups.add("Garden", [self.alice, self.bob], silently=True).chat_id

    @property
    def p2p(self) -> str:
        return str(self.town.platform.world.p2p_chat(self.alice).chat_id)

    def say(self, text: str, *, chat: str = "", who: str = "", **more: Any) -> str:
        """Somebody says it; the bot gets the event with the next `settle` or death."""
        speech = Speech(who or self.alice, chat or self.group, text, **more)
        message_id = self.town.platform.actors.say(speech).message_id
        self.take()
        return str(message_id)

    def press(self, message_id: str, label: str) -> None:
        """Alice presses the button of that label, or what stands below the card."""
        platform = self.town.platform
        card = card_of(platform.world, platform.world.messages[message_id])
        [value] = [
            done["value"]
            for button in buttons(card)
            for done in button["behaviors"]
            if label in button["text"]["content"]
        ]
        platform.clicks.click(self.alice, message_id, value=value, index=None)
        self.take()

    def react(self, message_id: str) -> None:
        self.town.platform.actors.react(message_id, self.alice, "THUMBSUP")
        self.take()

    def take(self) -> None:
        """The bot takes what happened."""
        while self.town.events:
            event = self.town.events.pop(0)
            key = event["header"]["event_id"]
            self.inbox.enqueue(key, event, lock=None, received_ms=int(time.time() * 1000))

    async def settle(self) -> None:
        """This worker does what waits, due or not."""
        self.run("update feishu_bot.jobs set scheduled_at = null"
                 " where status = 'waiting'")  # fmt: skip
        await self.worker.work()

    async def answered(self, text: str, **where: Any) -> str:
        """A question that is answered; the id of its card."""
        before = set(self.shown())
        self.say(text, **where)
        await self.settle()
        [card] = [one for one in self.shown() if one not in before]
        return card

    def shown(self) -> dict[str, str]:
        """Our cards in the group and in p2p, as people see them: text by message_id."""
        world = self.town.platform.world
        ids = [one for chat in (self.group, self.p2p) for one in world.by_chat.get(chat, [])]
        ours = [world.messages[one] for one in ids]
        return self._commented() | {
            one.message_id: _text(card_of(world, one) or json.loads(one.content))
            for one in ours
            if one.sender == world.bot.open_id and not one.deleted
        }

    def comment(self, text: str, quote: str = "") -> str:
        """Alice comments on a new document of hers; the id of the comment."""
        platform = self.town.platform
        about = {"kind": "docx", "title": "Plan", "owner": self.alice}
        text_block = {"kind": "text", "text": "The launch is on 3 March."}
        document = SandboxDocument(new_token(), **about, body={"blocks": [text_block]})
        platform.library.put(document)
        people = [(one.name, one.open_id) for one in (platform.world.bot,)]
        with platform.world.lock:
            made = platform.comments.add(
                platform.world.documents[document.token], self.alice, elements_of(text, people),
                quote=quote,
            )  # fmt: skip
        self.take()
        return str(made["comment_id"])

    def _commented(self) -> dict[str, str]:
        """Our comments in documents, as they are kept."""
        world = self.town.platform.world
        return {
            f"comment:{document.kind}:{reply['reply_id']}": "".join(map(_said, reply["elements"]))
            for document in world.documents.values()
            for comment in document.comments
            for reply in comment["replies"]
            if reply["user_id"] == world.bot.open_id
        }

    def run(self, query: str, *params: object) -> list[dict[str, Any]]:
        cursor = self.database.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def jobs(self) -> list[dict[str, Any]]:
        return self.run("select status, args ->> 'failed_with' as why"
                        " from feishu_bot.jobs")  # fmt: skip


def _said(element: dict[str, Any]) -> str:
    if element["type"] == "person":
        return f"<at id={element['person']['user_id']}></at>"
    return str(element["text_run"]["text"])


def _text(card: dict[str, Any]) -> str:
    if "text" in card:
        return str(card["text"])
    elements = card["body"]["elements"]
    return str(next(one["content"] for one in elements if one["tag"] == "markdown"))


COMMENTS = r"POST /open-apis/drive/v1/files/\w+/comments"
REPLY, WHOLE = COMMENTS + r"/\d+/replies", COMMENTS


# What a card comes from: each leaves one job to be done


async def message(scene: Scene) -> None:
    scene.say("@Memo when is the launch?")


async def button(scene: Scene) -> None:
    scene.press(await scene.answered("@Memo when is the launch?"), "What about the budget?")


async def menu(scene: Scene) -> None:
    await scene.answered("when is the launch?", chat=scene.p2p)
    scene.town.platform.groups.press_menu(scene.alice, "help")
    scene.take()


async def again(scene: Scene) -> None:
    scene.press(await scene.answered("@Memo when is the launch?"), "Again")


async def reaction(scene: Scene) -> None:
    scene.react(await scene.answered("@Memo what is the plan?"))


async def excuse(scene: Scene) -> None:
    scene.worker.model.life = replace(scene.worker.model.life, fails=True)
    scene.say("@Memo when is the launch?")
    await scene.worker.work()  # the first of two attempts
    scene.run("update feishu_bot.jobs set scheduled_at = null")


async def retry(scene: Scene) -> None:
    await excuse(scene)
    await scene.settle()
    scene.worker.model.life = replace(scene.worker.model.life, fails=False)
    [job] = scene.run("select id from feishu_bot.jobs")
    operations = scene.worker.services.queue
    assert isinstance(operations, QueueOperations)
    assert operations.retry(Reference("J", str(job["id"])))


async def reminder(scene: Scene) -> None:
    await _timer(scene, await _set(scene))


async def digest(scene: Scene) -> None:
    timer = await _set(scene)
    scene.run("update agent_timers set kind = 'digest', repeats = 'daily' where id = %s", timer)
    await _timer(scene, timer)


async def _set(scene: Scene) -> str:
    await scene.answered("@Memo the launch is in May")
    [turn] = scene.run("select * from agent_turns where chat_id = %s", scene.group)
    moment = datetime.now(UTC)
    plan = TimerPlan("stretch", moment.replace(tzinfo=None), "UTC", int(moment.timestamp() * 1000))
    plan = replace(plan, for_people=(scene.alice,))
    root = turn["conversation_id"].split(":", 2)[2]
    context = memory_context(
        chat_id=scene.group, root=root, subject=scene.alice, actor=scene.alice,
        tenant_key=turn["tenant_key"], chat_type="group",
    )  # fmt: skip
    return (await TimerStore(scene.worker.services.rpc).set(context, turn["id"], plan)).id


async def _timer(scene: Scene, timer: str, due: str = "61 minutes") -> None:
    """It has been due for so long."""
    scene.run("update agent_timers set due_at = date_trunc('milliseconds', now()) - %s::interval"
              " where id = %s", due, timer)  # fmt: skip
    await queue_due(scene.worker.services, scene.worker.table)


async def unasked(scene: Scene) -> None:
    await scene.answered("@Memo the quince launch is on 3 March")
    [turn] = scene.run("select * from agent_turns where chat_id = %s", scene.group)
    scene.run("insert into chat_rules (chat_id, tenant_key, proactive) values (%s, %s, true)",
              scene.group, turn["tenant_key"])  # fmt: skip
    scene.say("When is the quince launch?", who=scene.bob)
    await scene.worker.work()
    [timer] = scene.run("select id from agent_timers where chat_id = %s", scene.group)
    await _timer(scene, timer["id"], "0 minutes")


async def comment(scene: Scene) -> None:
    scene.comment("@Memo when is the launch?", quote="3 March")


async def comment_on_all(scene: Scene) -> None:
    scene.comment("@Memo when is the launch?")


async def own_memory(scene: Scene) -> None:
    scene.say("@Memo /memory")


async def offer(scene: Scene) -> None:
    await scene.answered("The wifi password of the Berlin office is hunter2", chat=scene.p2p)
    scene.say("@Memo What is the wifi password of the Berlin office?")
    await scene.worker.do_one()


async def private_answer(scene: Scene) -> None:
    await offer(scene)
    before = set(scene.shown())
    await scene.worker.work()
    [card] = [one for one in scene.shown() if one not in before]
    scene.press(card, "Show me")


@dataclass(frozen=True)
class Origin:
    """What a card comes from. `says`: the model; `streams`: it is seen while it is written;
    `sends`: the call that counts; `ephemeral`: one person of the group sees it, without a uuid."""

    prepare: Callable[[Scene], Awaitable[None]]
    says: str = "The launch is on 3 March.\n\nRelated questions:\n- What about the budget?"
    streams: bool = False
    sends: str = MESSAGE
    ephemeral: bool = False


ORIGINS = {
    "message": Origin(message),
    "message, first seen": Origin(message, streams=True),
    "message, last word": Origin(message, streams=True, sends=LAST_WORD),
    "button": Origin(button),
    "menu": Origin(menu),
    "again": Origin(again),
    "reaction": Origin(reaction, "Shall I write it down?"),
    "reminder": Origin(reminder),
    "digest": Origin(digest),
    "unasked": Origin(unasked, "It is on 3 March."),
    "comment": Origin(comment, sends=REPLY),
    "comment on all": Origin(comment_on_all, sends=WHOLE),
    "excuse": Origin(excuse),
    "operator's retry": Origin(retry),
    "own memory": Origin(own_memory, ephemeral=True),
    "offer": Origin(offer, ephemeral=True),
    "private answer": Origin(private_answer, ephemeral=True),
}
