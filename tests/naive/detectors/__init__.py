"""Hot-key detectors by name, each as docs/detectors.md reads."""

from typing import Any

from tests.naive.detectors.counts import DecayedSpaceSaving, Exact, LossyCounting, SpaceSavingDetector
from tests.naive.detectors.detector_base import Detector
from tests.naive.detectors.sketches import AdaCms, CountMin
from tests.naive.detectors.synopsis import Predictor
from tests.naive.detectors.windows import Wcss
from tests.naive.groupings.simple_groupings import Setting

__all__ = ["DETECTORS", "Detector", "make_detector"]

DETECTORS: dict[str, type[Detector]] = {
    "space_saving": SpaceSavingDetector,
    "decayed_space_saving": DecayedSpaceSaving,
    "lossy_counting": LossyCounting,
    "count_min": CountMin,
    "ada_cms": AdaCms,
    "wcss": Wcss,
    "exact": Exact,
    "synopsis": Predictor,
}


def make_detector(name: str, setting: Setting, given: dict[str, Any]) -> Detector:
    """At its start. Parameters are those of the command line, with their texts."""
    return DETECTORS[name](setting, **given)
