"""Consumer groups, classic protocol: one state machine each, and the offsets they committed."""
