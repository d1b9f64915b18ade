"""Compiled code as quick plain Python: its numbers become Python's own, with the results that compiled code has.

A call of `np.uint64` takes as long as ten additions, and arithmetic with numpy's scalars is as slow. Here a function's
syntax tree is rewritten for arrays that are memoryviews, two-dimensional ones lists of them (see `plain_python.view`),
whose elements are Python's ints and floats:

- `a[i, j]` becomes `a[i][j]`, `a.shape[1]` becomes `len(a[0])`; of records, `a[i].field` becomes `a.field[i]`;
- unsigned words are ints from 0 to 2^64 - 1: what may leave that range is masked before it is compared, shifted right,
  divided, stored, returned or passed on. What is a word follows from the arguments (`Kind`) and from conversions. What
  numba makes of a word and a signed number depends on the operator: such code is refused, and compiled;
- `np.uint64(i)` as an index is `i`, since no index is negative; elsewhere conversions become masks;
- a quotient is one of floats: Python divides ints exactly, compiled code rounds them first.

Signed numbers do not wrap: what does not fit its array is an OverflowError or ValueError, never another result. Code
must not compare a signed sum that overflows, or shift by 64 or more: that is not noticed.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

from streamgroup.base.compiling import plain_python_nodes as nodes
from streamgroup.base.compiling.plain_python_kinds import (
    ANY,
    LOOSE,
    SMALL,
    WORD,
    Array,
    Fields,
    Kind,
    NotPlainError,
    join,
    part,
)
from streamgroup.base.compiling.plain_python_nodes import call, masked, signed

__all__ = ["Rewriter"]

_UNSIGNED = {"uint8": 0xFF, "uint16": 0xFFFF, "uint32": 0xFFFF_FFFF}


def _field(place: ast.expr) -> str | None:
    return str(place.value) if isinstance(place, ast.Constant) else None


def _is_word(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) == "np.uint64"


class Rewriter:
    """Rewrites one function; `hooks` are the names of methods that it may call.

    `whole` are functions that were rewritten to one expression, by the names they have now; they go into their callers.

    `resolve(parts, kinds)` returns what to put in the place of a global name, or of `module.name`, and the kind of its
    value, or of what it returns for arguments of these kinds; None if it knows nothing of the name.
    """

    def __init__(
        self,
        resolve: Callable[[tuple[str, ...], tuple[Kind, ...]], tuple[ast.expr, Kind] | None],
        hooks: frozenset[str],
        whole: dict[str, ast.FunctionDef],
    ) -> None:
        self._whole = whole
        self._resolve = resolve
        self._hooks = hooks
        self._kind: dict[str, Kind] = {}
        self._loose: set[str] = set()
        self._locals: set[str] = set()
        self._gives_word = False
        self.returns: Kind | None = None

    def function(self, tree: ast.FunctionDef, name: str, kinds: tuple[Kind, ...]) -> ast.FunctionDef:
        """Return the function rewritten for arguments of these kinds (signed numbers where there are too few)."""
        tree = nodes.FieldsFirst().visit(copy.deepcopy(tree))
        given = tree.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
            raise NotPlainError(f"{tree.name}: arguments of other kinds")
        self._kind = {one.arg: kind for one, kind in zip(given.args, kinds, strict=False)}
        # What a caller passes on is in range only if it was seen to be a word.
        self._loose = {one.arg for one in given.args if _is_word(one.annotation) and not self._kind.get(one.arg)}
        self._kind.update(dict.fromkeys(self._loose, WORD))
        self._gives_word = _is_word(tree.returns)
        self._locals = {one.arg for one in given.args} | {
            one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        while True:
            before, returned = dict(self._kind), self.returns
            body = self._block(tree.body)
            if before == self._kind and returned == self.returns:
                break
        arguments = ast.arguments([], [ast.arg(one.arg) for one in given.args], None, [], [], None, [])
        made: Any = ast.FunctionDef(name, arguments, body, [], None, None)
        # A field that Python 3.12 added.
        made.type_params = []
        located: ast.FunctionDef = ast.copy_location(made, tree)
        return located

    # Statements.

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found = []
        for one in body:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                continue
            made = self._statement(one)
            found.append(ast.fix_missing_locations(ast.copy_location(made, one)))
        return found or [ast.Pass()]

    def _statement(self, one: ast.stmt) -> ast.stmt:
        match one:
            case ast.Assign(targets=[target]):
                return self._assign(target, one.value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign(target, value)
            case ast.AugAssign():
                return self._augment(one)
            case ast.Return(value=None) | ast.Pass() | ast.Break() | ast.Continue():
                return one
            case ast.Return(value=ast.expr() as value):
                made, kind = self._value(value)
                if self._gives_word and not kind:
                    made, kind = masked(made, nodes.MASK), WORD
                self.returns = kind if self.returns is None else join(self.returns, kind)
                return ast.Return(made)
            case ast.If():
                return ast.If(self._expr(one.test)[0], self._block(one.body), self._orelse(one.orelse))
            case ast.While():
                return ast.While(self._expr(one.test)[0], self._block(one.body), self._orelse(one.orelse))
            case ast.For(target=ast.Name()):
                each, kind = self._value(one.iter)
                self._target(one.target, part(kind))
                return ast.For(one.target, each, self._block(one.body), self._orelse(one.orelse))
            case ast.Expr(value=value):
                return ast.Expr(self._value(value)[0])
        raise NotPlainError(f"line {one.lineno}: {type(one).__name__}")

    def _orelse(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return self._block(body) if body else []

    def _assign(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple):
                made, kind = self._value(value)
                return ast.Assign([self._target(target, kind)], made)
            values = [self._value(one) for one in value.elts]
            names = [self._target(one, kind) for one, (_, kind) in zip(target.elts, values, strict=True)]
            return ast.Assign([ast.Tuple(names, ast.Store())], ast.Tuple([made for made, _ in values], ast.Load()))
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            if isinstance(value, ast.Tuple):
                raise NotPlainError(f"line {target.lineno}: several values at once")
            return ast.Expr(call("_fill", self._slice(*self._expr(target.value), target.slice), self._value(value)[0]))
        made, kind = self._value(value)
        return ast.Assign([self._target(target, kind)], made)

    def _target(self, target: ast.expr, kind: Kind) -> ast.expr:
        match target:
            case ast.Name(id=name):
                self._kind[name] = join(self._kind.get(name, kind), kind)
                return target
            case ast.Subscript():
                return self._subscript(target)[0]
            case ast.Tuple(elts=elts):
                kinds = kind.kinds if isinstance(kind, Fields) else (ANY,) * len(elts)
                return ast.Tuple([self._target(*one) for one in zip(elts, kinds, strict=True)], ast.Store())
        raise NotPlainError(f"line {target.lineno}: something else is set")

    def _augment(self, one: ast.AugAssign) -> ast.stmt:
        target = one.target
        if isinstance(target, ast.Name):
            looked: ast.expr = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            return self._assign(target, ast.copy_location(ast.BinOp(looked, one.op, one.value), one))
        if not isinstance(target, ast.Subscript) or isinstance(one.op, ast.Div):
            raise NotPlainError(f"line {one.lineno}: augmented")
        (made, kind), (value, other) = self._subscript(target), self._value(one.value)
        if not isinstance(made, ast.Subscript):
            raise NotPlainError(f"line {one.lineno}: an augmented part")
        if WORD in (kind, other) and kind != other:
            raise NotPlainError(f"line {one.lineno}: a word and something else")
        return ast.AugAssign(made, one.op, value)

    # Expressions: the node, and what is known of its value.

    def _value(self, node: ast.expr) -> tuple[ast.expr, Kind]:
        """Rewrite an expression whose value is kept: a word is in range."""
        made, kind = self._expr(node)
        return (masked(made, nodes.MASK), WORD) if kind == LOOSE else (made, kind)

    def _expr(self, node: ast.expr) -> tuple[ast.expr, Kind]:
        made, kind = self._any(node)
        return ast.copy_location(made, node), kind

    def _any(self, node: ast.expr) -> tuple[ast.expr, Kind]:
        match node:
            case ast.Constant():
                return node, ANY
            case ast.Name(id=name):
                if name in self._locals:
                    return node, LOOSE if name in self._loose else self._kind.get(name, ANY)
                return self._global((name,))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=ast.Constant(value=int(axis))):
                made = self._expr(of)[0]
                for _ in range(axis):
                    made = ast.Subscript(made, ast.Constant(0), ast.Load())
                return call("len", made), ANY
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp(op=op):
                made, kind = self._expr(node.operand)
                if isinstance(op, ast.Not):
                    return ast.UnaryOp(op, made), ANY
                if isinstance(op, ast.USub) and not kind and isinstance(made, ast.Constant):
                    assert isinstance(made.value, (int, float))
                    return ast.Constant(-made.value), ANY
                if kind == SMALL:
                    raise NotPlainError(f"line {node.lineno}: a sign of an unsigned number")
                return ast.UnaryOp(op, made), LOOSE if kind else ANY
            case ast.Compare():
                values = [self._value(one)[0] for one in (node.left, *node.comparators)]
                return ast.Compare(values[0], node.ops, values[1:]), ANY
            case ast.BoolOp():
                return ast.BoolOp(node.op, [self._value(one)[0] for one in node.values]), ANY
            case ast.IfExp():
                (body, one), (other, two) = self._value(node.body), self._value(node.orelse)
                return ast.IfExp(self._value(node.test)[0], body, other), join(one, two)
            case ast.Tuple():
                found = [self._value(one) for one in node.elts]
                kinds = Fields(tuple(map(str, range(len(found)))), tuple(kind for _, kind in found))
                return ast.Tuple([made for made, _ in found], ast.Load()), kinds
            case ast.Call():
                return self._called(node)
        raise NotPlainError(f"line {node.lineno}: {type(node).__name__}")

    def _global(self, parts: tuple[str, ...], kinds: tuple[Kind, ...] = ()) -> tuple[ast.expr, Kind]:
        found = self._resolve(parts, kinds)
        if found is None:
            raise NotPlainError(f"{'.'.join(parts)} is not known")
        return found

    def _attribute(self, node: ast.Attribute) -> tuple[ast.expr, Kind]:
        of = node.value
        if isinstance(of, ast.Name) and of.id not in self._locals:
            return self._global((of.id, node.attr))
        if node.attr == "shape":
            raise NotPlainError(f"line {node.lineno}: a whole shape")
        made, kind = self._expr(of)
        return ast.Attribute(made, node.attr, ast.Load()), kind.of(node.attr) if isinstance(kind, Fields) else ANY

    def _slice(self, made: ast.expr, kind: Kind, place: ast.Slice) -> ast.expr:
        found = self._index(place)
        if isinstance(found, ast.Slice) and not (isinstance(kind, Array) and kind.axes == 1):
            # Rows may be viewed one by one.
            return call("_part", made, found.lower or ast.Constant(None), found.upper or ast.Constant(None))
        return ast.Subscript(made, found, ast.Load())

    def _subscript(self, node: ast.Subscript) -> tuple[ast.expr, Kind]:
        made: Any
        made, kind = self._expr(node.value)
        if isinstance(node.slice, ast.Slice):
            return ast.copy_location(self._slice(made, kind, node.slice), node), kind
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for number, place in enumerate(places, 1):
            if isinstance(place, ast.Slice):
                raise NotPlainError(f"line {node.lineno}: a part of a table")
            context = node.ctx if number == len(places) else ast.Load()
            made = ast.copy_location(ast.Subscript(made, self._index(place), context), node)
            kind = part(kind, _field(place))
        return made, kind

    def _index(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=None):
                return ast.Slice(lower and self._index(lower), upper and self._index(upper))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="uint64" | "int64"), args=[of]):
                return self._index(of)
        # What is in range as it stands is the same modulo 2^64.
        return self._expr(node)[0] if isinstance(node, ast.Name) else self._value(node)[0]

    def _binary(self, node: ast.BinOp) -> tuple[ast.expr, Kind]:
        (left, one), (right, two) = self._expr(node.left), self._expr(node.right)
        op = node.op
        if SMALL in (one, two):
            # With a signed number it is one, with an unsigned one a word.
            one, two = ((kind and (WORD if kind == SMALL else kind)) if one and two else ANY for kind in (one, two))
        elif bool(one) != bool(two):
            raise NotPlainError(f"line {node.lineno}: a word and something else")
        if not one and not two:
            if isinstance(op, ast.Div) and not (isinstance(left, ast.Constant) and isinstance(left.value, float)):
                left = call("float", left)
            if isinstance(op, ast.Pow) and not isinstance(left, ast.Constant):
                raise NotPlainError(f"line {node.lineno}: {type(op).__name__}")
            return ast.BinOp(left, op, right), ANY
        if isinstance(op, (ast.Add, ast.Sub, ast.Mult)):
            return ast.BinOp(left, op, right), LOOSE
        if isinstance(op, ast.BitAnd):
            return ast.BinOp(left, op, right), WORD if WORD in (one, two) else LOOSE
        if isinstance(op, (ast.BitOr, ast.BitXor)):
            return ast.BinOp(left, op, right), WORD if one == two == WORD else LOOSE
        right = right if two == WORD else masked(right, nodes.MASK)
        if isinstance(op, ast.LShift):
            return ast.BinOp(left, op, right), LOOSE
        if isinstance(op, (ast.RShift, ast.FloorDiv, ast.Mod)):
            return ast.BinOp(left if one == WORD else masked(left, nodes.MASK), op, right), WORD
        raise NotPlainError(f"line {node.lineno}: {type(op).__name__} of words")

    def _called(self, node: ast.Call) -> tuple[ast.expr, Kind]:
        if ast.unparse(node.func) in ("np.empty", "np.zeros", "np.full"):
            sizes = [self._value(one)[0] for one in node.args]
            axes = len(sizes[0].elts) if isinstance(sizes[0], ast.Tuple) else 1
            element = WORD if "uint64" in ast.unparse(node) else SMALL if "uint" in ast.unparse(node) else ANY
            return call("_view", ast.Call(node.func, sizes, node.keywords)), Array(element, axes)
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise NotPlainError(f"line {node.lineno}: named arguments")
        match node.func:
            case ast.Name(id=("min" | "max") as name) if len(node.args) == 2 and all(map(nodes.is_simple, node.args)):
                return self._extreme(node, name)
            case ast.Attribute(value=ast.Name(id="np"), attr=name):
                return self._converted(node, name)
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="float64"), args=[of]), attr="view"):
                return call("_bits", self._value(of)[0]), ANY
            case ast.Attribute(value=of, attr="reshape") if isinstance(of, ast.Attribute):
                made, kind = self._expr(of)
                return call("_flat", made), Array(kind.element, 1) if isinstance(kind, Array) else kind
            case ast.Attribute(value=of, attr=name) if not (isinstance(of, ast.Name) and of.id not in self._locals):
                if name not in self._hooks:
                    raise NotPlainError(f"line {node.lineno}: {name} is no hook")
                function: ast.expr = ast.Attribute(self._expr(of)[0], name, ast.Load())
                return ast.Call(function, [self._value(one)[0] for one in node.args], []), ANY
            case ast.Name(id=name) if name in self._locals:
                raise NotPlainError(f"line {node.lineno}: {name} is called")
        found = [self._value(one) for one in node.args]
        given, kinds = [made for made, _ in found], tuple(kind for _, kind in found)
        function, kind = self._global(tuple(ast.unparse(node.func).split(".")), kinds)
        if isinstance(node.func, ast.Name) and node.func.id in ("abs", "int", "max", "min"):
            for one in kinds:
                kind = join(one, kinds[0])
        return self._inlined(function, given, node) or ast.Call(function, given, []), kind

    def _inlined(self, function: ast.expr, given: list[ast.expr], node: ast.Call) -> ast.expr | None:
        """Put the one expression that a function returns in the place of its call; no argument is evaluated twice."""
        of = self._whole.get(function.id) if isinstance(function, ast.Name) else None
        if of is None or len(of.args.args) != len(given):
            return None
        (body,) = of.body
        assert isinstance(body, ast.Return)
        assert body.value is not None
        used = Counter(one.id for one in ast.walk(body.value) if isinstance(one, ast.Name))
        names = [one.arg for one in of.args.args]
        if any(used[name] != 1 and not isinstance(one, nodes.SIMPLE) for name, one in zip(names, given, strict=True)):
            return None
        made: ast.expr = copy.deepcopy(body.value)
        for one in ast.walk(made):
            ast.copy_location(one, node)
        found: ast.expr = nodes.Put(dict(zip(names, given, strict=True))).visit(made)
        return found

    def _extreme(self, node: ast.Call, name: str) -> tuple[ast.expr, Kind]:
        (first, one), (second, two) = self._value(node.args[0]), self._value(node.args[1])
        again, other = self._value(node.args[0])[0], self._value(node.args[1])[0]
        # As Python does it: of equal ones the first.
        op: ast.cmpop = ast.Lt() if name == "min" else ast.Gt()
        return ast.IfExp(ast.Compare(other, [op], [again]), second, first), join(one, two)

    def _converted(self, node: ast.Call, name: str) -> tuple[ast.expr, Kind]:
        """Rewrite a call of one of numpy's functions."""
        if name == "searchsorted" and len(node.args) == 2:
            return call("_bisect", *(self._value(one)[0] for one in node.args)), ANY
        if len(node.args) != 1:
            raise NotPlainError(f"line {node.lineno}: np.{name}")
        (of,) = node.args
        if name == "int64" and isinstance(of, ast.Call) and ast.unparse(of.func) == "np.rint":
            return call("round", self._expr(of.args[0])[0]), ANY
        made, kind = self._expr(of)
        if kind == SMALL:
            kind = WORD
        is_truth = isinstance(of, (ast.Compare, ast.BoolOp))
        if name == "uint64":
            return made, (kind or (WORD if is_truth or isinstance(made, ast.Constant) else LOOSE))
        if name == "int64":
            if is_truth or (not kind and isinstance(made, ast.Constant) and isinstance(made.value, int)):
                return made, ANY
            return (signed(made, kind) if kind else call("int", made)), ANY
        if name in ("int8", "int32"):
            return call(f"_{name}", made), ANY
        if name in _UNSIGNED:
            return masked(made, _UNSIGNED[name]), SMALL
        if name in ("float64", "bool_"):
            return call("float" if name == "float64" else "bool", self._value(of)[0]), ANY
        if name == "rint":
            return call("float", call("round", made)), ANY
        if name in ("floor", "ceil"):
            return call("_" + name, made), ANY
        raise NotPlainError(f"line {node.lineno}: np.{name}")
