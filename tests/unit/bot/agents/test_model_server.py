import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import openai
import pytest

from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.requests import plain_messages
from bot.agents.loop import run_agent
from bot.agents.running_turns import Spent
from bot.agents.tool_types import Toolbox, tool
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool_calls import ToolSession
from sandbox.model.model import ModelServer
from sandbox.model.model_script import BadScript, Playbook
from tests.support.patience import limit_s
from tests.support.rows import every_row

ASK = [{"role": "user", "content": "上线是哪天？"}]


@asynccontextmanager
async def endpoint(*script, delay_s=0.0):
    """A running server and an openai client that does not retry; `script` is loaded as steps."""
    server = ModelServer(delay_s=delay_s)
    if script:
        server.playbook.load(list(script))
    await server.start()
    try:
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key="key", max_retries=0, timeout=10
        ) as client:
            yield server, client
    finally:
        await server.stop()


def ask(client, messages=ASK, **more):
    return client.chat.completions.create(model="any-model", messages=messages, **more)


async def stream(client, **more):
    return [chunk async for chunk in await ask(client, stream=True, **more)]


def control(server):
    return httpx.AsyncClient(base_url=server.base_url.removesuffix("/v1"))


def test_without_a_script_the_last_user_message_is_echoed():
    async def scenario():
        async with endpoint() as (_, client):
            first = await ask(client, [*ASK, {"role": "assistant", "content": "3 月"}])
            second = await ask(
                client, [{"role": "user", "content": [{"type": "text", "text": "b"}]}]
            )
            return first, second

    first, second = asyncio.run(scenario())

    assert first.choices[0].message.content == "echo: 上线是哪天？"
    assert first.choices[0].finish_reason == "stop"
    assert first.model == "any-model"
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens > 0
    assert second.choices[0].message.content == "echo: b"


def test_a_stream_carries_thinking_text_and_usage():
    reply = {"reasoning": "The user asks for a date.", "text": "三月三日 🎉\nSee you there."}

    async def scenario():
        async with endpoint(reply) as (_, client):
            return await stream(client, stream_options={"include_usage": True})

    chunks = asyncio.run(scenario())

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == reply["text"]
    thinking = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thinking) == reply["reasoning"]
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens > 5
    assert chunks[-1].usage.completion_tokens_details.reasoning_tokens > 0


@every_row("streamed", [False, True])
def test_tool_calls_arrive_whole_and_in_pieces(streamed):
    calls = [
        {"name": "create_note", "arguments": {"title": "意面", "tags": ["italian", "dinner"]}},
        {"name": "now", "id": "call_mine"},
    ]

    async def scenario():
        async with endpoint({"tool_calls": calls}) as (_, client):
            if not streamed:
                answer = await ask(client)
                return answer.choices[0].message.tool_calls, answer.choices[0].finish_reason
            async with client.chat.completions.stream(model="any-model", messages=ASK) as events:
                answer = await events.get_final_completion()
                return answer.choices[0].message.tool_calls, answer.choices[0].finish_reason

    (first, second), finish_reason = asyncio.run(scenario())

    assert first.id == "call_1_0"
    assert first.function.name == "create_note"
    assert json.loads(first.function.arguments) == calls[0]["arguments"]
    assert (second.id, second.function.name, second.function.arguments) == (
        "call_mine",
        "now",
        "{}",
    )
    assert finish_reason == "tool_calls"


@every_row("streamed", [False, True])
def test_an_agent_runs_a_tool_that_only_the_prompt_could_name(streamed):
    rules = {
        "rules": [
            {
                "when": [
                    {"contains": "that note"},
                    {"regex": r"\(ID: (?P<note>[\w-]+)\)", "in": "prompt"},
                ],
                "reply": {"tool_calls": [{"name": "tag", "arguments": {"note_id": "{{note}}"}}]},
            },
            {
                "when": {"regex": "^tagged (.+)$", "in": "last"},
                "reply": {"reasoning": "Done.", "text": "Note {{1}} has its tag."},
                "after_tool": True,
            },
        ]
    }

    async def scenario():
        async def tag(deps, note_id: str) -> str:
            """Tags a note.

            Args:
                note_id: Which.
            """
            return f"tagged {note_id}"

        async def on_progress(progress): ...

        async with endpoint() as (server, _):
            server.playbook.load(rules)
            known = Endpoint("key", server.base_url, retries=0)
            said = await run_agent(
                ChatModel(known, "any-model"),
                plain_messages('Known notes: "Pasta" (ID: n-42)', "tag that note"),
                usage=Spent(),
                hands=ToolSession(Toolbox([tool(tag)]), ToolDeps(*(None,) * 4)),
                on_progress=on_progress if streamed else None,
            )
            await known.close()
            return said.text

    assert asyncio.run(scenario()) == "Note n-42 has its tag."


