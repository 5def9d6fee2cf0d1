"""Runs ZooKeeper ensembles in simulation under faults, with white-box and client-visible checks."""
