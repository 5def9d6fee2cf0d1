"""Pure functions on the rows of one partition, process or key."""
