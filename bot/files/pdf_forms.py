"""Reads what people wrote into a PDF beside the text of its pages: values of forms, and notes.

Producers leave out what the standard wants, so each object is taken for what it holds, and one that
cannot be read costs no other. XFA is the form as XML (Adobe, XML Forms Architecture); its values
stand in the data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.files.decoding import decode

_NOT_NOTES = ("/Link", "/Popup", "/Widget")
_CHECKED = {"/Yes": "yes", "/On": "yes"}
_OFF = ("/Off", "", None)
_MOST_FIELDS = 5_000
_TAG = re.compile(r"<[^<>]*>")
_INHERITED = ("/FT", "/V", "/Opt", "/Ff")
_PASSWORD, _RADIO_OR_BUTTON = 1 << 13, 0b11 << 15  # PDF 32000-1, tables 226 and 228


def remarks_on(page: Any) -> Iterator[str]:
    """What people wrote on a page: free text, notes, and remarks on what they marked."""
    for annotation in _dicts(page.get("/Annots")):
        if annotation.get("/Subtype") in _NOT_NOTES:
            continue
        if contents := _text(annotation.get("/Contents")) or _rich_text(annotation.get("/RC")):
            yield f"Note: {contents}"
        file = _object(annotation.get("/FS"))
        if name := _text(file.get("/UF") or file.get("/F")) if isinstance(file, dict) else "":
            yield f"Attached file, not read: {name}"


def form_values(reader: Any) -> Iterator[str]:
    """The values of a form, a line each."""
    form = _object(reader.root_object.get("/AcroForm"))
    fields = _dicts(form.get("/Fields")) if isinstance(form, dict) else []
    values = dict(_values_of(fields, "", {}, set()))
    if not values:  # some writers list no fields
        widgets = [
            one
            for page in reader.pages
            for one in _dicts(page.get("/Annots"))
            if one.get("/Subtype") == "/Widget"
        ]
        values = dict(_values_of(widgets, "", {}, set()))
    if not values and isinstance(form, dict):
        yield from _xfa_values(_object(form.get("/XFA")))
    for label, value in values.values():
        yield f"{label}: {value}"


def _values_of(
    fields: list[dict[str, Any]], path: str, above: Mapping[str, Any], seen: set[int]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names, each with a label and a value; the fields below one share what it says of them.
    `seen`: a field may stand below itself."""
    for field in fields:
        if id(field) in seen or len(seen) > _MOST_FIELDS:
            continue
        seen.add(id(field))
        own = {key: _object(field[key]) for key in _INHERITED if key in field}
        known = {**above, **own}
        name = ".".join(filter(None, (path, _text(field.get("/T")))))
        below = _dicts(field.get("/Kids"))
        if not below or "/V" in own:
            known.setdefault("/V", field.get("/AS") if known.get("/FT") == "/Btn" else None)
            value = _shown(known) or _rich_text(field.get("/RV"))
            if not value and "/T" in field and _is_unchecked(known):
                value = "no"
            if value:
                yield name, (_text(field.get("/TU")) or name, value)
        if below and "/V" not in own:
            yield from _values_of(below, name, known, seen)


def _is_unchecked(known: Mapping[str, Any]) -> bool:
    """True for a box to tick; a button, and one choice of several, has no "no"."""
    return (
        known.get("/FT") == "/Btn" and known["/V"] == "/Off" and not _has(known, _RADIO_OR_BUTTON)
    )


def _has(known: Mapping[str, Any], flags: int) -> bool:
    value = known.get("/Ff")
    return isinstance(value, int) and bool(value & flags)


def _shown(known: Mapping[str, Any]) -> str:
    """The value as a person sees it in the form."""
    value = _object(known["/V"])
    if known.get("/FT") == "/Sig":
        signer = _text(value.get("/Name")) if isinstance(value, dict) else ""
        return f"signed by {signer}" if signer else "signed" if value else ""
    if known.get("/FT") == "/Tx" and _has(known, _PASSWORD):
        return ""
    values = map(_object, value) if isinstance(value, list) else [_object(value)]
    options = _object(known.get("/Opt"))
    choices = list(map(_object, options)) if isinstance(options, list) else []
    texts = (_choice(one, choices, known.get("/FT")) for one in values if one not in _OFF)
    return ", ".join(filter(None, texts))


def _choice(value: Any, choices: list[Any], kind: Any) -> str:
    """What stands in the list for a value: by what is stored for it, or by its place."""
    told = _text(value)
    for one in choices:
        if isinstance(one, list) and len(one) == 2 and _text(one[0]) == told:
            return _text(one[1])
    place = told.removeprefix("/")
    if kind == "/Btn" and place.isdecimal() and int(place) < len(choices):
        return _text(choices[int(place)])
    return _CHECKED.get(told, told.removeprefix("/"))


def _xfa_values(xfa: Any) -> Iterator[str]:
    from lxml import etree  # type: ignore[import-untyped]

    parts = list(map(_object, xfa)) if isinstance(xfa, list) else [xfa]
    streams = [one.get_data() for one in parts if hasattr(one, "get_data")]
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(b"".join(streams), parser) if streams else None
    for data in (
        root.iter("{http://www.xfa.org/schema/xfa-data/1.0/}data") if root is not None else ()
    ):
        for one in data.iter(etree.Element):
            if not len(one) and (value := (one.text or "").strip()):
                yield f"{etree.QName(one).localname}: {value}"


def _rich_text(value: Any) -> str:
    return " ".join(_TAG.sub(" ", _text(value)).split())


def _text(value: Any) -> str:
    """A text, also a long one in a stream."""
    value = _object(value)
    if value is None or type(value).__name__ == "NullObject":
        return ""
    return decode(value.get_data())[0] if hasattr(value, "get_data") else str(value)


def _dicts(value: Any) -> list[dict[str, Any]]:
    items = _object(value)
    found = map(_object, items) if isinstance(items, list) else ()
    return [one for one in found if isinstance(one, dict)]


def _object(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value
