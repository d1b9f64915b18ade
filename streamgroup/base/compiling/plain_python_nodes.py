"""Nodes of syntax trees, and small changes of them, for the rewriter of compiled functions to plain Python."""

import ast

from streamgroup.base.compiling.plain_python_kinds import WORD, Kind

__all__ = ["MASK", "SIMPLE", "FieldsFirst", "Put", "call", "is_simple", "masked", "signed"]

MASK = (1 << 64) - 1
SIMPLE = (ast.Name, ast.Constant)


def call(name: str, *arguments: ast.expr) -> ast.expr:
    """Make a call of a global function."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def masked(node: ast.expr, mask: int) -> ast.expr:
    """Mask a number."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.Constant(node.value & mask)
    return ast.BinOp(node, ast.BitAnd(), ast.Constant(mask))


def signed(node: ast.expr, kind: Kind) -> ast.expr:
    """Return what a word is as a signed number."""
    once = node if kind == WORD else masked(node, MASK)
    low = ast.Compare(ast.NamedExpr(ast.Name("_w", ast.Store()), once), [ast.Lt()], [ast.Constant(1 << 63)])
    high = ast.BinOp(ast.Name("_w", ast.Load()), ast.Sub(), ast.Constant(1 << 64))
    return ast.IfExp(low, ast.Name("_w", ast.Load()), high)


def is_simple(node: ast.expr) -> bool:
    """Return whether to look at a value twice costs less than a call."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, SIMPLE) and isinstance(node.slice, SIMPLE)
    return isinstance(node, SIMPLE)


class Put(ast.NodeTransformer):
    """Puts expressions in the places of names."""

    def __init__(self, of: dict[str, ast.expr]) -> None:
        self._of = of

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put what there is for the name."""
        return self._of.get(node.id, node)


class FieldsFirst(ast.NodeTransformer):
    """Turns `a[i].field`, of an array of records, into `a.field[i]`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Swap the field and the place."""
        self.generic_visit(node)
        if not isinstance(node.value, ast.Subscript) or node.attr == "shape":
            return node
        rows, place = node.value.value, node.value.slice
        field = ast.copy_location(ast.Attribute(rows, node.attr, ast.Load()), node)
        return ast.copy_location(ast.Subscript(field, place, node.ctx), node)
