"""The page about histories of other data types: why no order explains their results."""
