"""Creates the topics of a plan: some at the start, the others during the run."""

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation, Wait
from model.op import Op
from model.plan import Plan
from workloads.common.partitions import partitions_of

RETRY_CREATION_S = 1.0
"""How long after a failed creation a topic is requested again."""


class Topics(msgspec.Struct, frozen=True):
    """Creates each topic at its time, and retries until it is certain that the topic exists."""

    due: tuple[tuple[float, str], ...]
    """The topics to create, each with its time in seconds since the run began."""
    partitions: int
    named: str = "create-topic"
    """The micro-operation; ``create-compacted`` marks compacted topics in the history."""

    def op(self, ctx: Context) -> Answer:
        if not self.due:
            return PENDING, self
        at_s, topic = min(self.due)
        if not ctx.free:
            return PENDING, self
        if at_s > ctx.now_s:
            return Wait(at_s), self
        value = [[self.named, topic, self.partitions]]
        process = ctx.rng.choice(ctx.free)
        return Invocation(process=process, f="create-topic", value=value), self

    def update(self, event: Op) -> Generator:
        if event.f != "create-topic" or event.type == "ok":
            return self
        topic = event.value[0][1]
        due = tuple(entry for entry in self.due if entry[1] != topic)
        if event.type != "invoke":
            due = (*due, (event.time_ns / 1e9 + RETRY_CREATION_S, topic))
        return msgspec.structs.replace(self, due=due)


def topics_of(plan: Plan) -> tuple[tuple[float, str], ...]:
    """Return when each topic is created: some at the start, the others spread over the run."""
    early = int(plan.options["topics"])
    late = int(plan.options["late_topics"])
    gap_s = plan.time_limit_s / (late + 1)
    return tuple(
        (0.0 if number < early else (number - early + 1) * gap_s, f"topic{number}")
        for number in range(early + late)
    )


def first_partitions(plan: Plan) -> tuple[str, ...]:
    """Return the partitions of the topics that are created at the start."""
    partitions = int(plan.options["partitions"])
    return tuple(
        key
        for at_s, topic in topics_of(plan)
        if at_s == 0
        for key in partitions_of(topic, partitions)
    )


def topic_settings(plan: Plan) -> dict[str, str]:
    """Return the settings of the topics that a process creates."""
    return {
        "replication.factor": str(plan.options["replication_factor"]),
        "replicas": " ".join(str(number) for number in plan.options["replicas"]),
    }
