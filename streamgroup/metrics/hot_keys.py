"""How many workers the keys that a grouping treated as hot were allowed."""

from streamgroup.metrics.exact import ratio
from streamgroup.metrics.names import Number
from streamgroup.replay.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Give the largest and the mean choice over the tuples treated as hot; None where there was none."""
    hot, choices = outcome.hot_tuples, outcome.hot_choices_sum
    return {
        "choices_max": outcome.choices_max if hot else None,
        "choices_mean": ratio(choices, hot) if hot and choices is not None else None,
    }
