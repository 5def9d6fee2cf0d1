"""Adds probes to the source of a module: calls that record which branches are taken.

A condition has two branches, true and false; a case of a ``match``, the body of a loop and an
``except`` clause have one each. Each operand of ``and`` and ``or`` is a condition of its own, and
so is a comparison that a function returns: most rules consist of one such expression, in which
coverage by lines sees no branch. A statement keeps its line, so tracebacks are the same.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Literal, NamedTuple

REACHED = "__faultline_reached__"
"""The function that a probe of a statement calls, with its number."""
DECIDED = "__faultline_decided__"
"""The function that a probe of a condition calls, with its number and the value, which it returns.

The number is that of the branch for true; that for false is the next one.
"""
TEXT_MAX = 70

Outcome = Literal["true", "false", "entered"]


class Branch(NamedTuple):
    """A branch of a function."""

    line: int
    text: str
    """The condition, or the head of the statement."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module: its probes have successive numbers."""

    name: str
    """Its qualified name in the module."""
    line: int
    number: int
    """The number of the probe at its beginning; those of its branches follow."""
    branches: tuple[Branch, ...]


class Probed(NamedTuple):
    """A module with probes."""

    functions: tuple[Function, ...]
    code: CodeType
    size: int
    """The number of probes."""


def add(source: str, filename: str, first: int) -> Probed:
    """Return the compiled module with probes, whose numbers begin with ``first``."""
    visitor = _Visitor(first)
    tree = ast.fix_missing_locations(visitor.visit(ast.parse(source, filename)))
    # A module's __future__ imports are part of its own source.
    code = compile(tree, filename, "exec", dont_inherit=True)
    return Probed(tuple(visitor.functions), code, visitor.next - first)


@dataclass
class _Visitor(ast.NodeTransformer):
    next: int
    functions: list[Function] = field(default_factory=list)
    _path: list[str] = field(default_factory=list)
    _branches: list[Branch] | None = None
    """The branches of the function that is visited; functions within it belong to it."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if self._branches is not None:
            self.generic_visit(node)
            return node
        if _is_abstract(node.body):
            return node
        number, self.next = self.next, self.next + 1
        self._branches = []
        node.body = [self.visit(statement) for statement in node.body]
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body.insert(start, _reached(number, node.body[start]))
        name = ".".join((*self._path, node.name))
        self.functions.append(Function(name, node.lineno, number, tuple(self._branches)))
        self._branches = None
        return node

    # Statements and expressions with conditions.

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self._condition(node.test)
        return self._statements(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        node.test = self._condition(node.test)
        return self._statements(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._condition(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.ifs = [self._condition(test) for test in node.ifs]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        *tests, last = node.values
        node.values = [*(self._condition(test) for test in tests), self.visit(last)]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None:
            node.value = self._returned(node.value)
        return node

    def _returned(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.BoolOp):
            *tests, last = value.values
            value.values = [*(self._condition(test) for test in tests), self._returned(last)]
            return value
        is_not = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        if is_not or isinstance(value, ast.Compare):
            return self._condition(value)
        visited: ast.expr = self.visit(value)
        return visited

    # Statements that are entered.

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._loop(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        what = "except" if node.type is None else f"except {ast.unparse(node.type)}"
        return self._entered(node, what)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        what = f"case {ast.unparse(node.pattern)}"
        if node.guard is not None:
            node.guard = self._condition(node.guard)
        return self._statements(node) if _is_never(node.body) else self._entered(node, what)

    def _loop(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        text = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        node.iter = self.visit(node.iter)
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return self._entered(node, text)

    def _entered(
        self, node: ast.For | ast.AsyncFor | ast.ExceptHandler | ast.match_case, text: str
    ) -> ast.AST:
        if self._branches is None:
            return self._statements(node)
        number, self.next = self.next, self.next + 1
        self._branches.append(Branch(_line(node), _short(text), "entered"))
        node.body = [self.visit(statement) for statement in node.body]
        node.body.insert(0, _reached(number, node.body[0]))
        return node

    def _statements(self, node: ast.AST) -> ast.AST:
        """Visit the statements of a node, but not its expressions."""
        for name in ("body", "orelse"):
            if (block := getattr(node, name, None)) is not None:
                setattr(node, name, [self.visit(statement) for statement in block])
        return node

    def _condition(self, test: ast.expr) -> ast.expr:
        """Return a condition whose parts are probed."""
        if isinstance(test, ast.BoolOp):
            test.values = [self._condition(each) for each in test.values]
            return test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._condition(test.operand)
            return test
        if self._branches is None or isinstance(test, ast.Constant):
            visited: ast.expr = self.visit(test)
            return visited
        number, self.next = self.next, self.next + 2
        text = _short(ast.unparse(test))
        self._branches += [Branch(test.lineno, text, "true"), Branch(test.lineno, text, "false")]
        value = self.visit(test)
        call = ast.Call(ast.Name(DECIDED, ast.Load()), [ast.Constant(number), value], [])
        return ast.copy_location(call, test)


def _reached(number: int, statement: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(REACHED, ast.Load()), [ast.Constant(number)], [])
    return ast.copy_location(ast.Expr(call), statement)


def _line(node: ast.For | ast.AsyncFor | ast.ExceptHandler | ast.match_case) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _is_abstract(body: Sequence[ast.stmt]) -> bool:
    """Return whether a function has no code: a docstring, ``...`` or ``pass`` alone."""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in body
    )


def _is_never(body: Sequence[ast.stmt]) -> bool:
    """Return whether a case is one that cannot occur."""
    first = body[0]
    call = first.value if isinstance(first, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "assert_never"
    )
