"""Judges a history without ever holding it in one process: the plan, and the tasks of executors.

A history is cut into chunks of adjacent events, and again into slices that have all events of some
partitions. A slice is a history as well, and the kernels of its partitions find in it what they
find in the whole.
"""
