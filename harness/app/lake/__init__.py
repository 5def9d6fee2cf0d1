"""The lake: the figures of all runs of many nights in one table, to be asked with SQL."""
