"""The replay a second time: pure Python, obvious and slow, from the specification, not from the package.

Nothing here imports `streamgroup`. Integers, `Fraction`s, lists and dicts only, so that a difference
between the two is a mistake in one of them and never shared rounding.
"""
