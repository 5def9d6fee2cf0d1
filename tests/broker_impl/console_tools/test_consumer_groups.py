"""kafka-consumer-groups: lists, descriptions, resets of offsets, deletions."""

import subprocess
from typing import Any

import pytest

from tests.broker_impl.test_process import wait_for

pytestmark = [pytest.mark.prove, pytest.mark.real_kafka, pytest.mark.slow]

GROUPS = "kafka-consumer-groups"


def offsets(cluster: Any, *arguments: str) -> list[int]:
    """The new offsets that a reset shows, by partition."""
    rows = cluster.ask(GROUPS, "--reset-offsets", *arguments).lines
    return [int(row[3]) for row in sorted(rows[1:], key=lambda row: int(row[2]))]


def test_groups(cluster: Any) -> None:
    """A group is described while it has a member and afterwards, and then deleted."""
    cluster.create("grouped", partitions=2)
    group = ("--group", "active")
    command = cluster.tools.command(
        *("kafka-console-consumer", "--bootstrap-server", cluster.bootstrap),
        *("--topic", "grouped", *group, "--from-beginning"),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            cluster.produce("grouped", *"abcd")
            assert process.stdout is not None
            assert sorted(next(process.stdout).strip() for _ in range(4)) == list("abcd")
            [_, row] = cluster.ask(GROUPS, "--describe", *group, "--state").lines
            assert [row[0], *row[3:]] == ["active", "range", "Stable", "1"]
            [_, row] = cluster.ask(GROUPS, "--describe", *group, "--members", "--verbose").lines
            assert (row[0], row[2][0], row[4], row[5]) == ("active", "/", "2", "grouped(0,1)")
            assert ["active", "Stable"] in cluster.ask(GROUPS, "--list", "--state").lines
        finally:
            process.terminate()
    described = cluster.ask(GROUPS, "--describe", *group)
    assert "Consumer group 'active' has no active members." in described.output + described.errors
    rows = [row for row in described.lines if row[0] == "active"]
    assert sorted((row[2], row[5]) for row in rows) == [("0", "0"), ("1", "0")]
    assert sum(int(row[3]) for row in rows) == 4
    assert "active" in cluster.ask(GROUPS, "--describe", "--all-groups").output
    deleted = cluster.ask(GROUPS, *group, "--topic", "grouped:0", "--delete-offsets")
    assert ["grouped", "0", "Successful"] in deleted.lines
    assert "('active') was successful" in cluster.ask(GROUPS, *group, "--delete").output
    assert "does not exist" in cluster.tools.run(
        GROUPS, "--bootstrap-server", cluster.bootstrap, "--describe", *group
    ).output  # fmt: skip


def test_offsets_are_reset(cluster: Any) -> None:
    """Every strategy of KIP-122 shows the new offsets, and commits them if it is to."""
    cluster.create("again", partitions=2)
    for partition in (0, 1):
        cluster.tools.run(
            *("kafka-verifiable-producer", "--bootstrap-server", cluster.bootstrap),
            *("--topic", "again", "--max-messages", "20", "--repeating-keys", "2"),
            *("--value-prefix", str(partition)),
        )
    ends = offsets(cluster, "--group", "back", "--topic", "again", "--to-latest", "--dry-run")
    assert sum(ends) == 40
    assert "back" not in cluster.ask(GROUPS, "--list").output.split()
    group = ("--group", "back", "--topic", "again")
    low = min(ends)
    for strategy, expected in (
        (("--to-latest",), ends),
        (("--shift-by", "-3"), [max(end - 3, 0) for end in ends]),
        (("--to-current",), [max(end - 3, 0) for end in ends]),
        (("--to-offset", "5"), [min(5, end) for end in ends]),
        (("--to-earliest",), [0, 0]),
        (("--to-datetime", "2020-01-01T00:00:00.000"), [0, 0]),
        (("--to-datetime", "2099-01-01T00:00:00.000"), ends),
        (("--by-duration", "PT1H"), [0, 0]),
    ):
        assert offsets(cluster, *group, *strategy, "--dry-run") == expected, strategy
        assert offsets(cluster, *group, *strategy, "--execute") == expected, strategy
        assert offsets(cluster, *group, "--to-current", "--dry-run") == expected, strategy
    assert offsets(cluster, "--group", "back", "--topic", "again:1", "--to-latest",
                   "--execute") == ends[1:]  # fmt: skip
    plan = cluster.ask(GROUPS, "--reset-offsets", *group, "--to-current", "--export", "--dry-run")
    assert sorted(plan.output.split()) == ["again,0,0", f"again,1,{ends[1]}"]
    cluster.tools.write("offsets.csv", f"again,0,{low}\nagain,1,0\n")
    from_file = ("--group", "back", "--from-file", "offsets.csv", "--execute")
    assert offsets(cluster, *from_file) == [low, 0]


def test_a_group_with_members_is_not_reset(cluster: Any) -> None:
    """A reset is refused while a consumer of the group runs."""
    cluster.create("held")
    command = cluster.tools.command(
        *("kafka-console-consumer", "--bootstrap-server", cluster.bootstrap),
        *("--topic", "held", "--group", "held"),
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            listed = (GROUPS, "--list", "--state")
            wait_for(lambda: ["held", "Stable"] in cluster.ask(*listed).lines, 60)
            refused = cluster.ask(
                *(GROUPS, "--group", "held", "--topic", "held", "--reset-offsets"),
                *("--to-earliest", "--execute"),
            )
        finally:
            process.terminate()
    assert "is inactive, but the current state is Stable" in refused.output + refused.errors
