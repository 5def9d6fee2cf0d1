"""Targets: what a plan runs against, and the mesh of proxies between its nodes."""
