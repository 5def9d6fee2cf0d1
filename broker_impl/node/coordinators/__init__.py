"""The runtimes of the group and transaction coordinators, and the internal topics that they use."""
