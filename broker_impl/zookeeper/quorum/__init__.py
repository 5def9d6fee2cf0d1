"""ZAB: how the servers of an ensemble elect a leader and agree on one order of transactions."""
