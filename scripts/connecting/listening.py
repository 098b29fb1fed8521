"""The first events, as they arrive: set-up holds the long connection and ticks them off.

What comes is not taken from the bot: it is asked for again (Feishu pushes after 15 s, 5 min, 1 h),
so the first question is answered once the bot runs. Only our own button is answered here.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from bot.feishu import cards, events, manifest
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from bot.feishu.long_connection import PUSH_AGAIN_ACK, Ack, LongConnection
from bot.feishu.transport import Transport
from bot.text.languages import Sentence
from scripts.connecting.apps import FEISHU, AppCredentials
from scripts.connecting.talk import Talk

_OPEN_S = 20.0
_BOTH = {events.MESSAGE_RECEIVED, events.CARD_ACTION}
_BUTTON = "feishu-memory-bot-setup"
NAMED = {one.name: one for one in manifest.SUBSCRIPTIONS}


@dataclass
class Ticks:
    """What has arrived; `on_tick` is called once for each kind, in the connection's threads."""

    on_tick: Callable[[str], None]
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    seen: set[str] = field(default_factory=set)
    sender: str = ""

    def take(self, message: bytes) -> Ack:
        """What a message is acknowledged with."""
        try:
            envelope = events.parse_envelope(json.loads(message))
        except (ValueError, events.MalformedEvent):
            return Ack()
        kind = envelope.event_type
        if kind == events.MESSAGE_RECEIVED and not self.sender:
            with suppress(events.MalformedEvent):
                self.sender = events.parse_message(envelope).sender_open_id
        if kind not in self.seen:
            self.seen.add(kind)
            self.on_tick(kind)
        if kind != events.CARD_ACTION:
            return PUSH_AGAIN_ACK
        value = events.parse_card_action(envelope).value
        ours = isinstance(value, dict) and value.get(_BUTTON) == self.mark
        return Ack(answer={"toast": _TOAST} if ours else {})


@dataclass
class FirstEvents:
    """`failure` is why the connection did not open, "" when it did; `kinds` are what arrived."""

    failure: str = ""
    kinds: frozenset[str] = frozenset()
    sent: bool = False


async def listen(
    talk: Talk,
    app: AppCredentials,
    *,
    wait_s: float,
    before: Callable[[], None],
    after: Callable[[frozenset[str]], None],
) -> FirstEvents:
    """Opens the connection, sends the test message, and ticks off what comes for `wait_s`.

    `before` is called when the connection is open; `after` while it still is, in a thread, with the
    kinds that arrived.
    """
    loop, news, skip = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def tick(kind: str) -> None:
        talk.say(_ticked(kind), indent="  ✓ ")
        loop.call_soon_threadsafe(news.set)

    ticks, origin = Ticks(tick), app.domain or FEISHU
    transport, client = Transport(origin), FeishuClient(origin, app.app_id, app.app_secret)
    connection = LongConnection(transport, app.app_id, app.app_secret, ticks.take)
    running = asyncio.ensure_future(connection.run() if wait_s else asyncio.sleep(0))
    try:
        failure = await _opened(connection) if wait_s else ""
        if not failure and wait_s:
            talk.say(_OPEN, indent="  ✓ ")
            before()
        sent = await _tested(talk, client, app.open_id, ticks.mark) if app.open_id else False
        if not failure and wait_s:
            talk.say(_WRITE)
            loop.add_signal_handler(signal.SIGINT, _skipping(skip, news))
            try:
                sent = await _until_both(talk, client, ticks, (news, skip), wait_s, sent=sent)
            finally:
                loop.remove_signal_handler(signal.SIGINT)
        heard = FirstEvents(failure, frozenset(ticks.seen), sent)
        await asyncio.to_thread(after, heard.kinds)
        return heard
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await client.close()
        await transport.close()


def _skipping(skip: asyncio.Event, news: asyncio.Event) -> Callable[[], None]:
    def skipped() -> None:
        skip.set()
        news.set()

    return skipped


async def _opened(connection: LongConnection) -> str:
    """Why not, "" once it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_OPEN_S):
            while connection.failure:  # noqa: ASYNC110 - it has no event to wait for
                await asyncio.sleep(0.05)
    return connection.failure


async def _until_both(
    talk: Talk,
    client: FeishuClient,
    ticks: Ticks,
    signs: tuple[asyncio.Event, asyncio.Event],
    wait_s: float,
    *,
    sent: bool,
) -> bool:
    """Until a message and a click have come, or it is skipped. Who writes gets the test message if
    nobody had it yet. `signs`: something has happened; it is to be skipped."""
    news, skip = signs
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while not skip.is_set() and not ticks.seen >= _BOTH:
                await news.wait()
                news.clear()
                if ticks.sender and not sent:
                    sent = await _tested(talk, client, ticks.sender, ticks.mark)
    return sent


async def _tested(talk: Talk, client: FeishuClient, open_id: str, mark: str) -> bool:
    """Sends the test message to a person; says what became of it."""
    card = cards.answer_card(_HELLO, buttons=[cards.Button(_PRESS, {_BUTTON: mark})])
    try:
        await client.send(
            open_id, "open_id", msg_type="interactive",
            content=cards.card_content(card), uuid=secrets.token_hex(16),
        )  # fmt: skip
    except FeishuFailure as exc:
        talk.say(_not_sent(str(exc)), indent="  ✗ ")
        return False
    talk.say(_SENT, indent="  ✓ ")
    return True


_HELLO = "你好，我已经连上了。 / Hello, I am connected."
_PRESS = "按这里 / Press me"
_TOAST = {"type": "success", "content": "收到点击 / The click has arrived"}
_OPEN = Sentence("the long connection is open", "长连接已打开")
_SENT = Sentence("a test message was sent to you", "已给你发送一条测试消息")
_WRITE = Sentence(
    "Now write to the bot in Feishu, and press the button in its message (Ctrl+C skips this):",
    "现在请在飞书里给机器人发一条消息，并点击它消息里的按钮（按 Ctrl+C 跳过）：",
)


def _ticked(kind: str) -> Sentence:
    one = NAMED.get(kind)
    if one is None:
        return Sentence(kind, kind)
    return Sentence(f"{one.purpose.en} ({kind})", f"{one.purpose.zh}（{kind}）")


def _not_sent(reason: str) -> Sentence:
    return Sentence(f"no test message: {reason}", f"测试消息没有发出：{reason}")
