"""Updates cards after they are sent: streams into a live card, redraws a pressed one, and shows
that the bot is at work.

Everything here can be repeated: the message has the uuid an ordinary reply would have, and whoever
goes on with a card has sequence numbers above all that were used. Source: Feishu, "Streaming
updates" (cardkit-v1): numbers grow strictly; streaming ends by itself after 10 minutes.

The words stay as they are. A card that cannot be drawn anew stays as it is too: a press that comes
again is answered with a toast."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from bot.feishu import cards, drawable_markdown, markup
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.markup import applink_base
from bot.outbox import delivery
from bot.outbox.buttons import fields_of
from bot.outbox.delivery import Delivered, Undeliverable
from bot.outbox.foot import AnswerFooter, card_footer
from bot.outbox.texts import say_both
from bot.process import metrics
from bot.services import Services
from memory.errors import StoreError
from memory.tables.cards import CardStore, HandleStore, OpenCard

log = structlog.get_logger()
_STEPS = 9
_CLOSED = {"config": {"streaming_mode": False}}
_LATER = frozenset({Action.RETRY, Action.IN_FLIGHT})

_AFTER_S = 1.2
_EMOJI = "Typing"
_running: set[asyncio.Task[None]] = set()


class LiveCard:
    """A card that was kept (`memory.tables.cards`) and is now written on by this process alone."""

    def __init__(
        self,
        feishu: FeishuClient,
        store: CardStore,
        open_card: OpenCard,
        *,
        visible_card: Mapping[str, Any] | None = None,
    ) -> None:
        """`visible_card` is the card as this process created it; None where another attempt did."""
        self._feishu = feishu
        self._shown = visible_card
        self._store = store
        self._kept = open_card
        self._answer = cards.answer_id(open_card.turn_id, 0)
        self._numbers = iter(open_card.numbers)
        self._message_id = open_card.message_id
        self._asked: str | None = None
        self._foot: cards.CardFoot | None = None

    @property
    def message_id(self) -> str | None:
        """The message that shows the card; None while it is not known to be sent."""
        return self._message_id

    @property
    def begun(self) -> bool:
        """As `CardStream` has it."""
        return True

    async def send(self) -> str:
        """Replies with the card, once; gives the message_id."""
        if self._message_id is None:
            self._message_id = await self._reply()
            with self._unless_away():
                await self._store.mark_shown(self._kept, self._message_id)
        return self._message_id

    async def write(self, markdown: str) -> None:
        """Shows the whole text so far; needs streaming to be on."""
        number, uuid = self._next()
        await self._feishu.stream_text(self._kept.card_id, self._answer, markdown, number, uuid)

    async def show_stage(self, text: str) -> None:
        """Shows how far it is, below the text; needs streaming to be on."""
        number, uuid = self._next()
        await self._feishu.stream_text(self._kept.card_id, cards.STAGE_ID, text, number, uuid)

    async def finish(
        self,
        markdown: str,
        *,
        buttons: Sequence[cards.Button],
        names: Mapping[str, str],
        question: str | None = None,
        foot: cards.CardFoot | None = None,
    ) -> Delivered | None:
        """Puts the final text and what stands around it into the card and ends the streaming.

        Gives what is shown then, or None when CardKit refuses the card for good: it is withdrawn
        and the reply is to be sent as an ordinary card. Raises `Undeliverable`, or a failure that
        is worth another attempt.
        """
        try:
            message_id = await self.send()
        except FeishuError as error:
            if error.action in _LATER:
                raise
            return None  # nothing is shown yet
        self._asked, self._foot = question, foot
        content: str | None = markdown
        for _ in range(_STEPS):
            if content is None:
                break
            try:
                await self._close(self._card(content, buttons))
            except FeishuError as error:
                self._report(error)
                if error.action in _LATER:
                    raise
                if error.action is Action.OUT_OF_SEQUENCE:
                    await self._renumber()
                elif delivery.is_mention_of_all_forbidden(content, error):
                    content = delivery.without_mention_of_all(content)
                elif drawable_markdown.should_drop_foot(error) and (self._foot or self._asked):
                    self._asked = self._foot = None
                else:
                    content = simpler_content(content, error, names)
            else:
                return Delivered(content, message_id)
        return await self._without_cardkit(markdown, buttons, message_id)

    async def withdraw(self) -> None:
        """The question was taken back: so is the card, or it says so where Feishu forbids that."""
        if self._message_id is None:
            return
        try:
            await self._feishu.delete_message(self._message_id)
        except FeishuError as error:
            self._report(error)
            await self.finish(say_both("taken-back"), buttons=(), names={})

    async def closed(self) -> None:
        """Nobody needs to go on with the card."""
        with self._unless_away():
            await self._store.mark_finished(self._kept)

    async def _reply(self) -> str:
        try:
            return await self._ask(in_thread=self._kept.in_thread)
        except FeishuError as error:
            self._report(error)
            if error.action is not Action.WITHOUT_THREAD or not self._kept.in_thread:
                raise
        return await self._ask(in_thread=False)

    async def _ask(self, *, in_thread: bool) -> str:
        message_id = await self._feishu.reply(
            self._kept.reply_to,
            chat_id=self._kept.context.chat_id,
            msg_type="interactive",
            content=cards.entity_content(self._kept.card_id),
            uuid=cards.reply_uuid(self._kept.turn_id, 0),
            reply_in_thread=in_thread,
        )
        return message_id.message_id

    async def _close(self, card: Mapping[str, Any]) -> None:
        """In one call while it is certain what the card holds, which is so once."""
        visible_card, self._shown = self._shown, None
        if visible_card is None:
            await self._replace(card)
            return
        number, uuid = self._next()
        actions = cards.closing_actions(visible_card, card)
        try:
            await self._feishu.batch_update_card(self._kept.card_id, actions, number, uuid)
        except FeishuError as error:
            if error.action in _LATER:
                raise
            log.info("live_card.replaced", turn_id=self._kept.turn_id, code=error.code)
            if error.action is Action.OUT_OF_SEQUENCE:
                await self._renumber()
            await self._replace(card)

    async def _replace(self, card: Mapping[str, Any]) -> None:
        number, uuid = self._next()
        try:
            await self._feishu.card_settings(self._kept.card_id, _CLOSED, number, uuid)
        except FeishuError as error:
            if error.action is not Action.CARD_CLOSED:
                raise
        number, uuid = self._next()
        await self._feishu.update_card(self._kept.card_id, card, number, uuid)

    async def _without_cardkit(
        self, markdown: str, buttons: Sequence[cards.Button], message_id: str
    ) -> Delivered | None:
        card = cards.card_content(self._card(markdown, buttons))
        try:
            await self._feishu.patch_card(message_id, card)
        except FeishuError as error:
            self._report(error)
            if error.action in _LATER:
                raise
            if error.action.is_final_here:
                raise Undeliverable(f"feishu {error.code}") from error
        else:
            return Delivered(markdown, message_id)
        try:
            await self._feishu.delete_message(message_id)
        except FeishuError as error:
            self._report(error)
        return None

    def _card(self, markdown: str, buttons: Sequence[cards.Button]) -> dict[str, Any]:
        return cards.answer_card(
            markdown,
            element_id=self._answer,
            buttons=buttons,
            asked_text=self._asked,
            foot=self._foot,
        )

    async def _renumber(self) -> None:
        open_card = await self._store.resume(self._kept.context, turn_id=self._kept.turn_id)
        if open_card is not None:
            self._numbers = iter(open_card.numbers)

    @contextlib.contextmanager
    def _unless_away(self) -> Iterator[None]:
        """A note that the memory does not take is no reason to keep the reply from people."""
        try:
            yield
        except StoreError as exc:
            log.warning("live_card.not_noted", turn_id=self._kept.turn_id, error=type(exc).__name__)

    def _next(self) -> tuple[int, str]:
        """The next sequence number and the uuid of its operation."""
        number = next(self._numbers)
        return number, cards.reply_uuid(self._kept.card_id, 0, number)

    def _report(self, error: FeishuError) -> None:
        metrics.FEISHU_ERRORS.labels(code=error.code).inc()
        log.warning(
            "live_card.refused",
            turn_id=self._kept.turn_id,
            code=error.code,
            sub_code=error.sub_code,
            log_id=error.log_id,
            action=error.action.value,
        )


def simpler_content(content: str, error: FeishuError, names: Mapping[str, str]) -> str | None:
    """What to show after a refusal, always the same for the same text; None: nothing will do."""
    if error.action is Action.NEUTRAL_TEXT and content != (neutral := say_both("neutral")):
        return neutral
    if error.action not in (Action.DEGRADE, Action.SPLIT):
        return None
    plain = markup.plain_text(content, names)
    return drawable_markdown.simpler_markdown(content, error, names) or (
        plain if plain != content else None
    )


async def redraw_card(
    services: Services, message_id: str, tenant_key: str, *, again: bool = True
) -> None:
    """Draws the card again as it is now, without `again` where that is pressed. Never raises."""
    try:
        row = await HandleStore(services.rpc).card_to_redraw(message_id, tenant_key)
        if row:
            await _show(services, message_id, {**row, "again": row["again"] and again})
    except Exception as exc:  # noqa: BLE001  the press counts, however the card looks
        log.info("redraw.left", error=type(exc).__name__, code=getattr(exc, "code", None))


async def _show(services: Services, message_id: str, row: Mapping[str, Any]) -> None:
    card = redrawn_card(row, services.now(), applink_base(services.settings.feishu_domain))
    if row["card_id"]:
        number = row["number"]
        uuid = cards.reply_uuid(row["card_id"], 0, number)
        await services.feishu.update_card(row["card_id"], card, number, uuid)
    else:
        await services.feishu.patch_card(message_id, cards.card_content(card))


def redrawn_card(row: Mapping[str, Any], now: datetime, applink: str) -> dict[str, Any]:
    """The card of a row as `card_to_redraw` gives it; times are in the zone of `now`. Pure."""
    foot = AnswerFooter.of_row(row["shown"]) if row["is_last"] else None
    below = card_footer(foot, now, applink=applink, again=row["again"]) if foot else None
    return cards.answer_card(
        row["content"],
        element_id=cards.answer_id(row["turn_id"], row["chunk"]),
        buttons=[_button(button) for button in row["buttons"]],
        foot=below,
        asked_text=row["asked"] if row["chunk"] == 0 else None,
    )


def _button(button: Mapping[str, Any]) -> cards.Button:
    """`pressed_by`: null, or whether it was this one of its group."""
    pressed_by = button["pressed"]
    label = f"✓ {button['label']}" if pressed_by else button["label"]
    fields = fields_of(button.get("form", ()))
    return cards.Button(
        label,
        {"b": button["id"]},
        disabled=pressed_by is not None,
        fields=fields,
        entry=button.get("entry", 0),
    )


@contextlib.asynccontextmanager
async def showing_work(feishu: FeishuClient, message_id: str) -> AsyncIterator[None]:
    """Shows the sign when the work takes longer than a moment, and takes it back afterwards.

    The reply never waits for the sign.
    """
    done_event = asyncio.Event()
    task = asyncio.create_task(_sign(feishu, message_id, done_event))
    _running.add(task)
    task.add_done_callback(_running.discard)
    try:
        yield
    finally:
        done_event.set()


async def _sign(feishu: FeishuClient, message_id: str, done_event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_AFTER_S):
            await done_event.wait()
            return
    try:
        reaction_id = await feishu.add_reaction(message_id, _EMOJI)
        await done_event.wait()
        await feishu.delete_reaction(message_id, reaction_id)
    except FeishuFailure as exc:
        log.info("working_sign.unavailable", message_id=message_id, error=type(exc).__name__)
