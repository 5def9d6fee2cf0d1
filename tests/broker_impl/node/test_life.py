"""How a broker starts and stops, and what may happen meanwhile."""

import asyncio
import random

import pytest

from broker_impl import config as configuration
from broker_impl.errors import ConfigError, StorageError
from broker_impl.log.directory import CLEAN_SHUTDOWN
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.node import broker as life
from broker_impl.node import zk_paths
from broker_impl.node.broker import Broker
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode
from tests.broker_impl.conftest import WALL_MS, ClusterInLoop, ZooKeeperInLoop, until


def make(
    zookeeper: ZooKeeperInLoop, number: int = 1, disk: MemoryDisk | None = None, **settings: str
) -> Broker:
    given = {
        "broker.id": str(number),
        "zookeeper.connect": zookeeper.address,
        "zookeeper.session.timeout.ms": "300",
        "listeners": "PLAINTEXT://127.0.0.1:0",
    } | {name.replace("_", "."): value for name, value in settings.items()}
    return Broker(
        configuration.parse(given),
        disks={"": disk or MemoryDisk()},
        rng=random.Random(1),
        wall_ms=lambda: WALL_MS,
    )


async def look(zookeeper: ZooKeeperInLoop) -> ZooKeeper:
    zk = ZooKeeper(zookeeper.address, session_timeout_ms=1000, rng=random.Random(0))
    await zk.start()
    return zk


async def is_registered(zookeeper: ZooKeeperInLoop, number: int) -> bool:
    zk = await look(zookeeper)
    try:
        await zk.get(zk_paths.broker(number))
    except NoNode:
        return False
    else:
        return True
    finally:
        await zk.close()


async def idle_tasks() -> list[str]:
    """The tasks that run in addition to the test and the ZooKeeper server."""
    await asyncio.sleep(0.01)
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    return [str(task.get_coro()) for task in tasks if "zookeeper.server" not in repr(task)]


async def test_a_stop_before_zookeeper_is_there(zookeeper: ZooKeeperInLoop) -> None:
    """A broker that waits for ZooKeeper stops at once; a second stop changes nothing."""
    await zookeeper.stop()
    broker = make(zookeeper)
    starting = asyncio.create_task(broker.start())
    await asyncio.sleep(0.05)
    broker.stop()
    broker.stop()
    assert await starting is None
    await broker.run()


async def test_a_stop_while_waiting_for_the_own_ghost(zookeeper: ZooKeeperInLoop) -> None:
    """A stop before the broker has registered leaves a clean-shutdown marker.

    The broker waits for its own old registration to expire.
    """
    ghost = await look(zookeeper)
    for path in zk_paths.PERSISTENT_PATHS:
        await ghost.ensure_path(path)
    await ghost.create(zk_paths.broker(1), ephemeral=True)
    disk = MemoryDisk()
    broker = make(zookeeper, disk=disk)
    starting = asyncio.create_task(broker.start())
    await until(lambda: bool(broker._listening))
    broker.stop()
    assert await starting is None
    await broker.run()
    assert disk.exists(CLEAN_SHUTDOWN)
    await ghost.close()


async def test_a_second_broker_of_the_same_id_is_refused(zookeeper: ZooKeeperInLoop) -> None:
    """A registration that stays belongs to another broker, and start fails with a ConfigError."""
    first, second = make(zookeeper), make(zookeeper)
    await first.start()
    with pytest.raises(
        ConfigError, match=r"broker.id=1: another broker is registered with this id"
    ):
        await second.start()
    assert await is_registered(zookeeper, 1), "the first one is not harmed"
    first.stop()
    await first.run()
    assert not await is_registered(zookeeper, 1)


async def test_a_longer_session_than_asked_for_is_waited_out(zookeeper: ZooKeeperInLoop) -> None:
    """The broker waits for an old registration for the session timeout that the server granted."""
    broker = make(zookeeper, zookeeper_session_timeout_ms="60")
    ghost = await look(zookeeper)
    for path in zk_paths.PERSISTENT_PATHS:
        await ghost.ensure_path(path)
    await ghost.create(zk_paths.broker(1), ephemeral=True)
    starting = asyncio.create_task(broker.start())
    await until(lambda: bool(broker._listening))
    await asyncio.sleep(0.25)  # several times the requested timeout
    assert not starting.done()
    await ghost.close()
    await starting
    broker.stop()
    await broker.run()


