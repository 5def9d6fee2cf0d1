import pytest

from broker_impl import config
from broker_impl.errors import ConfigError

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("min.insync.replicas", "two", "must be a whole number"),
        ("min.insync.replicas", "0", "must be at least 1"),
        ("auto.create.topics.enable", "maybe", "must be true or false"),
        ("log.message.timestamp.type", "Never", "must be one of CreateTime, LogAppendTime"),
        ("log.cleanup.policy", "keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "compact,keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "compact,", "must be one of delete, compact"),
        ("ssl.enabled.protocols", "", "must be at least one version"),
        ("log.cleaner.min.cleanable.ratio", "half", "must be a number"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "must be at most 1"),
        ("listeners", "127.0.0.1:9092", "a listener must be written as NAME://host:port"),
        ("listeners", "A://h:1,A://h:2", "the name of a listener may occur only once"),
        ("listeners", "SECRET://h:1", "must map it to one of PLAINTEXT, SSL, SASL_PLAINTEXT"),
        ("advertised.listeners", "OTHER://h:1", "OTHER is not one of the listeners"),
        ("inter.broker.listener.name", "OTHER", "is not one of the listeners"),
        ("zookeeper.connect", "", "must be set"),
        ("broker.id", "-1", "must be set"),
        ("log.dirs", "/a, /b,/a/", "a directory is given twice"),
        ("faultline.peer.two", "h:1", "must end in a broker id"),
        ("faultline.peer.2", "h", "must be host:port"),
        ("log.retention.hours", "long", "log.retention.hours=long: must be a whole number"),
        ("log.roll.hours", "1.5", "log.roll.hours=1.5: must be a whole number"),
        ("num.partitions", "1_000", "must be a whole number"),
        ("num.partitions", "٣", "must be a whole number"),
        ("num.partitions", "", "must be a whole number"),
        ("num.partitions", "9" * 5000, "must be a whole number"),
        ("num.partitions", "2147483648", "must be at most 2147483647"),
        ("log.retention.bytes", "9223372036854775808", "must be at most 9223372036854775807"),
        ("offsets.topic.replication.factor", "32768", "must be at most 32767"),
        ("log.cleaner.min.cleanable.ratio", "NaN", "must be at least 0"),
        ("log.dirs", " ", "log.dirs: must be set"),
        ("log.dirs", " ,", "log.dirs: must be set"),
        ("listeners", "PLAINTEXT://h:٩٩", "a listener must be written as NAME://host:port"),
        ("port", "http", "port=http: must be a whole number"),
        ("zookeeper.connect", "h:port", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "h:2181,,i:2181", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "/chroot", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "h:2181/a//b", "the chroot must not have an empty part"),
        ("process.roles", "broker,controller", "this broker has no KRaft mode"),
        ("num.io.threads", "many", "num.io.threads=many: must be a whole number"),
        ("num.network.threads", "0", "num.network.threads=0: must be at least 1"),
        ("log.preallocate", "perhaps", "log.preallocate=perhaps: must be true or false"),
        ("ssl.client.auth", "maybe", "must be one of required, requested, none"),
        ("log.cleaner.io.max.bytes.per.second", "fast", "must be a number"),
        ("listener.name.x.num.io.threads", "?", "must be a whole number"),
        ("faultline.pear.2", "h:1", "unknown setting faultline.pear.2"),
    ],
)
def test_what_cannot_be_obeyed_is_named(name: str, text: str, message: str) -> None:
    """An invalid setting raises one line that says which values are valid."""
    with pytest.raises(ConfigError, match=r".") as caught:
        config.parse(MINIMAL | {name: text})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_topic_may_have_no_cleanup_policy() -> None:
    """Clients remove the only entry of the list; Kafka then neither deletes nor compacts."""
    cleanup_policy = config.TOPIC_SETTINGS["cleanup.policy"]
    assert cleanup_policy.parse("") == cleanup_policy.parse(" ") == ()
    assert cleanup_policy.format(()) == ""
    assert config.parse({**MINIMAL, "log.cleanup.policy": ""}).log_cleanup_policy == ()


