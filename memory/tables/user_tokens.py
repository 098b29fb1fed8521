"""What people let the bot do at Feishu as themselves, and their tokens, which only they get.

Methods act as the person, under a token of their own place (`private_context`); no other token
reaches the rows. The database holds sealed tokens and cannot open them. Methods raise the errors of
`memory.errors`. Times are ms since epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from memory.rpc import Json, Rpc
from memory.scope import ChatType, FeishuPerson, private_context
from memory.sealing import SealBroken, SealedKind, Sealer
from memory.text import as_json

# Why a grant is over. lost: whoever refreshed it died meanwhile; refused: Feishu does not refresh
# it; expired: nobody used it for too long.
GrantEnd = Literal["lost", "refused", "expired"]
# What came of asking. somebody_else: another person approved; failed: Feishu did not do it.
Outcome = Literal["connected", "denied", "expired", "somebody_else", "failed"]
Reason = Literal["ask", "ended", "stale", "key"]

_LEAST_S = 60  # an access token that is handed out lasts so long
STALE_S = 40  # longer than a refresh can take


@dataclass(frozen=True, slots=True)
class TokenPair:
    """What Feishu issued. `refresh` is "" where it cannot be refreshed; `scopes` as granted."""

    access: str = field(repr=False)
    access_s: int
    refresh: str = field(repr=False)
    refresh_s: int
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What is asked for, until somebody opens `link` and decides."""

    code: str = field(repr=False)
    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WaitingAnswer:
    """The card of an answer whose question is asked again once what it needs is granted.
    `asked_ms`: when that was written, ms since epoch; 0: as the memory has it."""

    chat_id: str
    message_id: str
    asked_ms: int = 0


