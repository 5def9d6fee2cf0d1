"""``python -m broker_impl``: runs one broker as an operating-system process.

This module selects what a simulation would supply: wall clock, randomness, disk, event loop. Exit
status: 0 after a controlled shutdown, 64 if the configuration is not valid, 74 if the disk failed,
1 for any other failure. Each failure starts with one log line.
"""

import asyncio
import logging
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType

import click

from broker_impl import mutants
from broker_impl.config import BrokerConfig, notes, parse
from broker_impl.counts import Durations
from broker_impl.errors import ConfigError
from broker_impl.node.broker import Broker
from broker_impl.node.exit_status import OK, exit_status
from broker_impl.platform.collector import tune_collector
from broker_impl.platform.descriptors import raise_limit, with_room_for_files
from broker_impl.platform.idle_selector import IdleSelector
from broker_impl.platform.malloc import tune_malloc
from broker_impl.platform.os_disk import OsDisk
from broker_impl.platform.port_file import publish
from broker_impl.properties import from_environment, load

LOG = logging.getLogger("broker_impl")

_METRICS = "METRICS"
"""The name of the metrics' port in the file of ports."""


def wall_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return int(time.time() * 1000)  # noqa: TID251 - the one place that reads the wall clock


async def serve(
    config: BrokerConfig, *, idle: IdleSelector, port_file: Path | None, reuse_port: bool
) -> None:
    """Run one broker until SIGTERM or SIGINT; ``idle`` is the selector of the running loop."""
    syncs = Durations()
    disks = {path: OsDisk(Path(path), syncs) for path in config.log_directories()}
    broker = Broker(
        config,
        disks=disks,
        rng=random.SystemRandom(),  # nonces must not be predictable
        wall_ms=wall_ms,
        reuse_port=reuse_port,
        host_name=socket.getfqdn,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, broker.stop)
    endpoints = await broker.start()
    if endpoints is None:
        LOG.info("the broker was stopped before it had started")
        await broker.run()
        return
    ports = {endpoint.name: endpoint.port for endpoint in endpoints}
    async with AsyncExitStack() as stack:
        if config.metrics_listener:
            # The library costs a broker without metrics 0.1 s at its start.
            from broker_impl.node import metrics

            source = metrics.Source(broker, broker.groups, syncs, idle)
            serving = metrics.serving(source, config.metrics_listener)
            try:
                ports[_METRICS] = await stack.enter_async_context(serving)
            except OSError as error:
                broker.fail(ConfigError(f"faultline.metrics.listener: {error.strerror or error}"))
        if port_file is not None:
            publish(port_file, ports)
        await broker.run()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("properties", required=False, type=click.Path(path_type=Path))
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Overrides a setting of the file."
)
@click.option(
    "--environment", is_flag=True, help="Also reads settings from KAFKA_… environment variables."
)
@click.option(
    "--mutant", "mutant_names", multiple=True, help="Plants the historic bug of this name."
)
@click.option(
    "--port-file",
    type=click.Path(path_type=Path),
    help="File to which the broker writes its ports as JSON.",
)
@click.option("--reuse-port", is_flag=True, help="Binds its ports with SO_REUSEPORT.")
def main(
    properties: Path | None,
    settings: tuple[str, ...],
    environment: bool,
    mutant_names: tuple[str, ...],
    port_file: Path | None,
    reuse_port: bool,
) -> None:
    """Run a broker with the settings of a server.properties file.

    With --environment, KAFKA_LOG_RETENTION_HOURS=60 sets log.retention.hours, as in Kafka's images.
    A variable takes precedence over the file, and --set over both.

    Example: python -m broker_impl --set broker.id=1 --set zookeeper.connect=127.0.0.1:2181 --set
    log.dirs=/tmp/broker-1 --set listeners=PLAINTEXT://127.0.0.1:9092
    """
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    variables = os.environ if environment else {}
    tune_collector()
    sys.exit(
        run(
            properties,
            settings,
            mutant_names,
            port_file,
            variables=variables,
            reuse_port=reuse_port,
        )
    )


def run(
    properties: Path | None,
    settings: tuple[str, ...],
    mutant_names: tuple[str, ...],
    port_file: Path | None,
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    reuse_port: bool,
) -> int:
    """Run a broker until it ends, and return the exit status."""
    try:
        values = load(properties) if properties is not None else {}
        values |= from_environment(variables)
        for setting in settings:
            name, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"--set {setting}: the setting must be written as KEY=VALUE")
            values[name.strip()] = value
        for note in notes(values):
            LOG.warning("%s", note)
        config = parse(values)
        mutants.plant(mutant_names)
        tune_malloc()
        config = with_room_for_files(config, raise_limit())
        idle = IdleSelector()
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(idle)) as runner:
            runner.run(serve(config, idle=idle, port_file=port_file, reuse_port=reuse_port))
    except Exception as error:  # noqa: BLE001 - any failure is logged
        return exit_status(error)
    return OK


if __name__ == "__main__":
    main()
