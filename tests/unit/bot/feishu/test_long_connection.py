"""Frames, their assembly, the pace of reconnecting, and what a long connection needs configured."""

from __future__ import annotations

import asyncio
import base64
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu import frames
from bot.feishu.errors import Unreachable
from bot.feishu.frames import CONTROL_METHOD, DATA_METHOD, Frame, FrameAssembly, MalformedFrame
from bot.feishu.long_connection import (
    PUSH_AGAIN_ACK,
    Ack,
    ConnectionTimes,
    OpenConnection,
    address_of,
    reconnect_delay,
)
from bot.intake.health import Checks
from bot.settings import SettingsError, load
from tests.support.rows import every_row

FIXTURES = Path(__file__).parents[3] / "data" / "feishu"
INT32 = st.integers(-(2**31), 2**31 - 1)
UINT64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FRAMES = st.builds(
    Frame,
    method=INT32,
    service=INT32,
    seq_id=UINT64,
    log_id=UINT64,
    headers=st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple),
    payload_encoding=st.none() | TEXT,
    payload_type=st.none() | TEXT,
    payload=st.none() | st.binary(max_size=300),
    log_id_new=st.none() | TEXT,
)
MESSAGE = Frame(
    DATA_METHOD, 33554678, 7, 8,
    (("type", "event"), ("message_id", "m"), ("trace_id", "t"), ("sum", "1"), ("seq", "0")),
    payload=b"{}", log_id_new="log",
)  # fmt: skip


@pytest.fixture(scope="module")
def lark_client() -> Iterator[Any]:
    # The SDK warns on import, and opens an event loop which it never closes.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lark_oapi
        import lark_oapi.ws.client
    yield lark_oapi.ws.client
    lark_oapi.ws.client.loop.close()


def as_lark(lark_client: Any, frame: Frame) -> Any:
    """The same frame as lark-oapi builds it."""
    theirs = lark_client.Frame()
    theirs.SeqID, theirs.LogID = frame.seq_id, frame.log_id
    theirs.service, theirs.method = frame.service, frame.method
    for key, value in frame.headers:
        header = theirs.headers.add()
        header.key, header.value = key, value
    for name in ("payload_encoding", "payload_type", "payload"):
        if (value := getattr(frame, name)) is not None:
            setattr(theirs, name, value)
    if frame.log_id_new is not None:
        theirs.LogIDNew = frame.log_id_new
    return theirs


@given(frame=FRAMES)
def test_our_frames_are_the_sdks_byte_for_byte(lark_client: Any, frame: Frame) -> None:
    raw = as_lark(lark_client, frame).SerializeToString()

    assert frames.encode_frame(frame) == raw
    assert frames.decode_frame(raw) == frame


def test_our_ping_is_the_sdks(lark_client: Any) -> None:
    sent = asyncio.run(exchange(Ack(), [], pings=1))

    assert sent == [lark_client._new_ping_frame(33554678).SerializeToString()]


@pytest.mark.parametrize("answer", [{}, {"toast": {"type": "info", "content": "好"}}])
def test_our_acknowledgement_is_the_sdks(lark_client: Any, answer: dict[str, Any]) -> None:
    ours = asyncio.run(exchange(Ack(answer=answer), [frames.encode_frame(MESSAGE)]))
    theirs = asyncio.run(sdk_acknowledges(lark_client, answer))

    assert comparable(ours[-1]) == comparable(theirs)


def comparable(raw: bytes) -> Any:
    """The frame with its JSON parsed and the measured milliseconds left out."""
    frame = frames.decode_frame(raw)
    headers = [(key, "" if key == "biz_rt" else value) for key, value in frame.headers]
    body = json.loads(frame.payload or b"")
    if "data" in body:
        body["data"] = json.loads(base64.b64decode(body["data"]))
    rest = (frame.method, frame.service, frame.seq_id, frame.log_id, frame.log_id_new)
    return rest, headers, body


async def sdk_acknowledges(lark_client: Any, answer: dict[str, Any]) -> bytes:
    class Dispatcher:
        def _do_without_validation(self, _: bytes) -> Any:
            return answer or None

    sdk = lark_client.Client("cli_1", "s", event_handler=Dispatcher())
    sdk._conn = Socket([])
    await sdk._handle_data_frame(as_lark(lark_client, MESSAGE))
    return sdk._conn.sent[-1]


