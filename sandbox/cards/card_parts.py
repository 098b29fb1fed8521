"""The actions of CardKit's batch update, applied to a card body in place. Pure.

Source: open.feishu.cn, cardkit-v1/card/batch_update. `partial_update_element` and appended elements
are not played.
"""

from collections.abc import Callable
from typing import Any

from sandbox.cards.card_check import CardInvalid

Merge = Callable[[dict[str, Any], dict[str, Any]], None]

_PLACES = {"insert_before", "insert_after"}


def apply_actions(body: dict[str, Any], actions: list[Any], merge_settings: Merge) -> None:
    """Apply the actions in order. Raises CardInvalid with the code of the failed action."""
    for action in actions:
        if not isinstance(action, dict) or not isinstance(action.get("params"), dict):
            raise CardInvalid(200621, "an action is an object with params")
        _apply(body, str(action.get("action")), action["params"], merge_settings)


def _apply(body: dict[str, Any], name: str, params: dict[str, Any], merge: Merge) -> None:
    if name == "partial_update_setting":
        merge(body, params.get("settings", {}))
    elif name == "add_elements":
        _add(body, params)
    elif name == "delete_elements":
        for element_id in params.get("element_ids", []):
            siblings, index = _place(body, element_id, 300314)
            del siblings[index]
    elif name == "update_element":
        siblings, index = _place(body, params.get("element_id"), 300313)
        element = params.get("element")
        if not isinstance(element, dict):
            raise CardInvalid(300313, "Failed to update element properties")
        siblings[index] = {"element_id": params["element_id"], **element}
    else:
        raise CardInvalid(200621, f"unknown action {name!r}")


def _add(body: dict[str, Any], params: dict[str, Any]) -> None:
    elements, place = params.get("elements"), params.get("type")
    if not isinstance(elements, list) or place not in _PLACES:
        raise CardInvalid(300315, "Failed to add element")
    siblings, index = _place(body, params.get("target_element_id"), 300315)
    at = index + (place == "insert_after")
    siblings[at:at] = elements


def _place(node: Any, element_id: object, code: int) -> tuple[list[Any], int]:
    found = _search(node, element_id) if isinstance(element_id, str) and element_id else None
    if found is None:
        raise CardInvalid(code, f"element {element_id!r} not found")
    return found


def _search(node: Any, element_id: str) -> tuple[list[Any], int] | None:
    if isinstance(node, list):
        for index, child in enumerate(node):
            if isinstance(child, dict) and child.get("element_id") == element_id:
                return node, index
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list) and (found := _search(child, element_id)):
            return found
    return None
