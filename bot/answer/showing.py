"""The answer while it is written: what each frame of its card shows."""

from __future__ import annotations

from functools import cached_property

from bot.agents.progress import Progress
from bot.answer.composing import Voice, cards_of, voice_of
from bot.answer.question import Turn, people_of
from bot.feishu.growing import Growing
from bot.languages import Language
from bot.mentions import ALL_NAMES
from bot.reply.partial import showable, status
from bot.services import Services


class Showing:
    """The markdown for a turn's progress, composed like any reply.

    Who is addressed how stays as it is at the first frame; a quick answer has none, and asks for
    nothing of it.
    """

    def __init__(self, services: Services, turn: Turn, language: Language) -> None:
        self._services = services
        self._turn = turn
        self._language = language
        self._escape = Growing()

    def __call__(self, progress: Progress) -> str:
        shown = showable(progress, self._names, self._language)
        nothing = status(progress.tool, self._language)
        return cards_of(shown, self._voice, nothing=nothing, escape=self._escape)[0]

    @cached_property
    def _voice(self) -> Voice:
        return voice_of(self._services, self._turn)

    @cached_property
    def _names(self) -> list[str]:
        people = self._turn.names.roster(people_of(self._turn)).names().values()
        return [*people, self._turn.bot.name, *ALL_NAMES]
