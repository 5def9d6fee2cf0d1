import resource
from collections.abc import Iterator

import pytest

from broker_impl import config as configuration
from broker_impl.platform import descriptors


@pytest.fixture
def few() -> Iterator[int]:
    """Lower the soft limit on file descriptors, and return the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, soft), hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_may_open_as_much_as_the_system_permits(few: int) -> None:
    """The soft limit of a shell, often 1,024, is raised to the hard one, as a JVM does."""
    assert descriptors.raise_limit() == few
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few, few)


@pytest.mark.parametrize(
    ("given", "limit", "most"),
    [
        ({}, 1024, 512),
        ({"max.connections": "100"}, 1024, 100),
        ({"max.connections": "1000"}, 1024, 512),
        ({}, resource.RLIM_INFINITY, 2**31 - 1),
    ],
)
def test_connections_leave_descriptors_for_files(
    given: dict[str, str], limit: int, most: int
) -> None:
    """At most half of the descriptors are for connections; a lower max.connections applies."""
    config = configuration.parse({"broker.id": "1", "zookeeper.connect": "h:1"} | given)
    assert descriptors.with_room_for_files(config, limit).max_connections == most
