"""Metrics of a broker for Prometheus: families of samples, served over HTTP.

Only a broker with ``faultline.metrics.listener`` imports this package.
"""

from broker_impl.node.metrics.endpoint import serving
from broker_impl.node.metrics.source import Source

__all__ = ["Source", "serving"]
