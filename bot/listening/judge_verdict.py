"""What a judge answered, however the word is dressed. Pure.

Models put the word in markdown or quotes, go on with reasons, or think aloud before it.
"""

import re

_THOUGHTS_END = "</think>"
_YES = re.compile(
    r"[\W_]*(?:(?:final )?(?:answer|verdict|decision|答案|回答|判断|结论)"
    r"[\W_]*(?:is|是(?=[\W_]))?[\W_]*)?"
    r"(?:yes(?![a-z])|是(?!否|不是))",
    re.IGNORECASE,
)


def means_yes(answer: str) -> bool:
    """Whether the first word after all thoughts is YES or 是."""
    return bool(_YES.match(answer.rpartition(_THOUGHTS_END)[2]))
