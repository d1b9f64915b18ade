"""Runs paired with the run that they are compared with."""

from collections.abc import Mapping, Sequence

import polars as pl

from streamgroup.study.columns import DEFAULTS

__all__ = ["with_partner"]

_SEEDS = ("seed", "hash_seed")


def with_partner(
    frame: pl.DataFrame, partners: pl.DataFrame, options: Sequence[str], columns: Mapping[str, str]
) -> pl.DataFrame:
    """Add columns of the partner of each run: the first of `partners` that is equal in all `options`.

    `columns` maps a column of the partner to its name in the result; it is null where there is no partner. A partner
    whose results do not depend on the seed, of which a sweep has one run, is that of every seed.
    """
    columns = {"_paired": "_paired", **columns}
    partners = partners.with_columns(pl.lit(True).alias("_paired"))
    found = _joined(frame, partners, options, columns)
    if found["_paired"].null_count():
        any_seed = _joined(frame, _of_any_seed(partners), [name for name in options if name not in _SEEDS], columns)
        is_paired = found["_paired"].fill_null(False)
        found = found.with_columns(
            pl.when(is_paired).then(pl.col(name)).otherwise(any_seed[name]).alias(name) for name in columns.values()
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


def _of_any_seed(partners: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs whose results do not depend on the seed."""
    # It imports the groupings, and with them numba: only where it is needed.
    from streamgroup.replay.seeds import options_depend_on_seed

    rows = partners.iter_rows(named=True)
    fixed = [not options_depend_on_seed({**DEFAULTS, **row}) for row in rows]
    return partners.filter(pl.Series(fixed, dtype=pl.Boolean))
