"""Spark on the loopback address whose Python has none of this project: a cluster, or a server."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import psutil
import pyspark

PACKAGES = ("pyspark", "py4j", "numpy", "numpy.libs", "pyarrow")
"""What the Python of the workers has."""
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
PATIENCE_S = 60.0


class StandaloneCluster:
    """A master and two workers of one core and 1 GiB each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._spark = Path(pyspark.__file__).parent
        port, *self._web_ports = _free_ports(4)
        self.url = f"spark://127.0.0.1:{port}"
        self.python = write_python(folder)

    def __enter__(self) -> Self:
        try:
            port = self.url.rpartition(":")[2]
            self._start("master", MASTER, "--port", port)
            self._wait("master", "Starting Spark master", 1)
            for name in ("worker-1", "worker-2"):
                home = self._folder / name
                self._start(name, WORKER, "--cores", "1", "--memory", "1g", "--work-dir",
                            str(home), self.url)  # fmt: skip
            self._wait("master", "Registering worker", 2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for name, process in self._processes.items():
            for each in self._started_by(name):
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            process.kill()
            process.wait()

    def runs_python(self, worker: str) -> bool:
        """Return whether an executor of a worker runs tasks in Python."""
        return any("pyspark.daemon" in _command(each) for each in self._started_by(worker))

    def kill(self, worker: str) -> None:
        """Send SIGKILL to a worker and to everything that it has started."""
        for each in (*self._started_by(worker), psutil.Process(self._processes[worker].pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()

    def _started_by(self, name: str) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            found: list[psutil.Process] = psutil.Process(self._processes[name].pid).children(True)
            return found
        return []

    def said(self, name: str) -> str:
        """Return what the master or a worker has logged."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, main: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [self._spark / "bin" / "spark-class", main, "--host", "127.0.0.1",
                 "--webui-port", str(self._web_ports.pop()), *arguments],
                env=_environment() | {"SPARK_HOME": str(self._spark)},
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def _wait(self, name: str, text: str, times: int) -> None:
        limit_s = time.monotonic() + PATIENCE_S
        while self.said(name).count(text) < times:
            assert time.monotonic() < limit_s, self.said(name)
            assert self._processes[name].poll() is None, self.said(name)
            time.sleep(0.05)


class ConnectServer:
    """A server of Spark Connect, with two cores of its own and 1 GiB."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "connect.log"
        self._spark = Path(pyspark.__file__).parent
        [port] = _free_ports(1)
        self.url = f"sc://127.0.0.1:{port}"
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            "spark.driver.memory": "1g",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": folder / "warehouse",
            "spark.ui.enabled": "false",
        }
        conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._spark / "bin" / "spark-submit", "--class", CONNECT, "--master", "local[2]",
                 *conf, "spark-internal"],
                env=_environment()
                | {"SPARK_HOME": str(self._spark), "PYSPARK_PYTHON": str(write_python(folder))},
                cwd=folder,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Self:
        limit_s = time.monotonic() + PATIENCE_S
        while "Spark Connect server started" not in self._log.read_text(errors="replace"):
            assert time.monotonic() < limit_s, self._log.read_text(errors="replace")
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            time.sleep(0.05)
        return self

    def __exit__(self, *error: object) -> None:
        for each in psutil.Process(self._process.pid).children(True):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.kill()
        self._process.wait()


def write_python(folder: Path) -> Path:
    """Write a command that starts Python without any package but :data:`PACKAGES`."""
    site = folder / "site"
    site.mkdir()
    for name in PACKAGES:
        for home in map(Path, sys.path):
            if (home / name).is_dir():
                (site / name).symlink_to(home / name)
                break
    base: Any = getattr(sys, "_base_executable", sys.executable)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {base} -S "$@"\n')
    command.chmod(0o755)
    return command


def _environment() -> dict[str, str]:
    """Return this process's environment without the path to this project's packages."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1"}


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):  # it has just ended
        found: list[str] = process.cmdline()
        return found
    return []


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
