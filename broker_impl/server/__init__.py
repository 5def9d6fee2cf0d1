"""Connections of clients and brokers: frames in, answers out, within bounds."""

from broker_impl.server.listeners import Server

__all__ = ["Server"]
