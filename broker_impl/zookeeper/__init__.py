"""A server for ZooKeeper's client protocol, and an asyncio client."""
