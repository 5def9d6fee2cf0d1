"""The mesh of proxies between the nodes: its links, their faults, and the proof of their effect."""
