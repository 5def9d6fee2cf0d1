"""Injects faults on request, heals them, and proves that they took effect."""
