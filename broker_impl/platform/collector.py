"""Have Python's garbage collector look at few objects, because nearly all live as long as a server.

With the defaults it looks for cycles after 700 new objects, which a few requests create, and soon
at all objects of the process.
"""

import gc

THRESHOLDS = 20_000, 20, 50
"""When the collector looks for cycles: after so many new objects, and so many times before it looks
at older ones."""


def tune_collector() -> None:
    """Leave out the objects that exist now, and look for cycles less often."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
