"""Settings that fit the cluster, and how long a send may take."""

import msgspec

from tests.workloads.conftest import PLAN
from workloads.idempotent import WORKLOAD


def test_without_acknowledgement_by_all_no_number_is_too_many() -> None:
    """With ``acks=1`` any ``min.insync.replicas`` is accepted."""
    loose = msgspec.structs.replace(
        PLAN,
        broker={"min.insync.replicas": "4"},
        producer=PLAN.producer | {"acks": "1", "enable.idempotence": "false"},
    )
    assert WORKLOAD.refuse(loose) is None


def test_an_operation_may_take_longer_than_a_delivery() -> None:
    """The time limit of an operation is longer than the delivery timeout.

    The client gives a record up first, so the history shows which one.
    """
    slow = msgspec.structs.replace(PLAN, producer={"delivery.timeout.ms": "30000"})
    assert WORKLOAD.op_timeout_s(slow) > 30.0
