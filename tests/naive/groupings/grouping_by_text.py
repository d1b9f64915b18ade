"""The naive grouping that a text such as `fish:alpha=0.5,epoch=100` names."""

from importlib import import_module

from tests.naive.groupings.fish import Fish
from tests.naive.groupings.hot_key_groupings import DChoices, GreedyDHead, GreedyFreq, Rr, WChoices
from tests.naive.groupings.simple_groupings import FullKnowledge, GreedyD, Grouping, Kg, Pkg, Setting, Sg, SgRandom
from tests.naive.kernels.hash_ring import KgRing
from tests.naive.option_texts import truth

__all__ = ["make"]

# Classes that take the texts as they are.
BY_TEXTS = {
    "sg": Sg,
    "sg_random": SgRandom,
    "d_choices": DChoices,
    "w_choices": WChoices,
    "rr": Rr,
    "greedy_freq": GreedyFreq,
    "fish": Fish,
}
ELSEWHERE = {
    "bounded_load": ("bounded_load", "BoundedLoad"),
    "cam": ("cm_and_cam", "Cam"),
    "cm": ("cm_and_cam", "Cm"),
    "dagreedy": ("dagreedy", "DaGreedy"),
    "dalton": ("dalton", "Dalton"),
    "load_aware": ("load_aware", "load_aware"),
    "dstream": ("dstream", "DStream"),
    "dynamic_kg": ("dynamic_kg", "DynamicKg"),
    "posg": ("posg", "Posg"),
    "rivetti_dkg": ("rivetti_dkg", "RivettiDkg"),
    "salted": ("salted", "Salted"),
    "consistent_grouping": ("consistent_grouping", "ConsistentGrouping"),
}


def parameters(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def make(text: str, setting: Setting) -> Grouping:
    """At its start. Parameters are those of the command line, with their texts."""
    name, _, rest = text.partition(":")
    given = parameters(rest)
    setting = setting._replace(modulo=given.pop("hash", "scaled") == "mod")
    if name in BY_TEXTS:
        return BY_TEXTS[name](setting, **given)
    if name in ELSEWHERE:
        module, kind = ELSEWHERE[name]
        return getattr(import_module(f"tests.naive.groupings.{module}"), kind)(setting, **given)
    if name == "kg":
        by_ring = truth(given.pop("ring", False))
        return KgRing(setting, **given) if by_ring else Kg(setting)
    if name == "pkg":
        return Pkg(setting, **{parameter: int(value) for parameter, value in given.items()})
    if name == "greedy_d":
        of_head = given.pop("scope", "all") == "head"
        return GreedyDHead(setting, **given) if of_head else GreedyD(setting, int(given["d"]))
    if name in ("full_knowledge", "oracle"):
        return FullKnowledge(setting, backlog=name == "oracle" or truth(given.get("backlog", False)))
    raise ValueError(f"no twin of {name}")