async def test_a_foreign_directory_is_refused(zookeeper: ZooKeeperInLoop) -> None:
    """The data directory of another broker is a ConfigError, and leaves no task running."""
    disk = MemoryDisk()
    first = make(zookeeper, 1, disk)
    await first.start()
    first.stop()
    await first.run()
    second = make(zookeeper, 2, disk)
    with pytest.raises(ConfigError, match="belongs to broker 1, not to broker 2"):
        await second.start()
    assert await idle_tasks() == []


async def test_a_failure_while_stopping_leaves_no_clean_marker(zookeeper: ZooKeeperInLoop) -> None:
    """A failure during the controlled shutdown is raised, and leaves no clean-shutdown marker."""
    disk = MemoryDisk()
    broker = make(zookeeper, disk=disk)
    await broker.start()
    broker.stop()
    broker.fail(StorageError("no space left"))
    with pytest.raises(StorageError, match="no space left"):
        await broker.run()
    assert not disk.exists(CLEAN_SHUTDOWN)
    assert not await is_registered(zookeeper, 1), "the others need not wait for the session"


async def test_a_failed_task_ends_the_broker(zookeeper: ZooKeeperInLoop) -> None:
    """A background task that fails ends the broker, because no other task would do its work."""
    broker = make(zookeeper, log_flush_scheduler_interval_ms="1")
    await broker.start()
    broker._logs.tick = lambda *args: (_ for _ in ()).throw(StorageError("EIO"))  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="EIO"):
        await broker.run()
    assert await idle_tasks() == []


async def test_a_stop_without_zookeeper_takes_its_bounded_time(
    zookeeper: ZooKeeperInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop without ZooKeeper is bounded in time, and closes the logs cleanly."""
    monkeypatch.setattr(life, "_STOP_BOUND_S", 0.2)
    disk = MemoryDisk()
    broker = make(zookeeper, disk=disk, zookeeper_session_timeout_ms="2000")
    await broker.start()
    await until(lambda: broker.view.is_whole)
    await zookeeper.stop()
    broker.stop()
    await broker.run()
    assert disk.exists(CLEAN_SHUTDOWN)


async def test_sessions_may_pass_by_while_it_starts(zookeeper: ZooKeeperInLoop) -> None:
    """If the session expires while the broker waits to register, it registers in a new session."""
    ghost = await look(zookeeper)
    for path in zk_paths.PERSISTENT_PATHS:
        await ghost.ensure_path(path)
    await ghost.create(zk_paths.broker(1), ephemeral=True)
    broker = make(zookeeper)
    starting = asyncio.create_task(broker.start())
    await until(lambda: bool(broker._listening))
    before = broker._session.zk
    broker._session.expired.set()
    await before.close()
    await until(lambda: broker._session.zk is not before)
    await ghost.close()
    await starting
    assert broker._session.broker_epoch > 0
    broker.stop()
    await broker.run()


async def test_an_expired_session_and_a_dead_zookeeper(
    cluster: ClusterInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker whose session expired waits for ZooKeeper, and can be stopped meanwhile."""
    monkeypatch.setattr(life, "_STOP_BOUND_S", 0.2)
    running = await cluster.add(1)
    broker = running.broker
    assert broker is not None
    await cluster.ready()
    await cluster.zookeeper.stop()
    broker._session.expired.set()
    await until(lambda: broker._session.zk.session_id == 0)
    await running.stop()
    assert running.disk.exists(CLEAN_SHUTDOWN)


async def test_the_controller_is_replaced_with_the_session(cluster: ClusterInLoop) -> None:
    """A single broker becomes controller again after each lost session."""
    running = await cluster.add(1)
    broker = running.broker
    assert broker is not None
    await cluster.ready()
    for _ in range(3):
        epoch = broker._session.broker_epoch
        broker._session.expired.set()
        await until(lambda: broker._session.broker_epoch > epoch)  # noqa: B023 - awaited here
        await until(lambda: broker._controller.is_active)
    assert broker._failure is None
