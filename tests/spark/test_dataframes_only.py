"""The package uses the DataFrame API of Spark and nothing below it: that is all that Spark Connect has."""

import re
from pathlib import Path

import streamgroup

BELOW = re.compile(
    r"sparkContext|SparkContext|parallelize|\.rdd\b|\.broadcast\(|\bAccumulator|accumulators?\(|_jsc\b|_jvm\.|_jdf\b"
)


def test_nothing_below_dataframes_is_used() -> None:
    sources = sorted(Path(streamgroup.__file__).parent.rglob("*.py"))
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BELOW.search(line)
    ]
    assert len(sources) > 100
    assert found == []


def test_the_search_finds_what_it_is_for() -> None:
    for line in ("spark.sparkContext", "df.rdd.map", "sc.parallelize([1])", "sc.broadcast(x)", "spark._jsc.sc()"):
        assert BELOW.search(line)
