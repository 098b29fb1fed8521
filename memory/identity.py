"""Who a Feishu person is in Supabase Auth: pure naming rules, the same on every machine.

A person is an open_id in a tenant; names come and go. The id of their Auth user, and its e-mail
address, follow from those two and nothing else, so every worker arrives at the same user.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass

# Made once for this purpose. Another value would give everybody another Auth user.
NAMESPACE = uuid.UUID("6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88")
PROVIDER = "feishu"
# RFC 2606 reserves .invalid: nobody can own the domain, and nothing can be delivered there.
_MAIL_DOMAIN = "feishu.invalid"
_MAIL_DIGITS = 40  # of a local part, which holds 64 at most (RFC 5321)


@dataclass(frozen=True, slots=True, order=True)
class FeishuPerson:
    """Somebody in a tenant; the same open_id in two tenants is two people."""

    tenant_key: str
    open_id: str

    @property
    def auth_user_id(self) -> uuid.UUID:
        """The id of their user in Supabase Auth (version 5)."""
        return uuid.uuid5(NAMESPACE, self._encoded)

    @property
    def placeholder_email(self) -> str:
        """The address of that user. Auth wants one, and the bot knows none of people."""
        digest = hashlib.sha256(self._encoded.encode()).hexdigest()
        return f"{digest[:_MAIL_DIGITS]}@{_MAIL_DOMAIN}"

    @property
    def app_metadata(self) -> dict[str, str]:
        """What the user's `app_metadata` says; only the service can write that."""
        return {"provider": PROVIDER, "tenant_key": self.tenant_key, "open_id": self.open_id}

    @property
    def _encoded(self) -> str:
        """Injective, whatever the ids contain, and plain ASCII."""
        return json.dumps([self.tenant_key, self.open_id])
