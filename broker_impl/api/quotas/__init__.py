"""Quotas of clients (KIP-13, KIP-55, KIP-124): their entities, rates, and throttle times."""
