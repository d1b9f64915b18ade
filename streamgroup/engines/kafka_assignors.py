"""Kafka's assignors: which member of a consumer group reads which partition, for one topic.

- `range` (`RangeAssignor`): contiguous runs; with P partitions and n members the first P mod n get one more.
- `round_robin` (`RoundRobinAssignor`): partition i goes to member i modulo their number.
- `sticky` (`StickyAssignor` and `CooperativeStickyAssignor`, of members that all subscribe to the same): each keeps
  its partitions up to its quota, and the free ones are assigned to those below it.

All are classes of apache/kafka (clients: org/apache/kafka/clients/consumer). They take the members in the order of
their ids, which are random in a real group, so who of them gets one more is not known beforehand: here the order is
that of the workers. With more members than partitions, some get none. Kafka's newer groups, where the broker assigns
(KIP-848), have assignors of their own, which are not here. Without vectors: the rules are read from the source.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.engines.keys.typed_key_values import check_choice, check_workers

__all__ = ["Assignor", "assign", "owners"]

Assignor = Literal["range", "round_robin", "sticky"]


def assign(
    partitions: int,
    members: Sequence[int],
    assignor: Assignor = "range",
    owned: Mapping[int, Sequence[int]] | None = None,
) -> dict[int, list[int]]:
    """Return each member's partitions (ids 0..partitions-1).

    `members` are the ids of the live members, in the order in which the assignor takes them, all different. `owned` are
    the partitions that members had before, used by `sticky` only; those of members that have left are free.
    """
    check_workers(partitions, "partitions")
    if not members or len(set(members)) < len(members):
        raise UsageError(f"members {list(members)}: one at least, and each once")
    if check_choice("assignor", assignor, get_args(Assignor)) == "sticky":
        return _sticky(partitions, members, owned or {})
    found: dict[int, list[int]] = {member: [] for member in members}
    if assignor == "round_robin":
        for partition in range(partitions):
            found[members[partition % len(members)]].append(partition)
        return found
    each, more = divmod(partitions, len(members))
    first = 0
    for place, member in enumerate(members):
        size = each + (place < more)
        found[member] = list(range(first, first + size))
        first += size
    return found


def _sticky(partitions: int, members: Sequence[int], owned: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    least, more = divmod(partitions, len(members))
    most = least + (more > 0)
    # How many members have more than the least number; `more` of them will.
    above = 0
    found: dict[int, list[int]] = {}
    below: deque[int] = deque()
    at_least: deque[int] = deque()
    for member in members:
        had = sorted(owned.get(member, ()))
        if len(had) < least:
            found[member] = had
            below.append(member)
        elif above < more and len(had) >= most:
            above += 1
            found[member] = had[:most]
        else:
            found[member] = had[:least]
            at_least.append(member)
    kept = {partition for had in found.values() for partition in had}
    for partition in sorted(set(range(partitions)) - kept):
        # Members below the least number are filled first, round robin; then others get one more each.
        if below:
            member = below.popleft()
            found[member].append(partition)
            (at_least if len(found[member]) == least else below).append(member)
        else:
            found[at_least.popleft()].append(partition)
    return found


def owners(assignment: Mapping[int, Sequence[int]]) -> NDArray[np.int64]:
    """Return the member that has each partition: int64[partitions]."""
    found = np.empty(sum(map(len, assignment.values())), dtype=np.int64)
    for member, partitions in assignment.items():
        found[np.array(partitions, dtype=np.int64)] = member
    return found
