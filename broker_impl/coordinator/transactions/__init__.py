"""The transactions of the producers that this broker coordinates (KIP-98, as in Kafka 2.8)."""
