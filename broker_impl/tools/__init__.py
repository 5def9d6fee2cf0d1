"""Command-line tools that speak the wire protocol and nothing else."""