def test_error_statuses_reach_the_client_with_body_and_retry_after():
    async def scenario():
        steps = (
            {"status": 429, "retry_after": 7},
            {"status": 401, "body": {"error": {"message": "bad key", "code": "invalid_api_key"}}},
            {"status": 500, "body": "<html>upstream</html>"},
            {"status": 400},
        )
        errors = []
        async with endpoint(*steps) as (_, client):
            for _ in steps:
                with pytest.raises(openai.APIStatusError) as caught:
                    await ask(client)
                errors.append(caught.value)
        return errors

    limited, unauthorised, broken, refused = asyncio.run(scenario())

    assert isinstance(limited, openai.RateLimitError)
    assert limited.response.headers["retry-after"] == "7"
    assert isinstance(unauthorised, openai.AuthenticationError)
    assert unauthorised.code == "invalid_api_key"
    assert isinstance(broken, openai.InternalServerError)
    assert broken.response.text == "<html>upstream</html>"
    assert isinstance(refused, openai.BadRequestError)


def test_a_hanging_reply_runs_into_the_clients_time_limit():
    async def scenario():
        async with endpoint({"fault": "hang"}, {"text": "back"}) as (_, client):
            with pytest.raises(openai.APITimeoutError):
                await ask(client, timeout=0.1)
            return await ask(client)

    assert asyncio.run(scenario()).choices[0].message.content == "back"


@every_row("streamed", [False, True])
@every_row("fault", ["cut", "malformed"])
def test_a_damaged_answer_is_an_error_and_the_next_one_is_whole(fault, streamed):
    async def scenario():
        damaged = {"fault": fault, "text": "half of this is lost"}
        async with endpoint(damaged, {"text": "back"}) as (_, client):
            with pytest.raises((openai.APIError, httpx.HTTPError, json.JSONDecodeError)):
                await (stream(client) if streamed else ask(client))
            return await ask(client)

    assert asyncio.run(scenario()).choices[0].message.content == "back"


def test_a_used_up_script_and_an_unmet_expectation_are_told_without_a_retry():
    async def scenario():
        step = {"when": {"contains": "Q1, A1", "in": "prompt"}, "reply": {"text": "fine"}}
        async with endpoint(step) as (_, client):
            with pytest.raises(openai.BadRequestError, match="the next step expects"):
                await ask(client)
            await ask(client, [{"role": "system", "content": "Q1, A1"}, *ASK])
            with pytest.raises(openai.BadRequestError, match="the script is used up"):
                await ask(client)

    asyncio.run(scenario())


def test_rules_apply_in_order_and_as_often_as_they_say():
    playbook = Playbook()
    playbook.load(
        {
            "rules": [
                {"when": {"contains": "a+b"}, "reply": {"text": "sum"}, "times": 1},
                {"when": {"regex": "(?i)^A", "in": "last"}, "reply": {"text": "{{last_user}}!"}},
            ]
        }
    )

    def reply(text):
        return playbook.reply_to({"messages": [{"role": "user", "content": text}]})

    assert [reply(text).text for text in ("a+b", "a+b", "Ah")] == ["sum", "a+b!", "Ah!"]
    assert reply("no").status == 400


@every_row(
    "script",
    [
        None,
        {},
        {"steps": [], "rules": []},
        {"steps": "text"},
        ["text"],
        [{"txt": "typo"}],
        [{"text": 5}],
        [{"status": "500"}],
        [{"fault": "explode"}],
        [{"tool_calls": [{}]}],
        [{"when": {"contains": "x"}, "reply": None}],
        [{"when": {"contains": "x", "in": "nowhere"}, "reply": {}}],
        [{"when": {"regex": "("}, "reply": {}}],
    ],
)
def test_a_script_in_the_wrong_form_is_refused_and_changes_nothing(script):
    playbook = Playbook()

    with pytest.raises(BadScript):
        playbook.load(script)

    assert playbook.mode == "echo"


