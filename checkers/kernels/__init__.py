"""Pure functions on the rows of one partition, or of a whole history."""
