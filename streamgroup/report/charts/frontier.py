"""The frontier of p99 latency against replication: what a lower latency costs in replicas."""

from typing import Any, NamedTuple

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import PANEL_HEIGHT, faceted, paneled
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import HEIGHT, WIDTH, Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency against replication"
SECTION: Section = "groupings"
ORDER = 60

_PADDING = 22
# Where a name may stand beside its point, the best first: whether on the left, and how far below it, in pixels. The
# frontier leaves a point to the right and comes to it from above.
_ASIDE = 9
_SLOTS = tuple((is_left, dy) for dy in (-11, 12, -25, 26, -39, 40) for is_left in (False, True))
_CHARACTER = 6.6


def frame(data: ReportData) -> pl.DataFrame:
    """Return `replication_factor` and `latency_p99_ms`, means over seeds, with the largest p99 of any seed.

    One row for each `condition`, `grouping` and `workers`. `frontier` says that no other grouping is as good in both
    and better in one on so many workers.
    """
    runs = data.charted
    keys = ["condition", "workers", "grouping"]
    both = pl.col("replication_factor").is_not_null() & pl.col("latency_p99_ms").is_not_null()
    means = (
        runs.filter(both)
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("runs"),
            pl.col("replication_factor").mean(),
            pl.col("latency_p99_ms").mean(),
            pl.col("latency_p99_ms").max().alias("latency_p99_ms_max"),
        )
        .sort(keys)
    )
    if means.height < 2:
        return paneled(means.clear()).with_columns(pl.lit(None, pl.Boolean).alias("frontier"))
    return paneled(pl.concat(_marked(part) for part in means.partition_by("condition", "workers", maintain_order=True)))


