"""What a broker keeps: segments, indexes, epochs, producers, and their recovery."""
