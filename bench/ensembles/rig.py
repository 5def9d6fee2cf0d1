"""An ensemble of simulated servers, and the means to break it: processes, power, links, disks."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.ensembles.clients import Observations
from broker_impl.errors import BrokerError, StorageError
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from broker_impl.zookeeper.quorum.notifications import State
from harness.cluster.observe.snapshots import Snapshots
from harness.simulation.disk import SimDisk
from harness.simulation.host import Host
from harness.simulation.process import Process
from harness.simulation.world import World

CLIENT_PORT, QUORUM_PORT, ELECTION_PORT = 2181, 2888, 3888
RESTART_S = 0.3
"""How long a server that has ended by itself stays down, as under a supervisor."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size and the settings of an ensemble."""

    voters: int = 3
    observers: int = 0
    tick_ms: int = 100
    """Short, so that an election takes little virtual time: leader and learners may be silent for
    five ticks."""
    snap_count: int = 40
    window: int = 500
    """The number of committed transactions that a server keeps for learners."""

    @property
    def servers(self) -> range:
        """The ids of all servers; those of observers come last."""
        return range(1, self.voters + self.observers + 1)

    @property
    def voter_ids(self) -> range:
        """The ids of the servers that vote."""
        return range(1, self.voters + 1)


def name_of(number: int) -> str:
    """Return the name of a server's host."""
    return f"zk-{number}"


class Node:
    """One server: its host, its disk, and the process of its present life."""

    def __init__(self, rig: "Rig", number: int) -> None:
        world = rig.world
        self.number = number
        self.host: Host = world.host(name_of(number))
        self.disk = SimDisk(random.Random(f"{world.seed} disk of {number}"), StorageError)
        self.program: Program | None = None
        self.process: Process | None = None
        self.lives = 0
        self.exits: list[str] = []
        """Why the process ended, each time that it ended by itself."""
        self.is_wanted = False
        """Should it run? A server that ends by itself is started again then."""
        self._rig = rig

    @property
    def is_up(self) -> bool:
        """Does its process run?"""
        return self.process is not None and not self.process.is_done

    def start(self) -> None:
        """Start the process, if it does not run; the host has power then."""
        self.is_wanted = True
        if self.is_up:
            return
        self.host.power_on()
        self.lives += 1
        self.program = None
        self.process = self.host.spawn(self._live, f"{self.host.name}.{self.lives}")

    def kill(self) -> None:
        """End the process at once; the disk keeps what was written."""
        self.is_wanted = False
        if self.process is not None:
            self.process.kill()

    def lose_power(self) -> None:
        """Lose everything that was not synced."""
        self.is_wanted = False
        if self.host.is_on:
            self.host.power_off()
            self.disk.power_loss()

    def pause(self) -> None:
        """Stop the process for a while (SIGSTOP)."""
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        """Let the process run again."""
        if self.process is not None:
            self.process.resume()

    async def _live(self) -> None:
        process = self.process
        assert process is not None, "a process is created before it runs"
        rig, clock = self._rig, self.host.clock
        rng = random.Random(f"{rig.world.seed} {process.name}")
        disk = self.disk.attach(busy=process.busy, is_ended=lambda: process.is_done)
        try:
            program = Program(
                rig.settings(self.number),
                disk,
                wall_ms=lambda: int(clock.wall() * 1000),
                entropy=rng.randbytes,
            )
            self.program = program
            rig.snapshots.server_started(program, self.disk, lambda: not process.is_done)
            await program.start()
            await program.run()
        except (BrokerError, OSError) as error:
            self.exits.append(f"{rig.world.now:.3f} server {self.number}: {error}")


