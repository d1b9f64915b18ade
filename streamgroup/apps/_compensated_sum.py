"""Sums of floats in two parts, the second of which keeps what rounding takes from the first."""

__all__ = ["added"]


def added(high: float, low: float, term: float) -> tuple[float, float]:
    """Add a term to a sum of two parts, whose rounding error is kept (Neumaier, 1974)."""
    now = high + term
    if abs(high) >= abs(term):
        return now, low + ((high - now) + term)
    return now, low + ((term - now) + high)
