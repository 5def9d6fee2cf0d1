"""Hooks end in time, report their last line, and leave no process."""

import asyncio
import contextlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.cluster.external import hooks
from harness.cluster.external.hooks import Call, Hook, HookError, Http, Runner


def call(hook: Hook, folder: Path, timeout_s: float = 20.0) -> Call:
    return Call(what="kill broker-1", hook=hook, folder=str(folder), timeout_s=timeout_s)


def test_placeholders() -> None:
    """Placeholders are replaced in words, URLs, bodies and headers."""
    values = {"node": "broker-1", "id": "1", "peer": "broker-2"}
    assert hooks.filled(["x", "{node}:{id}", "{{}}"], values) == ["x", "broker-1:1", "{}"]
    hook = Http(url="http://h/{node}", body='{{"id": {id}}}', headers={"X": "{peer}"})
    assert hooks.filled(hook, values) == Http(
        url="http://h/broker-1", body='{"id": 1}', headers={"X": "broker-2"}
    )
    assert hooks.unknown_placeholder(hook, ("node", "id")) == "peer"
    assert hooks.unknown_placeholder(hook, ("node", "id", "peer")) is None


async def test_a_command(tmp_path: Path) -> None:
    """A command runs in the folder of the file; its output is logged, its status reported."""
    runner = Runner(tmp_path / "run" / "hooks.log")
    outcome = await runner.run(call(["sh", "-c", "pwd; echo last; exit 3"], tmp_path))
    assert (outcome.status, outcome.succeeded, outcome.last_line) == (3, False, "last")
    text = (tmp_path / "run" / "hooks.log").read_text()
    assert f"{tmp_path}\nlast\nkill broker-1: status 3\n" in text
    with pytest.raises(HookError, match=r"^the hook kill broker-1 failed \(status 3\): last$"):
        await runner.succeed(call(["sh", "-c", "echo last; exit 3"], tmp_path))


async def test_a_quiet_command_does_not_report_an_older_line(tmp_path: Path) -> None:
    runner = Runner(tmp_path / "hooks.log")
    await runner.run(call(["echo", "before"], tmp_path))
    outcome = await runner.run(call(["false"], tmp_path))
    assert outcome.last_line == "it printed nothing"


async def test_a_command_that_does_not_end(tmp_path: Path) -> None:
    """After the time limit the whole process group is killed."""
    started: list[int] = []
    ended: list[int] = []
    runner = Runner(tmp_path / "hooks.log", lambda pid, what: started.append(pid), ended.append)
    script = "echo waiting; sleep 600 & echo $! >child; wait"
    with pytest.raises(HookError, match=r"did not end within 1 s: waiting"):
        await runner.run(call(["sh", "-c", script], tmp_path, timeout_s=1.0))
    assert started == ended
    child = int((tmp_path / "child").read_text())
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(10)


async def test_an_interrupted_command(tmp_path: Path) -> None:
    """A cancelled call leaves no process."""
    started = asyncio.Event()
    pids: list[int] = []

    def note(pid: int, what: str) -> None:
        pids.append(pid)
        started.set()

    runner = Runner(tmp_path / "hooks.log", note)
    running = asyncio.create_task(runner.run(call(["sleep", "600"], tmp_path)))
    await started.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    assert not psutil.pid_exists(pids[0])


async def test_no_such_command(tmp_path: Path) -> None:
    with pytest.raises(HookError, match=r"cannot run \./none: No such file"):
        await Runner(tmp_path / "hooks.log").run(call(["./none"], tmp_path))


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the last part of the path names, and echoes the body."""

    asked: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, body))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.end_headers()
        self.wfile.write(b"first\n" + body)

    do_DELETE = do_POST

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """Yield the URL of a server of :class:`Answering`."""
    Answering.asked = []
    there = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=there.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{there.server_port}"
    there.shutdown()
    thread.join()
    there.server_close()


async def test_http(tmp_path: Path, server: str) -> None:
    """A status of 200 to 299 is success, another one a failure with the last line of the body."""
    runner = Runner(tmp_path / "hooks.log")
    done = await runner.succeed(call(Http(url=f"{server}/204", body="{}"), tmp_path))
    assert (done.status, Answering.asked) == (204, [("POST", "/204", b"{}")])
    with pytest.raises(HookError, match=r"failed \(status 500\): why"):
        await runner.succeed(call(Http(url=f"{server}/500", body="why"), tmp_path))


async def test_http_of_something_that_is_gone(tmp_path: Path, server: str) -> None:
    """The removal of something that does not exist may count as a success."""
    runner = Runner(tmp_path / "hooks.log")
    gone = Http(url=f"{server}/404", method="DELETE", missing_is_success=True)
    assert (await runner.succeed(call(gone, tmp_path))).status == 404


async def test_http_without_an_answer(tmp_path: Path) -> None:
    with pytest.raises(HookError, match="got no answer"):
        await Runner(tmp_path / "hooks.log").run(call(Http(url="http://127.0.0.1:9/"), tmp_path))
