import random

import pytest

from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.fetch_sessions.session import Reading, Session, rows_of
from broker_impl.errors import ErrorCode
from broker_impl.replica.events import FollowerKeptUp
from broker_impl.replica.results import FetchResult
from broker_impl.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from broker_impl.wire.types import TopicPartition

TPS = tuple(TopicPartition("t", number) for number in range(3))
SETTLED = FetchResult(high_watermark=5, last_stable_offset=5, log_start_offset=0, settled=True)


class Cache:
    """A cache, and what it reports of followers."""

    def __init__(self, slots: int = 3) -> None:
        self.kept_up: list[tuple[TopicPartition, FollowerKeptUp]] = []
        self.ended: list[int] = []
        self.sessions = FetchSessions(
            slots,
            random.Random(1),
            lambda tp, event: self.kept_up.append((tp, event)),
            self.ended.append,
        )
        self.now = 0.0

    def create(self, partitions: int = 1, replica_id: int = -1) -> int:
        request = asking(*TPS[:partitions], replica_id=replica_id)
        assert self.sessions.begin(request, 12, self.now) is None
        rows = rows_of(request.topics)
        return self.sessions.create(request, 12, rows, dict.fromkeys(rows, FetchResult()), self.now)

    def go_on(self, request: FetchRequest) -> Session | ErrorCode | None:
        return self.sessions.begin(request, 12, self.now)

    def session(self, request: FetchRequest) -> Session:
        """The session of a request for which there must be one."""
        found = self.go_on(request)
        assert isinstance(found, Session)
        return found


def asking(
    *tps: TopicPartition,
    session: tuple[int, int] = (0, 0),
    replica_id: int = -1,
    forgotten: tuple[TopicPartition, ...] = (),
    offset: int = 0,
    isolation: int = 0,
    leader_epoch: int = 4,
) -> FetchRequest:
    rows = [
        FetchPartition(
            partition=tp.partition, current_leader_epoch=leader_epoch, fetch_offset=offset
        )
        for tp in tps
    ]
    return FetchRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic="t", partitions=rows)],
        forgotten_topics_data=[
            ForgottenTopic(topic=tp.topic, partitions=[tp.partition]) for tp in forgotten
        ],
    )


def read(session: Session, result: FetchResult) -> list[TopicPartition]:
    """Have all active partitions read with this result, and return which are shown."""
    return session.answered(
        {each.tp: Reading(result, each.changed_at) for each in session.in_order()}
    )


def active(session: Session) -> list[TopicPartition]:
    return [each.tp for each in session.in_order()]


def test_a_session_goes_on_by_its_epochs() -> None:
    """A session expects the next epoch; the one before, or one of no session, is refused."""
    cache = Cache()
    number = cache.create()
    assert cache.go_on(asking(session=(number, 2))) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.session(asking(session=(number, 1))).id == number
    assert cache.go_on(asking(session=(number, 1))) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.session(asking(session=(number, 2))).id == number
    unknown = number % 7 + 1
    assert cache.go_on(asking(session=(unknown, 3))) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_belongs_to_one_reader() -> None:
    """A request of another replica neither continues a session nor ends it."""
    cache = Cache()
    number = cache.create(replica_id=2)
    other = cache.go_on(asking(session=(number, 1), replica_id=3))
    assert other is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.go_on(asking(session=(number, -1))) is None
    assert cache.session(asking(session=(number, 1), replica_id=2)).id == number
    assert cache.go_on(asking(session=(number, -1), replica_id=2)) is None
    assert cache.ended == [number]


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_that_it_names(epoch: int) -> None:
    """A session ends with a full fetch that names it; with epoch -1 no other one begins."""
    cache = Cache()
    number = cache.create()
    request = asking(TPS[0], session=(number, epoch))
    assert cache.go_on(request) is None
    assert len(cache.sessions) == 0
    rows = rows_of(request.topics)
    created = cache.sessions.create(request, 12, rows, {TPS[0]: FetchResult()}, 0.0)
    assert bool(created) is (epoch == 0)
    assert created != number


