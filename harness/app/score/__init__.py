"""Score: how surely each planted bug is found, by a schedule of its own and by chance."""
