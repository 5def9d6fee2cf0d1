"""Names of micro-operations, and the numbers that stand for parts of them in columns."""

SEND, POLL, ASSIGN, CATCH_UP = "send", "poll", "assign", "catch-up"
ABORT, DELAY = "abort", "delay"
"""Further micro-operations of a transaction; a delay has its milliseconds in ``offset``."""
FREEZE = "freeze"
COMMIT, COMMITTED, WATERMARK = "commit", "committed", "watermarks"
COMMIT_PLAINLY = "commit-plainly"
"""A commit of offsets that is made during a transaction, but not as a part of it."""
TRANSFORM = "transform"
"""Asks for a record about each record of a poll; a completion has the sends in its place."""
REBALANCES = ("assigned", "revoked", "lost")
"""How a member's partitions change: they are assigned, revoked, or already lost."""
WATERMARKS = ("start", "high", "stable")
DELETE_RECORDS = "delete-records"
DELETED = len(WATERMARKS)
"""Stands for the offset before which a client asked for the deletion of all records."""
BEYOND = (1 << 63) - 1
"""Stands for a high watermark that is not known: no record is at or above it."""
DELETE_TOPIC = "delete-topic"
CREATE_COMPACTED = "create-compacted"
"""Creates a compacted topic, in which only the last record of each record key need stay."""
ASK = "ask"
"""A question of a process that only asks; checkers judge its answer in simulation only."""
SETUP = ("subscribe", "init", "leave")
"""What a process does once, kept whole as JSON."""
