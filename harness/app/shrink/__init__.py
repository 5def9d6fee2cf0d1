"""Shrinking finds the smallest plan and schedule that still show an anomaly."""
