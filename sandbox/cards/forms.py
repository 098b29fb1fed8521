"""What Feishu asks of a form in a card. Pure.

Source: open.feishu.cn, card-json-v2-components, form container: it stands at the root of the card,
holds no form and no table, has a name, and so has everything in it that is filled in or submits;
names are unique in the card.
"""

from collections.abc import Iterator
from typing import Any

_FIELDS = frozenset(
    "input select_static multi_select_static select_person multi_select_person date_picker"
    " picker_time picker_datetime select_img checker".split()
)


def fault(form: dict[str, Any], depth: int, names: set[str]) -> str:
    """Why the form is refused, or ""; its names are added to `names`."""
    if depth > 0:
        return "a form stands only at the root of the card"
    inside = list(tagged(form.get("elements")))
    if any(one["tag"] in ("form", "table") for one in inside):
        return "a form holds no form and no table"
    submits = [one for one in inside if one.get("form_action_type") == "submit"]
    if not submits:
        return "a form needs a button that submits it"
    for one in (form, *submits, *(one for one in inside if one["tag"] in _FIELDS)):
        name = one.get("name")
        if not isinstance(name, str) or not name:
            return f"in a form a {one['tag']} needs a name"
        if name in names:
            return f"the name {name!r} is not unique"
        names.add(name)
    return ""


def tagged(node: Any) -> Iterator[dict[str, Any]]:
    """All elements below, in reading order."""
    if isinstance(node, dict):
        if "tag" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from tagged(child)
