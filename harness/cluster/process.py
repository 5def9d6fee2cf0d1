"""A node that is a process of this machine."""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from harness.cluster.node import Exit, NodeError
from harness.cluster.registry import Registry
from model.roles import NodeId

UTC = {"TZ": "UTC"}
"""Nodes log in UTC, whatever this machine's time zone, as they do in containers."""


class Process:
    """Starts, signals and watches one process at a time; its log is kept over restarts."""

    def __init__(
        self,
        name: NodeId,
        argv: Sequence[str],
        folder: Path,
        registry: Registry,
        on_exit: Callable[[Exit], None],
        environment: Mapping[str, str] | None = None,
        stopped_status: int = 0,
    ) -> None:
        """``on_exit`` is called for unexpected exits; ``environment`` adds to the harness's own.

        ``stopped_status`` is the program's exit status after an orderly end that SIGTERM requested;
        :meth:`stop` returns 0 for it.
        """
        self.name = name
        self.argv = tuple(argv)
        self.folder = folder
        self._registry = registry
        self._on_exit = on_exit
        self._environment = environment or {}
        self._stopped_status = stopped_status
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[int] | None = None
        self._asked_to_end = False
        self._is_server = True

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def pid(self) -> int | None:
        """The id of the process while it exists (stopped by SIGSTOP or not)."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start a process; :class:`NodeError` if the last one still runs."""
        if self.pid is not None:
            raise NodeError(f"{self.name} already runs as process {self.pid}")
        self._asked_to_end = False
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._registry.starting() as mark, self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **UTC, **self._environment, **mark},
                start_new_session=True,  # the terminal's Ctrl-C is for the harness alone
            )
            self._registry.add(self._process.pid, self.name)
        self._watcher = asyncio.create_task(self._watch(self._process), name=f"watch {self.name}")

    def write_script(self, marks: Mapping[str, str]) -> None:
        """Write ``start.sh``, which starts the process again, and its id into ``pid``.

        ``marks`` are variables by which the process is found and ended later. The script runs the
        process in the background, and does nothing if it runs.
        """
        variables = {**UTC, **self._environment, **marks}
        words = shlex.join(["env", *(f"{name}={text}" for name, text in variables.items())])
        folder = shlex.quote(str(self.folder.resolve()))
        script = self.folder / "start.sh"
        script.write_text(
            "#!/bin/sh\n"
            f"cd {shlex.quote(str(Path.cwd()))} || exit 1\n"
            f"kill -0 $(cat {folder}/pid) 2>/dev/null && exit 0\n"
            f"{words} setsid {shlex.join(self.argv)} </dev/null >>{folder}/log.txt 2>&1 &\n"
            f"echo $! >{folder}/pid\n"
        )
        script.chmod(0o700)
        (self.folder / "pid").write_text(f"{self.pid}\n")

    def expects_end(self) -> None:
        """Do not report the end of the process that starts next: it is no server."""
        self._is_server = False

    async def ended(self) -> int:
        """Wait until the process has ended by itself; return its exit status."""
        assert self._watcher is not None, "the process has been started"
        return await asyncio.shield(self._watcher)

    async def kill(self) -> None:
        """SIGKILL, and wait until the process has ended; do nothing if it has ended already."""
        await self._end(signal.SIGKILL)

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM; return the exit status, that of SIGKILL (-9) if it did not end in time.

        If no process runs, return the status of the last exit, 0 if there was none.
        """
        try:
            ending = asyncio.shield(self._end(signal.SIGTERM))
            status = await asyncio.wait_for(ending, timeout_s)
            return 0 if status == self._stopped_status else status
        except TimeoutError:
            return await self._end(signal.SIGKILL)

    async def _end(self, how: signal.Signals) -> int:
        process, watcher = self._process, self._watcher
        if process is None or watcher is None:
            return 0
        if process.returncode is None and not _has_ended(process.pid):
            self._asked_to_end = True
            _signal(process.pid, how)
            if how is not signal.SIGKILL:
                _signal(process.pid, signal.SIGCONT)  # a stopped process takes no SIGTERM
        return await asyncio.shield(watcher)

    async def pause(self) -> None:
        """SIGSTOP; :class:`NodeError` if no process runs."""
        _signal(self._living(), signal.SIGSTOP)

    async def resume(self) -> None:
        """SIGCONT; :class:`NodeError` if no process runs."""
        _signal(self._living(), signal.SIGCONT)

    def _living(self) -> int:
        if self.pid is None:
            raise NodeError(f"{self.name} does not run")
        return self.pid

    async def is_up(self) -> bool:
        return self.pid is not None

    async def is_paused(self) -> bool:
        """Measure whether the system reports the process as stopped by a signal."""
        try:
            return (
                self.pid is not None and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
            )
        except psutil.NoSuchProcess:
            return False

    async def _watch(self, process: asyncio.subprocess.Process) -> int:
        status = await process.wait()
        self._registry.remove(process.pid)
        if self._is_server and not self._asked_to_end:
            self._on_exit(Exit(self.name, status, self._last_line()))
        return status

    async def last_line(self) -> str:
        return self._last_line()

    def _last_line(self) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 4096))
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line]
        return lines[-1] if lines else ""


def _has_ended(pid: int) -> bool:
    """Return whether a child has exited, even if the event loop has not noticed yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _signal(pid: int, which: signal.Signals) -> None:
    """Send a signal without ``Popen``, which would reap a process that has just ended.

    Its exit status would then be lost.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)