def test_kafkas_names_become_typed_fields() -> None:
    """Values are parsed to the types of their fields; settings not given have their defaults."""
    parsed = config.parse(
        MINIMAL
        | {
            "listeners": "CLIENT://127.0.0.1:0, REPLICATION://127.0.0.1:9093",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
            "inter.broker.listener.name": "REPLICATION",
            "unclean.leader.election.enable": "TRUE",
            "faultline.peer.2": "127.0.0.1:4242",
        }
    )
    assert parsed.endpoints() == (("CLIENT", "127.0.0.1", 0), ("REPLICATION", "127.0.0.1", 9093))
    assert parsed.inter_broker_listener() == "REPLICATION"
    assert parsed.unclean_leader_election_enable is True
    assert parsed.replica_lag_time_max_ms == 30_000
    assert parsed.peer_overrides == {2: ("127.0.0.1", 4242)}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("min.insync.replica", "2", "unknown setting min.insync.replica; did you mean"),
        ("num.io.threads", "8", "this broker does not act on num.io.threads"),
        ("log.retention.hours", "long", "log.retention.hours=long: must be a whole number"),
        ("num.partitions", "0", "num.partitions=0: must be at least 1"),
        ("faultline.peer.2", "h:1", "unknown setting faultline.peer.2"),
    ],
)
def test_what_would_not_be_obeyed_is_found(name: str, text: str, reason: str) -> None:
    """A caller that relies on a setting gets an error if the broker would ignore or refuse it."""
    with pytest.raises(ConfigError) as caught:
        config.check_active(name, text)
    assert str(caught.value).startswith(reason)
    config.check_active("log.retention.hours", "2")
    config.check_active("num.partitions", "2")


@pytest.mark.parametrize(
    "connect", ["h", "h:1", "h:1,i:2", "h:1, i", "h:1/", "h:1,i:2/a/b", "[::1]:2181/kafka"]
)
def test_an_ensemble_has_ports_and_a_chroot_or_not(connect: str) -> None:
    """zookeeper.connect has every form that ZooKeeper's own client accepts."""
    assert config.parse(MINIMAL | {"zookeeper.connect": connect}).zookeeper_connect == connect


@pytest.mark.parametrize("name", ["ssl.client.auth", "sasl.enabled.mechanisms", "super.users"])
def test_a_run_has_no_protected_listeners(name: str) -> None:
    """What protects a listener is refused for a run's brokers, whose listeners are PLAINTEXT."""
    with pytest.raises(ConfigError, match=f"^{name}: the listeners of a test's brokers"):
        config.check_active(name, "none")
    config.check_active("min.insync.replicas", "2")


DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule required"
JAAS = "faultline.zookeeper.sasl.jaas.config"


def test_the_login_at_zookeeper() -> None:
    """The login is read from the form of a JAAS file, and its password is not shown."""
    parsed = config.parse(
        MINIMAL | {JAAS: f'{DIGEST} username="kafka" password="p w";', "zookeeper.set.acl": "true"}
    )
    assert parsed.zookeeper_login is not None
    assert parsed.zookeeper_login[:2] == ("kafka", "p w")
    assert "p w" not in repr(parsed)
    assert config.parse(MINIMAL).zookeeper_login is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl=true: needs a login"),
        ({JAAS: "x"}, f"{JAAS}: must have the form"),
        ({JAAS: f"{DIGEST} username=kafka;"}, f"{JAAS}: password is missing"),
        ({JAAS: f"{DIGEST} password=geheim;"}, f"{JAAS}: username is missing"),
    ],
)
def test_an_incomplete_login_at_zookeeper_is_refused(settings: dict[str, str], why: str) -> None:
    """ACLs need a login, which has a user and a password."""
    with pytest.raises(ConfigError) as refusal:
        config.parse(MINIMAL | settings)
    assert str(refusal.value).startswith(why)
    assert "geheim" not in str(refusal.value)
