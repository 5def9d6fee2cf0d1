"""Logs of simulated nodes, in files and as findings."""

import logging
from pathlib import Path

from harness.cluster.simulated.node_logs import NodeLogs, listening
from harness.simulation.world import World

LOG = logging.getLogger("broker_impl.test")


def test_an_exception_that_a_node_survives_is_reported(tmp_path: Path) -> None:
    """Not one after which it ends, nor an error without an exception."""
    with World(1) as world:
        logs = NodeLogs(tmp_path, world)
        found: list[tuple[str, str]] = []
        logs.on_error = lambda node, why: found.append((node, why))
        logs.open("broker-1")

        async def fail() -> None:
            LOG.error("an error that is expected")
            try:
                dict[str, int]()["key"]
            except KeyError as error:
                LOG.critical("the broker stops", exc_info=error)
                LOG.exception("a request failed")

        with listening(logs):
            world.run(world.host("broker-1").spawn(fail))
        assert found == [("broker-1", "KeyError: 'key', in test_node_logs.py, fail")]
        assert "Traceback" in (tmp_path / "broker-1" / "log.txt").read_text()
