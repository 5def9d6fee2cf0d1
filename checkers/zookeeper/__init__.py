"""Judges histories of ZooKeeper's workloads.

What may be asserted: writes are linearizable, also conditional ones; a session never sees an older
state than it has seen; a watch is notified once, before its session sees the change. A read may be
stale otherwise, even after ``sync`` if the leader was replaced meanwhile (ZOOKEEPER-1675).
"""