def test_a_request_changes_its_session() -> None:
    """Partitions are added at the end, changed in their place, and forgotten."""
    cache = Cache()
    number = cache.create(2)
    session = cache.session(asking(TPS[2], TPS[0], session=(number, 1), offset=9))
    assert active(session) == [TPS[0], TPS[1], TPS[2]]
    assert [session.partitions[tp].asked.fetch_offset for tp in TPS] == [9, 0, 9]
    cache.session(asking(session=(number, 2), forgotten=(TPS[1], TopicPartition("u", 0))))
    assert active(session) == [TPS[0], TPS[2]]
    assert list(cache.sessions.holders(TPS[1])) == []
    assert list(cache.sessions.holders(TPS[2])) == [number]


def test_a_session_without_partitions_ends() -> None:
    """A session whose last partition is forgotten ends, and the request counts as a full one."""
    cache = Cache()
    number = cache.create()
    assert cache.go_on(asking(session=(number, 1), forgotten=(TPS[0],))) is None
    assert len(cache.sessions) == 0
    assert list(cache.sessions.holders(TPS[0])) == []


def test_returned_partitions_go_last() -> None:
    """Partitions that returned records move to the end of the order, others keep their places."""
    cache = Cache()
    session = cache.session(asking(session=(cache.create(3), 1)))
    versions = {tp: each.changed_at for tp, each in session.partitions.items()}
    records = FetchResult(records=[memoryview(b"x")])
    shown = session.answered(
        {tp: Reading(records if tp == TPS[0] else SETTLED, versions[tp]) for tp in reversed(TPS)}
    )
    assert shown == list(TPS), "in the order before"
    for tp in TPS:
        cache.sessions.changed(tp)
    assert active(session) == [TPS[1], TPS[2], TPS[0]]


def test_only_what_changed_is_read() -> None:
    """A settled partition is read again after a change, and after no change of another one."""
    cache = Cache()
    session = cache.session(asking(session=(cache.create(3), 1)))
    assert read(session, SETTLED) == list(TPS)
    assert active(session) == []
    cache.sessions.changed(TPS[1])
    cache.sessions.changed(TopicPartition("u", 1))
    assert active(session) == [TPS[1]]
    assert read(session, SETTLED) == [], "nothing that the reader knows has changed"
    assert active(session) == []


def test_a_change_after_the_read_is_not_lost() -> None:
    """A partition that changes between its read and the response is read again."""
    cache = Cache()
    session = cache.session(asking(session=(cache.create(1), 1)))
    before = session.partitions[TPS[0]].changed_at
    cache.sessions.changed(TPS[0])
    session.answered({TPS[0]: Reading(SETTLED, before)})
    assert active(session) == [TPS[0]]


@pytest.mark.parametrize(("leader_epoch", "shown"), [(4, []), (5, [TPS[0]])])
def test_a_new_epoch_shows_the_partition_again(
    leader_epoch: int, shown: list[TopicPartition]
) -> None:
    """A reader that names a new epoch may have ignored what was sent to it in the former one."""
    cache = Cache()
    number = cache.create(2)
    read(cache.session(asking(session=(number, 1))), SETTLED)
    again = asking(TPS[0], session=(number, 2), offset=5, leader_epoch=leader_epoch)
    assert read(cache.session(again), SETTLED) == shown


def test_after_a_diverging_epoch_the_partition_is_shown() -> None:
    """A follower that truncates takes no high watermark from the response that says so."""
    cache = Cache()
    number = cache.create(1)
    diverging = FetchResult(
        high_watermark=5, last_stable_offset=5, log_start_offset=0, diverging=(3, 4)
    )
    assert read(cache.session(asking(session=(number, 1))), diverging) == [TPS[0]]
    again = asking(TPS[0], session=(number, 2), offset=4)
    assert read(cache.session(again), SETTLED) == [TPS[0]]


def test_a_fetch_that_waits_loses_its_session() -> None:
    """A waiting fetch fails if its session ends or goes on, and as long as neither happens not."""
    cache = Cache()
    number = cache.create()
    session = cache.session(asking(session=(number, 1)))
    assert cache.sessions.error_of(session, 1) is ErrorCode.NONE
    cache.session(asking(session=(number, 2)))
    assert cache.sessions.error_of(session, 1) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.sessions.error_of(session, 2) is ErrorCode.NONE
    assert cache.ended == []
    cache.go_on(asking(session=(number, -1)))
    assert cache.sessions.error_of(session, 2) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.ended == [number]


