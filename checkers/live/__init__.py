"""Judges a history while it is recorded, batch by batch, with a bounded state per partition.

What is found here ends a run early. It is no verdict: the whole history is judged afterwards.
"""
