"""Workloads for ZooKeeper: operations on znodes whose outcomes can be judged."""