def test_another_isolation_level_reads_all_again() -> None:
    """A request that says something else of its reader has every partition read."""
    cache = Cache()
    number = cache.create(2)
    session = cache.session(asking(session=(number, 1)))
    read(session, SETTLED)
    assert active(cache.session(asking(session=(number, 2)))) == []
    assert active(cache.session(asking(session=(number, 3), isolation=1))) == [*TPS[:2]]


@pytest.mark.parametrize("end", ["change", "request", "forgotten", "removal"])
def test_a_follower_has_kept_up_until_its_last_fetch(end: str) -> None:
    """The last fetch before a settled partition changes is reported, in whatever way it changes."""
    cache = Cache()
    number = cache.create(2, replica_id=2)
    session = cache.session(asking(session=(number, 1), replica_id=2, offset=5))
    read(session, SETTLED)
    cache.now = 3.0
    cache.session(asking(session=(number, 2), replica_id=2))
    cache.now = 7.0
    match end:
        case "change":
            cache.sessions.changed(TPS[0])
            cache.sessions.changed(TPS[0])
        case "request":
            cache.session(asking(TPS[0], session=(number, 3), replica_id=2, offset=9))
        case "forgotten":
            cache.session(asking(session=(number, 3), replica_id=2, forgotten=(TPS[0],)))
        case _:
            cache.go_on(asking(session=(number, -1), replica_id=2))
    expected = [(tp, FollowerKeptUp(2, 4, 0, 3.0)) for tp in TPS[: 1 + (end == "removal")]]
    assert cache.kept_up == expected


def test_of_consumers_nothing_is_reported() -> None:
    """Only followers have to keep up."""
    cache = Cache()
    session = cache.session(asking(session=(cache.create(1), 1)))
    read(session, SETTLED)
    cache.sessions.changed(TPS[0])
    assert cache.kept_up == []


def test_a_follower_has_one_session() -> None:
    """A follower's new session replaces its former one, and no other follower's."""
    cache = Cache()
    first, other = cache.create(replica_id=2), cache.create(replica_id=3)
    second = cache.create(replica_id=2)
    assert second not in (0, first)
    gone = cache.go_on(asking(session=(first, 1), replica_id=2))
    assert gone is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.session(asking(session=(other, 1), replica_id=3)).id == other


def test_a_full_cache_keeps_what_is_in_use() -> None:
    """A full cache gives no session to an equal reader, until one is out of use for two minutes."""
    cache = Cache(slots=2)
    first, second = cache.create(), cache.create()
    cache.now = 100.0
    cache.session(asking(session=(first, 1)))
    assert cache.create() == 0
    cache.now = 120.5
    third = cache.create()
    assert third
    assert cache.go_on(asking(session=(second, 1))) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.session(asking(session=(first, 2))).id == first


def test_a_full_cache_prefers_the_larger_session() -> None:
    """Among sessions that are in use, the smallest old one makes room for a larger one."""
    cache = Cache(slots=2)
    small, large = cache.create(1), cache.create(2)
    cache.now = 119.0
    for number in (small, large):
        cache.session(asking(session=(number, 1)))
    assert cache.create(3) == 0, "both are young"
    cache.now = 121.0
    assert cache.create(1) == 0
    assert cache.create(2)
    assert cache.go_on(asking(session=(small, 2))) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.session(asking(session=(large, 2))).id == large


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    """A follower's session replaces a consumer's at any time, even a larger one."""
    cache = Cache(slots=1)
    consumer = cache.create(3)
    follower = cache.create(1, replica_id=2)
    assert follower
    assert cache.go_on(asking(session=(consumer, 1))) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.create(3) == 0


def test_no_slots_no_sessions() -> None:
    """With no slots every fetch stays full, as with max.incremental...slots=0."""
    assert Cache(slots=0).create() == 0


def test_an_empty_fetch_gets_no_session() -> None:
    """A session has a partition at least."""
    assert Cache().create(0) == 0