class Socket:
    """A websocket that receives what it was made with, then nothing more."""

    def __init__(self, incoming: list[bytes]) -> None:
        self.incoming = incoming
        self.sent: list[bytes] = []
        self.idle = asyncio.Event()

    async def recv(self, decode: bool | None = None) -> bytes:
        if self.incoming:
            return self.incoming.pop(0)
        self.idle.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(self, raw: bytes) -> None:
        self.sent.append(raw)


async def exchange(ack: Ack, incoming: list[bytes], *, pings: int = 0) -> list[bytes]:
    """What an open connection sends for `incoming`; its pings only where they are asked for."""
    socket = Socket(incoming)
    with ThreadPoolExecutor(1) as executor:
        connection = OpenConnection(
            socket,  # type: ignore[arg-type]
            33554678,
            lambda _: ack,
            executor,
            ConnectionTimes(),
        )
        serving = asyncio.create_task(connection.serve())
        await socket.idle.wait()
        serving.cancel()
        await asyncio.wait({serving})
    return [raw for raw in socket.sent if pings or frames.decode_frame(raw).method == DATA_METHOD]


@given(raw=st.binary(max_size=60))
def test_any_bytes_are_a_frame_or_malformed(raw: bytes) -> None:
    try:
        frame = frames.decode_frame(raw)
    except MalformedFrame:
        return
    assert frames.decode_frame(frames.encode_frame(frame)) == frame


@given(frame=FRAMES, cut=st.integers(1, 40))
def test_a_frame_cut_short_never_raises_anything_else(frame: Frame, cut: int) -> None:
    try:
        frames.decode_frame(frames.encode_frame(frame)[:-cut])
    except MalformedFrame:
        return


def test_fields_of_a_later_version_are_skipped() -> None:
    later = (
        frames.encode_frame(MESSAGE) + b"\x50\x05" + b"\x5d1234" + b"\x6112345678" + b"\x6a\x02hi"
    )

    assert frames.decode_frame(later) == MESSAGE


def part(number: object, total: object, payload: bytes, message_id: str = "m") -> Frame:
    headers = (("message_id", message_id), ("sum", str(total)), ("seq", str(number)))
    return Frame(DATA_METHOD, 1, headers=headers, payload=payload)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(
    pieces=st.lists(st.binary(max_size=5), min_size=1, max_size=12),
    order=st.randoms(use_true_random=False),
)
def test_parts_make_the_message_in_any_order_and_with_repetitions(
    pieces: list[bytes], order: Any
) -> None:
    parts = [part(number, len(pieces), piece) for number, piece in enumerate(pieces)]
    *early, last = order.sample(parts, len(parts))
    assembly = FrameAssembly(Clock())

    assert all(assembly.whole(frame) is None for frame in [*early, *early])
    assert assembly.whole(last) == b"".join(pieces)


def test_messages_do_not_mix() -> None:
    assembly = FrameAssembly(Clock())
    assembly.whole(part(0, 2, b"a", "one"))
    assembly.whole(part(0, 2, b"b", "two"))

    assert assembly.whole(part(1, 2, b"2", "two")) == b"b2"
    assert assembly.whole(part(1, 2, b"1", "one")) == b"a1"


def test_an_unfinished_message_is_dropped_after_five_seconds() -> None:
    clock = Clock()
    assembly = FrameAssembly(clock)
    assembly.whole(part(0, 2, b"a"))
    clock.now += 6

    assert assembly.whole(part(1, 2, b"b")) is None


def test_unfinished_messages_do_not_pile_up() -> None:
    assembly = FrameAssembly(Clock())
    for number in range(500):
        assembly.whole(part(0, 2, b"a", str(number)))

    assert len(assembly._unfinished) < 70
    assert assembly.whole(part(1, 2, b"b", "0")) is None
    assert assembly.whole(part(1, 2, b"b", "499")) == b"ab"


@every_row(("number", "total"), [(2, 2), (0, 65), (0, "many"), ("-1", 2), (0, "9" * 30), ("²", 3)])
def test_counts_that_make_no_sense_are_malformed(number: object, total: object) -> None:
    with pytest.raises(MalformedFrame):
        FrameAssembly(Clock()).whole(part(number, total, b"a"))


def test_a_frame_without_counts_is_a_whole_message() -> None:
    assert FrameAssembly(Clock()).whole(Frame(DATA_METHOD, 1, payload=b"{}")) == b"{}"


