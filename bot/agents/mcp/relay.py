"""`python -I relay.py COMMAND …`: an MCP server whose messages are bounded.

The client package joins the pieces of a line for as long as none ends, in the worker's own process.
Here a line that is too long ends the server, and one that writes without pause is slowed down.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

MOST_BYTES = 4 * 1024 * 1024  # of one message
BYTES_PER_SECOND = 1024 * 1024  # on average, beyond the first message
_PIECE = 64 * 1024


def main(command: list[str]) -> int:
    """Runs the server with our stdin and stderr; its stdout is passed on. Returns its status."""
    source, sink = os.pipe()
    try:
        server = subprocess.Popen(command, stdout=sink)  # noqa: S603 -- from mcp.json
    except OSError as exc:
        sys.stderr.write(f"{command[0]}: {exc.strerror}\n")
        return 127
    finally:
        os.close(sink)
    try:
        if not _pass_on(source):
            sys.stderr.write(f"a message of more than {MOST_BYTES} bytes: the server is ended\n")
            server.kill()
    finally:
        os.close(source)
        with contextlib.suppress(OSError):
            os.close(1)  # whoever reads learns now that nothing more comes
    return server.wait()


def _pass_on(source: int) -> bool:
    """Until the server ends; False: a line was too long."""
    line, allowance, last_look_s = 0, float(MOST_BYTES), time.monotonic()
    while piece := os.read(source, _PIECE):
        end = piece.rfind(b"\n")
        line = line + len(piece) if end < 0 else len(piece) - end - 1
        if line > MOST_BYTES:
            return False
        now = time.monotonic()
        allowance = min(MOST_BYTES, allowance + (now - last_look_s) * BYTES_PER_SECOND) - len(piece)
        last_look_s = now
        if allowance < 0:
            time.sleep(-allowance / BYTES_PER_SECOND)
        try:
            _write(piece)
        except BrokenPipeError:
            return True
    return True


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
