"""The words everybody speaks: operations, plans, findings, roles; values only."""
