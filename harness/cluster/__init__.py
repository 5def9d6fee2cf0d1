"""Targets: the clusters that plans run against, and the mesh of proxies between their nodes."""
