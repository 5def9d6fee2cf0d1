"""Connections of clients and brokers: request frames in, responses out, within memory limits."""

from broker_impl.server.listeners import Server

__all__ = ["Server"]
