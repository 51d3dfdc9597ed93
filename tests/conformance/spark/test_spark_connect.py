"""Spark Connect: a server on loopback, and clients of it in a process of their own, which must have no other Spark.

The small client (pip install pyspark-client) is PySpark without Java, jars, py4j and `pyspark.core`: what it lacks is
taken from these clients.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.xdist_group("spark")

VISITOR = '''
import json
import os
import sys

sys.modules["py4j"] = sys.modules["pyspark.core"] = None  # whoever imports them gets an ImportError

from pathlib import Path

from incrowd.cli import incrowd
from incrowd.cli._shell import run
from incrowd.domain import Categories, Coding, IntegerRange
from incrowd.core.errors import DataError
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import release
from incrowd.sources import open_source
from incrowd.sources.observed import count_observed

engine = sys.argv[1]

def call(*command):
    assert run(incrowd, [*command]) == 0, command

# The command line alone; every command opens a session and ends it.
call("init", "people.parquet", "--engine", engine, "-o", "people.yaml")
draft = Path("people.yaml").read_text(encoding="utf-8")
Path("people.yaml").write_text(draft.replace("# CONFIRM", "#"), encoding="utf-8")
call("release", "people.yaml", "-o", "out", "--engine", engine)
call("verify", "out")
call("audit", "people.parquet", "--quasi", "age,sex", "--population", "everybody.parquet", "--engine", engine)

# Frames of the caller's session.
from pyspark.sql import SparkSession

from pyspark.util import is_remote_only
assert is_remote_only()
spark = SparkSession.builder.remote(engine).getOrCreate()
people = spark.read.parquet(os.path.abspath("people.parquet"))
towns = Categories(tuple(f"town {i}" for i in range(40)))  # so many that they are joined
codings = [Coding("age", IntegerRange(0, 99)), Coding("sex", Categories(("f", "m"))), Coding("town", towns)]
names = [coding.column for coding in codings]
assert open_source(people).count_by(codings) == open_source("people.parquet").count_by(codings)
as_they_are = [count_observed(open_source(table), names).histogram for table in (people, "people.parquet")]
assert as_they_are[0] == as_they_are[1]
people.createOrReplaceTempView("visitors")
assert open_source(None, engine="spark", table="visitors").count_by(codings).total == 2000

# A tree that is grown by counts of cells that stay on the server.
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, recoding: tree}
"""
grown = [
    release(table, Policy.from_text(POLICY), most_cells=most, rehearse=True, _source=RandomSource.seeded(4))
    for table, most in ((people, 20), ("people.parquet", None))
]
assert grown[0].load() == grown[1].load()
assert grown[0].internal != grown[1].internal
assert len(grown[0].load()) > 1
try:
    open_source(people.selectExpr("raise_error('Hildegard') AS sex")).count_by(codings[1:2])
except DataError as error:
    print(json.dumps(error.to_dict()))
spark.stop()
'''

_OF_SPARK = ("SPARK_", "PYSPARK_", "JAVA_")


def test_a_server_of_spark_connect_counts_as_files_here_do(connect_server, tmp_path):
    rng = np.random.default_rng(6)
    towns = np.array([f"town {i}" for i in range(40)])
    table = pa.table(
        {
            "age": rng.integers(18, 80, 3000),
            "sex": rng.choice(["f", "m"], 3000),
            "town": rng.choice(towns, 3000),
        }
    )
    pq.write_table(table.slice(0, 2000), tmp_path / "people.parquet")
    pq.write_table(table, tmp_path / "everybody.parquet")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VISITOR, connect_server.address],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(_OF_SPARK)} | {"PATH": ""},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused = json.loads(done.stdout.splitlines()[-1])
    assert refused["code"] == "data-unreadable"
    assert "Hildegard" not in refused["message"]
