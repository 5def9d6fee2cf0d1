"""Run a ZooKeeper server as a process, with real sockets, files, clocks and signals."""

import argparse
import asyncio
import logging
import resource
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from broker_impl import jaas, mutants
from broker_impl.errors import (
    FAILED,
    OK,
    STORAGE_FAILED,
    BrokerError,
    ConfigError,
    StorageError,
)
from broker_impl.platform.collector import tune_collector
from broker_impl.platform.os_disk import OsDisk
from broker_impl.platform.port_file import publish
from broker_impl.zookeeper.history import WINDOW
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from broker_impl.zookeeper.quorum.membership import INIT_LIMIT, SYNC_LIMIT


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status.

    It is 0, or after one line on stderr 74 if the disk failed, and 1 for any other error.
    """
    options = parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        asyncio.run(_serve(options))
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"zookeeper: {error}\n")
        return STORAGE_FAILED if isinstance(error, StorageError) else FAILED
    return OK


async def _serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    mutants.plant(options.mutant)
    options.data.mkdir(parents=True, exist_ok=True)
    host, port = options.listen
    settings = Settings(
        host=host,
        port=port,
        tick_ms=options.tick_ms,
        snap_count=options.snap_count,
        window=options.commit_log_count,
        connections_max=options.connections_max,
        reuse_port=options.reuse_port,
        me=options.id,
        members=tuple(options.server),
        init_limit=options.init_limit,
        sync_limit=options.sync_limit,
        admin=options.admin,
        folder=str(options.data.resolve()),
        users=_users(options.jaas),
    )
    program = Program(
        settings,
        OsDisk(options.data),
        wall_ms=lambda: time.time_ns() // 1_000_000,
        entropy=secrets.token_bytes,
    )
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, program.stop)
    port = await program.start()
    # The C library takes buffers for received bytes from the kernel, and returns them, each time,
    # until a larger one was freed.
    del bytearray(LARGEST_BUFFER_BYTES)[:]
    tune_collector()
    program.server.process_figures = descriptors
    if options.port_file is not None:
        ports = {"CLIENT": port} | ({"ADMIN": program.admin_port} if options.admin else {})
        publish(options.port_file, ports)
    sys.stdout.write(f"listening {host}:{port}\n")
    sys.stdout.flush()
    await program.run()


def _users(path: Path | None) -> dict[str, str]:
    """Return the passwords of the users in a JAAS file; raises ConfigError and OSError."""
    if path is None:
        return {}
    try:
        return jaas.section(path.read_text(), "Server", jaas.ZOOKEEPER_MODULE).users
    except ConfigError as error:
        raise ConfigError(f"--jaas {path}: {error}") from None


LARGEST_BUFFER_BYTES = 1 << 20
"""More than a buffer for received bytes has."""


def descriptors() -> dict[str, object]:
    """The file descriptors of this process, by their names in ``mntr``."""
    try:
        used = len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return {}  # another system than Linux
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"open_file_descriptor_count": used, "max_file_descriptor_count": limit}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m broker_impl.zookeeper")
    made.add_argument(
        "--listen",
        type=_address,
        required=True,
        metavar="HOST:PORT",
        help="port 0 selects a free port",
    )
    made.add_argument("--data", type=Path, required=True, metavar="DIR")
    made.add_argument(
        "--tick-ms", type=_positive, default=2000, help="session timeouts are 2 to 20 ticks"
    )
    made.add_argument(
        "--port-file",
        type=Path,
        metavar="FILE",
        help='file to which the server writes {"CLIENT": port} once it listens',
    )
    made.add_argument(
        "--reuse-port",
        action="store_true",
        help="bind the port with SO_REUSEPORT, so that the process that reserved it may keep it",
    )
    made.add_argument(
        "--snap-count",
        type=_positive,
        default=100_000,
        help="number of transactions between two snapshots",
    )
    made.add_argument(
        "--commit-log-count",
        type=_positive,
        default=WINDOW,
        help="number of committed transactions that are kept in memory for servers that join",
    )
    made.add_argument(
        "--connections-max",
        type=int,
        default=60,
        help="maximum number of connections from one address; 0: no limit",
    )
    made.add_argument(
        "--id",
        type=int,
        default=0,
        metavar="N",
        help="the id of this server in its ensemble",
    )
    made.add_argument(
        "--server",
        type=_member,
        action="append",
        default=[],
        metavar="ID=HOST:QUORUM_PORT:ELECTION_PORT[:observer]",
        help="a server of the ensemble, this one included; once for each server",
    )
    made.add_argument(
        "--admin",
        type=_address,
        metavar="HOST:PORT",
        help="answer operators over HTTP at this address; off by default",
    )
    made.add_argument(
        "--jaas",
        type=Path,
        metavar="FILE",
        help="JAAS file whose section Server has the users that authenticate by SASL (DIGEST-MD5)",
    )
    made.add_argument(
        "--init-limit",
        type=_positive,
        default=INIT_LIMIT,
        help="number of ticks in which a learner must have the leader's history",
    )
    made.add_argument(
        "--sync-limit",
        type=_positive,
        default=SYNC_LIMIT,
        help="number of ticks for which leader and learners may be silent",
    )
    made.add_argument(
        "--mutant",
        action="append",
        default=[],
        metavar="NAME",
        help="plant this bug, so that a test can show that it finds it",
    )
    return made


def _member(text: str) -> Member:
    try:
        return Member.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _positive(text: str) -> int:
    if (value := int(text)) <= 0:
        raise ValueError
    return value


if __name__ == "__main__":
    sys.exit(main())
