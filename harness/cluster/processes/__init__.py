"""The target ``processes``: every node as a process of this machine."""
