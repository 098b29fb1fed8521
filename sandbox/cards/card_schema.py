"""The attributes that card JSON 2.0 knows, as data.

An attribute that is not listed is refused: "In JSON 2.0, passing an unsupported attribute is an
error" (open.feishu.cn, card-json-v2-breaking-changes-release-notes). Attribute lists:
open.feishu.cn, card-json-v2-structure and card-json-v2-components.

A shape is `ANY` (a value or free object), `TEXT`/`ICON`/`ELEMENTS`/`COLUMNS`/`BEHAVIORS` (objects
that carry a tag or a type of their own), or a dict of attribute to shape.
"""

from typing import Final

ANY: Final = "any"
TEXT: Final = "text"
ICON: Final = "icon"
ELEMENTS: Final = "elements"
COLUMNS: Final = "columns"
BEHAVIORS: Final = "behaviors"

Shape = str | dict[str, "Shape"]


def _any(*names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, ANY)


_BASE = _any("tag", "element_id", "margin")
_LAYOUT = _any(
    "direction",
    "padding",
    "horizontal_spacing",
    "horizontal_align",
    "vertical_spacing",
    "vertical_align",
)
_CONFIRM: dict[str, Shape] = {"title": TEXT, "text": TEXT}
_ACTIVE: dict[str, Shape] = {
    "behaviors": BEHAVIORS,
    "confirm": _CONFIRM,
    "hover_tips": TEXT,
    "disabled": ANY,
    "disabled_tips": TEXT,
}
_FIELD: dict[str, Shape] = {
    **_BASE,
    **_any("name", "required", "width", "disabled"),
    "behaviors": BEHAVIORS,
    "confirm": _CONFIRM,
    "placeholder": TEXT,
}
_SELECT: dict[str, Shape] = {**_FIELD, **_any("type", "options")}

CARD: Final[dict[str, Shape]] = {
    "schema": ANY,
    "config": {
        **_any(
            "streaming_mode",
            "enable_forward",
            "enable_forward_interaction",
            "update_multi",
            "width_mode",
            "use_custom_translation",
            "locales",
        ),
        "summary": _any("content", "i18n_content"),
        "streaming_config": _any("print_frequency_ms", "print_step", "print_strategy"),
        "style": _any("text_size", "color"),
    },
    "card_link": _any("url", "android_url", "ios_url", "pc_url"),
    "header": {
        **_any("template", "padding", "text_tag_list", "i18n_text_tag_list"),
        "title": TEXT,
        "subtitle": TEXT,
        "icon": ICON,
    },
    "body": {**_LAYOUT, "elements": ELEMENTS},
}

TEXTS: Final[dict[str, dict[str, Shape]]] = {
    tag: _any(
        "tag",
        "element_id",
        "content",
        "i18n_content",
        "text_size",
        "text_color",
        "text_align",
        "lines",
    )
    for tag in ("plain_text", "lark_md", "markdown")
}

ICONS: Final[dict[str, dict[str, Shape]]] = {
    "standard_icon": _any("tag", "token", "color", "size"),
    "custom_icon": _any("tag", "img_key", "size"),
}

BEHAVIOR_TYPES: Final[dict[str, dict[str, Shape]]] = {
    "open_url": _any("type", "default_url", "android_url", "ios_url", "pc_url"),
    "callback": _any("type", "value"),
    "form_action": _any("type", "behavior"),
}

COLUMN: Final[dict[str, Shape]] = {
    **_BASE,
    **_LAYOUT,
    **_any("background_style", "width", "weight", "action"),
    "elements": ELEMENTS,
}