def test_the_control_interface_records_requests_and_takes_scripts():
    async def scenario():
        async with endpoint() as (server, client), control(server) as http:
            started = time.time()
            await ask(client, temperature=0.5)
            await ask(client)
            everything = (await http.get("/control/requests")).json()["requests"]
            later = (await http.get("/control/requests?since=1")).json()["requests"]
            assert [one["number"] for one in everything] == [1, 2]
            assert started <= everything[0]["at"] <= everything[1]["at"] <= time.time()
            assert everything[0]["body"]["messages"] == ASK
            assert everything[0]["body"]["temperature"] == 0.5
            assert later == everything[1:]
            assert (await http.delete("/control/requests")).json() == {"requests": []}
            assert (await http.get("/control/requests")).json() == {"requests": []}

            loaded = await http.post("/control/script", json=[{"text": "one"}, {"text": "two"}])
            assert loaded.json() == {"mode": "script", "steps_left": 2, "rules": 0}
            assert (await ask(client)).choices[0].message.content == "one"
            assert (await http.get("/control/script")).json()["steps_left"] == 1
            switched = await http.post("/control/mode", json={"mode": "echo", "delay_s": 0.01})
            assert switched.json()["mode"] == "echo"
            assert server.delay_s == 0.01
            assert (await ask(client)).choices[0].message.content == "echo: 上线是哪天？"
            assert (await client.models.list()).data[0].id == "sandbox-model"

    asyncio.run(scenario())


@every_row(
    ("method", "path", "content", "status"),
    [
        ("POST", "/v1/chat/completions", b"not json", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b'{"messages": ["text"]}', 400),
        ("POST", "/v1/chat/completions", b'{"messages": [{"content": [1]}]}', 400),
        ("POST", "/control/script", b"[1]", 400),
        ("POST", "/control/mode", b'{"mode": "loud"}', 400),
        ("POST", "/control/mode", b'{"delay_s": -1}', 400),
        ("GET", "/control/requests?since=x", b"", 400),
        ("GET", "/v1/embeddings", b"", 404),
    ],
)
def test_a_wrong_request_is_answered_on_a_connection_that_goes_on(method, path, content, status):
    async def scenario():
        async with endpoint() as (server, _), control(server) as http:
            answer = await http.request(method, path, content=content)
            assert answer.status_code == status
            assert answer.json()["error"]["message"]
            assert (await http.get("/v1/models")).status_code == 200
            assert list(server.received) == []

    asyncio.run(scenario())


def test_bytes_that_are_not_http_close_only_their_own_connection():
    async def talk(server, data):
        port = int(server.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.partition(b"\r\n")[0]

    async def scenario():
        async with endpoint() as (server, client):
            answers = [
                await talk(server, data)
                for data in (
                    b"\x16\x03\x01\r\n\r\n",
                    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nshort",
                    b"GET /v1/models HTTP/1.0\r\n\r\n",
                )
            ]
            await ask(client)
            return [int(answer.split()[1]) if answer else None for answer in answers]

    assert asyncio.run(scenario()) == [400, 400, 413, 411, 431, None, 200]


def test_a_hundred_delayed_answers_wait_side_by_side():
    async def scenario():
        async with endpoint(delay_s=0.3) as (server, client):
            started = time.monotonic()
            answers = await asyncio.gather(*(ask(client) for _ in range(100)))
            return len(answers), len(server.received), time.monotonic() - started

    answers, received, elapsed_s = asyncio.run(scenario())

    assert (answers, received) == (100, 100)
    assert 0.3 <= elapsed_s < limit_s(10)


@every_row("streamed", [False, True])
def test_an_answer_of_some_duration_ends_when_it_is_over(streamed):
    async def scenario():
        async with endpoint({"text": "a dozen chr " * 8, "duration_s": 0.4}) as (_, client):
            began = time.monotonic()
            if not streamed:
                await ask(client)
                return [time.monotonic() - began] * 8
            stream = await ask(client, stream=True)
            chunks = [(time.monotonic() - began, chunk) async for chunk in stream]
            return [at for at, chunk in chunks if chunk.choices and chunk.choices[0].delta.content]

    arrived = asyncio.run(scenario())

    earliest = [0.4 * piece / 8 for piece in range(1, 9)] if streamed else [0.4] * 8
    assert len(arrived) == 8
    assert all(at >= due - 0.005 for at, due in zip(arrived, earliest, strict=True))


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox.model.model", *arguments],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_serves_a_script_file_and_stops_cleanly_on_sigterm(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "from the file"}, {"fault": "hang"}]), "utf-8")

    with start("--port", "0", "--script", str(script)) as process:
        try:
            base_url = process.stdout.readline().split()[-1]
            with openai.OpenAI(base_url=base_url, api_key="key", max_retries=0) as client:
                answer = client.chat.completions.create(model="any-model", messages=ASK)
                with pytest.raises(openai.APITimeoutError):
                    client.chat.completions.create(model="any-model", messages=ASK, timeout=0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
        assert answer.choices[0].message.content == "from the file"
        assert process.stderr.read() == ""


def test_a_bad_script_file_ends_the_command_with_a_reason(tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"txt": "typo"}]', "utf-8")

    with start("--port", "0", "--script", str(script)) as process:
        assert process.wait(10) == 2
        assert "unknown ['txt']" in process.stderr.read()
