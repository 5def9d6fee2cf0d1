"""A request that cannot be obeyed, told in one line.

Apart from everything else, because the command line needs it before anything heavy is imported.
"""


class Refused(Exception):
    """The request itself is wrong; the message is the one line that says so."""