COMPONENTS: Final[dict[str, dict[str, Shape]]] = {
    "markdown": {
        **_BASE,
        **_any("content", "i18n_content", "text_size", "text_align"),
        "icon": ICON,
    },
    "div": {**_BASE, "width": ANY, "text": TEXT, "icon": ICON},
    "hr": _BASE,
    "img": {
        **_BASE,
        **_any("img_key", "corner_radius", "scale_type", "size", "transparent", "preview"),
        **_any("mode", "custom_width", "compact_width"),
        "alt": TEXT,
        "title": TEXT,
    },
    "img_combination": {
        **_BASE,
        **_any("combination_mode", "combination_transparent", "corner_radius", "img_list"),
    },
    "person": {
        **_BASE,
        **_any("user_id", "size", "show_avatar", "show_name", "style"),
    },
    "person_list": {
        **_BASE,
        **_any("persons", "size", "show_avatar", "show_name", "drop_invalid_user_id", "lines"),
        "icon": ICON,
        "ud_icon": ANY,
    },
    "audio": {
        **_BASE,
        **_any("audio_id", "file_key", "i18n_file_key", "style", "width", "padding", "disabled"),
        **_any("background_style", "fill_color", "show_progress_bar", "show_time", "fallback"),
        **_any("time_display", "time_position"),
        "border": _any("color", "corner_radius"),
        "disabled_tips": TEXT,
    },
    "chart": {
        **_BASE,
        **_any("chart_spec", "aspect_ratio", "color_theme", "preview", "height"),
    },
    "table": {
        **_BASE,
        **_any("page_size", "row_height", "row_max_height", "freeze_first_column", "rows"),
        "columns": ANY,
        "header_style": _any(
            "text_align", "text_size", "background_style", "text_color", "bold", "lines"
        ),
    },
    "button": {
        **_BASE,
        **_ACTIVE,
        **_any("type", "size", "width", "name", "form_action_type"),
        "text": TEXT,
        "icon": ICON,
    },
    "overflow": {
        **_BASE,
        **_any("width", "options", "value"),
        "behaviors": BEHAVIORS,
        "confirm": _CONFIRM,
    },
    "input": {
        **_FIELD,
        **_any(
            "value",
            "default_value",
            "max_length",
            "label_position",
            "input_type",
            "show_icon",
            "rows",
            "auto_resize",
            "max_rows",
            "fallback",
        ),
        "label": TEXT,
        "disabled_tips": TEXT,
    },
    "select_static": {**_SELECT, **_any("initial_option", "initial_index")},
    "multi_select_static": {**_SELECT, "selected_values": ANY},
    "select_person": {**_SELECT, "initial_option": ANY},
    "multi_select_person": {**_SELECT, "selected_values": ANY},
    "date_picker": {**_FIELD, **_any("initial_date", "value")},
    "picker_time": {**_FIELD, **_any("initial_time", "value")},
    "picker_datetime": {**_FIELD, **_any("initial_datetime", "value")},
    "select_img": {
        **_BASE,
        **_any("name", "required", "disabled", "value", "options"),
        **_any("multi_select", "layout", "can_preview", "aspect_ratio"),
        "behaviors": BEHAVIORS,
        "confirm": _CONFIRM,
        "disabled_tips": TEXT,
    },
    "checker": {
        **_BASE,
        **_ACTIVE,
        **_any("name", "checked", "overall_checkable", "button_area", "checked_style", "padding"),
        "text": TEXT,
    },
    "column_set": {
        **_BASE,
        **_any("horizontal_spacing", "horizontal_align", "flex_mode", "background_style", "action"),
        "columns": COLUMNS,
    },
    "form": {**_BASE, **_LAYOUT, **_any("name", "fallback"), "elements": ELEMENTS},
    "interactive_container": {
        **_BASE,
        **_LAYOUT,
        **_ACTIVE,
        **_any(
            "width", "height", "background_style", "has_border", "border_color", "corner_radius"
        ),
        "elements": ELEMENTS,
    },
    "collapsible_panel": {
        **_BASE,
        **_LAYOUT,
        **_any("expanded", "background_color"),
        "border": _any("color", "corner_radius"),
        "header": {
            **_any(
                "background_color",
                "vertical_align",
                "padding",
                "position",
                "width",
                "icon_position",
                "icon_expanded_angle",
            ),
            "title": TEXT,
            "icon": ICON,
        },
        "elements": ELEMENTS,
    },
}

RETIRED_TAGS: Final = frozenset({"action", "note"})
CONTAINERS: Final = frozenset({"column_set", "form", "interactive_container", "collapsible_panel"})
