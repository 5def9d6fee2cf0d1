"""A release is recognized by the API versions that it lists."""

import warnings

import pytest

from harness.cluster.observe.release import guess
from tests.harness.cluster.observe.recorded_frames import recorded

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol import broker_version_data

KNOWN = {
    version: {int(key): range(first, last + 1) for key, (first, last) in apis.items()}
    for version, apis in broker_version_data.BROKER_API_VERSIONS.items()
    if version >= (0, 10)
}


@pytest.mark.parametrize("version", KNOWN, ids=lambda version: ".".join(map(str, version)))
def test_releases_that_kafka_python_knows(version: tuple[int, ...]) -> None:
    """Each list of versions that kafka-python recorded is recognized as its release."""
    assert guess(KNOWN[version]) == ".".join(map(str, version))


@pytest.mark.parametrize(
    ("release", "guessed"),
    [("0.10.2.2", "0.10.2"), ("2.8.2", "2.8"), ("3.9.1", "3.9"), ("4.1.0", "4.1")],
)
def test_real_releases(release: str, guessed: str) -> None:
    """The releases whose answers were recorded are recognized, with and without ZooKeeper."""
    _, answer = recorded(release, 18)
    apis = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}
    assert guess(apis) == guessed


def test_no_release() -> None:
    """Without a known API version there is no guess."""
    assert guess({}) is None
    assert guess({0: range(2)}) is None
