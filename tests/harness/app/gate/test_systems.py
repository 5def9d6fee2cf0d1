"""Which systems the cases of a suite run."""

import pytest

from harness.app import catalogue
from harness.app.gate import systems
from harness.app.refused import Refused
from harness.cluster.system import System
from harness.systems.apache_kafka.system import ApacheKafka
from harness.systems.catalogue import OURS

APACHE = "apache-kafka:3.9.1"
OLDER = "apache-kafka:2.8.2"


@pytest.mark.parametrize(
    ("target", "of_suite", "asked", "chosen"),
    [
        ("processes", [OURS], [], [(OURS, None)]),
        ("processes", [OURS, APACHE], [], [(OURS, None), (APACHE, None)]),
        ("processes", [OURS, APACHE], [OLDER], [(OLDER, None)]),
        ("processes", [APACHE], [OURS, OLDER], [(OURS, None), (OLDER, None)]),
        ("simulated", [OURS], [], [(OURS, None)]),
        ("simulated", [OURS], [APACHE, OURS], [(OURS, None)]),
    ],
)
def test_the_command_line_replaces_the_systems_of_the_suite(
    target: str,
    of_suite: list[str],
    asked: list[str],
    chosen: list[tuple[str, str | None]],
) -> None:
    """Without a named system the suite decides; a target of one system runs its cases once."""
    assert systems.selected(target, of_suite, asked) == chosen


def test_a_target_without_a_named_system_is_left_out() -> None:
    """The cases of a target that runs none of the named systems have a reason."""
    assert not catalogue.TARGETS["simulated"].any_system
    assert systems.selected("simulated", [OURS], [APACHE]) == [
        (OURS, "the target simulated runs kafka only, which --system does not name")
    ]


@pytest.mark.parametrize(
    ("names", "where", "line"),
    [
        (
            ["kafkaa"],
            "",
            "--system kafkaa: must be kafka (this project's broker), apache-kafka:V",
        ),
        (["kafkaa"], "s.toml: system: ", "s.toml: system: kafkaa: must be kafka (this project's b"),
        ([OURS, OURS], "", "--system kafka: this system is named more than once"),
        ([APACHE, APACHE], "s.toml: system: ", f"s.toml: system: {APACHE}: this system is named m"),
    ],
)
def test_a_name_that_no_system_has_is_refused(names: list[str], where: str, line: str) -> None:
    """A refusal says where the name was read, and which names there are."""
    with pytest.raises(Refused) as refused:
        systems.check(names, where)
    assert str(refused.value).startswith(line)
    systems.check([OURS, APACHE], where)


def test_systems_that_the_machine_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a system whose programs cannot be provided is missing, with the reason."""

    def missing(system: System) -> str | None:
        return f"--system {system.name}: no Maven" if system.name == OLDER else None

    monkeypatch.setattr(ApacheKafka, "missing", missing)
    assert systems.missing([OURS, APACHE, OLDER]) == {
        OLDER: f"the optional system {OLDER} is not available here: --system {OLDER}: no Maven"
    }
