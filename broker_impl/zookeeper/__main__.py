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

from broker_impl.errors import BrokerError, ConfigError
from broker_impl.platform.os_disk import OsDisk
from broker_impl.platform.port_file import publish
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from broker_impl.zookeeper.quorum.membership import INIT_LIMIT, SYNC_LIMIT


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status: 0, or 1 after one line on stderr."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        asyncio.run(_serve(options))
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"zookeeper: {error}\n")
        return 1
    return 0


async def _serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    options.data.mkdir(parents=True, exist_ok=True)
    host, port = options.listen
    settings = Settings(
        host=host,
        port=port,
        tick_ms=options.tick_ms,
        snap_count=options.snap_count,
        connections_max=options.connections_max,
        reuse_port=options.reuse_port,
        me=options.id,
        members=tuple(options.server),
        init_limit=options.init_limit,
        sync_limit=options.sync_limit,
        admin=options.admin,
        folder=str(options.data.resolve()),
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
    program.server.process_figures = descriptors
    if options.port_file is not None:
        ports = {"CLIENT": port} | ({"ADMIN": program.admin_port} if options.admin else {})
        publish(options.port_file, ports)
    sys.stdout.write(f"listening {host}:{port}\n")
    sys.stdout.flush()
    await program.run()


def descriptors() -> dict[str, object]:
    """The file descriptors of this process, by their names in ``mntr``."""
    try:
        used = len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return {}  # another system than Linux
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"open_file_descriptor_count": used, "max_file_descriptor_count": limit}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m broker_impl.zookeeper")
    parser.add_argument(
        "--listen",
        type=_address,
        required=True,
        metavar="HOST:PORT",
        help="port 0 selects a free port",
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--tick-ms", type=_positive, default=2000, help="session timeouts are 2 to 20 ticks"
    )
    parser.add_argument(
        "--port-file",
        type=Path,
        metavar="FILE",
        help='file to which the server writes {"CLIENT": port} once it listens',
    )
    parser.add_argument(
        "--reuse-port",
        action="store_true",
        help="bind the port with SO_REUSEPORT, so that the process that reserved it may keep it",
    )
    parser.add_argument(
        "--snap-count",
        type=_positive,
        default=100_000,
        help="number of transactions between two snapshots",
    )
    parser.add_argument(
        "--connections-max",
        type=int,
        default=60,
        help="maximum number of connections from one address; 0: no limit",
    )
    parser.add_argument(
        "--id",
        type=int,
        default=0,
        metavar="N",
        help="the id of this server in its ensemble",
    )
    parser.add_argument(
        "--server",
        type=_member,
        action="append",
        default=[],
        metavar="ID=HOST:QUORUM_PORT:ELECTION_PORT[:observer]",
        help="a server of the ensemble, this one included; once for each server",
    )
    parser.add_argument(
        "--admin",
        type=_address,
        metavar="HOST:PORT",
        help="answer operators over HTTP at this address; off by default",
    )
    parser.add_argument(
        "--init-limit",
        type=_positive,
        default=INIT_LIMIT,
        help="number of ticks in which a learner must have the leader's history",
    )
    parser.add_argument(
        "--sync-limit",
        type=_positive,
        default=SYNC_LIMIT,
        help="number of ticks for which leader and learners may be silent",
    )
    return parser


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
