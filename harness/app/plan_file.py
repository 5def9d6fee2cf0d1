"""Reads ``plan.json`` of a run's folder strictly, as it may come from an untrusted source.

An unknown field, a duplicate field and a number that no run can have are refused. Otherwise the run
would be judged or repeated by other rules than its file states.
"""

from pathlib import Path

import msgspec

from harness.app import names, plan_numbers
from harness.app.refused import Refused
from model import json_fields
from model.plan import Plan
from model.text import brief

NAME = "plan.json"


def read(folder: Path) -> Plan:
    """Return the plan of a run's folder.

    Raises :class:`~harness.app.refused.Refused` for a file that is not a plan, and :class:`OSError`
    for one that cannot be read.
    """
    path = folder / NAME
    text = path.read_bytes()
    try:
        plan = msgspec.json.decode(text, type=Plan)
        document = json_fields.loads(text)
    except RecursionError:
        raise Refused(f"{path} is not a plan: it is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:  # not UTF-8, or a duplicate field
        raise Refused(f"{path} is not a plan: {error}") from None
    known = [field.encode_name for field in msgspec.structs.fields(Plan)]
    for name in document:
        if name not in known:
            hint = names.hint(name, sorted(known))
            raise Refused(f"{path}: no field is called {brief(name)}; {hint}")
    try:
        plan_numbers.check(plan)
    except Refused as error:
        raise Refused(f"{path}: {str(error).removeprefix('--')}") from None
    return plan
