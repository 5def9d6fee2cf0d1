"""Hooks: commands and HTTP calls by which a user applies and heals faults.

A command runs without a shell, in the folder of the cluster file and in a process group of its own,
which is killed when the time limit is exceeded. It succeeds with exit status 0, an HTTP call with a
status of 200 to 299. What a hook prints goes into a log.
"""

import asyncio
import contextlib
import os
import signal
import string
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.cluster.node import ClusterError

STATUS_PAUSED, STATUS_DISCONNECTED = 150, 151
"""The exit statuses of ``status`` for a node that runs but cannot answer.

LSB leaves 150 to 199 to applications. They are needed of nodes that have no address.
"""
Argv = Annotated[list[str], Meta(min_length=1)]
LINE_MAX = 300
"""The maximum length of a hook's last line in an error message."""
TAIL_BYTES = 4096
_ENDED_S = 5.0
"""How long a killed process group may take to end."""


class Http(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An HTTP call."""

    url: str
    method: str = "POST"
    body: str = ""
    headers: dict[str, str] = {}
    missing_is_success: bool = False
    """Does status 404 count as success? It does for the removal of something."""


Hook = Argv | Http


class HookError(ClusterError):
    """A hook failed or took too long; the message has its last line."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A hook whose placeholders have been replaced, with everything that is needed to run it."""

    what: str
    """The verb and the node, such as ``kill broker-1``."""
    hook: Hook
    folder: str
    timeout_s: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a hook that ended in time."""

    status: int
    """The exit status, or the status of the HTTP response."""
    succeeded: bool
    last_line: str


def placeholders(hook: Hook) -> set[str]:
    """Return the names of the placeholders in a hook; raises ``ValueError`` for a stray brace."""
    texts = hook if isinstance(hook, list) else [hook.url, hook.body, *hook.headers.values()]
    return {
        name
        for text in texts
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def unknown_placeholder(hook: Hook, known: Sequence[str]) -> str | None:
    """Return the first placeholder that is not known; ``None`` if there is none."""
    try:
        strange = sorted(placeholders(hook) - set(known))
    except ValueError:
        return " or a single brace (write {{ or }} for a brace)"
    return strange[0] if strange else None


def filled(hook: Hook, values: Mapping[str, str]) -> Hook:
    """Return the hook with its placeholders replaced."""
    if isinstance(hook, list):
        return [word.format_map(values) for word in hook]
    return msgspec.structs.replace(
        hook,
        url=hook.url.format_map(values),
        body=hook.body.format_map(values),
        headers={name: text.format_map(values) for name, text in hook.headers.items()},
    )


class Runner:
    """Runs hooks, logs what they print, and reports which process groups exist."""

    def __init__(
        self,
        log: Path,
        on_start: Callable[[int, str], None] = lambda pid, what: None,
        on_end: Callable[[int], None] = lambda pid: None,
    ) -> None:
        """``on_start`` gets the id of each process with what it does, ``on_end`` the id."""
        self._log = log
        self._on_start = on_start
        self._on_end = on_end

    async def run(self, call: Call) -> Outcome:
        """Run a hook to its end; raises :class:`HookError` if it cannot, or not in time."""
        if isinstance(call.hook, list):
            outcome = await self._command(call, call.hook)
        else:
            outcome = await self._request(call, call.hook)
        self._write(f"{call.what}: status {outcome.status}\n".encode())
        return outcome

    async def succeed(self, call: Call) -> Outcome:
        """Run a hook; raises :class:`HookError` if it does not succeed."""
        outcome = await self.run(call)
        if not outcome.succeeded:
            raise HookError(
                f"the hook {call.what} failed (status {outcome.status}): {outcome.last_line}"
            )
        return outcome

    async def _command(self, call: Call, argv: Sequence[str]) -> Outcome:
        self._write(f"{call.what}: {argv[0]} …\n".encode())
        begin = self._log.stat().st_size
        try:
            with self._log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *argv,
                    cwd=call.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            why = f"cannot run {argv[0]}: {error.strerror}"
            raise HookError(f"the hook {call.what} {why}") from None
        self._on_start(process.pid, call.what)
        try:
            async with asyncio.timeout(call.timeout_s):
                status = await process.wait()
        except TimeoutError:
            raise HookError(
                f"the hook {call.what} did not end within {call.timeout_s:g} s:"
                f" {self._last_line(begin)}"
            ) from None
        finally:
            if process.returncode is None:
                await asyncio.shield(_end_group(process))
            self._on_end(process.pid)
        last = self._last_line(begin)
        return Outcome(status=status, succeeded=status == 0, last_line=last)

    async def _request(self, call: Call, http: Http) -> Outcome:
        try:
            async with asyncio.timeout(call.timeout_s):
                status, body = await asyncio.to_thread(_answer, http, call.timeout_s)
        except (OSError, TimeoutError, ValueError) as error:
            raise HookError(f"the hook {call.what} got no answer: {error}") from None
        self._write(body[:TAIL_BYTES] + b"\n" if body else b"")
        lines = body[-TAIL_BYTES:].decode(errors="replace").strip().splitlines()
        succeeded = 200 <= status < 300 or (status == 404 and http.missing_is_success)
        last = lines[-1][:LINE_MAX] if lines else ""
        return Outcome(status=status, succeeded=succeeded, last_line=last)

    def _write(self, line: bytes) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            log.write(line)

    def _last_line(self, begin: int) -> str:
        """The last line that was logged after this position."""
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(begin, size - TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:LINE_MAX] if lines else "it printed nothing"


async def _end_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _ENDED_S)


def _answer(http: Http, timeout_s: float) -> tuple[int, bytes]:
    """Call a URL; return the status and the body, also those of an error."""
    data = http.body.encode() if http.body else None
    request = urllib.request.Request(http.url, data, http.headers, method=http.method)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return int(response.status), bytes(response.read(TAIL_BYTES))
    except urllib.error.HTTPError as error:
        return int(error.code), bytes(error.read(TAIL_BYTES))
