"""The commands that the page on readers gives for formats without a reader, on small files of those formats."""

import json
import re
import shutil
from pathlib import Path

from tests.docs.console_blocks import DOCS, ROOT, run_here

CASES = ROOT / "tests" / "data" / "cases"
# Of the other formats: the first lines.
WRITTEN = {
    "CallGraph_0.csv": "traceid,timestamp,rpcid,um,rpctype,dm,interface,rt\nt0,300,0,a,rpc,b,i,3\n",
    "part-00000-of-00500.csv.gz": "600000000,,3418309,0,4155527081,0,/user,3,9,0.1,0.07,0.0001,0\n",
    "20240131234500.export.CSV": "\t".join(["1", "20240131", *["x"] * 57, "20240131234500", "http://x"]) + "\n",
    "words.csv": "word\nthe\na\n",
}
TIMES = {
    "cf.log": "2024-03-04T23:59:00Z", "iis.log": "2024-03-04T23:59:00Z", "console.txt": "2023-11-14T22:13:20Z",
    "kcat.json": "2023-11-14T22:13:20.25Z", "web_0.csv.gz": "2007-02-22T17:00:00Z",
    "Financial1.spc": "1970-01-01T00:00:00Z",
    "ratings.dat": "2000-12-31T22:00:00Z", "AzureFunctionsInvocationTrace.txt": "1970-01-01T00:00:00.758796Z",
    "CallGraph_0.csv": "1970-01-01T00:00:00.3Z", "part-00000-of-00500.csv.gz": "1970-01-01T00:10:00Z",
    "20240131234500.export.CSV": "2024-01-31T23:45:00Z", "2012-02-02-21.json.gz": "2012-02-02T21:00:00Z",
    "part-*.csv": "2020-09-13T12:26:40Z", "words.csv": "1970-01-01T00:00:00Z",
}  # fmt: skip


def test_commands_for_formats_without_a_reader(tmp_path: Path) -> None:
    for path in CASES.glob("*/*"):
        shutil.copy(path, tmp_path / path.name)
    shutil.copy(CASES / "16-spark-csv" / "spark.csv", tmp_path / "part-0.csv")
    for name, text in WRITTEN.items():
        (tmp_path / name).write_text(text)
    section = (DOCS / "readers.md").read_text().split("## Other formats")[1].split("\n## ")[0]
    commands = re.findall(r"^\| .*? \| `(streamgroup ingest \S+ (\S+) .*?)`", section, re.MULTILINE)
    assert {name for _, name in commands} == set(TIMES)
    for command, name in commands:
        made = run_here(f"{command} --dry-run --json", tmp_path)
        assert made.returncode == 0, made.stderr
        found = json.loads(made.stdout)
        assert found["tuples"][0]["timestamp"] == TIMES[name], name
        assert len(found["rejects"]) <= 2, name
