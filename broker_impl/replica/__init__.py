"""The state of one replica: events in, effects out, invariants after each."""
