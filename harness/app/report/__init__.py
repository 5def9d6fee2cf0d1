"""A run's folder told on one page that needs no network."""

from harness.app.report.page import render

__all__ = ["render"]
