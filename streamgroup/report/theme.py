"""The look of charts: colours for light and dark, one for each grouping, and axes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import altair as alt

__all__ = ["HEIGHT", "THEMES", "WIDTH", "Look", "Theme"]

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, Theme] = ("light", "dark")

# Of a chart that stands alone; in a page it is as wide as there is room.
WIDTH, HEIGHT = 640, 320

# Distinguishable also without red or green, with a contrast of at least 3 to the background.
_LINES: Mapping[Theme, tuple[str, ...]] = {
    "light": ("#1e47ea", "#e8590c", "#0a7f3f", "#b5179e", "#0891b2", "#6b2e12", "#8a7a00", "#4b5563"),
    "dark": ("#7d8fff", "#ff9f43", "#4ade80", "#f472d0", "#67e8f9", "#c98a5b", "#f2e34c", "#c3cad4"),
}
_DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2))
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_INKS: Mapping[Theme, Mapping[str, str]] = {
    "light": {"ink": "#1c2024", "muted": "#5b636d", "grid": "#e3e6ea", "paper": "#ffffff", "accent": "#1e47ea"},
    "dark": {"ink": "#eceef1", "muted": "#a3abb6", "grid": "#363c44", "paper": "#181b1f", "accent": "#8fa0ff"},
}
# From little to much, and from too little over just right to too much and far too much.
_RAMPS: Mapping[Theme, tuple[str, ...]] = {
    "light": ("#f3f5fb", "#9db4f5", "#3d63e6", "#16246e"),
    "dark": ("#20252e", "#3d4fa8", "#8ba0ff", "#f1f4ff"),
}
_BALANCE: Mapping[Theme, tuple[str, str, str, str]] = {
    "light": ("#2f6fd0", "#f4f4f2", "#e0703f", "#5c1004"),
    "dark": ("#6aa5ff", "#2a2e34", "#d9793f", "#ffe3d0"),
}
# Of names, so chosen that the usual groupings are spread over the colours.
_SALT = b"792"
_WIDE = 20


@dataclass(frozen=True)
class Look:
    """The colours of a theme, and of the groupings that are shown together.

    `groupings` are all of the page, so that each has one colour in every chart.
    """

    theme: Theme = "light"
    groupings: tuple[str, ...] = ()

    @property
    def muted(self) -> str:
        """Return the colour of what should not stand out."""
        return _INKS[self.theme]["muted"]

    @property
    def accent(self) -> str:
        """Return the one colour of a chart that needs but one."""
        return _INKS[self.theme]["accent"]

    @property
    def series(self) -> list[str]:
        """Return colours of lines that are no groupings."""
        return list(_LINES[self.theme])

    @property
    def ramp(self) -> list[str]:
        """Return colours from little to much."""
        return list(_RAMPS[self.theme])

    @property
    def balance(self) -> list[str]:
        """Return colours from too little over the mean to too much, and far too much."""
        return list(_BALANCE[self.theme])

    @cached_property
    def _slots(self) -> dict[str, tuple[int, int]]:
        """Assign each grouping a colour by its name, the next one where that is taken, and a round of colours."""
        slots: dict[str, tuple[int, int]] = {}
        colours = len(_LINES[self.theme])
        for name in sorted(self.groupings, key=lambda name: (":" in name, name)):
            family = name.split(":")[0].encode("utf-8", "surrogatepass")
            wanted = int.from_bytes(blake2b(_SALT + family, digest_size=4).digest(), "big") % colours
            taken = set(slots.values())
            around = range(len(self.groupings) // colours + 1)
            free = (((wanted + step) % colours, turn) for turn in around for step in range(colours))
            slots[name] = next(slot for slot in free if slot not in taken)
        return slots

    def _ordered(self, names: Sequence[str]) -> list[str]:
        """Return each of the names once, in the order of the page."""
        chosen = set(names)
        return [name for name in self.groupings if name in chosen]

    def colour(self, names: Sequence[str], *, legend: bool = True) -> alt.Color:
        """Colour by the column `grouping`; `names` are those of the chart."""
        order = self._ordered(names)
        scale = alt.Scale(domain=order, range=[self.colour_of(name) for name in order])
        return alt.Color("grouping:N", title=None, scale=scale, legend=alt.Legend(symbolOpacity=1) if legend else None)

    def shape(self, names: Sequence[str]) -> alt.Shape:
        """Add a shape for each grouping, for readers who see few colours."""
        order = self._ordered(names)
        scale = alt.Scale(domain=order, range=[_SHAPES[sum(self._slots[name]) % len(_SHAPES)] for name in order])
        return alt.Shape("grouping:N", title=None, scale=scale)

    def dash(self, names: Sequence[str]) -> alt.StrokeDash:
        """Dash the lines of groupings that share a colour."""
        order = self._ordered(names)
        scale = alt.Scale(domain=order, range=[list(_DASHES[self._slots[name][1] % len(_DASHES)]) for name in order])
        return alt.StrokeDash("grouping:N", title=None, scale=scale)

    def colour_of(self, name: str) -> str:
        """Return the colour of a grouping; KeyError for one that is not of the page."""
        return _LINES[self.theme][self._slots[name][0]]

    @staticmethod
    def axis(values: Sequence[float | None], *, percent: bool = False) -> dict[str, Any]:
        """Return `scale` and `axis` of a channel for these values: logarithmic over more than a factor of 20.

        Zeros among such values stand at the foot of an axis that is straight up to the least of the others.
        """
        known = [value for value in values if value is not None]
        above = [value for value in known if value > 0]
        large = max(known, default=0) >= 10_000
        form: dict[str, Any] = {"format": ".3~%" if percent else ".3~s" if large else ".4~g"}
        if not above or min(known) < 0 or max(above) / min(above) <= _WIDE:
            return {"scale": alt.Scale(zero=True, nice=True), "axis": alt.Axis(tickCount=5, **form)}
        low, high = (math.floor(math.log10(min(above))), math.ceil(math.log10(max(above))))
        # A power that has no room goes without a number, and not every other one.
        form["labelOverlap"] = "greedy"
        step = max(1, math.ceil((high - low) / 6))
        powers = [10.0**power for power in range(low, high + 1, step)]
        if sum(min(above) <= power <= max(above) for power in powers) <= 2:
            powers = [digit * 10.0**power for power in range(low, high + 1) for digit in (1, 2, 5)]
        if min(known) > 0:
            return {"scale": alt.Scale(type="log", nice=False), "axis": alt.Axis(values=powers, **form)}
        scale = alt.Scale(type="symlog", constant=min(above), nice=False)
        return {"scale": scale, "axis": alt.Axis(values=[0.0, *(at for at in powers if at >= min(above))], **form)}

    def config(self) -> dict[str, Any]:
        """Return the Vega-Lite configuration of the theme."""
        inks = _INKS[self.theme]
        text = {"labelColor": inks["muted"], "titleColor": inks["ink"], "labelFontSize": 12, "titleFontSize": 12}
        return {
            "background": inks["paper"],
            "font": "sans-serif",
            "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
            "axis": {
                **text,
                "titleFontWeight": "normal",
                "gridColor": inks["grid"],
                "domainColor": inks["muted"],
                "tickColor": inks["muted"],
                "labelLimit": 140,
                "labelOverlap": True,
            },
            "legend": {
                **text,
                "orient": "top",
                "direction": "horizontal",
                # As many columns as there is room for; no name is cut.
                "columns": max(1, min(6, WIDTH // (max(map(len, self.groupings), default=8) * 7 + 34))),
                "labelColor": inks["ink"],
                "labelLimit": 0,
                "symbolSize": 80,
                "symbolStrokeWidth": 2,
            },
            "header": {"labelColor": inks["ink"], "labelFontSize": 12, "titleColor": inks["ink"], "labelLimit": 340},
            "title": {"color": inks["ink"], "fontSize": 14, "anchor": "start"},
            "line": {"strokeWidth": 2},
            "point": {"filled": True, "size": 50},
            "text": {"color": inks["ink"], "fontSize": 12},
            "rule": {"color": inks["muted"]},
        }
