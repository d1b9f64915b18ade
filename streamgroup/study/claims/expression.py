"""The expressions that read numbers off runs: arithmetic, comparisons, calls of named functions, nothing else.

`sweep.metric(grouping="pkg", workers=[16, 64])` is a metric of the runs with these options: a number, or a series named
by the options in which they differ. Replicates are averaged.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Protocol

from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.study.claims.expression_functions import FUNCTIONS
from streamgroup.study.claims.values_of_runs import combined, mapped

__all__ = ["Source", "check", "evaluate", "sweeps_in"]

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}


class Source(Protocol):
    """What sweeps and theory say."""

    def read(self, sweep: str, name: str, given: Mapping[str, Any]) -> Any:
        """Return a metric of a sweep, or what another reading `name` of it gives, of the runs with given options."""

    def theory(self, given: Mapping[str, Any]) -> Any:
        """Return the value of a statement of theory."""


def evaluate(text: str, source: Source, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression; `names` are numbers read before. UsageError for what is no such expression."""
    return _value(_parsed(text), source, names)


def check(text: str, sweeps: Mapping[str, Any], names: set[str]) -> None:
    """Check an expression without any run: UsageError for unknown names."""
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                _known(node.func.value.id, sweeps, "sweep")  # type: ignore[attr-defined]  # see _parsed
            else:
                _known(node.func.id, {*FUNCTIONS, "theory"}, "function")  # type: ignore[attr-defined]
        elif isinstance(node, ast.Name) and node.id not in names | {*FUNCTIONS, *sweeps, "theory"}:
            raise UsageError(f"there is no number {node.id!r} in {text!r}")


def sweeps_in(text: str) -> list[str]:
    """Name the sweeps that an expression reads, each once."""
    return list(dict.fromkeys(_read(_parsed(text))))


def _read(tree: ast.expr) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.value.id  # type: ignore[attr-defined]  # see _parsed


def _known(name: str, among: Any, what: str) -> None:
    if name not in among:
        raise UsageError(f"there is no {what} {name!r}", suggest(name, among))


@cache
def _parsed(text: str) -> ast.expr:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{text!r} is not an expression: {error.msg}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            plain = isinstance(function, ast.Name) or (
                isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
            )
            if not plain or any(word.arg is None for word in node.keywords):
                raise UsageError(f"{text!r} calls something else than a function or a reading of a sweep")
        elif not isinstance(node, _ALLOWED):
            raise UsageError(f"{text!r} has {type(node).__name__}, which is not taken")
    return tree


_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Name, ast.List, ast.Attribute, ast.keyword,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def _value(node: ast.expr, source: Source, names: Mapping[str, Any]) -> Any:
    def value(child: ast.expr) -> Any:
        return _value(child, source, names)

    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.List(elts=parts):
            return [value(part) for part in parts]
        case ast.Name(id=name):
            if name not in names:
                raise UsageError(f"there is no number {name!r}", suggest(name, names))
            return names[name]
        case ast.UnaryOp(op=op, operand=operand):
            return mapped(_of(_UNARY, op), value(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return combined(_of(_BINARY, op), value(left), value(right))
        case ast.BoolOp(op=op, values=parts):
            truths = (bool(value(part)) for part in parts)
            return all(truths) if isinstance(op, ast.And) else any(truths)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [value(one) for one in (left, *others)]
            pairs = zip(sides, ops, sides[1:], strict=False)
            found = [combined(_of(_BINARY, op), one, other) for one, op, other in pairs]
            result = found[0]
            for more in found[1:]:
                result = combined(operator.and_, result, more)
            return result
        case ast.Call(func=function, args=arguments, keywords=keywords):
            given = {str(word.arg): value(word.value) for word in keywords}
            if isinstance(function, ast.Attribute):
                assert isinstance(function.value, ast.Name)
                for argument, place in zip(arguments, ("table", "column"), strict=False):
                    given[place] = value(argument)
                return source.read(function.value.id, function.attr, given)
            assert isinstance(function, ast.Name)
            positional = [value(argument) for argument in arguments]
            if function.id == "theory":
                return source.theory({"name": positional[0], **given})
            _known(function.id, FUNCTIONS, "function")
            return FUNCTIONS[function.id](*positional, **given)
    raise UsageError(f"{ast.unparse(node)} is not taken in expressions")


def _of(table: Mapping[type, Any], op: ast.AST) -> Any:
    if type(op) not in table:
        raise UsageError(f"{type(op).__name__} is not taken in expressions")
    return table[type(op)]
