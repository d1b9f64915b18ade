"""Keys that get another worker when one joins or leaves, on a ring and by a remainder (000, section 4.2.2)."""

from collections.abc import Iterator

from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement

__all__ = ["statements"]


def statements(question: Question) -> Iterator[Statement]:
    """Yield the expected shares of keys that get another worker."""
    if not question.concerns("kg", "fish", "bounded_load"):
        return
    n = question.workers
    where = "000, section 4.2.2"
    yield Statement(
        name="ring_join_share", formula="1/(n + 1): share of the keys that move on a ring when a worker joins",
        value=1 / (n + 1), unit="share", source=where,
    )  # fmt: skip
    yield Statement(
        name="modulo_join_share", formula="n/(n + 1): the same by hash mod n", value=n / (n + 1), unit="share",
        source=where,
    )  # fmt: skip
    if n > 1:
        yield Statement(
            name="ring_leave_share", formula="1/n: share of the keys that move on a ring when a worker leaves",
            value=1 / n, unit="share", source=where,
        )  # fmt: skip
        yield Statement(
            name="modulo_leave_share", formula="(n - 1)/n: the same by hash mod n", value=(n - 1) / n, unit="share",
            source=where,
        )  # fmt: skip
