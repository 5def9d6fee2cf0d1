"""The target ``simulated``: nodes, clients, disks and links in one process, on virtual time."""
