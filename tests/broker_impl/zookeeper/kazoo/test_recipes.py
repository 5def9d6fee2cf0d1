"""kazoo's recipes between clients of different servers."""

import datetime
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, LockTimeout
from kazoo.recipe.party import ShallowParty

from tests.broker_impl.zookeeper.kazoo.conftest import WAIT_S, Connect, Ensemble

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for the calls that block until another client acts."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def wait_for_children(zk: KazooClient, path: str, number: int) -> None:
    """Wait until a node has so many children."""
    wait_for_change(zk, path, lambda children: len(children) == number)


def wait_for_change(zk: KazooClient, path: str, condition: Callable[[list[str]], object]) -> None:
    """Wait until the children of a node meet a condition, which they must do within ``WAIT_S``."""
    met = threading.Event()
    zk.ensure_path(path)

    def look(children: list[str]) -> bool:
        if condition(children):
            met.set()
        return not met.is_set()

    zk.ChildrenWatch(path, look)
    assert met.wait(WAIT_S)


class Turnstile:
    """Counts the clients that are inside at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.entries = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            self.entries += 1
            self.most = max(self.most, self._inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1


# Locks


def test_a_lock_has_one_owner(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """Clients of three servers hold a lock one after the other, and leave nothing behind."""
    inside = Turnstile()

    def contend(zk: KazooClient) -> None:
        for _ in range(5):
            with zk.Lock("/lock"), inside:
                pass

    for done in [pool.submit(contend, zk) for zk in three * 2]:
        done.result(WAIT_S)
    assert (inside.most, inside.entries) == (1, 30)
    three[0].sync("/")
    assert three[0].get_children("/lock") == []


def test_a_lock_that_is_taken(
    leading: KazooClient, following: KazooClient, pool: ThreadPoolExecutor
) -> None:
    """A taken lock is not acquired without blocking or within a time, and a wait is cancelled.

    The contenders are listed in the order of their requests.
    """
    held = leading.Lock("/lock", "holder")
    held.acquire()
    assert not following.Lock("/lock").acquire(blocking=False)
    with pytest.raises(LockTimeout):
        following.Lock("/lock").acquire(timeout=0.05)
    waiting = following.Lock("/lock", "waiting")
    acquired = pool.submit(waiting.acquire)
    wait_for_children(leading, "/lock", 2)
    assert held.contenders() == ["holder", "waiting"]
    waiting.cancel()
    with pytest.raises(CancelledError):
        acquired.result(WAIT_S)
    assert held.release()
    with following.Lock("/lock"):
        assert following.Lock("/lock").contenders() == [""]


def test_readers_share_and_a_writer_is_alone(
    three: list[KazooClient], pool: ThreadPoolExecutor
) -> None:
    """Readers hold the lock together; a writer waits for all of them, later readers for it."""
    first, second, third = three
    readers = [first.ReadLock("/lock"), second.ReadLock("/lock")]
    assert all(reader.acquire(timeout=WAIT_S) for reader in readers)
    assert not third.WriteLock("/lock").acquire(blocking=False)
    writer = third.WriteLock("/lock", "writer")
    written = pool.submit(writer.acquire)
    wait_for_children(first, "/lock", 3)
    assert not first.ReadLock("/lock").acquire(blocking=False)
    late = first.ReadLock("/lock", "reader")
    read = pool.submit(late.acquire)
    readers[0].release()
    assert not written.done()
    readers[1].release()
    assert written.result(WAIT_S)
    assert not read.done()
    writer.release()
    assert read.result(WAIT_S)


def test_a_semaphore_has_its_number_of_leases(
    three: list[KazooClient], pool: ThreadPoolExecutor
) -> None:
    """At most two clients of three servers hold one of two leases."""
    inside = Turnstile()

    def contend(zk: KazooClient) -> None:
        for _ in range(3):
            with zk.Semaphore("/semaphore", max_leases=2), inside:
                pass

    for done in [pool.submit(contend, zk) for zk in three]:
        done.result(WAIT_S)
    assert inside.entries == 9
    assert inside.most <= 2


def test_a_semaphore_that_is_taken(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """A third lease of two is refused until one is released; another number of them always."""
    held = [zk.Semaphore("/semaphore", f"holder-{n}", 2) for n, zk in enumerate(three[:2])]
    assert all(semaphore.acquire(timeout=WAIT_S) for semaphore in held)
    third = three[2]
    third.sync("/")
    assert not third.Semaphore("/semaphore", max_leases=2).acquire(blocking=False)
    waiting = third.Semaphore("/semaphore", "third", 2)
    assert sorted(waiting.lease_holders()) == ["holder-0", "holder-1"]
    with pytest.raises(ValueError, match="Inconsistent max leases"):
        third.Semaphore("/semaphore", max_leases=3).acquire()
    acquired = pool.submit(waiting.acquire)
    held[0].release()
    assert acquired.result(WAIT_S)
    assert sorted(waiting.lease_holders()) == ["holder-1", "third"]


def test_an_election_has_one_leader(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """Candidates of three servers lead one after the other, in the order of their entry."""
    ruled: list[int] = []
    leads, resign = threading.Event(), threading.Event()

    def first() -> None:
        ruled.append(0)
        leads.set()
        resign.wait(WAIT_S)

    done = [pool.submit(three[0].Election("/election", "0").run, first)]
    assert leads.wait(WAIT_S)
    for number in (1, 2):
        election = three[number].Election("/election", str(number))
        done.append(pool.submit(election.run, ruled.append, number))
        wait_for_children(three[0], "/election", number + 1)
    assert three[0].Election("/election").contenders() == ["0", "1", "2"]
    resign.set()
    for each in done:
        each.result(WAIT_S)
    assert ruled == [0, 1, 2]


def test_a_candidate_withdraws(
    leading: KazooClient, following: KazooClient, pool: ThreadPoolExecutor
) -> None:
    """A cancelled candidate never leads, and leaves the election."""
    with leading.Lock("/election", "leader"):
        candidate = following.Election("/election", "candidate")
        ruled: list[int] = []
        done = pool.submit(candidate.run, ruled.append, 1)
        wait_for_children(leading, "/election", 2)
        candidate.cancel()
        done.result(WAIT_S)
        leading.sync("/")
        assert leading.Election("/election").contenders() == ["leader"]
    assert ruled == []


# Parties and barriers


@pytest.mark.parametrize("kind", ["Party", "ShallowParty"])
def test_a_party(ensemble: Ensemble, connect: Connect, kind: str) -> None:
    """A member is listed at every server from its entry until it leaves or its session ends."""
    clients = [connect(server) for server in (1, 2, 3)]
    parties = [getattr(zk, kind)("/party", f"member-{n}") for n, zk in enumerate(clients)]
    for party in parties:
        party.join()
    clients[0].sync("/")
    assert sorted(parties[0]) == ["member-0", "member-1", "member-2"]
    assert len(parties[0]) == 3
    parties[1].leave()
    clients[2].stop()
    clients[0].sync("/")
    assert list(parties[0]) == ["member-0"]
    assert isinstance(parties[0], ShallowParty) == (kind == "ShallowParty")


def test_a_barrier_holds_until_it_is_removed(
    three: list[KazooClient], pool: ThreadPoolExecutor
) -> None:
    """Clients wait at a barrier until another client removes it."""
    barrier = three[0].Barrier("/barrier")
    barrier.create()
    for zk in three:
        zk.sync("/")
        assert not zk.Barrier("/barrier").wait(timeout=0.02)
    waiting = [pool.submit(zk.Barrier("/barrier").wait, WAIT_S) for zk in three[1:]]
    assert barrier.remove()
    assert all(wait.result(WAIT_S) for wait in waiting)
    assert not barrier.remove()
    assert three[1].Barrier("/barrier").wait()


def test_a_double_barrier(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """No client passes before all have entered, and none leaves before all are leaving."""
    barriers = [zk.DoubleBarrier("/barrier", 3, f"member-{n}") for n, zk in enumerate(three)]
    entered = [pool.submit(barrier.enter) for barrier in barriers[:2]]
    wait_for_children(three[0], "/barrier", 2)
    assert not any(enter.done() for enter in entered)
    barriers[2].enter()
    for enter in entered:
        enter.result(WAIT_S)
    assert all(barrier.participating for barrier in barriers)
    left = [pool.submit(barrier.leave) for barrier in barriers[:2]]
    wait_for_change(three[2], "/barrier", lambda children: "ready" not in children)
    assert not all(leave.done() for leave in left)
    barriers[2].leave()
    for leave in left:
        leave.result(WAIT_S)
    assert not any(barrier.participating for barrier in barriers)


# Queues and counters


def test_a_queue_is_ordered_by_priority(leading: KazooClient, following: KazooClient) -> None:
    """Items are taken by priority, and within it in the order in which they were put."""
    put = leading.Queue("/queue")
    for value, priority in ((b"c", 100), (b"d", 100), (b"a", 1), (b"e", 999), (b"b", 1)):
        put.put(value, priority)
    following.sync("/")
    take = following.Queue("/queue")
    assert len(take) == 5
    assert [take.get() for _ in range(6)] == [b"a", b"b", b"c", b"d", b"e", None]


def test_a_queue_gives_each_item_once(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """Of clients of three servers that empty a queue, one gets each item."""
    for number in range(30):
        three[0].Queue("/queue").put(b"%d" % number)

    def drain(zk: KazooClient) -> list[bytes]:
        zk.sync("/")
        return list(iter(zk.Queue("/queue").get, None))

    drained = [pool.submit(drain, zk) for zk in three]
    items = [item for each in drained for item in each.result(WAIT_S)]
    assert sorted(items, key=int) == [b"%d" % number for number in range(30)]


def test_a_locking_queue(leading: KazooClient, following: KazooClient) -> None:
    """A locked item is gone once it is consumed, and available once it is released."""
    leading.LockingQueue("/queue").put_all([b"one", b"two"])
    leading.LockingQueue("/queue").put(b"first", priority=1)
    following.sync("/")
    taker, rival = following.LockingQueue("/queue"), leading.LockingQueue("/queue")
    assert taker.get(WAIT_S) == taker.get(WAIT_S) == b"first"
    assert taker.holds_lock()
    leading.sync("/")
    assert rival.get(WAIT_S) == b"one"
    assert taker.consume()
    assert not taker.consume()
    assert rival.release()
    assert not rival.holds_lock()
    following.sync("/")
    assert taker.get(WAIT_S) == b"one"
    leading.sync("/")
    assert rival.get(WAIT_S) == b"two"
    assert all(queue.consume() for queue in (taker, rival))
    leading.sync("/")
    assert len(leading.LockingQueue("/queue")) == 0
    assert rival.get(0.02) is None


def test_an_item_returns_when_its_consumer_ends(
    ensemble: Ensemble, connect: Connect, leading: KazooClient, pool: ThreadPoolExecutor
) -> None:
    """A client waits for an item that another one has locked, and gets it when that one ends."""
    consumer = connect(ensemble.followers[0])
    leading.LockingQueue("/queue").put(b"item")
    consumer.sync("/")
    assert consumer.LockingQueue("/queue").get(WAIT_S) == b"item"
    leading.sync("/")
    waiting: Future[bytes] = pool.submit(leading.LockingQueue("/queue").get, WAIT_S)
    consumer.stop()
    assert waiting.result(WAIT_S) == b"item"


def test_a_counter_loses_no_increment(three: list[KazooClient], pool: ThreadPoolExecutor) -> None:
    """The increments of clients of three servers are all counted."""

    def count(zk: KazooClient) -> None:
        counter = zk.Counter("/counter")
        for _ in range(10):
            counter += 2
            counter -= 1

    for done in [pool.submit(count, zk) for zk in three]:
        done.result(WAIT_S)
    three[1].sync("/")
    assert three[1].Counter("/counter").value == 30


def test_counters_of_other_types(leading: KazooClient, following: KazooClient) -> None:
    """Counters of floats, and counters in Curator's format, have their values at any server."""
    ratio = leading.Counter("/ratio", default=1.5)
    ratio += 1.0
    assert (ratio.pre_value, ratio.post_value) == (1.5, 2.5)
    shared = leading.Counter("/shared", support_curator=True)
    shared += 258
    following.sync("/")
    assert following.Counter("/ratio", default=1.5).value == 2.5
    assert following.Counter("/shared", support_curator=True).value == 258
    assert following.get("/shared")[0] == b"\0\0\1\2"


