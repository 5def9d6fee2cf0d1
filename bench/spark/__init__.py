"""Large generated histories, for measurements of the checkers with and without Spark."""
