"""Randomised tables that the executors draw and write: the right law, once, whatever happens to their tasks."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from incrowd.core.errors import DataError, InternalError
from incrowd.domain import Categories, Coding, IntegerRange, Recode
from incrowd.mechanisms.pram.blocks import Block, as_drawn
from incrowd.randomness import RandomSource
from incrowd.sources import open_source
from incrowd.sources.options import Options
from incrowd.theory.randomisation import RetentionReplacement

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
RECORDS, PER_PART = 6000, 1700
SETS = [("t",), ("n", "t"), ("n",)]
COARSE = Recode(np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1]), ("few", "many"))
CODINGS = [
    Coding("n", IntegerRange(0, 9), recode=COARSE),
    Coding("t", Categories(("a", "b,c", "it's")), missing="keep"),
]


@pytest.fixture
def cluster_pram(spark, monkeypatch):
    """The module, dealing out small parts."""
    from incrowd.mechanisms.pram import parts as parts_on_spark
    from incrowd.mechanisms.pram import spark as pram_on_spark

    monkeypatch.setattr(pram_on_spark, "RECORDS_PER_DRAW", 500)
    monkeypatch.setattr(pram_on_spark, "RECORDS_PER_PIECE", 300)
    monkeypatch.setattr(pram_on_spark, "RECORDS_PER_MARK", 90)
    monkeypatch.setattr(parts_on_spark, "RECORDS_PER_PART", PER_PART)
    return pram_on_spark


@pytest.fixture
def table(spark):
    t = "CASE id % 5 WHEN 0 THEN 'a' WHEN 1 THEN 'b,c' WHEN 2 THEN 'it''s' WHEN 3 THEN 'a' END"
    return open_source(spark.range(0, RECORDS, 1, 4).selectExpr("id % 10 AS n", f"{t} AS t"))


def blocks(retention):
    rho = as_drawn(retention)
    return [
        Block(("n",), (2,), RetentionReplacement(rho, 2)),
        Block(("t",), (4,), RetentionReplacement(rho, 4)),
    ]


def draw(cluster_pram, table, folder, retention, seed=1):
    """The records, file by file in the order of their names."""
    from incrowd.mechanisms.pram.parts import kept, write_parts

    folder.mkdir()
    coded = table.coded(CODINGS)
    records = cluster_pram.count_records(table, coded)
    rows, key = cluster_pram.records_of(coded), RandomSource.seeded(seed).words(4).tobytes()
    with kept(cluster_pram.redrawn(rows, blocks(retention), key, records, SETS)) as cells:
        told = cluster_pram.Told.of(cells, records, SETS)
        files, written = write_parts(cells, told.marks, folder, records, SETS)
        assert written.parts == told.published.parts
    assert sorted(folder.iterdir()) == files
    assert [ds.dataset(f).count_rows() for f in files] == [PER_PART] * 3 + [RECORDS - 3 * PER_PART]
    return ds.dataset([str(f) for f in files], format="parquet").to_table().to_pylist()


def test_values_that_are_kept_are_the_tables_own_in_canonical_order(cluster_pram, table, tmp_path):
    records = draw(cluster_pram, table, tmp_path / "out", 1)
    labels = ["a", "b,c", "it's", None]
    keys = [(COARSE.labels.index(r["n"]), labels.index(r["t"])) for r in records]
    assert keys == sorted(keys)
    expected = Counter((int(i % 10 >= 3), [0, 1, 2, 0, 3][i % 5]) for i in range(RECORDS))
    assert Counter(keys) == expected


def test_a_task_that_is_run_twice_draws_the_same_and_leaves_one_version(cluster_pram, table, tmp_path, monkeypatch):
    smooth = draw(cluster_pram, table, tmp_path / "smooth", 0.5)
    original = cluster_pram.redrawing

    def failing(*arguments):
        redraw = original(*arguments)

        def fail_at_first(batches):
            from pyspark import TaskContext

            yield from redraw(batches)
            if TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("lost")

        return fail_at_first

    monkeypatch.setattr(cluster_pram, "redrawing", failing)
    rough = draw(cluster_pram, table, tmp_path / "rough", 0.5)
    assert len(rough) == RECORDS
    assert rough == smooth
    for part in (tmp_path / "smooth").iterdir():
        assert part.read_bytes() == (tmp_path / "rough" / part.name).read_bytes()


def test_another_key_draws_something_else_and_parts_do_not_repeat_each_other(cluster_pram, table, tmp_path):
    a, b = (Counter(map(str, draw(cluster_pram, table, tmp_path / str(seed), 0.5, seed))) for seed in (1, 2))
    assert a != b
    words = [
        RandomSource(_bits=cluster_pram.DerivedBits(b"k" * 32, b"part %d piece 0" % i)).words(4).tolist()
        for i in range(3)
    ]
    assert len({word for part in words for word in part}) == 12


@pytest.mark.statistical
def test_the_law_is_that_of_one_run_on_the_whole_table(cluster_pram, table, tmp_path):
    """All values drawn anew: each cell is Binomial(n, 1/8). Ten standard deviations, for 8 cells: below 1e-20."""
    got = Counter((r["n"], r["t"]) for r in draw(cluster_pram, table, tmp_path / "out", 0))
    assert len(got) == 8
    off = max(abs(n - RECORDS / 8) for n in got.values()) / (RECORDS * 7 / 64) ** 0.5
    assert off < 10
    kept = Counter((r["n"], r["t"]) for r in draw(cluster_pram, table, tmp_path / "kept", 0.5))
    broken = max(abs(n - RECORDS / 8) for n in kept.values()) / (RECORDS * 7 / 64) ** 0.5
    assert broken > 10, "a table that was only half redrawn must not pass"


def test_nothing_is_left_of_a_job_that_fails(cluster_pram, table, tmp_path, monkeypatch):
    def failing(*_):
        def fail(batches):
            raise RuntimeError("SECRET")

        return fail

    monkeypatch.setattr(cluster_pram, "redrawing", failing)
    with pytest.raises(DataError) as caught:
        draw(cluster_pram, table, tmp_path / "out", 0.5)
    assert "SECRET" not in str(caught.value.to_dict())
    assert not list((tmp_path / "out").iterdir())


def test_marginals_are_those_of_the_whole_table(cluster_pram, table):
    whole = table.count_by(CODINGS)
    found = cluster_pram.count_marginals(cluster_pram.records_of(table.coded(CODINGS)), SETS)
    assert found.total == RECORDS
    assert found.names == ("n", "t")
    for names in (["n"], ["t"], ["t", "n"]):
        assert found.project(names) == whole.project(names)


def test_a_table_that_changes_while_it_is_read_is_noticed(cluster_pram, table, tmp_path):
    from incrowd.mechanisms.pram.parts import kept, write_parts

    rows = cluster_pram.records_of(table.coded(CODINGS))
    with kept(cluster_pram.redrawn(rows, blocks(0.5), b"k" * 32, RECORDS, SETS)) as cells, pytest.raises(DataError):
        write_parts(cells, np.zeros((0, 1), dtype=np.int64), tmp_path, RECORDS - 1, SETS)


def test_bits_that_were_used_twice_are_noticed(cluster_pram, table):
    """As if Spark had given half of a part to one task, and half to another: both would draw by the same bits."""
    from pyspark.sql import functions as fn

    rows = cluster_pram.records_of(table.coded(CODINGS))
    redraw = cluster_pram.redrawing(rows, blocks(0.5), b"k" * 32, SETS)
    part = fn.lit(0).cast("long").alias("part")
    schema = ", ".join(f"{name} long" for name in ["told", *rows.names, "n"])
    for tasks, split in ((1, False), (2, True)):
        dealt = rows.frame.select(part, *rows.names, "n").repartition(tasks)
        cells = replace(rows, frame=dealt.mapInArrow(redraw, schema), words=cluster_pram.in_order(rows.words))
        with pytest.raises(InternalError, match="same bits") if split else nullcontext():
            assert cluster_pram.Told.of(cells, RECORDS, SETS).published.total == RECORDS


def test_the_same_is_drawn_whether_or_not_equal_records_were_counted_first(cluster_pram, table, tmp_path, monkeypatch):
    found = []
    for equal in (True, False):
        monkeypatch.setattr(cluster_pram, "seem_equal", lambda _, equal=equal: equal)
        found.append(draw(cluster_pram, table, tmp_path / str(equal), 0.5))
    assert found[0] == found[1]


@pytest.mark.parametrize("words", [1, 2])
def test_ranges_are_divided_by_marks_in_the_order_of_codes(words):
    from incrowd.mechanisms.pram.parts import _ranging
    from incrowd.mechanisms.pram.spark import in_order
    from incrowd.sources.tally import share_words

    rng = np.random.default_rng(words)
    sizes = [2, 300, 70_000] if words == 1 else [2**30, 2**31, 5, 1000]
    places = in_order(share_words(sizes))
    assert len(places) == words
    codes = np.column_stack([rng.integers(0, min(size, 4), 200) for size in sizes])
    codes[::7, 0] = sizes[0] - 1
    packed = [sum(codes[:, p.column].astype(np.int64) << p.shift for p in word) for word in places]
    whole = np.column_stack(packed)
    marks = np.unique(whole[::20], axis=0)
    names = [f"w{i}" for i in range(words)]
    found = _ranging(marks, names)(pa.record_batch(packed, names=names))
    expected = [sum(tuple(mark) <= tuple(cell) for mark in marks) for cell in whole]
    assert found.tolist() == expected
    order = np.lexsort(codes.T[::-1])
    assert (np.diff(found[order]) >= 0).all()


def test_faults_are_counted_as_everywhere_else(cluster_pram, spark):
    frame = spark.createDataFrame([(1, "a"), (99, "a"), (None, "z"), (2, None)], "n int, t string")
    codings = [Coding("n", IntegerRange(0, 9)), Coding("t", Categories(("a",)), missing="drop")]
    errors = []

    def count_records(source):
        return cluster_pram.count_records(source, source.coded(codings))

    for count in (count_records, lambda source: source.count_by(codings)):
        with pytest.raises(DataError) as caught:
            count(open_source(frame))
        errors.append(caught.value.to_dict())
    assert errors[0] == errors[1]
    assert errors[0]["details"]["columns"]["n"] == {"outside": 1, "missing": 1}
    fine = frame.where("n = 1 OR t IS NULL")
    assert count_records(open_source(fine)) == 1


def test_rows_that_are_lost_or_doubled_are_noticed(cluster_pram, spark):
    from incrowd.sources.spark import SparkSource

    frame = spark.range(0, 20, 1, 2).selectExpr("id % 10 AS n", "CASE WHEN id > 4 THEN 'a' END AS t")
    codings = [CODINGS[0], Coding("t", Categories(("a",)), missing="drop")]

    def count_records(rows):
        source = SparkSource(frame, Options(), rows=rows)
        return cluster_pram.count_records(source, source.coded(codings))

    assert count_records(20) == 15
    for rows in (15, 19, 21):
        with pytest.raises(DataError, match="does not add up"):
            count_records(rows)
