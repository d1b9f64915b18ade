"""What groupings see that declare an exception."""

__all__ = ["View"]


class View:
    """What a declared exception sees, up to date at every choice: cost by worker, when each is free, its speed.

    `shared_cost` is the part of the cost that all workers have in common, `own_factor` by worker what it is
    multiplied with there.
    """

    def __init__(self) -> None:
        self.shared_cost = 0.0
        self.own_factor: list[float] = []
        self.cost: list[float] = []
        self.free: list[int] = []
        self.slowdown: list[float] = []
