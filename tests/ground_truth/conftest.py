import pytest

from tests.checkers.conftest import Histories


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    return Histories(tmp_path_factory.mktemp("histories"))
