"""Which settings a plan may contain."""

import ctypes
import os
import re
from pathlib import Path

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.config import SETTINGS
from model import plan_settings
from workloads.client import aio_settings


def names(text: str) -> list[str]:
    return text.split()


LIBRDKAFKA = names("""
    background_event_cb bootstrap.servers closesocket_cb connect_cb consume_cb debug
    default_topic_conf dr_cb dr_msg_cb enable.sasl.oauthbearer.unsecure.jwt error_cb
    https.ca.location interceptors internal.termination.signal log.queue log_cb log_level
    metadata.broker.list msg_order_cmp oauthbearer_token_refresh_cb offset.store.method
    offset.store.path offset.store.sync.interval.ms offset_commit_cb opaque open_cb partitioner_cb
    plugin.library.paths rebalance_cb resolve_cb sasl.kerberos.keytab sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name
    socket_cb ssl.ca.certificate.stores ssl.ca.location ssl.certificate.location
    ssl.certificate.verify_cb ssl.crl.location ssl.engine.id ssl.engine.location ssl.key.location
    ssl.keystore.location ssl.providers ssl_engine_callback_data stats_cb throttle_cb
""")  # and all of sasl.oauthbearer.*

OF_BROKERS = names("""
    log.dir log.dirs metadata.log.dir listeners advertised.listeners zookeeper.connect
    controller.quorum.voters controller.quorum.bootstrap.servers controller.listener.names
    control.plane.listener.name inter.broker.listener.name listener.security.protocol.map
    listener.name.client.plain.sasl.jaas.config broker.id node.id process.roles host.name port
    advertised.host.name advertised.port ssl.keystore.location ssl.truststore.location
    ssl.engine.factory.class ssl.provider security.providers authorizer.class.name
    principal.builder.class metric.reporters kafka.metrics.reporters auto.include.jmx.reporter
    client.quota.callback.class create.topic.policy.class.name alter.config.policy.class.name
    sasl.jaas.config sasl.kerberos.kinit.cmd sasl.login.class sasl.login.callback.handler.class
    sasl.server.callback.handler.class sasl.client.callback.handler.class
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.token.endpoint.url config.providers
    config.providers.file.class remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.metadata.manager.class.path
    group.consumer.assignors kafka.csv.metrics.dir zookeeper.ssl.keystore.location
    zookeeper.ssl.truststore.location zookeeper.ssl.crl.location zookeeper.clientCnxnSocket
    replica.selector.class faultline.peer.2 broker.plugin.path telemetry.reporter.classes
""")

OF_PYTHON_CLIENTS = names("""
    bootstrap_servers ssl_cafile ssl_certfile ssl_keyfile ssl_crlfile ssl_context
    sasl_oauth_token_provider sasl_kerberos_service_name sasl_kerberos_name value_serializer
    key_deserializer metric_reporters selector socks5_proxy consumer_interceptors on_commit
    on_delivery logger loop
""")

OF_TOMORROW = names("""
    some.new.location some.new.locations dump.path trace.file audit.dir spool.directory token.url
    login.cmd new_thing_cb my.class my.classes my.plugin.name metricReporters pluginLibraryPaths
    PLUGIN.LIBRARY.PATHS Ssl.Ca.Location metrics.endpoint wasm.module ssl-ca-location
""")


def of_librdkafka(folder: Path) -> list[str]:
    """The names of all settings of the librdkafka that is installed, as it prints them itself."""
    library = next(
        Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*"), None
    )
    if library is None:
        pytest.skip("this build of confluent-kafka brings no librdkafka of its own")
    listing = folder / "settings"
    c, rdkafka = ctypes.CDLL(None), ctypes.CDLL(os.fspath(library))
    c.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(c.fopen(os.fspath(listing).encode(), b"w"))
    rdkafka.rd_kafka_conf_properties_show(file)
    c.fclose(file)
    return sorted({*re.findall(r"^([a-z][\w.]+) +\|", listing.read_text(), re.MULTILINE)})


def test_every_setting_of_the_installed_librdkafka_is_sorted(tmp_path: Path) -> None:
    """Of all settings that librdkafka lists, exactly those that name something are rejected."""
    names = of_librdkafka(tmp_path)
    assert len(names) > 150
    refused = {name for name in names if plan_settings.refusal({"consumer": {name: "1"}})}
    oauth = {name for name in names if name.startswith("sasl.oauthbearer.")}
    mechanisms = {"sasl.mechanism", "sasl.mechanisms"}  # "1" is no mechanism
    assert refused == {*LIBRDKAFKA, *oauth, *mechanisms}


