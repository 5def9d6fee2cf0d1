"""The controller's rules: pure functions that choose leaders, ISRs and replica assignments."""
