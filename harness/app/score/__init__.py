"""A score measures how reliably each planted bug is found, by its schedule and by drawn seeds."""
