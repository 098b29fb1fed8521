"""Whom an operator means: an open_id, the beginning of one as a screen shows it, or a name."""

from __future__ import annotations

from bot.text.languages import Sentence
from memory.identity import FeishuPerson
from scripts.operating.desk import OperatorDesk

_PAGE = 1000
_SHOWN = 5


class NotKnown(Exception):
    """Nothing is stored about whom the arguments name; `sentence` says so and what to do."""

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence


async def person_meant(desk: OperatorDesk, text: str, tenant: str | None = None) -> str:
    """The open_id of the person meant. Raises `NotKnown` for nobody, or for more than one."""
    if text.startswith("ou_") and not text.endswith("…") and await _is_stored(desk, text, tenant):
        return text
    wanted, beginning = text.casefold(), text.rstrip("…")
    found = {
        open_id: name
        for open_id, name in (await names(desk, tenant)).items()
        if name.casefold() == wanted
        or (beginning.startswith("ou_") and open_id.startswith(beginning))
    }
    if len(found) == 1:
        return next(iter(found))
    raise NotKnown(_nobody(text) if not found else _several(text, sorted(found)))


async def names(desk: OperatorDesk, tenant: str | None = None) -> dict[str, str]:
    """Everybody's name by open_id, "" where it is not known."""
    found: dict[str, str] = {}
    after: FeishuPerson | None = None
    while True:
        page = await desk.people.listed(tenant_key=tenant, after=after, limit=_PAGE)
        found |= {one.person.open_id: one.name for one in page}
        if len(page) < _PAGE:
            return found
        after = page[-1].person


async def _is_stored(desk: OperatorDesk, open_id: str, tenant: str | None) -> bool:
    """Whether the memory or the queue holds anything of theirs."""
    counts = await desk.operations.count_person(open_id, tenant)
    return any(counts.values()) or bool(desk.queue.export(open_id))


def _nobody(text: str) -> Sentence:
    return Sentence(
        f"nothing is stored about {text!r}: scripts/check_memory lists whom the memory knows",
        f"没有关于 {text!r} 的任何内容：scripts/check_memory 会列出记忆中的成员",
    )


def _several(text: str, ids: list[str]) -> Sentence:
    listed = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    return Sentence(
        f"{len(ids)} people are meant by {text!r}: give one of {listed}",
        f"{text!r} 对应 {len(ids)} 个人：请指定其中之一：{listed}",
    )
