"""What the developer console knows of the simulated app: scopes granted, apps being registered.

Source: the device grant of lark-oapi's `register_app` (OAuth 2.0 Device Authorization Grant,
RFC 8628), and open.feishu.cn, “Create an app in one click”.
"""

import base64
import gzip
import json
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sandbox.world.scopes import EXTRA, SCOPES

LIFE_S = 600
INTERVAL_S = 1


class BadLink(Exception):
    """The link was not made by this platform, is used up, or asks for what cannot be."""


@dataclass
class Registration:
    """One link that waits for somebody to scan it. `outcome`: waiting, confirmed or denied."""

    device_code: str
    user_code: str
    begun_at: float
    outcome: str = "waiting"
    brand: str = "feishu"


@dataclass
class AppConsole:
    """Not thread-safe; the world's lock guards it. `connections` are long ones that are online."""

    granted: set[str] = field(default_factory=lambda: SCOPES.keys() - EXTRA)
    events: set[str] = field(default_factory=set)
    callbacks: set[str] = field(default_factory=set)
    connections: int = 0
    registrations: dict[str, Registration] = field(default_factory=dict)

    def begin(self, now: float) -> Registration:
        """A fresh device code and the user code of its link."""
        code = f"{secrets.token_hex(2)}-{secrets.token_hex(2)}".upper()
        made = Registration(secrets.token_urlsafe(24), code, now)
        self.registrations[made.device_code] = made
        return made

    def scanned(self, link: str, *, confirmed: bool, brand: str = "feishu") -> None:
        """Somebody opened `link` and said yes or no. Raises BadLink."""
        query = {name: values[-1] for name, values in parse_qs(urlsplit(link).query).items()}
        code = query.get("user_code")
        made = next((one for one in self.registrations.values() if one.user_code == code), None)
        if made is None or made.outcome != "waiting":
            raise BadLink("no app waits to be created by this link")
        made.outcome, made.brand = ("confirmed" if confirmed else "denied"), brand
        if confirmed and "addons" in query:
            self._grant(decoded(query["addons"]))

    def _grant(self, addons: dict[str, Any]) -> None:
        """The app has what its creation asked for, and nothing else."""
        wanted = set(addons.get("scopes", {}).get("tenant", []))
        if unknown := wanted - SCOPES.keys():
            raise BadLink(f"there are no scopes {sorted(unknown)}")
        self.granted = wanted
        self.events = set(addons.get("events", {}).get("items", {}).get("tenant", []))
        self.callbacks = set(addons.get("callbacks", {}).get("items", []))


def decoded(addons: str) -> dict[str, Any]:
    """The `addons` of a link: JSON, gzipped, in URL-safe base64 without padding. Raises BadLink."""
    try:
        raw = gzip.decompress(base64.urlsafe_b64decode(addons + "=" * (-len(addons) % 4)))
        found = json.loads(raw)
    except (ValueError, OSError, EOFError):
        raise BadLink("the addons of the link cannot be read") from None
    if not isinstance(found, dict):
        raise BadLink("the addons of the link are no object")
    return found