@dataclass(frozen=True, slots=True)
class AskPlace:
    """Where a person asked for it: the chat, its kind, and the language. `beside`: the card with
    the link stands in that group, where only they see it; else in p2p. `waiting`: what waits for
    it, in whichever chat."""

    chat_id: str = ""
    chat_type: ChatType = "p2p"
    language: Literal["en", "zh"] = "en"
    beside: str = ""
    waiting: tuple[WaitingAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person is asked for. `outcome` "": they have not decided. `card` is the message_id of
    the card with the link, "" before it is sent; `aside`: it stands beside a group."""

    id: str
    scopes: tuple[str, ...]
    until_ms: int
    interval_s: int
    outcome: Outcome | Literal[""]
    card: str
    aside: bool
    place: AskPlace
    key: str


@dataclass(frozen=True, slots=True)
class Connection:
    """What a person granted. `granted_ms` None: nothing; `ended` says why, where they were not told
    yet. `language` is the one they last asked in; `key` names what their tokens are sealed with."""

    scopes: tuple[str, ...]
    granted_ms: int | None
    ended: GrantEnd | Literal[""]
    ended_ms: int | None
    language: Literal["en", "zh", ""]
    key: str
    ask: Ask | None


@dataclass(frozen=True, slots=True)
class Access:
    """An access token, what it was granted for, and until when it lasts."""

    token: str = field(repr=False)
    scopes: tuple[str, ...]
    until_ms: int


@dataclass(frozen=True, slots=True)
class RefreshTurn:
    """Whose turn it is to use the refresh token: `refresh` is it, "" while another one does."""

    refresh: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NoToken:
    """There is no token. `ended`: there was one until just now."""

    ended: GrantEnd | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class TokenToTend:
    """Somebody for whom something is to be done, and what."""

    person: FeishuPerson
    why: Reason


class UserTokenStore:
    """The tokens of people over the memory's transports; `sealer` seals and opens them."""

    def __init__(self, rpc: Rpc, sealer: Sealer) -> None:
        self._rpc = rpc
        self._sealer = sealer

    async def get(self, person: FeishuPerson) -> Connection | None:
        """What they granted and are asked for; None: nothing."""
        return _connection(await self._call(person, "get_user_tokens"))

    async def ask(
        self,
        person: FeishuPerson,
        ask: str,
        *,
        scopes: tuple[str, ...],
        device: DeviceCode,
        life_s: int,
        interval_s: int,
        place: AskPlace,
    ) -> None:
        """Asks for `scopes`; what was asked for before is no more."""
        ciphertext = self._sealer.seal(person, "device", json.dumps([device.code, device.link]))
        await self._call(
            person,
            "ask_user",
            p_ask=ask,
            p_scopes=" ".join(scopes),
            p_life_s=life_s,
            p_interval_s=interval_s,
            p_place=as_json(asdict(place)),
            p_key=self._sealer.name,
            p_sealed=ciphertext,
        )

    async def device(self, person: FeishuPerson, ask: Ask) -> DeviceCode | None:
        """The code of what is asked for; None: it is gone, or its key is."""
        text = await self._open_sealed(person, "device", ask.key)
        if text is None:
            return None
        code, link = json.loads(text)
        return DeviceCode(code, link)

    async def note_card(self, person: FeishuPerson, ask: str, card: str, *, aside: bool) -> None:
        """The card with the link is `card`; `aside`: beside a group."""
        await self._call(person, "note_user_ask", p_ask=ask, p_card=card, p_aside=aside)

    async def note_waiting(self, person: FeishuPerson, ask: str, answer: WaitingAnswer) -> None:
        """One more answer waits for it; the last five are kept."""
        await self._call(person, "note_user_ask", p_ask=ask, p_waiting=as_json(asdict(answer)))

    async def note_interval(self, person: FeishuPerson, ask: str, interval_s: int) -> None:
        """From now on Feishu is asked so seldom."""
        await self._call(person, "note_user_ask", p_ask=ask, p_interval_s=interval_s)

    async def answer(self, person: FeishuPerson, ask: str, outcome: Outcome) -> bool:
        """They granted nothing. False: it was not asked for any more."""
        return bool(await self._call(person, "answer_user_ask", p_ask=ask, p_outcome=outcome))

    async def connect(self, person: FeishuPerson, ask: str, tokens: TokenPair) -> bool:
        """Keeps what they granted. False, and nothing is kept: it was not asked for any more."""
        sealed_tokens = self._seal_tokens(person, tokens)
        return bool(await self._call(person, "connect_user", p_ask=ask, **sealed_tokens))

    async def close_ask(self, person: FeishuPerson, ask: str) -> None:
        """They know what came of it."""
        await self._call(person, "close_user_ask", p_ask=ask)

    async def use(
        self, person: FeishuPerson, holder: str, *, stale_s: int = STALE_S
    ) -> Access | RefreshTurn | NoToken:
        """Their access token; or whose turn it is to refresh it, that of `holder` or another's."""
        sealed_tokens = await self._call(
            person, "use_user_token", p_holder=holder, p_least_s=_LEAST_S, p_stale_s=stale_s
        )
        state = sealed_tokens["state"]
        if state == "wait":
            return RefreshTurn()
        if state not in ("fresh", "yours"):
            return NoToken(sealed_tokens["why"] or "")
        kind: SealedKind = "access" if state == "fresh" else "refresh"
        try:
            token = self._sealer.open(person, kind, sealed_tokens["key"], sealed_tokens["sealed"])
        except SealBroken:  # the key is not at hand, and may be again
            if state == "yours":
                await self.end_refresh(person, holder, "")
            return NoToken("lost")
        if state == "fresh":
            return Access(token, _scopes(sealed_tokens["scopes"]), sealed_tokens["until_ms"])
        return RefreshTurn(token)

    async def keep_refreshed(self, person: FeishuPerson, holder: str, tokens: TokenPair) -> bool:
        """Keeps what `holder` got. False, and nothing is kept: it is not theirs any more."""
        sealed_tokens = self._seal_tokens(person, tokens)
        return bool(await self._call(person, "keep_refreshed", p_holder=holder, **sealed_tokens))

    async def end_refresh(
        self, person: FeishuPerson, holder: str, outcome: GrantEnd | Literal[""]
    ) -> None:
        """`holder` got nothing; `outcome` "": the refresh token was certainly not used."""
        await self._call(person, "end_refresh", p_holder=holder, p_ended=outcome)

    async def spend(self, person: FeishuPerson, access: Access) -> None:
        """Feishu does not take that access token any more."""
        await self._call(person, "spend_user_token", p_until_ms=access.until_ms)

    async def disconnect(self, person: FeishuPerson, *, before_ms: int | None = None) -> bool:
        """Nothing is granted any more; with `before_ms` of what was granted until then. Whether
        anything was."""
        return bool(await self._call(person, "disconnect_user", p_before_ms=before_ms))

    async def note_told(self, person: FeishuPerson) -> None:
        """They know that it has ended."""
        await self._call(person, "note_ending_told")

    async def reseal(self, person: FeishuPerson, connection: Connection) -> bool:
        """Seals their tokens with the key of today. False: they changed meanwhile, or the key that
        they are sealed with is not at hand."""
        seals = {kind: await self._seal(person, kind) for kind in ("access", "refresh")}
        old_access, old_refresh = seals["access"], seals["refresh"]
        if old_access is None:
            return False
        try:
            access = self._anew(person, "access", connection.key, old_access)
            refresh = (
                self._anew(person, "refresh", connection.key, old_refresh) if old_refresh else None
            )
        except SealBroken:
            return False
        params = {
            "p_key": self._sealer.name,
            "p_access": old_access,
            "p_new_access": access,
            "p_refresh": old_refresh,
            "p_new_refresh": refresh,
        }
        return bool(await self._call(person, "reseal_user_tokens", **params))

    async def to_tend(self, *, stale_s: int = STALE_S) -> tuple[TokenToTend, ...]:
        """For whom something is to be done; as the operator, who sees no tokens."""
        params = {"p_key": self._sealer.name, "p_stale_s": stale_s}
        rows = await self._rpc.call("user_tokens_to_tend", params, None)
        return tuple(
            TokenToTend(FeishuPerson(row["tenant_key"], row["open_id"]), row["why"]) for row in rows
        )

    async def count(self) -> tuple[int, int]:
        """How many people are connected, and how many of them with another key than today's."""
        row = await self._rpc.call("count_user_tokens", {"p_key": self._sealer.name}, None)
        return int(row["connected"]), int(row["other_key"])

    def _seal_tokens(self, person: FeishuPerson, tokens: TokenPair) -> dict[str, object]:
        refresh = self._sealer.seal(person, "refresh", tokens.refresh) if tokens.refresh else None
        return {
            "p_scopes": " ".join(tokens.scopes),
            "p_key": self._sealer.name,
            "p_access": self._sealer.seal(person, "access", tokens.access),
            "p_access_s": tokens.access_s,
            "p_refresh": refresh,
            "p_refresh_s": tokens.refresh_s if refresh else None,
        }

    def _anew(self, person: FeishuPerson, kind: SealedKind, key: str, ciphertext: str) -> str:
        return self._sealer.seal(person, kind, self._sealer.open(person, kind, key, ciphertext))

    async def _seal(self, person: FeishuPerson, kind: SealedKind) -> str | None:
        seal: str | None = await self._call(person, "get_user_seal", p_kind=kind)
        return seal

    async def _open_sealed(self, person: FeishuPerson, kind: SealedKind, key: str) -> str | None:
        ciphertext = await self._seal(person, kind)
        try:
            return self._sealer.open(person, kind, key, ciphertext) if ciphertext else None
        except SealBroken:
            return None

    async def _call(self, person: FeishuPerson, function: str, **params: object) -> Json:
        context = private_context(person.open_id, person.tenant_key)
        return await self._rpc.call(function, params, context)


def _connection(row: Mapping[str, Any] | None) -> Connection | None:
    if row is None:
        return None
    ask = None
    if row["ask"]:
        place = row["ask_place"]
        waiting = tuple(WaitingAnswer(**one) for one in place.get("waiting", ()))
        ask = Ask(
            row["ask"],
            _scopes(row["ask_scopes"]),
            row["ask_until_ms"],
            row["ask_interval_s"],
            row["ask_outcome"],
            row["ask_card"],
            row["ask_aside"],
            AskPlace(**{**place, "waiting": waiting}),
            row["ask_sealed_with"],
        )
    return Connection(
        _scopes(row["scopes"]),
        row["granted_ms"],
        row["ended"],
        row["ended_ms"],
        row["language"],
        row["sealed_with"],
        ask,
    )


def _scopes(text: str) -> tuple[str, ...]:
    return tuple(text.split())
