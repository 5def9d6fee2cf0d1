"""What all pages have in common: escaping, masking of secrets, and the formatting of values."""

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.app import files
from harness.app.report import faults
from model import masking

HERE = Path(__file__).parent
MASK = "********"
_ASSIGNED = re.compile(
    rf"([\w.-]*(?:{'|'.join(map(re.escape, masking.SECRET))})[\w.-]*\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|.+?)(?=\s·\s|,\s*[\w.-]+\s*[=:]|$)",
    re.IGNORECASE | re.MULTILINE,
)


def environment(beside: Sequence[Path] = ()) -> jinja2.Environment:
    """Return an environment for templates of this folder and others.

    It escapes all text and masks secrets.
    """
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
    """Concatenate style sheets, each from this folder or from the other one."""
    found = [path if (path := HERE / name).exists() else beside / name for name in names]
    return Markup("\n".join(path.read_text() for path in found))


def write(path: Path, html: str) -> Path:
    """Write a page atomically."""
    files.replace(path, html.encode())
    return path


def masked(text: str) -> str:
    """Mask the value of each ``name=value`` whose name is that of a secret, up to the next setting.

    If the end is unclear, it masks too much rather than too little.
    """
    return _ASSIGNED.sub(rf"\1{MASK}", text) if masking.is_secret(text) else text


def _finalized(value: Any) -> Any:
    """Return the value of a template's expression as it is put into the page."""
    return visible(masked(value)) if _is_text(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Markup)


def visible(text: str) -> str:
    """Write invisible characters, and those that change the direction of text, as escapes.

    Logs and histories may contain any characters.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t " else c.encode("unicode_escape").decode() for c in text
    )


def seconds(value: float | None, digits: int = 2) -> str:
    """Format seconds; a dash stands for what was not measured."""
    return "—" if value is None else f"{value:,.{digits}f} s"


def nanoseconds(value: int | None, digits: int = 2) -> str:
    """Format a point in time of the run."""
    return seconds(None if value is None else value / 1e9, digits)


def duration(value: float) -> str:
    """Format the duration of a whole run."""
    return f"{value:.1f} s" if value < 120 else str(timedelta(seconds=round(value)))


def size(count: int) -> str:
    """Format the size of a file."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}"
        count = round(count / 1000)
    return f"{count:,.0f} GB"


def number(value: Any) -> str:
    """Format a count with thousands separators; any other value as it is."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
