"""Which quotas apply to a client, and under which names they are stored."""

import pytest

from broker_impl.api.quotas import entities
from broker_impl.api.quotas.entities import DEFAULT, Entity


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        (None, "<default>"),
        ("<default>", "%3Cdefault%3E"),
        ("app-1_x.y", "app-1_x.y"),
        ("a b+c*d~e/f", "a%20b%2Bc%2Ad%7Ee%2Ff"),
        ("CN=ö", "CN%3D%C3%B6"),
        ("", ""),
    ],
)
def test_names_are_encoded_as_by_kafka(name: str | None, encoded: str) -> None:
    """Names are encoded as by Kafka's Sanitizer; no name is equal to that of the default."""
    assert entities.encoded(name) == encoded
    assert entities.decoded(encoded) == name


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (Entity("u"), "users/u"),
        (Entity(DEFAULT), "users/<default>"),
        (Entity("u", "c"), "users/u/clients/c"),
        (Entity("u", DEFAULT), "users/u/clients/<default>"),
        (Entity(None, "c"), "clients/c"),
    ],
)
def test_paths(entity: Entity, path: str) -> None:
    """Each entity has Kafka's path, from which it is recognized."""
    assert entity.path == path
    assert entities.of_path(path) == entity


@pytest.mark.parametrize("path", ["topics/t", "brokers/1", "users", "users/u/clients", "ips/::1"])
def test_other_paths(path: str) -> None:
    """Other settings are not quotas of clients."""
    assert entities.of_path(path) is None


def test_the_most_specific_quota_comes_first() -> None:
    """The order is that of Kafka's ClientQuotaManager; each quota says whose requests share it."""
    assert [(entity.path, sharing.path) for entity, sharing in entities.candidates("u", "c")] == [
        ("users/u/clients/c", "users/u/clients/c"),
        ("users/u/clients/<default>", "users/u/clients/c"),
        ("users/u", "users/u"),
        ("users/<default>/clients/c", "users/u/clients/c"),
        ("users/<default>/clients/<default>", "users/u/clients/c"),
        ("users/<default>", "users/u"),
        ("clients/c", "clients/c"),
        ("clients/<default>", "clients/c"),
    ]
