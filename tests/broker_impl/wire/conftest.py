"""The fixture that finds the jar of Kafka's own clients."""

import os
from pathlib import Path

import pytest

NAME = "kafka-clients-3.5.2.jar"
ROOT = Path(__file__).resolve().parents[3]
PLACES = [
    *([Path(os.environ["KAFKA_CLIENTS_JAR"])] if "KAFKA_CLIENTS_JAR" in os.environ else []),
    ROOT / ".tools" / NAME,
    Path.home() / ".m2/repository/org/apache/kafka/kafka-clients/3.5.2" / NAME,
]


@pytest.fixture(scope="session")
def kafka_jar() -> Path:
    """The jar of Kafka 3.5.2's clients; without it, the test is skipped."""
    for place in PLACES:
        if place.exists():
            return place
    pytest.skip(
        f"no {NAME} in $KAFKA_CLIENTS_JAR, .tools or ~/.m2 "
        "(mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:3.5.2)"
    )
