"""The table of stories: every plan resolves on each of its four systems, without a cluster."""

import re
from pathlib import Path

import pytest

from bench.historic.runner import arguments
from bench.historic.stories import STORIES, Place, Story
from harness.app import plan_resolution
from harness.app.cli import request
from harness.cluster import mutants
from harness.systems import catalogue
from harness.systems.apache_kafka.releases import Release
from harness.systems.catalogue import OURS

PLACES = [(story, place) for story in STORIES.values() for place in story.places]


@pytest.mark.parametrize(
    ("story", "place"), PLACES, ids=[f"{story.name}-{place.part}" for story, place in PLACES]
)
def test_every_plan_resolves_everywhere(
    story: Story, place: Place, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same plan file is accepted for both releases and for our broker, with its own faults."""
    monkeypatch.setenv("FAULTLINE_KAFKA_HOME", "/nowhere")  # the programs need not be here
    fields = plan_resolution.from_toml(repository / story.plan)
    given = {"system": place.system, "seed": 1}
    plan = request.plan_from(fields, (), place.mutants, given)
    resolved = plan_resolution.resolve(plan)
    assert resolved.schedule == (plan.schedule or ())
    paused = any(step[0] == "delay" for row in plan.options.get("rows", []) for step in row)
    assert resolved.schedule or paused, "there is a fault, or a client that pauses"


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_every_story_is_complete(story: Story, repository: Path) -> None:
    """Releases have an order and are pinned, mutants exist, and the plan names its commands."""
    assert Release.parse(story.old) < Release.parse(story.new)
    for release in (story.old, story.new):
        assert (repository / f"harness/systems/apache_kafka/locks/{release}.toml").exists()
    assert set(story.mutants) <= set(mutants.catalogue("kafka"))
    assert story.anomalies
    assert all(re.fullmatch(r"KAFKA-\d+", name) for name in story.jira)
    text = (repository / story.plan).read_text()
    named = [place for place in story.places if place.part != "ours"]
    for place in named:
        wanted = " ".join(arguments(story, place, 1)[:-2])
        assert f"faultline {wanted}" in text
    assert all(name in text for name in (*story.jira, story.kip or ""))


def test_places_have_the_bug_or_not() -> None:
    """The old release and our broker with the mutant have the bug; the other two do not."""
    story = STORIES["kip-101-loss"]
    assert [(place.system, place.has_bug) for place in story.places] == [
        ("apache-kafka:0.10.2.2", True),
        ("apache-kafka:0.11.0.3", False),
        (OURS, True),
        (OURS, False),
    ]
    assert all(catalogue.system(place.system).name == place.system for place in story.places)
