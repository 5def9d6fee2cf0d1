"""What every page of ours has in common: escaping, masking, and how values are written."""

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.app import files
from harness.app.report import faults

HERE = Path(__file__).parent
SECRET = ("password", "secret", ".jaas.config", "private.key", "keystore.key")
MASK = "********"
_ASSIGNED = re.compile(
    rf"([\w.-]*(?:{'|'.join(map(re.escape, SECRET))})[\w.-]*\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|.+?)(?=\s·\s|,\s*[\w.-]+\s*[=:]|$)",
    re.IGNORECASE | re.MULTILINE,
)


def environment(beside: Sequence[Path] = ()) -> jinja2.Environment:
    """Templates of this folder and of others: everything is escaped, and secrets are masked."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*beside, HERE]),
        autoescape=True,
        finalize=_finalized,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "seconds": seconds,
        "nanoseconds": nanoseconds,
        "duration": duration,
        "number": number,
        "size": size,
        "spoken": faults.spoken,
    }
    return made


def style(*names: str, beside: Path = HERE) -> Markup:
    """Style sheets one after the other, each from this folder or the other."""
    found = [path if (path := HERE / name).exists() else beside / name for name in names]
    return Markup("\n".join(path.read_text() for path in found))


def write(path: Path, html: str) -> Path:
    """Write a page whole or not at all."""
    files.replace(path, html.encode())
    return path


def secret(name: str) -> bool:
    """Is a setting of this name nobody's business?"""
    return any(word in name.lower() for word in SECRET)


def masked(text: str) -> str:
    """The text with the value of each ``name=value`` masked whose name is that of a secret, up to
    the next setting: rather too much than a word of it left."""
    return _ASSIGNED.sub(rf"\1{MASK}", text) if secret(text) else text


def _finalized(value: Any) -> Any:
    """What an expression of a template puts into the page."""
    return visible(masked(value)) if _is_text(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Markup)


def visible(text: str) -> str:
    """The text with characters that would not show, or would turn what follows around, written as
    escapes: a log or a history may hold any."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t " else c.encode("unicode_escape").decode() for c in text
    )


def seconds(value: float | None, digits: int = 2) -> str:
    """Seconds for a reader; a dash for what was not measured."""
    return "—" if value is None else f"{value:,.{digits}f} s"


def nanoseconds(value: int | None, digits: int = 2) -> str:
    """A point in time of the run for a reader."""
    return seconds(None if value is None else value / 1e9, digits)


def duration(value: float) -> str:
    """A whole run's length for a reader."""
    return f"{value:.1f} s" if value < 120 else str(timedelta(seconds=round(value)))


def size(count: int) -> str:
    """The size of a file for a reader."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}"
        count = round(count / 1000)
    return f"{count:,.0f} GB"


def number(value: Any) -> str:
    """A count with its thousands apart; anything else as it is."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
