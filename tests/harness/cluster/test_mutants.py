"""The catalogue of planted bugs as other packages see it."""

from harness.cluster.mutants import catalogue, protocols


def test_every_mutant_is_told_in_full() -> None:
    """No field of a mutant is empty, and its story is one line."""
    known = catalogue()
    assert {
        "ack-on-local-append",
        "no-min-isr-check",
        "pstate-not-replicated",
        "truncate-to-hw-loss",
    } <= known.keys()
    for name, mutant in known.items():
        assert mutant.name == name
        assert ":" in mutant.of
        assert mutant.kind in ("historic", "mutation", "control", "protocol")
        assert all((mutant.source, mutant.schedule, mutant.story))
        assert bool(mutant.symptom) == (mutant.kind != "protocol")
        assert "\n" not in mutant.story


def test_a_protocol_is_no_bug() -> None:
    """`protocols` keeps the mutants that are variants of the protocol and drops the bugs."""
    planted = ("no-min-isr-check", "epochs-by-question")
    assert protocols(planted) == ("epochs-by-question",)


def test_bugs_of_both_systems_can_be_listed() -> None:
    """Without a system all are listed; those that no plan shows are not measured."""
    brokers, servers = catalogue("kafka"), catalogue("zookeeper")
    assert catalogue() == dict(sorted((brokers | servers).items()))
    assert {mutant.system for mutant in servers.values()} == {"zookeeper"}
    assert {mutant.system for mutant in brokers.values()} == {"kafka"}
    assert servers["zk-zombie-log"].is_measured
    assert not servers["zk-promise-counts-twice"].is_measured
    assert not brokers["epochs-by-question"].is_measured, "a protocol"