# Leases and partitions


class Clock:
    """A clock that a test moves; kazoo compares its times with others without a zone."""

    def __init__(self) -> None:
        self.now = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)

    def __call__(self) -> datetime.datetime:
        return self.now


def test_a_lease_lasts_for_its_time(leading: KazooClient, following: KazooClient) -> None:
    """Another client gets a lease when it has run out; its holder may renew it before."""
    clock, hour = Clock(), datetime.timedelta(hours=1)
    assert leading.NonBlockingLease("/lease", hour, "holder", clock)
    assert not following.NonBlockingLease("/lease", hour, "rival", clock)
    clock.now += hour / 2
    assert leading.NonBlockingLease("/lease", hour, "holder", clock)
    clock.now += hour * 3 / 4
    assert not following.NonBlockingLease("/lease", hour, "rival", clock)
    clock.now += hour / 2
    assert following.NonBlockingLease("/lease", hour, "rival", clock)
    assert not leading.NonBlockingLease("/lease", hour, "holder", clock)


def test_several_leases(three: list[KazooClient]) -> None:
    """Of two leases the first two clients get one each."""
    clock, hour = Clock(), datetime.timedelta(hours=1)
    got = [
        bool(zk.MultiNonBlockingLease(2, "/leases", hour, f"client-{number}", clock))
        for number, zk in enumerate(three)
    ]
    assert got == [True, True, False]


def test_a_set_is_divided(leading: KazooClient, following: KazooClient) -> None:
    """Members divide a set without overlap; when one leaves, the other gets its part."""
    items = tuple(f"item-{number}" for number in range(5))
    members = [
        zk.SetPartitioner("/set", items, identifier=f"member-{number}", time_boundary=0.2)
        for number, zk in enumerate((leading, following))
    ]
    while not (settled := all(member.acquired for member in members)) or not all(
        len(list(member)) in (2, 3) for member in members
    ):
        step(members)
    assert settled
    assert sorted(list(members[0]) + list(members[1])) == sorted(items)
    members[1].finish()
    while len(list(members[0])) < len(items):
        step(members[:1])
    assert sorted(members[0]) == sorted(items)
    members[0].finish()


def step(members: list) -> None:  # type: ignore[type-arg]
    """Do for each member what its state requires, as its documentation describes."""
    for member in members:
        assert not member.failed
        if member.release:
            member.release_set()
        elif member.allocating:
            member.wait_for_acquire(0.1)
