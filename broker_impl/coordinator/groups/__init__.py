"""Consumer groups with the classic protocol: one state machine per group, with its offsets."""
