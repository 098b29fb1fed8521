"""What scripts/replay and scripts/evaluate are given: another model, instructions of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bot.settings import Settings, SettingsError


def text_of(file: Path) -> str:
    """What the file holds. Raises `SettingsError` when it is none, or no text."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = f"{file} cannot be read: choose a text file."
        raise SettingsError(why, f"{file} 无法读取：请选择文本文件。") from exc


def with_model(settings: Settings, model: str | None) -> Settings:
    """Raises `SettingsError` where only the offline model would answer under that name."""
    if not model:
        return settings
    if not settings.openai_api_key:
        raise SettingsError(
            f"no model {model!r} without OPENAI_API_KEY: the offline model would answer.",
            f"没有 OPENAI_API_KEY 就没有模型 {model!r}：回答的会是离线模型。",
        )
    return replace(settings, openai_model=model)


def model_name(settings: Settings) -> str:
    """The model that answers."""
    return settings.openai_model if settings.openai_api_key else "offline"
