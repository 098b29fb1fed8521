"""The wire: what is sent to an endpoint, and what becomes of everything it can answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model import Declined, ModelFailed, Request, Response
from bot.agents.llm.requests import plain_messages
from bot.agents.tool_types import Toolbox, tool
from tests.support.raw_endpoint import (
    EVENTS,
    RawEndpoint,
    Wire,
    as_json,
    delta,
    events,
    serving,
    whole,
)

pytestmark = pytest.mark.anyio

ASKED = Request(plain_messages("Be brief.", "when?"))
TEXT = [delta(role="assistant", content="The "), delta(content="launch"), delta("stop")]
READ = events(*TEXT[:2], done=False)
SILENT = delta(role="assistant", content="")
CALL = {"index": 0, "id": "c", "function": {"name": "look_up", "arguments": '{"wor'}}


class Asked:
    """A model over the real SDK, the endpoint it asks, and the texts it reported."""

    def __init__(self, endpoint: RawEndpoint, model: ChatModel) -> None:
        self.endpoint = endpoint
        self._model = model
        self.texts: list[str] = []
        self.reported = asyncio.Event()

    async def whole(self, request: Request = ASKED) -> Response:
        return await self._model.respond(request)

    async def streamed(self, request: Request = ASKED) -> Response:
        async def on_text(text: str) -> None:
            self.texts.append(text)
            self.reported.set()

        return await self._model.respond(request, on_text)

    def streams(self) -> list[bool]:
        return [bool(body.get("stream")) for body in self.endpoint.bodies]


@asynccontextmanager
async def asking(*answers: Wire, timeout_s: float = 30, retries: int = 0) -> AsyncIterator[Asked]:
    async with serving(*answers) as endpoint:
        opened = Endpoint("key", endpoint.base_url, timeout_s=timeout_s, retries=retries)
        try:
            yield Asked(endpoint, ChatModel(opened, "some-model"))
        finally:
            await opened.close()


async def look_up(deps: Any, word: str, limit: int = 5) -> str:
    """Looks a word up.

    Args:
        word: What.
        limit: How often.
    """
    return word


# What is sent


async def test_a_request_holds_what_chat_completions_wants_and_nothing_else() -> None:
    async with asking(whole(content="ok"), Wire([events(*TEXT)])) as asked:
        await asked.whole(Request(ASKED.messages, max_tokens=16, temperature=0))
        await asked.streamed()
        plain, streamed = asked.endpoint.bodies

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "when?"}]
    assert plain == {
        "model": "some-model", "messages": messages, "max_completion_tokens": 16, "temperature": 0,
    }  # fmt: skip
    assert streamed == {
        "model": "some-model", "messages": messages, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip


async def test_tools_are_described_the_same_way_and_optional_arguments_may_be_left_out() -> None:
    async with asking(whole(content="ok")) as asked:
        await asked.whole(Request(ASKED.messages, Toolbox([tool(look_up)])))
        [body] = asked.endpoint.bodies

    parameters = {
        "type": "object",
        "required": ["word"],
        "properties": {
            "word": {"type": "string", "description": "What."},
            "limit": {"type": "integer", "description": "How often.", "default": 5},
        },
    }
    described = {"name": "look_up", "description": "Looks a word up.", "parameters": parameters}
    assert body["tools"] == [{"type": "function", "function": described}]


async def test_what_utf_8_cannot_carry_is_sent_escaped() -> None:
    async with asking(whole(content="ok")) as asked:
        await asked.whole(Request(plain_messages("", "half a character: \ud83c")))
        assert asked.endpoint.bodies[0]["messages"][1]["content"] == "half a character: \ud83c"


# Streams


@pytest.mark.parametrize(
    "pieces",
    [
        [events(*TEXT)],
        [bytes([byte]) for byte in events(*TEXT)],
        [events(*TEXT, end="\r\n\r\n")],
        [b"\xef\xbb\xbf: hello\n\n", b": keep-alive\n\n", events(*TEXT)],
        [events(*TEXT, done=False)],
        [events(delta(content="The "), delta(content="launch"))],
        [events(*TEXT).rstrip()],
        [events({"choices": []}, *TEXT, {"choices": [], "usage": {"prompt_tokens": 3}})],
    ],
    ids=["at once", "byte by byte", "CRLF", "comments and BOM", "without [DONE]",
         "without finish_reason", "without an empty line at the end", "empty choices"],
)  # fmt: skip
async def test_a_stream_is_read_however_it_is_written(pieces: list[bytes]) -> None:
    async with asking(Wire(pieces)) as asked:
        response = await asked.streamed()

    assert response.text == asked.texts[-1] == "The launch"
    assert all("The launch".startswith(text) for text in asked.texts)


async def test_each_report_is_the_whole_text_so_far() -> None:
    async with asking(Wire([events(one, done=False) for one in TEXT], cut=False)) as asked:
        await asked.streamed()
    assert asked.texts == ["The ", "The launch"] or asked.texts == ["The launch"]


async def test_bytes_that_are_no_utf_8_do_not_break_a_stream() -> None:
    broken = events(delta(content="caf?"), delta("stop")).replace(b"?", b"\xe9")
    async with asking(Wire([broken])) as asked:
        assert (await asked.streamed()).text == "caf\ufffd"


async def test_a_connection_is_used_again_after_a_stream() -> None:
    async with asking(Wire([events(*TEXT)]), Wire([events(*TEXT)]), whole(content="ok")) as asked:
        await asked.streamed()
        await asked.streamed()
        await asked.whole()
        assert asked.endpoint.connections == 1


WHOLE = {"choices": [{"message": {"content": "The launch"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "kind", [EVENTS, "application/json", "text/html", "text/plain; charset=utf-8", ""]
)
@pytest.mark.parametrize(
    "body",
    [
        events(*TEXT),
        b"event: message\n" + events(*TEXT),
        json.dumps(WHOLE).encode(),
        json.dumps(WHOLE, indent=1).encode() + b"\n\ndata: [DONE]\n\n",
        json.dumps({"choices": [{"message": {"content": "The launch"}}]}).encode(),
        events(WHOLE, done=False),
        b"data: " + json.dumps(WHOLE, indent=1).encode() + b"\n\ndata: [DONE]\n\n",
        "\n".join(json.dumps(one) for one in TEXT).encode(),
        events(*TEXT).replace(b"data: ", b"data: data: "),
        b" \n \n  " + json.dumps(WHOLE).encode(),
        json.dumps([WHOLE]).encode(),
        json.dumps(TEXT).encode(),
    ],
    ids=["events", "named events", "an object", "an object and [DONE]", "no finish_reason",
         "an object as event", "an object over many lines of an event", "a chunk a line",
         "data twice", "an object after spaces", "a list with the object", "a list of chunks"],
)  # fmt: skip
async def test_the_form_of_a_body_counts_and_not_its_media_type(body: bytes, kind: str) -> None:
    async with asking(Wire([body], kind), Wire([body], kind)) as asked:
        assert (await asked.streamed()).text == asked.texts[-1] == "The launch"
        assert (await asked.whole()).text == "The launch"
        assert asked.streams() == [True, False]


@pytest.mark.parametrize(
    "broken",
    [
        Wire([events(SILENT, done=False)], cut=True),
        Wire([events(SILENT, done=False)]),
        Wire([events(SILENT, '{"choices": [{"del')]),
        Wire([events(SILENT, {"error": {"message": "SECRET", "code": 502}})]),
        Wire([events(SILENT, '"text"')]),
        Wire([events(delta(content="<think>Well, ", role="assistant"), done=False)], cut=True),
        Wire([events(TEXT[0], delta(tool_calls=[CALL]), done=False)], cut=True),
        Wire([]),
    ],
    ids=[
        "connection lost", "ends early", "broken JSON", "an error", "no object", "in its thoughts",
        "in a call", "nothing",
    ],
)  # fmt: skip
async def test_a_stream_that_breaks_off_before_words_is_asked_for_again_as_a_whole(
    broken: Wire,
) -> None:
    async with asking(broken, whole(content="again")) as asked:
        assert (await asked.streamed()).text == "again"
        assert asked.streams() == [True, False]


@pytest.mark.parametrize(
    "broken",
    [
        Wire([events(*TEXT[:2], done=False)], cut=True),
        Wire([events(*TEXT[:2], done=False)]),
        Wire([READ, events('{"choices": [{"del')], pause_s=0.1),
        Wire([READ, events({"error": {"message": "SECRET", "code": 502}})], pause_s=0.1),
        Wire([READ, events('"text"')], pause_s=0.1),
    ],
    ids=["connection lost", "ends early", "broken JSON", "an error", "no object"],
)
async def test_words_that_were_read_stay_when_the_stream_breaks_off(broken: Wire) -> None:
    async with asking(broken) as asked:
        response = await asked.streamed()
        assert (response.text, response.break_reason) == ("The launch", "connection")
        assert asked.streams() == [True]


@pytest.mark.parametrize(
    "complete",
    [
        Wire([events(*TEXT, done=False)], cut=True),
        Wire([events(*TEXT[:2])], cut=True),
        Wire([events(*TEXT, '{"usage": ')]),
    ],
    ids=["lost after finish_reason", "lost after [DONE]", "broken after finish_reason"],
)
async def test_a_stream_that_breaks_off_after_its_end_is_complete(complete: Wire) -> None:
    async with asking(complete) as asked:
        assert (await asked.streamed()).text == "The launch"
        assert asked.streams() == [True]


async def test_usage_is_not_asked_for_where_that_is_refused() -> None:
    refused = as_json({"error": {"message": "Unrecognized field: stream_options"}}, 400)
    async with asking(refused, Wire([events(*TEXT)]), Wire([events(*TEXT)])) as asked:
        for _ in range(2):
            assert (await asked.streamed()).text == "The launch"
        assert ["stream_options" in body for body in asked.endpoint.bodies] == [True, False, False]


async def test_questions_at_once_all_learn_that_usage_is_not_asked_for() -> None:
    refused = as_json({"error": {"message": "Unrecognized field: stream_options"}}, 400)
    async with asking(*[refused] * 3, *[Wire([events(*TEXT)])] * 3) as asked:
        answers = await asyncio.gather(*(asked.streamed() for _ in range(3)))
    assert [answer.text for answer in answers] == ["The launch"] * 3


# Errors


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (as_json({"error": {"message": "SECRET"}}, 401), "wrong_key"),
        (Wire([b"<html>SECRET</html>"], "text/html", 502), "status_502"),
        (as_json({"error": {"message": "SECRET"}}), "provider_error"),
        (Wire([b"<html>SECRET</html>"], "text/html"), "no_completion"),
        (as_json({"message": {"role": "assistant", "content": "SECRET"}}), "no_completion"),
        (as_json({"code": 0, "data": "SECRET"}), "no_completion"),
        (Wire([b'"SECRET"'], "application/json"), "no_completion"),
        (Wire([b'{"choices": [{"mess'], "application/json"), "malformed"),
        (Wire([b'{"choices": ['], "application/json", cut=True), "connection"),
        (as_json([1]), "no_completion"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_failure_has_a_reason_and_no_text_of_the_endpoint(
    answer: Wire, reason: str
) -> None:
    async with asking(answer) as asked:
        with pytest.raises(ModelFailed) as failed:
            await asked.whole()
    assert failed.value.reason == str(failed.value) == reason


async def test_nobody_listens_there() -> None:
    async with serving() as endpoint:
        base_url = endpoint.base_url
    opened = Endpoint("key", base_url, retries=0)
    with pytest.raises(ModelFailed, match="connection"):
        await ChatModel(opened, "m").respond(ASKED)
    await opened.close()


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_endpoint_that_hangs_is_left_and_its_connection_closed(streamed: bool) -> None:
    answer = Wire([events(SILENT, done=False)] if streamed else [b"{"], EVENTS, hangs=True)
    async with asking(answer, timeout_s=0.2) as asked:
        with pytest.raises(ModelFailed, match="timeout"):
            await (asked.streamed() if streamed else asked.whole())
        async with asyncio.timeout(60):
            await asked.endpoint.all_closed.wait()


async def test_a_question_that_is_given_up_frees_its_connection() -> None:
    async with asking(Wire([events(TEXT[0], done=False)], hangs=True)) as asked:
        question = asyncio.create_task(asked.streamed())
        await asked.reported.wait()
        question.cancel()
        async with asyncio.timeout(60):
            await asked.endpoint.all_closed.wait()
        assert (await asyncio.gather(question, return_exceptions=True))[0] is not None


async def test_retry_after_is_waited_for() -> None:
    limited = as_json({"error": {"message": "slow down"}}, 429, **{"Retry-After": "1"})
    async with asking(limited, whole(content="ok"), retries=2) as asked:
        began = asyncio.get_running_loop().time()
        assert (await asked.whole()).text == "ok"
        assert 0.9 < asyncio.get_running_loop().time() - began < 4


@pytest.mark.parametrize("streamed", [False, True])
async def test_what_may_pass_is_tried_as_often_as_was_asked_for(streamed: bool) -> None:
    busy = Wire([b"<html>SECRET</html>"], "text/html", 503)
    async with asking(busy, busy, busy, whole(content="too late"), retries=2) as asked:
        with pytest.raises(ModelFailed, match="status_503"):
            await (asked.streamed() if streamed else asked.whole())
    assert len(asked.endpoint.bodies) == 3


async def test_what_does_not_pass_is_tried_once() -> None:
    async with asking(as_json({"error": {}}, 401), whole(content="?"), retries=2) as asked:
        with pytest.raises(ModelFailed, match="wrong_key"):
            await asked.whole()
    assert len(asked.endpoint.bodies) == 1


async def test_a_key_that_no_header_can_carry_is_a_wrong_one() -> None:
    async with serving(whole(content="?")) as endpoint:
        opened = Endpoint("sk-1\nX-Other: 1", endpoint.base_url, retries=0)
        with pytest.raises(ModelFailed, match="wrong_key"):
            await ChatModel(opened, "m").respond(ASKED)
        await opened.close()
    assert not endpoint.bodies


async def test_a_refusal_without_end_is_cut() -> None:
    endless = Wire([b"x" * 600_000] * 4, "text/html", 400, hangs=True)
    async with asking(endless) as asked:
        with pytest.raises(ModelFailed, match="status_400"):
            await asked.whole()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (whole(refusal="I cannot help with that.", content=None), "I cannot help with that."),
        (whole("content_filter", content="Well, "), ""),
        (as_json({"error": {"code": "content_filter", "message": "SECRET"}}, 400), ""),
        (Wire([events(delta(refusal="I cannot "), delta(refusal="say."))]), "I cannot say."),
    ],
    ids=["whole", "filtered", "question filtered", "streamed"],
)
async def test_who_declines_is_not_asked_again(streamed: bool, answer: Wire, said: str) -> None:
    async with asking(answer) as asked:
        with pytest.raises(Declined) as declined:
            await (asked.streamed() if streamed else asked.whole())
    assert str(declined.value) == said


async def test_arguments_that_come_as_an_object_are_json_again() -> None:
    call = {"id": "c", "function": {"name": "look_up", "arguments": {"word": "意面"}}}
    async with asking(whole("tool_calls", tool_calls=[call])) as asked:
        [found] = (await asked.whole()).calls
    assert json.loads(found.arguments) == {"word": "意面"}
