"""Histories that are hard to judge: few values, many clients, and writes that crashed."""
