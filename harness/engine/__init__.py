"""The interpreter and the recorder: the one place of the harness with tasks and a clock."""
