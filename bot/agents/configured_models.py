"""Which model answers: any Chat Completions endpoint, or the offline model without a key."""

from __future__ import annotations

from functools import partial

from bot.agents.llm.chat_completions import BETWEEN_S, ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.fallback import Fallback
from bot.agents.llm.model import Model
from bot.agents.llm.model_request_queue import LONGEST_WAIT_S
from bot.agents.llm.token_metering import CountedModel, Meter, MeteredModel
from bot.agents.llm.vision_probe import VisionProbe
from bot.process.tally import Tally
from bot.settings import Settings


class Models:
    """The models of the configured endpoint, over one shared client; `await close()` at the end.

    With a fallback model each has half of the time to begin. Without a key every name is
    the offline model. `meter` learns from what the main model reports; `tally` counts what is used
    in the background.
    """

    def __init__(
        self, settings: Settings, meter: Meter | None = None, tally: Tally | None = None
    ) -> None:
        self._tally = tally or Tally()
        self._settings = settings
        self._meter = meter
        share = 0.5 if settings.openai_fallback_model else 1.0
        self._first_s = settings.model_timeout_seconds * share
        self._endpoint = Endpoint(
            settings.openai_api_key,
            settings.openai_base_url,
            timeout_s=max(self._first_s, BETWEEN_S),
        )

    def main(self) -> Model:
        """The model of the settings."""
        return self.named(self._settings.openai_model)

    def named(self, name: str) -> Model:
        """The model `name`, with the fallback model behind it."""
        if not self._settings.openai_api_key:
            from bot.agents.offline.model import OfflineModel  # for who has no key

            return OfflineModel(by_meaning=bool(self._settings.embedding_model))
        has_other = bool(self._settings.openai_fallback_model)
        waits_s = self._first_s if has_other else LONGEST_WAIT_S  # the other model need not wait
        first: Model = ChatModel(self._endpoint, name, first_s=self._first_s, waits_s=waits_s)
        if self._meter and name == self._settings.openai_model:
            first = MeteredModel(first, self._meter)
        if not has_other:
            return first
        other = self._settings.openai_fallback_model
        return Fallback(first, ChatModel(self._endpoint, other, first_s=self._first_s))

    def counted(self, name: str, kind: str) -> Model:
        """The model `name`, whose tokens count as `kind` and not as an answer's."""
        return CountedModel(self.named(name), partial(self._tally.asked, kind))

    def judge(self) -> Model | None:
        """The model that judges whom a message is for; None: switched off, or there is no model."""
        if not self._settings.use_llm_judge or not self._settings.openai_api_key:
            return None
        return self.counted(self._settings.judge_model or self._settings.openai_model, "judge")

    def sight(self) -> VisionProbe:
        """Whether the model of the settings sees pictures."""
        settings = self._settings
        if not settings.openai_api_key:
            return VisionProbe(settings.openai_vision)
        chat_model = ChatModel(self._endpoint, settings.openai_model, first_s=self._first_s)
        abilities = self._endpoint.abilities(settings.openai_model)
        return VisionProbe(settings.openai_vision, chat_model, abilities)

    async def close(self) -> None:
        await self._endpoint.close()