def _marked(part: pl.DataFrame) -> pl.DataFrame:
    ordered = part.sort("replication_factor", "latency_p99_ms", "grouping")
    before = pl.col("latency_p99_ms").cum_min().shift(1)
    best = pl.col("latency_p99_ms") < before
    twins = pl.struct("replication_factor", "latency_p99_ms")
    marked = ordered.with_columns((before.is_null() | best).alias("frontier"))
    return marked.with_columns(pl.col("frontier").any().over(twins)).sort("grouping")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a point for each grouping and number of workers, and the frontier of the most workers, with names."""
    names = frame["grouping"].to_list()
    axes = {name: look.axis(frame[name].to_list()) for name in ("replication_factor", "latency_p99_ms")}
    for axis in axes.values():
        axis["scale"].padding = _PADDING
        # So that names are placed where the points are.
        axis["scale"].nice = False
        if not _is_log(axis):
            axis["scale"].zero = False
    x = alt.X("replication_factor:Q", title="replication (workers a key)", **axes["replication_factor"])
    y = alt.Y("latency_p99_ms:Q", title="p99 latency (ms)", **axes["latency_p99_ms"])
    base = alt.Chart().encode(x=x, y=y)
    most = base.transform_joinaggregate(most_workers="max(workers)", groupby=["panel"])
    best = most.transform_filter("datum.frontier && datum.workers == datum.most_workers")
    tooltip = [
        alt.Tooltip("grouping:N"),
        alt.Tooltip("workers:Q"),
        alt.Tooltip("replication_factor:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms_max:Q", format=".4~g"),
    ]
    several = frame["workers"].n_unique() > 1
    line = best.mark_line(interpolate="step-after", color=look.muted, strokeDash=[4, 3], strokeWidth=1.5)
    # Outlines: of marks at one place each is to be seen.
    points = base.mark_point(opacity=1, filled=False, strokeWidth=2).encode(
        color=look.colour(names),
        shape=look.shape(names),
        size=_by_workers(frame) if several else alt.value(100),
        tooltip=tooltip,
    )
    layers = [line, points]
    if several:
        path = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(
            color=look.colour(names), detail="grouping:N", order="workers:Q"
        )
        layers.insert(0, path)
    labelled = _labelled(frame, axes)
    for slot, (is_left, dy) in enumerate(_SLOTS):
        if (labelled["slot"] == slot).any():
            text = base.transform_filter(f"datum.slot === {slot}").encode(text="grouping:N")
            text.mark = alt.MarkDef(
                type="text", align="right" if is_left else "left", dx=-_ASIDE if is_left else _ASIDE, dy=dy, limit=220
            )
            layers.append(text)
    return faceted(alt.layer(*layers), labelled, apart=True)


def _by_workers(frame: pl.DataFrame) -> alt.Size:
    """Return a size of points that grows with the number of workers."""
    counts = sorted(frame["workers"].unique().to_list())
    steps = [60 + 140 * place / max(1, len(counts) - 1) for place in range(len(counts))]
    legend = alt.Legend(title="workers", symbolType="circle", titleOrient="left")
    return alt.Size("workers:O", scale=alt.Scale(type="ordinal", domain=counts, range=steps), legend=legend)


def _is_log(axis: dict[str, Any]) -> bool:
    return bool(axis["scale"].to_dict().get("type") == "log")


def _labelled(frame: pl.DataFrame, axes: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Add `slot`, where the name of a grouping on the frontier of the most workers stands, null for all others.

    In turn each gets the place where it covers the fewest names and points.
    """
    panels = frame.partition_by("panel", maintain_order=True)
    # `faceted` has the same heights in all panels, on one scale, and a scale of its own for the x of each.
    width, height = (WIDTH, HEIGHT) if len(panels) == 1 else (WIDTH // 2, PANEL_HEIGHT)
    found = []
    for panel in panels:
        x = _pixels(panel["replication_factor"], panel, axes, width)
        y = [height - place for place in _pixels(panel["latency_p99_ms"], frame, axes, height)]
        found.append(panel.with_columns(pl.Series("slot", _slots(panel, x, y, (width, height)), pl.Int64)))
    return pl.concat(found)


def _pixels(values: pl.Series, shown: pl.DataFrame, axes: dict[str, dict[str, Any]], size: int) -> list[float]:
    """Return where values stand on an axis of a size that spans all that is shown."""
    both = (values.cast(pl.Float64), shown[values.name].cast(pl.Float64))
    places, ends = (one.log() for one in both) if _is_log(axes[values.name]) else both
    low, high = float(ends.min()), float(ends.max())  # type: ignore[arg-type]
    return [_PADDING + (place - low) / ((high - low) or 1.0) * (size - 2 * _PADDING) for place in places]


def _slots(panel: pl.DataFrame, x: list[float], y: list[float], size: tuple[int, int]) -> list[int | None]:
    """Return the place of each name, by its number in `_SLOTS`; `x` and `y` are pixels from the upper left corner."""
    points = [_Box(at - 6, up - 6, at + 6, up + 6) for at, up in zip(x, y, strict=True)]
    most = panel["workers"].max()
    names: list[_Box] = []
    chosen: list[int | None] = []
    for at, row in enumerate(panel.iter_rows(named=True)):
        if not row["frontier"] or row["workers"] != most:
            chosen.append(None)
            continue
        boxes = [_Box.of(row["grouping"], x[at], y[at], slot) for slot in _SLOTS]
        costs = [(not box.is_within(*size), sum(map(box.covers, names)), sum(map(box.covers, points))) for box in boxes]
        best = costs.index(min(costs))
        names.append(boxes[best])
        chosen.append(best)
    return chosen


class _Box(NamedTuple):
    """What a mark takes of a panel, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of(cls, name: str, x: float, y: float, slot: tuple[bool, int]) -> "_Box":
        """Return what a name takes at a place beside a point."""
        is_left, dy = slot
        size = min(220.0, _CHARACTER * len(name))
        start = x - _ASIDE - size if is_left else x + _ASIDE
        return cls(start, y + dy - 7, start + size, y + dy + 7)

    def is_within(self, width: int, height: int) -> bool:
        """Return whether it is in a panel of this size."""
        return self.left >= 0 and self.right <= width and self.top >= 0 and self.bottom <= height

    def covers(self, other: "_Box") -> bool:
        """Return whether both share some place."""
        return (
            self.left < other.right and other.left < self.right
            and self.top < other.bottom and other.top < self.bottom
        )  # fmt: skip


def caption(frame: pl.DataFrame) -> str:
    """Walk along the frontier of the most workers in each of the first panels."""
    several = frame["workers"].n_unique() > 1
    best = "the dashed line joins the groupings that no other beats in both"
    sentences = [f"Down and to the left is better; {best}{' on the most workers' if several else ''}."]
    if several:
        sentences.append("Points are larger on more workers, and solid lines join those of a grouping.")
    for part in frame.partition_by("panel", maintain_order=True)[:3]:
        most = max(part["workers"].to_list())
        chosen = part.filter(pl.col("frontier") & (pl.col("workers") == most)).sort("replication_factor", "grouping")
        steps = ", ".join(
            f"{row['grouping']} ({_replicas(row['replication_factor'])}, {number(row['latency_p99_ms'])} ms)"
            for row in chosen.to_dicts()
        )
        place = ", ".join(text for text in (part["panel"][0], f"{most} workers" if several else "") if text)
        sentences.append(f"{place or 'On it'}: {steps}.")
    return " ".join(sentences)


def _replicas(factor: float) -> str:
    return f"{number(factor)} {'replica' if number(factor) == '1' else 'replicas'} a key"