class Rig:
    """The servers of one ensemble, on hosts of their own."""

    control = "control"
    """The host of the process that applies faults; none of them concerns it."""

    def __init__(
        self, world: World, shape: Shape, snapshots: Snapshots, observations: Observations
    ) -> None:
        self.world = world
        self.observations = observations
        self.shape = shape
        self.snapshots = snapshots
        self._members = tuple(
            Member(number, name_of(number), QUORUM_PORT, ELECTION_PORT, number > shape.voters)
            for number in shape.servers
        )
        self.client_hosts: list[str] = []
        self.nodes = {number: Node(self, number) for number in shape.servers}
        self.epochs: dict[int, int] = {}
        """The leader of each epoch that was established."""
        self._slow: dict[tuple[str, str], float] = {}

    def settings(self, number: int) -> Settings:
        """Return the settings of a server."""
        return Settings(
            host="0.0.0.0",
            port=CLIENT_PORT,
            tick_ms=self.shape.tick_ms,
            snap_count=self.shape.snap_count,
            window=self.shape.window,
            connections_max=0,
            me=number,
            members=self._members,
            election_wait_max_s=1.0,
        )

    def connect(self, servers: Iterable[int] | None = None) -> str:
        """Return the connect string of these servers, or of all."""
        chosen = self.shape.servers if servers is None else servers
        return ",".join(f"{name_of(number)}:{CLIENT_PORT}" for number in chosen)

    # --- what the servers do

    def note(self) -> None:
        """Note the leaders that serve clients; called between two events."""
        for number, role_epoch in self._leading():
            self.epochs.setdefault(role_epoch, number)

    def leader(self) -> int | None:
        """Return the server that leads the latest epoch and serves clients."""
        return max(((epoch, number) for number, epoch in self._leading()), default=(0, None))[1]

    def serves(self, number: int) -> bool:
        """Does a server serve clients?"""
        node = self.nodes[number]
        program = node.program
        return node.is_up and program is not None and program.server.pipeline is not None

    def _leading(self) -> Iterator[tuple[int, int]]:
        for number, node in self.nodes.items():
            program = node.program
            if program is None or not node.is_up or program.peer is None:
                continue
            peer = program.peer
            if peer.state is State.LEADING and program.server.pipeline is not None:
                yield number, max(program.history.ledger.current_epoch, 0)

    async def supervise(self) -> None:
        """Start every server again that has ended by itself; runs until it is cancelled."""
        await asyncio.gather(*(self._supervise(node) for node in self.nodes.values()))

    async def _supervise(self, node: Node) -> None:
        while True:
            process = node.process
            if process is None or process.is_done:
                await asyncio.sleep(RESTART_S)
                if node.is_wanted and not node.is_up:
                    node.start()
            else:
                await process.ended()

    # --- links

    def cut(self, one: str, other: str) -> None:
        """Lose everything from one host to the other."""
        self.world.network.cut(one, other)

    def heal(self, one: str, other: str) -> None:
        """End a cut."""
        self.world.network.heal(one, other)

    def split(
        self, side: Iterable[int], *, to_clients: Iterable[str] = ()
    ) -> list[tuple[str, str]]:
        """Cut some servers off from all others; return the links that were cut."""
        inside = {name_of(number) for number in side}
        outside = [name_of(number) for number in self.shape.servers]
        links = [
            link
            for one in sorted(inside)
            for other in [*(name for name in outside if name not in inside), *to_clients]
            for link in ((one, other), (other, one))
        ]
        for link in links:
            self.cut(*link)
        return links

    def refuse(self, client: str, server: str) -> None:
        """End the connections of a client with a server, and refuse others."""
        self.world.network.refuse(client, server)
        self.world.network.reset(client, server)

    def admit(self, client: str, server: str) -> None:
        """Accept connections of a client again."""
        self.world.network.admit(client, server)

    def slow(self, one: str, other: str, seconds: float) -> None:
        """Delay everything from one host to the other by so much; 0 ends that."""
        link = self.world.network.link(one, other)
        link.latency_s += seconds - self._slow.get((one, other), 0.0)
        self._slow[one, other] = seconds

    def heal_all(self) -> None:
        """End all faults of links and disks, and start all servers."""
        hosts = [*(node.host.name for node in self.nodes.values()), *self.client_hosts]
        for one in hosts:
            for other in hosts:
                if one != other:
                    if self.world.network.link(one, other).is_cut:
                        self.heal(one, other)
                    self.slow(one, other, 0.0)
        for node in self.nodes.values():
            node.disk.slow(0.0)
            node.disk.fail_fsync(0)
            node.disk.free()
            node.disk.cancel_interrupt()
            node.resume()
            node.start()
