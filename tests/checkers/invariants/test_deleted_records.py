from checkers.invariants.deleted_records import remaining


def test_all_live_replicas_start_at_the_low_watermark() -> None:
    """Some may start later, because of retention or another deletion."""
    assert remaining(5, 5, {1: 5, 2: 5}) is None
    assert remaining(6, 5, {1: 7, 2: 6}) is None


def test_a_replica_with_deleted_records_is_wrong() -> None:
    """It may become the leader."""
    why = remaining(5, 5, {1: 5, 2: 3})
    assert why is not None
    assert "broker 2 starts at 3" in why


def test_what_was_to_be_deleted_is_below_the_low_watermark() -> None:
    """Whatever the replicas have."""
    assert remaining(4, 5, {1: 5, 2: 5}) is not None
