"""A fixture for tests that need the real Toxiproxy."""

import pytest

from harness.cluster.mesh import toxiproxy


@pytest.fixture
def toxiproxy_server() -> None:
    """Skip the test if no toxiproxy-server can be found."""
    try:
        toxiproxy.find_server()
    except toxiproxy.MeshError as error:
        pytest.skip(str(error))
