"""The real Toxiproxy, where there is one."""

import pytest

from harness.cluster import toxiproxy


@pytest.fixture
def toxiproxy_server() -> None:
    """Skips, visibly, where no toxiproxy-server can be found."""
    try:
        toxiproxy.find_server()
    except toxiproxy.MeshError as error:
        pytest.skip(str(error))
