"""Adapters from other people's Kafka clients to the one interface of a workload's process."""
