"""Links to Feishu's documents, found in text. Pure.

Source: Feishu, “Cloud documents FAQ”, how to get the token of a document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from memory.text import HAN

LinkKind = Literal["docx", "sheet", "bitable", "wiki", "other"]

MOST_LINKS = 5
_KINDS: dict[str, LinkKind] = {
    "docx": "docx",
    "sheets": "sheet",
    "base": "bitable",
    "wiki": "wiki",
    **dict.fromkeys(("docs", "file", "mindnotes", "slides", "minutes", "board"), "other"),
}
_DOMAINS = (".feishu.cn", ".larksuite.com", ".larkoffice.com")
_URL = re.compile(rf"https://[^\s<>\"'()\[\]{{}}|，。；、！？（）《》【】“”{HAN}]{{1,500}}")
_TOKEN = re.compile(r"[A-Za-z0-9]{10,64}")
_PART = re.compile(r"[A-Za-z0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """`kind` is that of the link's path; a `wiki` page leads to a document of another kind, and
    `other` are those that cannot be read. `host` is "" where only the document is known. `table`:
    the table or sheet that the link opens."""

    kind: LinkKind
    token: str
    host: str = ""
    table: str = ""

    @property
    def url(self) -> str:
        """The link without what it says of views and people."""
        path = next(path for path, kind in _KINDS.items() if kind == self.kind)
        parameter = {"bitable": "?table=", "sheet": "?sheet="}.get(self.kind, "?table=")
        return f"https://{self.host}/{path}/{self.token}" + (
            f"{parameter}{self.table}" if self.table else ""
        )


def document_link(url: str) -> DocumentLink | None:
    """What `url` leads to, or None if it is no link to a document of Feishu's."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return None
    path = parts.path.strip("/").split("/")
    if parts.scheme != "https" or not host.endswith(_DOMAINS) or len(path) < 2:
        return None
    kind, token = _KINDS.get(path[0]), path[1]
    if kind is None or not _TOKEN.fullmatch(token):
        return None
    query = parse_qs(parts.query)
    table = (query.get("table") or query.get("sheet") or [""])[-1]
    return DocumentLink(kind, token, host, table if _PART.fullmatch(table) else "")


def without_links(text: str) -> str:
    """`text` without what looks like a link."""
    return _URL.sub(" ", text)


def links_in(text: str) -> list[DocumentLink]:
    """The links to documents in a text, each once, at most five."""
    candidates = (document_link(one) for one in _URL.findall(text))
    return list(dict.fromkeys(link for link in candidates if link))[:MOST_LINKS]
