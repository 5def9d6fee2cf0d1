"""Random events in any order break no invariant, and the cluster settles afterwards."""

import asyncio
import random
from typing import Any

import pytest

from broker_impl.node import zk_paths
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.errors import BadVersion, ZooKeeperError

BROKERS = (1, 2, 3, 4)
TPS = [TopicPartition("t", number) for number in range(4)]
STEPS = 25


class Disorder:
    """Brokers and controllers come and go, leaders shrink their ISRs, ZooKeeper restarts."""

    def __init__(self, world: Any, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.runtimes: list[Any] = []
        self.shrunk: dict[tuple[TopicPartition, int], set[int]] = {}
        """The ISR that the leader wrote last, by partition and leader epoch."""

    async def begin(self) -> None:
        await self.world.come(*BROKERS)
        await self.contend()
        await self.contend()
        replicas = [self.rng.sample(BROKERS, 3) for _ in TPS]
        await self.world.topic("t", *replicas)
        for tp, brokers in zip(TPS, replicas, strict=True):
            await self.world.led(tp, brokers[0], *brokers)

    async def contend(self) -> None:
        number = 10 + len(self.runtimes)
        self.runtimes.append(await self.world.contend(number))

    async def step(self) -> None:
        await self.rng.choice(
            [
                self.come_or_go,
                self.come_or_go,
                self.bounce,
                self.shrink,
                self.shrink,
                self.replace_controller,
                self.restart,
                self.wait,
            ]
        )()

    async def come_or_go(self) -> None:
        number = self.rng.choice(BROKERS)
        if number in self.world.sessions:
            await self.world.go(number)
        else:
            await self.world.come(number)

    async def bounce(self) -> None:
        number = self.rng.choice(BROKERS)
        if number in self.world.sessions:
            await self.world.go(number)
            await self.world.come(number)

    async def shrink(self) -> None:
        """A live leader removes a follower from its ISR."""
        tp = self.rng.choice(TPS)
        path = zk_paths.state(tp)
        data, stat = await self.world.zk.get(path)
        state = zk_paths.decode(path, data, zk_paths.StateZnode)
        if state.leader in self.world.sessions and len(state.isr) > 1:
            state.isr.remove(self.rng.choice([n for n in state.isr if n != state.leader]))
            try:
                await self.world.zk.set(path, zk_paths.encode(state), stat.version)
            except BadVersion:
                return  # the controller was faster
            self.shrunk[tp, state.leader_epoch] = set(state.isr)

    async def replace_controller(self) -> None:
        await self.contend()
        oldest = self.world.contenders.pop(0)
        await oldest.stop()

    async def restart(self) -> None:
        await self.world.restart(down_s=0.01)

    async def wait(self) -> None:
        await asyncio.sleep(0.01)

    async def settle(self) -> None:
        """Register all brokers, and wait until each has received the state of all partitions."""
        for number in BROKERS:
            if number not in self.world.sessions:
                await self.world.come(number)
        async with asyncio.timeout(10):
            while not await self.is_settled():  # noqa: ASYNC110 - over the wire
                await asyncio.sleep(0.01)

    async def is_settled(self) -> bool:
        active = [c for c in self.world.contenders if c.runtime.is_active]
        if len(active) != 1:
            return False
        for tp in TPS:
            path = zk_paths.state(tp)
            data, stat = await self.world.zk.get(path)
            state = zk_paths.decode(path, data, zk_paths.StateZnode)
            if state.leader not in self.world.sessions:
                return False
            for number in BROKERS:
                roles = active[0].peers.roles(number, tp)
                if roles and (
                    (roles[-1].leader, roles[-1].leader_epoch) != (state.leader, state.leader_epoch)
                    or roles[-1].partition_epoch > stat.version
                ):
                    return False
                if not active[0].peers.metadata(number, tp):
                    return False
        return True

    def check(self) -> None:
        """Check the invariants of all requests that any controller ever sent to any broker."""
        leaders: dict[tuple[TopicPartition, int], int] = {}
        isrs: dict[tuple[TopicPartition, int], set[int]] = {}
        for contender in self.runtimes:
            for number in BROKERS:
                for tp in TPS:
                    epochs = []
                    for role in contender.peers.roles(number, tp):
                        key = (tp, role.leader_epoch)
                        epochs.append(role.leader_epoch)
                        assert leaders.setdefault(key, role.leader) == role.leader, (
                            f"two leaders in {key}"
                        )
                        isrs.setdefault(key, set()).update(role.isr)
                        assert role.leader == -1 or role.leader in role.isr
                    assert epochs == sorted(epochs), "a broker is never told of an older epoch"
        for (tp, epoch), leader in leaders.items():
            before = self.shrunk.get((tp, epoch - 1), isrs.get((tp, epoch - 1)))
            if before is not None:
                assert leader == -1 or leader in before, "a leader comes out of the ISR"
                assert isrs[tp, epoch] <= before, "a controller lets nobody into an ISR"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_disorder(world: Any, seed: int) -> None:
    """Each epoch has one leader, from the ISR; in the end every broker knows all leaders."""
    disorder = Disorder(world, random.Random(seed))
    await disorder.begin()
    for _ in range(STEPS):
        try:
            await disorder.step()
        except ZooKeeperError:
            await world.zk.connected()
    await disorder.settle()
    disorder.check()
