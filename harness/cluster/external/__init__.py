"""The target ``external``: a cluster that the user runs."""
