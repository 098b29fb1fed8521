"""Receipts of deletions as the person sees them: a line on the card, and copies to keep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.features.feature import FeatureTurn
from bot.features.own_memory import texts
from bot.outbox.buttons import Reply
from bot.outbox.receipts import sign_receipts
from bot.services import Services
from bot.text.dates import spoken
from bot.text.languages import Language, join_list
from memory.receipts.receipt import Receipt
from memory.tables.receipts import Copy, ReceiptStore

_AT_ONCE = 5


def receipt_line(receipts: Sequence[Receipt], language: Language) -> str:
    """The line that names the receipts of a deletion; "" if none is signed."""
    labels = join_list([one.label for one in receipts], language)
    return texts.say("receipt-line", language, labels=labels) if labels else ""


async def has_receipts(services: Services, here: FeatureTurn) -> bool:
    """Whether something of the sender's was deleted. Raises `StoreError`."""
    store = ReceiptStore(services.rpc)
    return bool(await store.own(here.context.actor_id, here.context.tenant_key, limit=1))


async def show_receipts(services: Services, here: FeatureTurn) -> Reply:
    """Copies of the sender's receipts with the salts that wait for them. Raises `StoreError`."""
    await sign_receipts(services)
    context, store = here.context, ReceiptStore(services.rpc)
    copies = await store.take(
        context.actor_id, context.tenant_key, limit=_AT_ONCE, turn_id=here.turn_id
    )
    if not copies:
        return Reply(texts.say("no-receipts", here.language))
    texts_shown = [_shown(one, here.language, services.now()) for one in copies]
    return Reply(
        "\n\n".join((texts.say("receipts-intro", here.language), *texts_shown)), forgets=True
    )


def _shown(copy: Copy, language: Language, now: datetime) -> str:
    fields = copy.receipt.fields
    at = datetime.fromisoformat(fields["at"]).astimezone(now.tzinfo)
    line = texts.say(
        "receipt-entry",
        language,
        label=copy.receipt.label,
        when=spoken.moment(at, language, now=now),
        n=sum(one["deleted"] for one in fields["counts"].values()),
    )
    salt_note = "" if copy.salt else f" {texts.say('salt-given', language)}"
    return f"{line}{salt_note}\n```json\n{copy.text}\n```"
