"""Apache Storm: which task of the target component a tuple goes to.

Results are places in the list of the target's task ids, ascending; n is the number of tasks, not of executors or
workers. Read in 0.9.3, 0.10.x, 1.x to 1.2.4 and 2.0.0 to 2.8.8; each function says where.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import hash_code, hash_codes, list_hash, random_below, random_start
from streamgroup.engines.hashes.murmur128 import murmur128, murmur128_low
from streamgroup.engines.keys.decimal_text import decimal_texts
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_workers, fields_of, java_utf8
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "Mode",
    "Version",
    "fields_task",
    "fields_tasks_all",
    "pkg_choose",
    "pkg_tasks",
    "pkg_tasks_all",
    "trident_task",
    "trident_tasks_all",
]

Version = Literal["1", "2"]
Mode = Literal["fields", "first"]

_SEEDS = (13, 17)
_IDENTITY = "Java prints an array by its identity, another one in each process"


def fields_task(key: Value | Sequence[Value], n: int) -> int:
    """Return the task of a fields grouping, 0..n-1: the floored remainder of the hash of the list of the fields.

    `key` is a field, or a tuple of the fields in the order given to `fieldsGrouping`. For one field that is
    31 + hashCode modulo n, not hashCode modulo n. A null field counts 0. One rule from 0.9.x to 2.8.x
    (mk-fields-grouper in daemon/executor.clj; GrouperFactory.java and TupleUtils.java); in 0.9.x an array hashes by its
    identity, from 0.10 on by what it holds.
    """
    check_workers(n)
    return list_hash(map(hash_code, fields_of(key))) % n


def fields_tasks_all(keys: Keys, n: int) -> NDArray[np.uint16]:
    """Return `fields_task` of every key: uint16[K]."""
    if keys.parts:
        return keys.each(lambda key: fields_task(key, n))
    return ((hash_codes(keys) + np.int32(31)) % np.int32(check_workers(n))).astype(np.uint16)


def trident_task(key: Value, n: int) -> int:
    """Return the partition of Trident's IndexHashGrouping, 0..n-1: hashCode without its sign bit, modulo n; 0 for null.

    Not the rule of the fields grouping, which `partitionBy` is. 0.10 to 2.8.x (IndexHashGrouping.java); 0.9.x takes the
    absolute value instead, and fails on a hash of -2^31.
    """
    check_workers(n)
    fields = fields_of(key)
    if len(fields) > 1:
        raise UsageError(f"IndexHashGrouping looks at one field, not {len(fields)}", "give the value of that field")
    return (hash_code(fields[0]) & 0x7FFF_FFFF) % n


def trident_tasks_all(keys: Keys, n: int) -> NDArray[np.uint16]:
    """Return `trident_task` of every key: uint16[K]."""
    keys.refuse_composite("Trident's IndexHashGrouping")
    return ((hash_codes(keys) & np.int32(0x7FFF_FFFF)) % np.int32(check_workers(n))).astype(np.uint16)


def _check(version: str, mode: str) -> None:
    for name, value, known in (("version", version, get_args(Version)), ("mode", mode, get_args(Mode))):
        if value not in known:
            raise UsageError(f"{name}={value!r}: must be {' or '.join(known)}")


def _bytes_of(key: Value | Sequence[Value], mode: str) -> bytes:
    fields = fields_of(key)
    if mode == "fields":
        return b"".join(hash_code(field).to_bytes(4, "big", signed=True) for field in fields)
    first = fields[0]
    if first is None:
        raise DataError("Storm's PartialKeyGrouping without fields refuses a null key", "use mode=fields")
    if isinstance(first, bytes):
        raise UsageError(f"no rule for bytes with mode=first: {_IDENTITY}", "use mode=fields")
    return java_utf8(first) if isinstance(first, str) else b"%d" % first


def pkg_tasks(key: Value | Sequence[Value], n: int, version: Version = "2", mode: Mode = "fields") -> tuple[int, int]:
    """Return the two tasks that partial key grouping may send a key to, in their order, each 0..n-1.

    `mode` fields is `partialKeyGrouping(component, Fields)`: of each field the 4 bytes of its hashCode are hashed, so
    that keys of equal hashCode share both tasks. `mode` first is `new PartialKeyGrouping()`: the text of the first
    value, in UTF-8 (before Java 18 it follows file.encoding); DataError for null.

    `version` "1", 0.10.0 to 1.2.4: MurmurHash3 with seeds 13 and 17; both may be the same task, for one key in n. One
    hash in 2^64 has no absolute value, and Storm throws.
    `version` "2", 2.0.0 to 2.8.8: two draws of java.util.Random, seeded with the hash of the bytes; if equal the second
    is the next task. For n a power of two the draws are top bits, which close seeds share: keys that are numbered hit
    few tasks first.
    """
    check_workers(n)
    _check(version, mode)
    found = _bytes_of(key, mode)
    if version == "1":
        one, two = (abs(murmur128(found, seed)) % n for seed in _SEEDS)
        return one, two
    state = random_start(hash_code(found))
    one, state = random_below(state, n)
    two, state = random_below(state, n)
    return one, (two + 1) % n if one == two else two


def pkg_choose(tasks: tuple[int, int], load: list[int]) -> int:
    """Choose of the two tasks the one with less `load`, ties to the first, and count the tuple: both versions alike.

    `load` int[n] is what one upstream executor sent since it started; executors do not share it.
    """
    one, two = tasks
    chosen = two if load[one] > load[two] else one
    load[chosen] += 1
    return chosen


def pkg_tasks_all(keys: Keys, n: int, version: Version = "2", mode: Mode = "fields") -> NDArray[np.uint16]:
    """Return `pkg_tasks` of every key: uint16[K, 2]."""
    check_workers(n)
    _check(version, mode)
    if keys.parts:
        return keys.each(lambda key: pkg_tasks(key, n, version, mode)).reshape(keys.count, 2)
    found = np.empty((keys.count, 2), dtype=np.uint16)
    if mode == "fields":
        data = hash_codes(keys).astype(">i4").view(np.uint8)
        start = np.arange(0, 4 * keys.count + 1, 4, dtype=np.int64)
    else:
        keys.refuse_null("Storm's PartialKeyGrouping without fields")
        keys.refuse_kinds("Storm's PartialKeyGrouping without fields", ["bytes"], _IDENTITY)
        data, start = (keys.data, keys.start) if keys.kind == "string" else decimal_texts(keys.number)
    data, start = data.view(), start.view()
    data.flags.writeable = start.flags.writeable = False
    (_pairs_1 if version == "1" else _pairs_2)(data, start, np.uint64(n), found)
    return found


@compiled
def _pairs_1(data: Any, start: Any, n: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        for which in range(2):
            word = murmur128_low(data, start[key], start[key + 1], np.uint64(13 if which == 0 else 17))
            if word >> np.uint64(63):
                word = np.uint64(0) - word
            found[key, which] = word % n


@njit
def _next(state: Any) -> Any:
    return (state * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & np.uint64(0xFFFF_FFFF_FFFF)


@compiled
def _pairs_2(data: Any, start: Any, n: Any, found: Any) -> None:
    one = np.uint64(1)
    for key in range(found.shape[0]):
        seed = np.uint32(1)
        for at in range(start[key], start[key + 1]):
            seed = np.uint32(np.uint32(31) * seed + np.uint32(np.int32(np.int8(data[at]))))
        state = (np.uint64(np.int64(np.int32(seed))) ^ np.uint64(0x5DEECE66D)) & np.uint64(0xFFFF_FFFF_FFFF)
        for which in range(2):
            while True:
                state = _next(state)
                drawn = state >> np.uint64(17)
                if n & (n - one) == 0:
                    task = (n * drawn) >> np.uint64(31)
                    break
                task = drawn % n
                if drawn - task + (n - one) < np.uint64(1 << 31):
                    break
            found[key, which] = task
        if found[key, 0] == found[key, 1]:
            found[key, 1] = (np.uint64(found[key, 1]) + one) % n
