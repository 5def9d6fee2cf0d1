"""The versions of the code that runs, as plans and verdicts record them."""

import importlib.metadata
import re

from harness.app import versions


def test_versions_name_faultline_and_its_clients() -> None:
    """The versions are those of the installed packages, and librdkafka's is its own."""
    found = versions.in_use()
    assert found["faultline"] == versions.faultline() == importlib.metadata.version("faultline")
    assert found["aiokafka"] == importlib.metadata.version("aiokafka")
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["librdkafka"])


def test_the_commit_is_named_in_full() -> None:
    """The commit has all its digits, and says whether files were changed."""
    assert re.fullmatch(r"([0-9a-f]{40}(-dirty)?)?", versions.commit())
