"""Trees and levels that are chosen where the cells are: on the cluster, by the same counts as in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.core.errors import DataError
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import release
from incrowd.sources.spark_kept import SparkKeeper, require_any_answer

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher], missing: keep}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6%s}
"""


@pytest.fixture(scope="module")
def people():
    """Ages are uneven, so that some cells are large enough and many are not."""
    rng = np.random.default_rng(2)
    rows = 1500
    return pa.table(
        {
            "age": np.minimum(99, rng.exponential(18, rows).astype(np.int64)),
            "sex": rng.choice(["f", "m"], rows),
            "job": rng.choice(np.array(["baker", "smith", None], dtype=object), rows),
        }
    )


def stored(table, folder):
    pq.write_table(table, folder / "people.parquet")
    return folder / "people.parquet"


def views_of(spark):
    return {table.name for table in spark.catalog.listTables()}


@pytest.mark.parametrize(
    ("more", "most"),
    [
        (", selection_epsilon: 0.2", 300),
        (", recoding: tree", 20),
        (", recoding: tree, splits: binary, flat: true", 20),
        (", recoding: tree, flat: true", 20),
    ],
)
def test_equal_bits_give_equal_releases(spark, people, tmp_path, monkeypatch, more, most):
    """Names that the caller has in the session stay the caller's."""
    monkeypatch.setattr("incrowd.recoding.choice.noisy_max", lambda scores, *_: int(np.argmax(scores)))
    asked = []
    ask = SparkKeeper.ask
    monkeypatch.setattr(SparkKeeper, "ask", lambda self, query: asked.append(ask(self, query)) or asked[-1])
    spark.range(1).createOrReplaceTempView("incrowd_cells")
    before = views_of(spark)
    plan = Policy.from_text(POLICY % more)
    full = release(people, plan, rehearse=True, _source=RandomSource.seeded(4))
    assert not asked
    frame = spark.read.parquet(str(stored(people, tmp_path)))
    few = release(frame, plan, most_cells=most, rehearse=True, _source=RandomSource.seeded(4))
    assert asked
    assert few.load() == full.load()
    assert few.beside == full.beside
    assert few.certified.digest == full.certified.digest
    assert few.report == full.report
    assert "--most-cells" in few.internal["report.html"].decode()
    del few
    assert views_of(spark) == before
    assert not spark.sparkContext._jsc.getPersistentRDDs()
    spark.catalog.dropTempView("incrowd_cells")


def test_what_ends_with_its_session_needs_no_closing(spark):
    other = spark.newSession()
    keeper = SparkKeeper(other)
    keeper.put("incrowd_numbers", {"code": np.arange(3)})
    keeper.keep("incrowd_twice", "SELECT 2 * code AS code FROM incrowd_numbers")
    keeper.keep("incrowd_twice", "SELECT code + 1 AS code FROM incrowd_twice")
    assert sorted(keeper.ask("SELECT code FROM incrowd_twice").column("code").to_pylist()) == [1, 3, 5]
    with pytest.raises(DataError):
        keeper.ask("SELECT raise_error('Hildegard') FROM incrowd_twice")
    keeper.close()
    keeper.close()
    assert not other.catalog.listTables()


@pytest.mark.parametrize(
    ("limit", "stops"), [("0", False), ("1g", False), ("20m", True), ("17000000", True), ("1 cup", True)]
)
def test_a_limit_of_spark_that_an_answer_may_pass_is_refused_before_the_charge(spark, limit, stops):
    other = spark.newSession()
    other.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    other.conf.set("spark.driver.maxResultSize", limit)
    if stops:
        with pytest.raises(DataError, match=r"after the budget was charged"):
            require_any_answer(other, 100_000, 3)
    else:
        require_any_answer(other, 100_000, 3)


def test_a_table_is_kept_only_where_any_answer_can_be_handed_over(spark, people, tmp_path):
    other = spark.newSession()
    other.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    other.conf.set("spark.driver.maxResultSize", "1k")
    frame = other.read.parquet(str(stored(people, tmp_path)))
    with pytest.raises(DataError, match=r"after the budget was charged"):
        release(frame, Policy.from_text(POLICY % ", recoding: tree"), most_cells=20, rehearse=True)
    assert not other.catalog.listTables()