def test_the_pace_is_feishus_within_reason() -> None:
    wish = {"ReconnectCount": 3, "ReconnectInterval": 60, "ReconnectNonce": 10, "PingInterval": 90}
    odd = {"ReconnectInterval": 0, "ReconnectNonce": -5, "PingInterval": 10**9}

    assert ConnectionTimes().wished(wish) == ConnectionTimes(ping_s=90, interval_s=60, jitter_s=10)
    assert ConnectionTimes().wished(odd) == ConnectionTimes(ping_s=600, interval_s=1, jitter_s=0)
    assert (
        ConnectionTimes().wished({"PingInterval": "soon"})
        == ConnectionTimes().wished(None)
        == ConnectionTimes()
    )


def test_after_a_lost_connection_the_delay_is_random_as_feishu_wishes() -> None:
    pace = ConnectionTimes(jitter_s=30)

    assert [reconnect_delay(pace, 0, chance) for chance in (0, 0.5, 0.99)] == [1, 15, 29.7]


@given(failed=st.integers(1, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_failed_attempts_wait_longer_up_to_feishus_interval(failed: int, chance: float) -> None:
    pace = ConnectionTimes(interval_s=120)
    delay = reconnect_delay(pace, failed, chance)

    assert 1 <= delay <= 120
    assert reconnect_delay(pace, failed + 1, chance) >= delay


def test_the_address_tells_service_and_connection_and_hides_its_secrets() -> None:
    found = json.loads((FIXTURES / "ws_endpoint__resp.json").read_text(encoding="utf-8"))
    address = address_of(found["data"]["URL"])

    assert (address.service, address.connection_id) == (33554678, "7441873153905737730")
    assert address.url == found["data"]["URL"]
    assert "ticket" not in repr(address)


@every_row(
    "url",
    [None, 7, "", "https://x/ws", "ws://gateway.example/?service_id=1", "wss://", "wss://[",
     "wss://x/?service_id=one"],
)  # fmt: skip
def test_an_address_without_tls_or_sense_is_not_used(url: object) -> None:
    with pytest.raises(Unreachable, match="address"):
        address_of(url)


def test_only_code_200_takes_a_message_over() -> None:
    assert Ack().payload() == b'{"code": 200}'
    assert PUSH_AGAIN_ACK.payload() == b'{"code": 500}'


APP = {"feishu_app_id": "cli_1", "feishu_app_secret": "s"}


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)  # away from any .env
    for name in ("APP_ID", "APP_SECRET", "ENCRYPT_KEY", "VERIFICATION_TOKEN", "TRANSPORT"):
        monkeypatch.delenv(f"FEISHU_{name}", raising=False)
    return tmp_path


@pytest.mark.usefixtures("nothing_configured")
def test_a_long_connection_needs_neither_encrypt_key_nor_token() -> None:
    assert load(**APP, feishu_transport="websocket").long_connection
    with pytest.raises(SettingsError, match="FEISHU_ENCRYPT_KEY"):
        load(**APP)
    with pytest.raises(SettingsError, match="FEISHU_APP_SECRET"):
        load(feishu_app_id="cli_1", feishu_transport="websocket")


def test_the_simulated_group_keeps_its_webhook(nothing_configured: Path) -> None:
    settings = load(feishu_transport="websocket", data_dir=nothing_configured)

    assert settings.sandbox
    assert not settings.long_connection


@pytest.mark.usefixtures("nothing_configured")
def test_readiness_says_when_nothing_can_come_in() -> None:
    class Connection:
        failure = "Feishu has gone silent"

    class Inbox:
        def ping(self) -> None: ...

    settings = load(**APP, feishu_transport="websocket", feishu_domain="http://127.0.0.1:9")
    checks = Checks(settings, inbox=Inbox(), workers=None, connection=Connection())  # type: ignore[arg-type]
    checks._database = lambda: None  # type: ignore[method-assign]

    assert "gone silent" in checks.run().checks["connection"]
    Connection.failure = ""
    assert checks.run().checks["connection"] == "ok"


def test_control_frames_that_are_no_pong_change_nothing() -> None:
    ping = Frame(CONTROL_METHOD, 1, headers=(("type", "ping"),))
    odd = Frame(CONTROL_METHOD, 1, headers=(("type", "pong"),), payload=b"{")
    other = Frame(DATA_METHOD, 1, headers=(("type", "something"),), payload=b"{}")
    sent = asyncio.run(exchange(Ack(), [frames.encode_frame(f) for f in (ping, odd, other)]))

    assert sent == []
