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
