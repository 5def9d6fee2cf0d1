"""An ensemble in a simulated world: its servers, their disks, and a client's script."""

import random
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from broker_impl.errors import BrokerError, StorageError
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss
from broker_impl.zookeeper.pipeline import Pipeline
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from harness.simulation.disk import SimDisk
from harness.simulation.host import Host
from harness.simulation.process import Process
from harness.simulation.world import World

PORT = 2181
TICK_MS = 200


class SimulatedEnsemble:
    """Servers 1 to n on hosts ``zk-1`` to ``zk-n``; the last ones may be observers."""

    def __init__(
        self, world: World, voters: int, observers: int = 0, *, snap_count: int = 100_000
    ) -> None:
        self.world = world
        self.clients = world.host("clients")
        ids = range(1, voters + observers + 1)
        self.members = tuple(
            Member(id_, f"zk-{id_}", 2888, 3888, observes=id_ > voters) for id_ in ids
        )
        self.hosts: dict[int, Host] = {id_: world.host(f"zk-{id_}") for id_ in ids}
        self.disks = {
            id_: SimDisk(random.Random(f"{world.seed} disk {id_}"), StorageError) for id_ in ids
        }
        self.programs: dict[int, Program] = {}
        self.processes: dict[int, Process] = {}
        self.ends: dict[int, str] = {}
        """What servers said that ended by themselves."""
        self._snap_count = snap_count
        self._lives = 0

    def start(self, *ids: int) -> None:
        """Start servers; all of them without ids."""
        for id_ in ids or self.hosts:
            self._lives += 1
            life = self._lives
            self.processes[id_] = self.hosts[id_].spawn(partial(self._live, id_, life))

    def kill(self, id_: int) -> None:
        """End a process as SIGKILL does."""
        self.processes[id_].kill()
        self.programs.pop(id_, None)

    def cut_power(self, id_: int) -> None:
        """Switch a server's host off, and on again; what was not synced may be lost."""
        self.hosts[id_].power_off()
        self.disks[id_].power_loss()
        self.hosts[id_].power_on()
        self.programs.pop(id_, None)

    def pipeline(self, id_: int) -> Pipeline | None:
        """The pipeline of a server that serves clients."""
        program = self.programs.get(id_)
        return None if program is None else program.server.pipeline

    def mode(self, id_: int) -> str:
        """The role of a server that serves clients; empty if it does not."""
        pipeline = self.pipeline(id_)
        return "" if pipeline is None else pipeline.mode

    @property
    def leader(self) -> int:
        """The server that leads and serves; 0 if there is none."""
        return next((id_ for id_ in self.programs if self.mode(id_) == "leader"), 0)

    def contents(self, id_: int) -> dict[str, tuple[object, ...]]:
        """Everything that a server's state says of nodes, apart from the order of children."""
        nodes = self.programs[id_].history.database.nodes
        return {path: (node.stat(), node.data, node.acl) for path, node in nodes.items()}

    async def _live(self, id_: int, life: int) -> int:
        process, clock = self.processes[id_], self.hosts[id_].clock
        settings = Settings(
            "0.0.0.0",
            PORT,
            tick_ms=TICK_MS,
            connections_max=0,
            snap_count=self._snap_count,
            me=id_,
            members=self.members,
        )
        try:
            program = Program(
                settings,
                self.disks[id_].attach(busy=process.busy, is_ended=lambda: process.is_done),
                wall_ms=lambda: int(clock.wall() * 1000),
                entropy=random.Random(f"{self.world.seed} {id_} {life}").randbytes,
            )
            self.programs[id_] = program
            await program.start()
            await program.run()
        except (BrokerError, OSError) as error:
            self.ends[id_] = str(error)
            self.programs.pop(id_, None)
            return 1
        return 0

    # For the client's script.

    def play(self, script: Callable[[], Coroutine[Any, Any, Any]], limit_s: float = 120) -> Any:
        """Run a coroutine on the clients' host, and the world until it ends."""
        return self.world.run(self.clients.spawn(script), limit_s)

    async def client(self, *ids: int) -> ZooKeeper:
        """Open a session with one of these servers; of all, without ids."""
        servers = ",".join(f"zk-{id_}:{PORT}" for id_ in ids or self.hosts)
        client = ZooKeeper(servers, session_timeout_ms=20 * TICK_MS, rng=random.Random(1))
        await client.start()
        return client


async def insist(
    client: ZooKeeper, request: Callable[..., Awaitable[Any]], *arguments: object
) -> Any:
    """Repeat a request that a lost connection has interrupted."""
    while True:
        await client.connected()
        try:
            return await request(*arguments)
        except ConnectionLoss:
            pass
