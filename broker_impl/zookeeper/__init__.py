"""ZooKeeper's client protocol: a server, and an asyncio client."""
