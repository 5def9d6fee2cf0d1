"""Encoding and decoding of Kafka's protocol: frames, messages, record batches."""
