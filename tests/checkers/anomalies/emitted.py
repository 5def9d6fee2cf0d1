"""Finds the strings that modules can give to a constructor, from their syntax alone."""

import ast
from collections.abc import Iterator
from itertools import product


class Emitted:
    """The strings that the calls of a constructor in some modules give as one argument.

    The argument is followed through conditional expressions, sums, local variables, loops over
    literals, and parameters. A value that cannot be followed is an error.
    """

    def __init__(self, trees: list[ast.Module]) -> None:
        self._trees = trees
        self._around: dict[ast.AST, ast.AST] = {
            child: node for tree in trees for node in ast.walk(tree)
            for child in ast.iter_child_nodes(node)
        }  # fmt: skip

    def of(self, constructors: tuple[str, ...], keyword: str) -> set[str]:
        """Return the strings given to these constructors under this name."""
        return {
            text
            for call in self._calls(*constructors)
            for given in call.keywords
            if given.arg == keyword and not isinstance(given.value, ast.Attribute)
            for text in self._texts(given.value)
        }

    def _calls(self, *names: str) -> Iterator[ast.Call]:
        for tree in self._trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", None))
                    if name in names:
                        yield node

    def _texts(self, node: ast.expr) -> set[str]:
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.IfExp(body=body, orelse=other):
                return self._texts(body) | self._texts(other)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return {a + b for a, b in product(self._texts(left), self._texts(right))}
            case ast.Name():
                sources = list(self._sources(node))
                assert sources, f"line {node.lineno}: where does {node.id} come from?"
                return {text for source in sources for text in self._texts(source)}
            case _:
                raise AssertionError(f"cannot follow {ast.unparse(node)}")

    def _sources(self, name: ast.Name) -> Iterator[ast.expr]:
        """Yield the expressions whose values a name may have."""
        function = self._function(name)
        yield from self._constants(name.id)
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[target], value=value):
                    yield from self._matching(target, value, name.id)
                case ast.For(target=target, iter=values):
                    for value in self._items(values):
                        yield from self._matching(target, value, name.id)
                case _:
                    pass
        yield from self._arguments(function, name.id)

    def _matching(self, target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
        """Yield the part of a value that is assigned to a name, where the target has that name."""
        match target, value:
            case ast.Name(id=n), _ if n == name:
                yield value
            case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                for each in zip(targets, values, strict=True):
                    yield from self._matching(*each, name)
            case ast.Tuple(), ast.Name() if name in ast.unparse(target):
                for source in self._sources(value):
                    yield from self._matching(target, source, name)
            case ast.Tuple(), ast.Call(func=ast.Name(id=function)) if name in ast.unparse(target):
                for returned in self._returned(function):
                    yield from self._matching(target, returned, name)
            case _:
                pass

    def _returned(self, function: str) -> Iterator[ast.expr]:
        """Yield what the functions of a name return."""
        for tree in self._trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.Return) and self._function(node).name == function:
                    yield node.value or ast.Constant(None)

    def _function(self, node: ast.AST) -> ast.FunctionDef:
        while not isinstance(node, ast.FunctionDef):
            node = self._around[node]
        return node

    def _items(self, values: ast.expr) -> Iterator[ast.expr]:
        """Yield the items of a literal, or those of a module's dictionary."""
        match values:
            case ast.Tuple(elts=items):
                yield from items
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items")):
                for constant in self._constants(name):
                    if isinstance(constant, ast.Dict):
                        for key, value in zip(constant.keys, constant.values, strict=True):
                            yield ast.Tuple(elts=[key or ast.Constant(None), value])
            case _:
                pass

    def _constants(self, name: str) -> Iterator[ast.expr]:
        """Yield what modules assign to a name."""
        for tree in self._trees:
            for node in tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                    yield node.value

    def _arguments(self, function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
        """Yield what the calls of a function give for its parameter; a private function is called
        by its own module only."""
        names = [argument.arg for argument in function.args.args if argument.arg != "self"]
        for call in self._calls(function.name) if name in names else ():
            if function.name.startswith("_") and self._module(call) is not self._module(function):
                continue
            yield from (given.value for given in call.keywords if given.arg == name)
            yield from call.args[names.index(name) :][:1]

    def _module(self, node: ast.AST) -> ast.AST:
        while node in self._around:
            node = self._around[node]
        return node
