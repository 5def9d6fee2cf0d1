"""Which quota applies to a client, and what its requests use of it."""

from broker_impl.api.quotas.entities import DEFAULT, Entity
from broker_impl.api.quotas.limits import ClientQuotas, Kind

PRODUCED, CONSUMED, REQUESTS = Kind.PRODUCED, Kind.CONSUMED, Kind.REQUESTS
ORDER = [
    Entity("u", "c"),
    Entity("u", DEFAULT),
    Entity("u"),
    Entity(DEFAULT, "c"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT),
    Entity(None, "c"),
    Entity(None, DEFAULT),
]


def quotas(**defaults: float) -> ClientQuotas:
    return ClientQuotas(11, 1000, {Kind(name): value for name, value in defaults.items()})


def test_without_quotas_nothing_is_active() -> None:
    """Without any quota, nothing is recorded; the last quota that is removed ends it again."""
    limits = quotas()
    assert not limits.is_active
    assert limits.record(PRODUCED, "u", "c", 10**12, 0) == 0
    limits.set(Entity("u"), {PRODUCED: 1})
    assert limits.is_active
    limits.set(Entity("u"), {})
    assert not limits.is_active
    assert quotas(producer_byte_rate=5).is_active


def test_the_most_specific_quota_applies() -> None:
    """Each quota gives way to one that is more specific, and only for the kind that it limits."""
    limits = quotas(consumer_byte_rate=99)
    for number, entity in reversed(list(enumerate(ORDER))):
        limits.set(entity, {PRODUCED: 100 + number})
        found = limits.bound(PRODUCED, "u", "c")
        assert found is not None
        assert found[0] == 100 + number
    assert limits.bound(CONSUMED, "u", "c") == (99, Entity(None, "c"))
    assert limits.bound(REQUESTS, "u", "c") is None
    assert limits.bound(PRODUCED, "other", "x") == (104, Entity("other", "x"))


def test_clients_share_the_quota_of_their_user() -> None:
    """Clients of one user share the user's quota; those of the default user have each their own."""
    limits = quotas()
    limits.replace({Entity("u"): {PRODUCED: 100}, Entity(DEFAULT): {PRODUCED: 100}})
    assert limits.record(PRODUCED, "u", "a", 1000, 0) == 0
    assert limits.record(PRODUCED, "u", "b", 100, 0) == 1000
    assert limits.record(PRODUCED, "v", "a", 1000, 0) == 0
    assert limits.record(PRODUCED, "w", "a", 1000, 0) == 0


def test_clients_of_a_default_do_not_share_it() -> None:
    """A default is the quota of each client id, not of all together."""
    limits = quotas()
    limits.set(Entity(None, DEFAULT), {CONSUMED: 100})
    assert limits.record(CONSUMED, "u", "a", 1000, 0) == 0
    assert limits.record(CONSUMED, "u", "b", 1000, 0) == 0
    assert limits.record(CONSUMED, "v", "b", 100, 0) == 1000


def test_time_throttles_for_one_window_at_most() -> None:
    """However much time requests have taken, their client waits for one window, as in Kafka."""
    limits = quotas()
    limits.set(Entity("u"), {REQUESTS: 1.0, PRODUCED: 1.0})
    assert limits.record(REQUESTS, "u", "c", 1000, 0) == 1000
    assert limits.record(PRODUCED, "u", "c", 1000, 0) == 990_000


def test_a_changed_quota_applies_to_what_was_used_before() -> None:
    """A quota that is lowered throttles for earlier requests, too."""
    limits = quotas()
    limits.set(Entity("u"), {PRODUCED: 1000})
    assert limits.record(PRODUCED, "u", "c", 5000, 0) == 0
    limits.set(Entity("u"), {PRODUCED: 100})
    assert limits.record(PRODUCED, "u", "c", 0, 0) == 40_000


def test_how_much_a_client_may_use_at_once() -> None:
    """A client may use its quota for all windows but one at once, as Kafka limits a fetch."""
    limits = quotas()
    assert limits.window_bytes(CONSUMED, "u", "c") is None
    limits.set(Entity("u"), {CONSUMED: 100})
    assert limits.window_bytes(CONSUMED, "u", "c") == 1000
    assert limits.record(CONSUMED, "u", "c", 1000, 0) == 0


def test_silent_clients_are_forgotten() -> None:
    """The rates of clients that have been silent for an hour take no memory."""
    limits = quotas()
    limits.set(Entity(None, DEFAULT), {CONSUMED: 100})
    for number in range(100):
        limits.record(CONSUMED, "u", f"c{number}", 1, 0)
    limits.record(CONSUMED, "u", "late", 1, 3_600_000)
    assert [entity.client_id for _, entity in limits._rates] == ["late"]
