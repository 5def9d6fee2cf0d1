"""Processes that ask brokers what consumers and producers rarely ask, and move nothing."""
