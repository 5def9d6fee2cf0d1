"""The controller as it runs: election, events, writes to ZooKeeper, orders to brokers."""

from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.runtime import ControllerRuntime

__all__ = ["ControllerConfig", "ControllerRuntime"]