@pytest.mark.parametrize("name", [*OF_BROKERS, *OF_PYTHON_CLIENTS, *OF_TOMORROW])
def test_a_setting_that_names_something_is_refused_by_name(name: str) -> None:
    """The refusal is one sentence that begins with the setting."""
    for whose in ("broker", "producer", "consumer"):
        line = plan_settings.refusal({whose: {"acks": "all", name: "x"}})
        assert line is not None
        assert line.startswith(f"--set {whose}.{name}: ")
        assert "a plan is data" in line


def test_what_the_brokers_obey_may_be_set() -> None:
    """Of the broker's settings, only those are rejected that the run defines itself.

    Others that are rejected name code or files.
    """
    refused = {name for name in SETTINGS if plan_settings.refusal({"broker": {name: "1"}})}
    assert refused == {
        *("broker.id", "listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("inter.broker.listener.name", "log.dirs", "zookeeper.connect", "replica.selector.class"),
        *("authorizer.class.name", "ssl.keystore.location", "ssl.truststore.location"),
        *("faultline.api.versions", "faultline.metrics.listener"),
        "faultline.zookeeper.sasl.jaas.config",
    }


def test_what_aiokafka_is_given_may_be_set() -> None:
    """No setting that the aiokafka clients translate is rejected."""
    for names in (aio_settings.PRODUCER, aio_settings.CONSUMER):
        assert plan_settings.refusal({"producer": dict.fromkeys(names, "1")}) is None


def test_a_fixed_choice_of_classes_may_be_set() -> None:
    """replica.selector.class has three values here, none of which is loaded; others are
    rejected."""
    name, selector = "replica.selector.class", SETTINGS["replica.selector.class"]
    assert selector.one_of is not None
    for value in selector.one_of:
        assert plan_settings.refusal({"broker": {name: value}}) is None
    assert plan_settings.refusal({"broker": {name: "org.evil.Selector"}}) is not None


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd",
        "../up",
        "..",
        "C:\\temp",
        "http://a.b/c",
        "${file:/etc/passwd:key}",
        "%{sasl.kerberos.principal}",
        "`id`",
        "$(id)",
        "~root",
        "org.example.Evil",
        "range,com.example.My",
        "a\nb",
        "a\x1b[2Jb",
        "a\x9bb",
    ],
)
def test_a_value_that_names_something_is_refused(value: str) -> None:
    """A value that names something is rejected for every setting that does not take plain text."""
    assert plan_settings.refusal({"producer": {"some.new.setting": value}}) is not None
    for free in ("client.id", "sasl.password", "ssl.key.pem", "topic.blacklist"):
        assert plan_settings.refusal({"producer": {free: value}}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "all"),
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("partition.assignment.strategy", "range,roundrobin"),
        ("compression.type", "zstd"),
        ("ssl.cipher.suites", "ECDHE+AESGCM:!aNULL@STRENGTH"),
        ("broker.version.fallback", "0.10.0"),
        ("log.cleanup.policy", "compact,delete"),
        ("replica.selector.class", ""),
        ("enable.auto.offset.store", "true"),
        ("log.retention.ms", "-1"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("file.delete.delay.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ],
)
def test_plain_values_may_be_set(name: str, value: str) -> None:
    """Numbers, flags and words are accepted."""
    assert plan_settings.refusal({"consumer": {name: value}}) is None


@pytest.mark.parametrize(
    "table",
    [
        {"security.protocol": "sasl_plaintext"},
        {"security.protocol": "SASL_SSL"},
        {"sasl.mechanisms": "GSSAPI"},
        {"sasl.mechanism": "OAUTHBEARER"},
        {"sasl.mechanism": "PLAIN,GSSAPI"},
    ],
)
def test_no_mechanism_runs_kinit(table: dict[str, str]) -> None:
    """A mechanism is rejected if it makes librdkafka run ``kinit`` in a shell; GSSAPI is the
    default."""
    assert plan_settings.refusal({"producer": table}) is not None
    right = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}
    assert plan_settings.refusal({"producer": right}) is None


@given(
    st.lists(st.sampled_from(("ssl", "log", "my", "x", "max")), max_size=3),
    st.sampled_from((*plan_settings.AT_THE_END, *plan_settings.ANYWHERE)),
    st.sampled_from("._-"),
)
def test_a_word_rules_a_setting_out_in_every_spelling(
    words: list[str], last: str, joint: str
) -> None:
    """A word rejects a setting in every spelling: dots, dashes, underscores, capitals, camel
    case."""
    parts = [*words, last]
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    for name in (joint.join(parts), joint.join(parts).upper(), camel):
        assert plan_settings.refusal({"broker": {name: "1"}}) is not None
