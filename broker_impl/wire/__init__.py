"""Bytes to values and back: framing, messages, record batches."""
