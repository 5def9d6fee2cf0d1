"""The system ``kafka``: this project's own broker and ZooKeeper."""
