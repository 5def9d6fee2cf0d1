"""A lost write in six lines of history, found by the checkers that judge a whole run.

A history is a file of events: what a client invoked (``invoke``), and its outcome (``ok``,
``fail``, or ``info`` when the outcome is unknown). It may come from any harness.
"""

import tempfile
from pathlib import Path

from harness.app.check import describe, examine

LOST = """\
{"index":0,"time_ns":1000000,"process":1,"type":"invoke","f":"send","value":[["send","x-0",1]]}
{"index":1,"time_ns":2000000,"process":1,"type":"ok","f":"send","value":[["send","x-0",[0,1]]]}
{"index":2,"time_ns":3000000,"process":2,"type":"invoke","f":"send","value":[["send","x-0",2]]}
{"index":3,"time_ns":4000000,"process":2,"type":"ok","f":"send","value":[["send","x-0",[1,2]]]}
{"index":4,"time_ns":5000000,"process":3,"type":"invoke","f":"poll","value":[["poll"]]}
{"index":5,"time_ns":6000000,"process":3,"type":"ok","f":"poll","value":[["poll",{"x-0":[[1,2]]}]]}
"""

# The near miss: the first write timed out, so it may never have happened. Nothing is lost.
# Process 1 does nothing after that, as its operation may still be under way.
IN_DOUBT = LOST.replace('"ok","f":"send","value":[["send","x-0",[0,1]]]',
                        '"info","f":"send","value":[["send","x-0",1]]')  # fmt: skip

with tempfile.TemporaryDirectory() as folder:
    for name, text in (("acknowledged", LOST), ("in doubt", IN_DOUBT)):
        path = Path(folder) / "history.jsonl"
        path.write_text(text)
        judged = examine(path, inline=True)  # without Spark: in this process
        print(f"the first write is {name}:")
        print(describe(judged.verdict, judged.findings, folder=None))
