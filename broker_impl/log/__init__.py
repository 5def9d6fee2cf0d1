"""A broker's logs: segments, indexes, leader epochs, producer state, compaction and recovery."""
