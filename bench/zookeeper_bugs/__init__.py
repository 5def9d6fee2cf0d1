"""Bugs of released versions of Apache ZooKeeper, each shown by a few requests."""
