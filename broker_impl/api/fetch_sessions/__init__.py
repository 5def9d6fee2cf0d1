"""Incremental fetch sessions (KIP-227): their rules, one session, and the cache of all sessions."""
