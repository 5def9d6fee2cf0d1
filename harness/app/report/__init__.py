"""Renders a run's folder as one HTML page that needs no network."""

from harness.app.report.page import render

__all__ = ["render"]
