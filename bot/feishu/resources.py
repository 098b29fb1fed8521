"""The content of a received message: its text, and the resources that Feishu stores for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attachment:
    """A resource of a message. `kind`: image, file, audio, media, sticker or folder; size in bytes
    and duration, each None where Feishu does not say (of the size events never do)."""

    kind: str
    key: str
    name: str
    size: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """`template` still holds the mention keys; `render_mentions` puts the names in."""

    template: str
    attachments: tuple[Attachment, ...] = ()
