"""Pairs runs with the runs that they are compared with."""

from collections.abc import Mapping, Sequence

import polars as pl

from streamgroup.study.run_option_columns import DEFAULTS

__all__ = ["with_partner"]


def with_partner(
    frame: pl.DataFrame, partners: pl.DataFrame, options: Sequence[str], columns: Mapping[str, str]
) -> pl.DataFrame:
    """Add columns of the partner of each run: the first of `partners` that is equal in all `options`.

    `columns` maps a column of the partner to its name in the result; it is null where there is no partner. The seeds
    that a partner's results do not depend on may differ: of a grouping that draws nothing a sweep has one run.
    """
    columns = {"_paired": "_paired", **columns}
    partners = partners.with_columns(pl.lit(True).alias("_paired"))
    found = _joined(frame, partners, options, columns)
    if not found["_paired"].null_count():
        return found.drop("_paired")
    for unused, chosen in _by_unused_seeds(partners).items():
        more = _joined(frame, chosen, [name for name in options if name not in unused], columns)
        is_paired = found["_paired"].fill_null(False)
        found = found.with_columns(
            pl.when(is_paired).then(pl.col(name)).otherwise(more[name]).alias(name) for name in columns.values()
        )
    return found.drop("_paired")


def _joined(
    frame: pl.DataFrame, partners: pl.DataFrame, options: Sequence[str], columns: Mapping[str, str]
) -> pl.DataFrame:
    # Null options are equal to null options, which a join on the columns themselves would not say.
    same = pl.struct(options).struct.json_encode().alias("_same")
    chosen = partners.select(same, *(pl.col(name).alias(new) for name, new in columns.items()))
    chosen = chosen.unique("_same", keep="first", maintain_order=True)
    joined = frame.with_columns(same).join(chosen, on="_same", how="left", maintain_order="left")
    return joined.drop("_same")


def _by_unused_seeds(partners: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
    """Return the runs by the names of the seeds, one or both, that their results do not depend on."""
    # It imports the groupings, and with them numba: only where it is needed.
    from streamgroup.replay.scenario.seeds_used import SEEDS, seeds_used

    places: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(partners.iter_rows(named=True)):
        used = seeds_used({**DEFAULTS, **row})
        places.setdefault(tuple(name for name in SEEDS if name not in used), []).append(place)
    return {unused: partners[chosen] for unused, chosen in places.items() if unused}
