"""The command line and what it assembles."""
