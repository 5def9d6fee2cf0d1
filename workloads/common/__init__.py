"""What several workloads share: partitions, topics, final reads, options, clients and settings."""
