"""Adapts third-party Kafka clients to the one interface of a workload's process."""
