"""A gate: a matrix of runs with one answer, for CI and for the morning after a night."""
