"""What an application is: a module with the functions of its state.

- `start(params)` returns the state of a key before its first tuple.
- `update(state, key, value, weight)` returns the state after a tuple: `key` is its id, `value` and `weight` are the
  columns of the trace, 0.0 where the application does not ask for them.
- `merge(a, b)` returns the state of two workers together; `finish(state)` the result.

A result is a number, or a NamedTuple of numbers; one that is not a number (NaN) is null. A state that is a NamedTuple
of ints and floats is compiled for large traces: then the functions may use numbers, `math` and functions of their
module. Any other state, such as a list, is interpreted.

Optional are `Params`, a subclass of `AppParams`; `COLUMNS`, the columns of the trace that it reads, of value and
weight; `MERGEABLE = False` where states of one key on several workers have no common result, and then there is no
`merge`; `largest(params)`, how many results of a window are kept, the largest ones; and `keeps(key)`, which says of
the text of a key whether it has results.
"""

from pydantic import BaseModel, ConfigDict

from streamgroup.apps._compensated_sum import added

__all__ = ["AppParams", "added"]


class AppParams(BaseModel):
    """Parameters of an application: frozen, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
