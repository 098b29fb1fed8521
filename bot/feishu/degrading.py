"""A card with fewer features, for when Feishu refuses the one with all of them. Pure.

The same text and the same refusal always give the same simpler text, so that a turn resumed after a
crash goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.feishu.errors import Action, FeishuError
from bot.feishu.markup import as_code, name_mentions, without_images, without_links
from bot.feishu.splitting import blocks_of

# What Feishu names as the fault: too many tables, an image key, somebody who is not in the chat.
_NAMED: Mapping[int, int] = {11310: 0, 200570: 1, 100290: 2}


def drops_foot(error: FeishuError) -> bool:
    """Whether what stands around the answer goes before anything of the answer itself: it does
    unless Feishu names something in the words as the fault."""
    of_the_card = error.action in (Action.DEGRADE, Action.SPLIT, Action.REJECTED)
    return of_the_card and (error.sub_code or error.code) not in _NAMED


def degrade(
    markdown: str, error: FeishuError, names: Mapping[str, str] | None = None
) -> str | None:
    """The next simpler Markdown after a refusal, or None when only plain text is left.

    What Feishu complains of goes first; else tables become code, then images words, at-tags names
    and links words, one feature a step. `names` are by open_id. A text that is too long gets no
    shorter by this.
    """
    if error.action is Action.SPLIT:
        return None
    steps = _steps(names or {})
    step_name = _NAMED.get(error.sub_code or 0)
    if step_name is not None:
        steps.insert(0, steps.pop(step_name))
    return next((simpler for step in steps if (simpler := step(markdown)) != markdown), None)


def _steps(names: Mapping[str, str]) -> list[Callable[[str], str]]:
    return [
        lambda markdown: _tables_as_code(markdown, names),
        without_images,
        lambda markdown: name_mentions(markdown, names),
        without_links,
    ]


def _tables_as_code(markdown: str, names: Mapping[str, str]) -> str:
    blocks = list(blocks_of(markdown))
    if not any(block.is_table for block in blocks):
        return markdown
    texts = (_as_code(b.text, names) if b.is_table else b.text for b in blocks)
    return "".join(texts).rstrip("\n")


def _as_code(table: str, names: Mapping[str, str]) -> str:
    code = as_code(name_mentions(table, names).rstrip("\n"))
    return f"```\n{code}\n```\n"
