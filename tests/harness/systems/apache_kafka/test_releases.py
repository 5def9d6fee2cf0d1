"""Facts about releases of Apache Kafka, by version."""

import pytest

from harness.systems.apache_kafka.releases import Release


@pytest.mark.parametrize("text", ["0.10.2.0", "0.11.0.3", "1.0", "3.9.1", "4.1.0"])
def test_a_version_is_read_as_it_is_written(text: str) -> None:
    """A release prints the version that it was read from."""
    assert str(Release.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "3", "3.", "v3.9.1", "3.9.1-rc0", "3.9.1.0.0", "3.9.1\n", "3.09", "٣.٩"]
)
def test_other_texts_are_no_versions(text: str) -> None:
    """Only two to four numbers with dots are a version."""
    with pytest.raises(ValueError, match=r"is not a version such as 3\.9\.1$"):
        Release.parse(text)


@pytest.mark.parametrize("text", ["0.10.1.1", "0.9.0.1", "0.8.2"])
def test_older_releases_are_refused(text: str) -> None:
    """Releases before KIP-103 are refused."""
    with pytest.raises(ValueError, match=r"^the oldest release that can be tested is 0\.10\.2$"):
        Release.parse(text)


def test_releases_are_ordered_by_number() -> None:
    """Each part of a version is compared as a number, not as text."""
    texts = ["0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "3.10.0", "4.0.0", "10.0.0"]
    assert sorted(sorted(texts), key=Release.parse) == texts
    assert sorted(texts) != texts


@pytest.mark.parametrize(
    ("text", "has_zookeeper", "has_kraft", "reassigns"),
    [
        ("0.10.2.2", True, False, False),
        ("2.3.1", True, False, False),
        ("2.4.0", True, False, True),
        ("3.2.3", True, False, True),
        ("3.3.0", True, True, True),
        ("3.9.1", True, True, True),
        ("4.0.0", False, True, True),
    ],
)
def test_what_a_release_can_do(
    text: str, has_zookeeper: bool, has_kraft: bool, reassigns: bool
) -> None:
    """ZooKeeper mode ends with 4.0, KRaft begins with 3.3, reassignment requests with 2.4."""
    release = Release.parse(text)
    found = (release.has_zookeeper, release.has_kraft, release.reassigns)
    assert found == (has_zookeeper, has_kraft, reassigns)
