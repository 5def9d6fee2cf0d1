"""The page and the drawings about a history of another data type: why its results are wrong."""
