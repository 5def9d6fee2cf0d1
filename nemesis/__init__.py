"""Breaks things on request, mends them, and proves that they were broken."""
