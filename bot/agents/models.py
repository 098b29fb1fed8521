"""Which model answers: any Chat Completions endpoint, or the offline model without a key."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from bot.agents.completions import PlainChatModel, PlainOpenAI
from bot.agents.metering import Meter, MeteredChatModel
from bot.agents.offline.model import offline_model
from bot.settings import Settings

_RETRIES = 2


def build_model(settings: Settings) -> Model:
    """The model of the settings; with a fallback it gets at most half of the time."""
    return models(settings)(settings.openai_model)


def models(settings: Settings, meter: Meter | None = None) -> Callable[[str], Model]:
    """Gives the model of a name at the configured endpoint, over one shared client.

    The fallback model stands behind each. Without a key every name is the offline model. `meter`
    learns from what the main model reports.
    """
    if not settings.openai_api_key:
        offline = offline_model()
        return lambda _: offline
    share = 0.5 if settings.openai_fallback_model else 1.0
    client = PlainOpenAI(
        api_key=settings.openai_api_key,
        base_url=settings.openai_base_url or None,
        timeout=settings.model_timeout_seconds * share,
        max_retries=_RETRIES,
    )
    provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)

    def named(name: str) -> Model:
        first = (
            MeteredChatModel(name, provider=provider, meter=meter)
            if meter and name == settings.openai_model
            else PlainChatModel(name, provider=provider)
        )
        if not settings.openai_fallback_model:
            return first
        second = PlainChatModel(settings.openai_fallback_model, provider=provider)
        return FallbackModel(first, second, fallback_on=(ModelAPIError, UnexpectedModelBehavior))

    return named
