"""Measures this project's ZooKeeper ensemble next to one of Apache ZooKeeper, in one run."""
