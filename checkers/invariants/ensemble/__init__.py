"""White-box checks of a ZooKeeper ensemble: what ZAB promises between any two events.

They are folds over snapshots of the servers, as the folds of Kafka's state are. The properties are
those of the paper (Junqueira, Reed, Serafini: Zab, DSN 2011) and of ZooKeeper's specifications in
TLA+.
"""
