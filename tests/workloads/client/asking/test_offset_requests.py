"""Brokers read the requests that aiokafka lacks."""

from broker_impl.wire.messages import txn_offset_commit_request, txn_offset_commit_response
from workloads.client.asking.group_requests import Membership
from workloads.client.asking.offset_requests import TxnCommitRequest, _TxnCommit
from workloads.client.asking.requests import Place


def test_a_commit_in_a_transaction_names_its_member() -> None:
    """The instance id may be missing."""
    for instance in ("static", None):
        member = Membership("g", 3, "a", instance)
        request = TxnCommitRequest("t", (7, 2), member, Place("x", 1), 40).build(_TxnCommit)
        found = txn_offset_commit_request.decode(memoryview(request.encode()), 3)
        assert (found.transactional_id, found.producer_id, found.producer_epoch) == ("t", 7, 2)
        said = found.group_id, found.generation_id, found.member_id, found.group_instance_id
        assert said == tuple(member)
        [topic] = found.topics
        [row] = topic.partitions
        assert (topic.name, row.partition_index, row.committed_offset) == ("x", 1, 40)


def test_the_answer_to_a_commit_has_an_error_for_each_partition() -> None:
    """A member that was replaced is fenced."""
    answer = txn_offset_commit_response.TxnOffsetCommitResponse(
        topics=[
            txn_offset_commit_response.TxnOffsetCommitResponseTopic(
                "x", [txn_offset_commit_response.TxnOffsetCommitResponsePartition(1, 82)]
            )
        ]
    )
    data = b"".join(bytes(part) for part in txn_offset_commit_response.encode(answer, 3))
    decoded = _TxnCommit.RESPONSE_TYPE.decode(data)
    [(topic, [(partition, code, _)], _)] = decoded.errors
    assert (topic, partition, code) == ("x", 1, 82)
