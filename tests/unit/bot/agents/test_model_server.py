import asyncio
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

from sandbox.model.model import ModelServer
from sandbox.model.model_script import BadScript, Playbook
from tests.support.rows import every_row

ASK = [{"role": "user", "content": "上线是哪天？"}]


@asynccontextmanager
async def endpoint(*script):
    """A running server and an openai client that does not retry; `script` is loaded as steps."""
    server = ModelServer()
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
        [{"fault": "explode"}],
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
            assert loaded.json() == {"mode": "script"}
            assert (await ask(client)).choices[0].message.content == "one"
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
        ("POST", "/control/script", b"[1]", 400),
        ("POST", "/control/mode", b'{"mode": "loud"}', 400),
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


def test_the_command_stops_cleanly_on_sigterm():
    with start("--port", "0") as process:
        try:
            base_url = process.stdout.readline().split()[-1]
            with openai.OpenAI(base_url=base_url, api_key="key", max_retries=0) as client:
                answer = client.chat.completions.create(model="any-model", messages=ASK)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
        assert answer.choices[0].message.content == "echo: 上线是哪天？"
        assert process.stderr.read() == ""
