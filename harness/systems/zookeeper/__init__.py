"""The system ``zookeeper``: this project's own ZooKeeper, without brokers."""
