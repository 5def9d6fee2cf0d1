"""A score measures how reliably each planted bug is found, by its own schedule and by drawn
seeds."""
