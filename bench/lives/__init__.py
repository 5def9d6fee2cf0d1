"""Random lives of a ZooKeeper server's data directory on a simulated disk.

    python -m bench.lives --count 20000

A life is a sequence of starts and ends of one server of an ensemble, whose processes are killed,
whose host loses power, and whose disk fails or is full, between any two operations on the disk.
"""
