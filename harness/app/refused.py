"""The exception for a wrong request, reported in one line.

It is in a module of its own because the command line needs it before any large import.
"""


class Refused(Exception):
    """The request itself is wrong; the message is the one line that says so."""
