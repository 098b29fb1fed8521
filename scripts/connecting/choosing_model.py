"""Which model answers: asked for, tried with one token, asked again until it works."""

from __future__ import annotations

from dataclasses import dataclass

from bot.operations.doctor import model
from bot.operations.doctor.result import Check
from bot.settings import Settings
from bot.text.languages import Sentence
from scripts.connecting.talk import Talk

# Chat Completions endpoints as their documentation names them.
PROVIDERS: tuple[tuple[Sentence, str, str], ...] = (
    (Sentence("OpenAI", "OpenAI"), "", "gpt-4.1-mini"),
    (Sentence("DeepSeek", "DeepSeek"), "https://api.deepseek.com/v1", "deepseek-chat"),
    (
        Sentence("Qwen (Alibaba Cloud)", "通义千问（阿里云百炼）"),
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "qwen-plus",
    ),
    (Sentence("Kimi (Moonshot)", "Kimi（月之暗面）"), "https://api.moonshot.cn/v1", ""),
    (
        Sentence("Doubao (Volcengine Ark)", "豆包（火山方舟）"),
        "https://ark.cn-beijing.volces.com/api/v3",
        "",
    ),
    (Sentence("Ollama on this machine", "本机的 Ollama"), "http://127.0.0.1:11434/v1", ""),
    (Sentence("another address", "其他地址"), "?", ""),
    (Sentence("none, use the offline model", "不用，使用离线模型"), "none", ""),
)
_WHICH = Sentence("Which model", "使用哪个模型")
_ADDRESS = Sentence("Its address, up to /v1", "接口地址（到 /v1 为止）")
_NAME = Sentence("The model's name", "模型名称")
_KEY = Sentence("The API key", "API 密钥")
_AGAIN = Sentence("Try another key or model?", "换一个密钥或模型再试？")


@dataclass(frozen=True, slots=True)
class Choice:
    """What was given on the command line; "" where it was not."""

    key: str = ""
    base_url: str = ""
    name: str = ""

    def variables(self) -> dict[str, str]:
        """For `.env`; an endpoint that was left is emptied, so that the key goes nowhere else."""
        return {
            "OPENAI_API_KEY": self.key,
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_MODEL": self.name,
        }


def choose(talk: Talk, given: Choice, kept: Choice) -> tuple[Choice | None, Check]:
    """The model to write down, None to leave all as it is; and how it did. Raises `Unanswered`."""
    if not given.key and kept.key:
        same = Choice(kept.key, given.base_url or kept.base_url, given.name or kept.name)
        found = tried(same)
        if found.state == "ok" or not talk.asks:
            return (same if same != kept else None), found
        talk.check(found)
    elif not given.key and not talk.asks:
        return None, model.models(_settings(Choice()))[0]
    choice: Choice | None = given if given.key else _asked(talk, given)
    while choice is not None:
        found = tried(choice)
        talk.check(found)
        if found.state == "ok" or not talk.asks or not talk.confirmed(_AGAIN):
            return choice, found
        choice = _asked(talk, Choice())
    return None, model.models(_settings(Choice()))[0]


def tried(choice: Choice) -> Check:
    """One token of it."""
    return model.models(_settings(choice))[0]


def _asked(talk: Talk, given: Choice) -> Choice | None:
    base_url, name = given.base_url, given.name
    if not base_url:
        number = talk.chosen(_WHICH, [provider[0] for provider in PROVIDERS], option="--api-key")
        _, base_url, usual = PROVIDERS[number]
        name = name or usual
        if base_url == "none":
            return None
        if base_url == "?":
            base_url = talk.ask(_ADDRESS, option="--base-url")
    name = talk.ask(_NAME, option="--model", default=name)
    return Choice(talk.secret(_KEY, option="--api-key") or "none", base_url, name)


def _settings(choice: Choice) -> Settings:
    return Settings(
        openai_api_key=choice.key,
        openai_base_url=choice.base_url,
        openai_model=choice.name or Settings.openai_model,
        openai_fallback_model="",
    )
