"""Builds lines of formatted Python source, and collects the imports that they need."""

from collections.abc import Sequence
from typing import Final

LINE_MAX: Final = 100
_LETTERS: Final = {
    "?": "BOOL",
    "b": "I8",
    "h": "I16",
    "H": "U16",
    "i": "I32",
    "I": "U32",
    "q": "I64",
    "d": "F64",
}


class Source:
    """The body of a module under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: set[tuple[str, str]] = set()
        self.formats: set[str] = set()

    def add(self, depth: int, text: str) -> None:
        """Add one line, which must be short enough."""
        self.lines.append("    " * depth + text if text else "")

    def call(
        self, depth: int, before: str, arguments: Sequence[str], after: str = "", only: str = ""
    ) -> None:
        """Add `before(arguments)after`, on one line if it fits, else one argument per line.

        `only` is the comma that makes a single argument a tuple.
        """
        line = f"{'    ' * depth}{before}({', '.join(arguments)}{only}){after}"
        if len(line) <= LINE_MAX:
            self.lines.append(line)
            return
        self.add(depth, f"{before}(")
        for argument in arguments:
            self.add(depth + 1, f"{argument},")
        self.add(depth, f"){after}")

    def use(self, module: str, name: str) -> str:
        """Return the name, and import it in the module."""
        self.imports.add((module, name))
        return name

    def reading(self, name: str) -> str:
        """Import and return a name of `broker_impl.wire.reading`."""
        return self.use("broker_impl.wire.reading", name)

    def writing(self, name: str) -> str:
        """Import and return a name of `broker_impl.wire.writing`."""
        return self.use("broker_impl.wire.writing", name)

    def format(self, letters: str) -> str:
        """Return the name of the module's compiled `struct.Struct` of this format."""
        self.formats.add(letters)
        return "_" + "_".join(_LETTERS[letter] for letter in letters)

    def format_lines(self) -> list[str]:
        """Return the definitions of the compiled formats."""
        return [
            f'{self.format(letters)} = struct.Struct(">{letters}")'
            for letters in sorted(self.formats, key=lambda letters: (len(letters), letters))
        ]
