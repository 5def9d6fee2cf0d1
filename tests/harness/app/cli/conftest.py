"""Runs the command line within the test's process."""

from collections.abc import Callable

import pytest

from harness.app import cli

Call = Callable[..., tuple[int, str, str]]
"""Returns the exit status, standard output and standard error for these arguments."""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run
