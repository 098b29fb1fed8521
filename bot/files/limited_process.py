"""A program of ours that reads a hostile file, in a process that knows nothing of the bot."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


async def answer_of(module: str, work: Sequence[str], data: bytes, most: int) -> object:
    """The JSON of at most `most` bytes that `python -m module *work` makes of `data`. None: it gave
    none; `{"refused": "time"}`: it used up its processor time. Ends the process where it is
    cancelled. Raises OSError where there can be no process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *work,
        cwd=_ROOT,
        env={"LANG": "C.UTF-8"} | {k: v for k, v in os.environ.items() if k == "PYTHONPATH"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        answer = await _exchanged(process, data, most)
        await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if process.returncode == -signal.SIGXCPU:
        return {"refused": "time"}
    try:
        return json.loads(answer)
    except ValueError:
        return None


async def _exchanged(process: asyncio.subprocess.Process, data: bytes, most: int) -> bytes:
    """Gives the file and takes at most `most` bytes."""
    assert process.stdin is not None  # noqa: S101  pipes were asked for
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    output = bytearray()
    while len(output) <= most and (part := await process.stdout.read(65536)):
        output += part
    return bytes(output)
