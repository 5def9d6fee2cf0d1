"""kafka-acls, with brokers that authorize requests."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker_impl.console_tools.conftest import Cluster
from tests.broker_impl.test_process import Site, wait_for

pytestmark = [pytest.mark.prove, pytest.mark.real_kafka, pytest.mark.slow]


@pytest.fixture
def guarded(tools: Any, tmp_path: Any) -> Iterator[Cluster]:
    """Three brokers with an authorizer, for which clients without a name are no super users."""
    site = Site(tmp_path)
    try:
        yield Cluster(
            site,
            tools,
            authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
            allow_everyone_if_no_acl_found="true",
        )
    finally:
        site.close()


def test_acls(cluster: Any, guarded: Cluster) -> None:
    """ACLs are added, listed, enforced and removed, through brokers and through ZooKeeper."""
    refused = cluster.tools.run("kafka-acls", "--bootstrap-server", cluster.bootstrap, "--list")
    assert "No Authorizer is configured on the broker" in refused.output + refused.errors
    guarded.create("guarded")
    guarded.produce("guarded", "before")
    rule = ("--topic", "guarded", "--operation", "Write")
    added = guarded.ask("kafka-acls", "--add", "--deny-principal", "User:ANONYMOUS", *rule)
    shown = "(principal=User:ANONYMOUS, host=*, operation=WRITE, permissionType=DENY)"
    assert shown in added.output
    assert shown in guarded.ask("kafka-acls", "--list", "--topic", "guarded").output

    def write() -> str:
        done = guarded.tools.run(
            *("kafka-console-producer", "--bootstrap-server", guarded.bootstrap),
            *("--topic", "guarded", "--sync"),
            given="after\n",
        )
        return done.output + done.errors

    wait_for(lambda: "Not authorized to access topics: [guarded]" in write(), 60)
    removed = guarded.ask(
        "kafka-acls", "--remove", "--force", "--deny-principal", "User:ANONYMOUS", *rule
    )
    assert shown not in removed.output
    wait_for(lambda: write() == "", 60)
    through = ("--authorizer-properties", f"zookeeper.connect={guarded.zookeeper}")
    roles = ("--consumer", "--group", "*", "--topic", "guarded", "--resource-pattern-type")
    for arguments in (
        ("--add", "--allow-principal", "User:Bob", *roles, "literal"),
        ("--list",),
    ):
        done = guarded.tools.run("kafka-acls", *through, *arguments)
        assert "(principal=User:Bob, host=*, operation=READ, permissionType=ALLOW)" in done.output
    prefix = ("--topic", "guard", "--resource-pattern-type", "prefixed", "--operation", "All")
    guarded.tools.run("kafka-acls", *through, "--add", "--allow-principal", "User:Eve", *prefix)

    def listed() -> str:
        return guarded.ask("kafka-acls", "--list").output

    wait_for(lambda: "User:Bob" in listed() and "User:Eve" in listed(), 60)
