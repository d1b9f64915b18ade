"""Where Spark puts the pairs of an RDD in Scala or Java: `HashPartitioner`, of `partitionBy`, `reduceByKey` and others.

`partition = floorMod(key.hashCode, n)`, null to 0 (class `Partitioner.scala` of apache/spark, core). A Scala `Tuple2`
has a hash of its own: MurmurHash3 over the hashes of the name "Tuple2" and of both elements, where a long that fits an
int counts as one. Vectors are from Spark 4.3.0 with Scala 2.13; Scala 2.12 leaves the name out and is not covered.

Traps: arrays have no hash by content, and Spark refuses them as keys. DataFrames do otherwise
(`streamgroup.engines.spark_sql`), and so do RDDs of Python objects (`streamgroup.engines.pyspark_rdd`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.engines.hashes.java_hash_and_random import hash_code, hash_codes, i32, string_hash
from streamgroup.engines.hashes.murmur32 import finish, mix
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Long, Value, check_value, check_workers, fields_of

__all__ = ["spark_rdd_hash", "spark_rdd_partition", "spark_rdd_partition_all"]

_PRODUCT_SEED = 0xCAFEBABE
_ARRAYS = "Spark refuses arrays as keys of a HashPartitioner"


def spark_rdd_hash(key: Value | Sequence[Value]) -> int:
    """Return `hashCode` of a key, signed 32 bits: Java's of a value, Scala 2.13's `Tuple2` of two.

    UsageError for bytes, and for tuples that are no pair.
    """
    if not isinstance(key, (tuple, list)):
        return hash_code(_no_array(check_value(key)))
    fields = fields_of(key)
    if len(fields) != 2:
        raise UsageError(f"a key of {len(fields)} fields: only the rule of pairs (Tuple2) is known", "give two fields")
    h = mix(_PRODUCT_SEED, string_hash("Tuple2"))
    for field in fields:
        h = mix(h, _scala_hash(field))
    return i32(finish(h, len(fields)))


def _scala_hash(value: Value) -> int:
    """Return Scala's `##`: equal numbers have equal hashes, whatever their width."""
    if isinstance(value, Long) and -(1 << 31) <= value < 1 << 31:
        return int(value)
    return hash_code(_no_array(value))


def _no_array(value: Value) -> Value:
    if isinstance(value, bytes):
        raise UsageError(f"{value!r}: {_ARRAYS}", "use a string, Int or Long")
    return value


def spark_rdd_partition(key: Value | Sequence[Value], n: int) -> int:
    """Return the partition, 0..n-1, of a pair with this key; null goes to 0."""
    check_workers(n)
    return 0 if key is None else spark_rdd_hash(key) % n


def spark_rdd_partition_all(keys: Keys, n: int) -> NDArray[np.uint16]:
    """Return `spark_rdd_partition` of all keys: uint16[K]."""
    check_workers(n)
    if keys.parts:
        return keys.each(lambda key: spark_rdd_partition(key, n))
    keys.refuse_kinds("spark_rdd", ["bytes"], _ARRAYS)
    return (hash_codes(keys) % np.int32(n)).astype(np.uint16)
