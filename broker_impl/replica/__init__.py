"""The state machine of one replica: events in, effects out, invariants checked after each event."""
