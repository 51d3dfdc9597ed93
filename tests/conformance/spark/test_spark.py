"""What is Spark's own: frames, tables, files, sessions, lost workers. The rest is in the suite for every engine."""

import datetime as dt
import json
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import api
from incrowd.cli import incrowd
from incrowd.cli._shell import run
from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange
from incrowd.policy import Policy
from incrowd.sources import open_source
from incrowd.sources.observed import count_observed

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.5, beta: 0.4}
"""
DIGITS = IntegerRange(0, 9)


def counts(source, *codings):
    """Each cell's labels and their count."""
    h = source.count_by(codings)
    labels = [[column.labels[code] for code in column.codes] for column in h.columns]
    return dict(zip(zip(*labels, strict=True), h.counts.tolist(), strict=True))


def refusal(work, *arguments, **options):
    with pytest.raises((DataError, ParameterError)) as caught:
        work(*arguments, **options)
    return caught.value.code


def test_a_frame_is_a_table(spark):
    frame = spark.createDataFrame([("x", 1), ("y", 2), ("x", 1)], "`a.b` string, `c``d` int")
    source = open_source(frame)
    assert type(source).__name__ == "SparkSource"
    assert [(c.name, c.kind) for c in source.columns()] == [("a.b", "text"), ("c`d", "integer")]
    got = counts(source, Coding("c`d", DIGITS), Coding("a.b", Categories(("x", "y"))))
    assert got == {("1", "x"): 2, ("2", "y"): 1}


def test_names_that_differ_in_capitals_and_names_that_do_not(spark):
    frame = spark.createDataFrame([("x", "y")], "a string, b string")
    source = open_source(frame.toDF("Age", "age"))
    assert counts(source, Coding("age", Categories(("y",)))) == {("y",): 1}
    assert refusal(open_source, frame.toDF("age", "age")) == "data-columns"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_results_do_not_depend_on_the_session(spark, ansi):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.sql(
            "SELECT CAST('0.00000001' AS DECIMAL(38,8)) AS tiny, CAST('A' AS STRING) COLLATE UTF8_LCASE AS folded, "
            "9223372036854775808D AS large, TIMESTAMP'2024-02-29 00:00:00Z' AS utc, "
            "TIMESTAMP'2024-02-29 00:00:00 Asia/Tokyo' AS tokyo, TIMESTAMP_NTZ'2024-02-29 00:00:00' AS local, "
            "'9223372036854775808' AS digits, CAST(NULL AS VOID) AS nothing"
        )
        other = {"other": "else", "missing": "keep"}
        day = DateRange(dt.date(2024, 2, 29), dt.date(2024, 3, 1))
        largest = Categories((2**63 - 1, 5))
        got = counts(
            open_source(frame),
            Coding("tiny", Categories(("0.00000001", "1E-8")), **other),
            Coding("folded", Categories(("a",)), **other),
            Coding("large", largest, **other),
            Coding("utc", day, **other),
            Coding("tokyo", day, **other),
            Coding("local", day, **other),
            Coding("digits", largest, **other),
            Coding("nothing", DIGITS, **other),
        )
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert got == {("0.00000001", "else", "else", "2024-02-29", "else", "2024-02-29", "else", None): 1}


def test_long_lists_and_many_columns(spark):
    """Lookups are joined where they are long or many, and decided on the spot where not; either way they agree."""
    texts = tuple(f"text {i}" for i in range(1000))
    decimals = tuple(Decimal(i) / 4 for i in range(40))
    rows = [
        (texts[i % 1000], Decimal(i % 50) / 4, float(i % 30), *(str(i % (k + 2)) for k in range(8)))
        for i in range(3000)
    ]
    schema = "t string, d decimal(10,2), f float, " + ", ".join(f"s{k} string" for k in range(8))
    source = open_source(spark.createDataFrame(rows, schema))
    codings = [
        Coding("t", Categories(texts)),
        Coding("d", Categories(decimals), other="more"),
        Coding("f", Categories(tuple(range(25))), other="more"),
        *(Coding(f"s{k}", Categories(tuple(map(str, range(k + 2))))) for k in range(8)),
    ]
    got = source.count_by(codings)
    assert got.total == 3000
    expected = Counter(row[1] if row[1] in decimals else "more" for row in rows)
    d = got.project(["d"])
    assert dict(zip(d["d"].codes.tolist(), d.counts.tolist(), strict=True)) == {
        decimals.index(value) if value != "more" else len(decimals): n for value, n in expected.items()
    }
    for k in range(8):
        s = got.project([f"s{k}"])
        assert s.counts.tolist() == [n for _, n in sorted(Counter(row[3 + k] for row in rows).items())]


def test_rows_grouped_before_or_after_they_are_coded_are_counted_alike(spark, tmp_path, monkeypatch):
    """Many equal rows are grouped first; values that Spark takes for equal in grouping must have the same code."""
    import incrowd.sources.spark as engine

    rows = [("x", -0.0, None), ("X", 0.0, dt.date(2020, 1, 2)), (" x", 1e-9, None), ("", 2.5, dt.date(2020, 1, 1))]
    pq.write_table(pa.table(list(zip(*(rows * 500), strict=True)), names=["t", "n", "d"]), tmp_path / "t.parquet")
    codings = [
        Coding("t", Categories(("x", "X")), other="rest", missing="keep"),
        Coding("n", Bins((0.0, 1.0, 3.0))),
        Coding("d", DateRange(dt.date(2020, 1, 1), dt.date(2020, 1, 2)), missing="keep"),
    ]
    source = open_source(spark.read.parquet(str(tmp_path)))
    seen = []

    def look(frame, first=engine._repeats):
        seen.append(first(frame))
        return seen[-1]

    monkeypatch.setattr(engine, "_repeats", look)
    found = counts(source, *codings)
    assert seen == [True]
    assert found == counts(open_source(tmp_path / "t.parquet"), *codings)
    monkeypatch.setattr(engine, "_repeats", lambda _: False)
    assert counts(source, *codings) == found
    distinct = spark.range(100).selectExpr("cast(id % 10 as int) c", "id")
    assert not look(distinct)
    assert not look(distinct.groupBy("c").count())  # to look would do the work twice


@pytest.mark.parametrize(
    ("row", "repeats"),
    [
        ("id % 10", True),
        ("xxhash64(id) % 10000", True),
        ("xxhash64(id) % 1000000", False),
        ("if(id % 5 = 0, -1, id)", False),  # one that is frequent, and nothing else twice
    ],
)
def test_the_first_rows_tell_whether_rows_repeat(spark, row, repeats):
    """Of at most 8192 that are looked at; what they would have to show is far from what they do."""
    import incrowd.sources.spark as engine

    assert engine._repeats(spark.range(100_000).selectExpr(f"{row} AS x")) == repeats


@pytest.mark.parametrize("collation", ["UTF8_BINARY", "UTF8_LCASE"])
def test_texts_are_compared_byte_by_byte_whatever_signs_they_have(spark, collation):
    """Declared texts, and those that stand for missing values, are part of what Spark is told to do."""
    texts = ("a'b", 'a"b', "a\\", "a\\'b", "a`b", "${x}", "é", "e\u0301", "A'B", "--", "/*", "\n", "😀", ":x", "?")
    frame = spark.createDataFrame([(t,) for t in (*texts, "n'a", "N'A")], "t string")
    source = open_source(frame.selectExpr(f"t COLLATE {collation} AS t"), missing_values=("n'a",))
    got = counts(source, Coding("t", Categories(texts), other="else", missing="keep"))
    assert got == {(t,): 1 for t in (*texts, "else", None)}


def test_days_far_away_are_days_of_the_calendar(spark):
    days = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]
    frame = spark.createDataFrame([(str(day),) for day in days], "t string")
    frame = frame.selectExpr(
        "t", "cast(t AS date) AS d", "timestamp(t || ' 00:00:00Z') AS u", "cast(t AS timestamp_ntz) AS n"
    )
    declared = (Categories(tuple(days)), DateRange(days[1], days[3]))
    for name in ("t", "d", "u", "n"):
        for domain in declared:
            expected = Counter((str(day) if str(day) in domain.labels else "else",) for day in days)
            assert counts(open_source(frame), Coding(name, domain, other="else")) == expected, (name, domain)


def test_no_more_cells_come_to_the_driver_than_it_allows(spark):
    frame = spark.range(0, 1000).selectExpr("id % 100 AS x", "id % 7 AS y")
    codings = [Coding("x", IntegerRange(0, 99)), Coding("y", DIGITS)]
    assert len(open_source(frame, most_cells=700).count_by(codings)) == 700
    assert refusal(open_source(frame, most_cells=699).count_by, codings) == "cells-too-many"
    # Recoding happens before anything is handed over.
    coarse = [Coding("x", Bins((0.0, 50.0, 100.0))), Coding("y", DIGITS)]
    assert len(open_source(frame, most_cells=50).count_by(coarse)) == 14


def test_parquet_files_must_have_the_same_columns(spark, tmp_path):
    pq.write_table(pa.table({"x": ["a"], "y": ["b"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": ["a"]}), tmp_path / "2.parquet")
    for place in (tmp_path, tmp_path / "*.parquet", [tmp_path / "1.parquet", tmp_path / "2.parquet"]):
        assert refusal(open_source, place, engine="spark") == "data-parts-differ"


def test_what_is_no_parquet_file_is_refused(spark, tmp_path):
    (tmp_path / "table.csv").write_text("x\na\n", encoding="utf-8")
    (tmp_path / "false.parquet").write_text("x\na\n", encoding="utf-8")
    pq.write_table(pa.table({"x": pa.array([0], pa.timestamp("ns"))}), tmp_path / "nano.parquet")
    assert refusal(open_source, tmp_path / "table.csv", engine="spark") == "data-format"
    assert refusal(open_source, tmp_path / "false.parquet", engine="spark") == "data-unreadable"
    assert refusal(open_source, tmp_path / "nano.parquet", engine="spark") == "column-type"
    assert refusal(open_source, tmp_path / "none.parquet", engine="spark") == "data-not-found"
    assert refusal(open_source, pa.table({"x": ["a"]}), engine="spark") == "data-kind"


def test_tables_by_their_names(spark):
    spark.range(0, 20).selectExpr("id % 10 AS x").createOrReplaceTempView("digits")
    source = open_source(None, engine="spark", table="digits")
    assert counts(source, Coding("x", DIGITS)) == {(str(i),): 2 for i in range(10)}
    assert refusal(open_source, None, engine="spark", table="no_such_table") == "data-not-found"


def test_an_engine_must_be_known_and_the_one_that_runs(spark):
    assert refusal(open_source, "x.parquet", engine="hadoop") == "parameter-range"
    assert refusal(open_source, "x.parquet", engine="spark://127.0.0.1:1") == "engine-unavailable"


def test_errors_of_spark_do_not_quote_the_data(spark):
    frame = spark.createDataFrame([("SECRET",)], "x string").selectExpr("raise_error(x) AS x")
    with pytest.raises(DataError) as caught:
        open_source(frame).count_by([Coding("x", DIGITS)])
    assert caught.value.code == "data-unreadable"
    assert "SECRET" not in str(caught.value.to_dict())
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_main_job_on_a_frame_and_from_the_command_line(spark, cluster, tmp_path, capsys):
    rng = np.random.default_rng(3)
    table = pa.table({"age": rng.integers(0, 100, 4000), "sex": rng.choice(["f", "m"], 4000)})
    pq.write_table(table, tmp_path / "people.parquet")
    made = api.release(
        spark.read.parquet(str(tmp_path / "people.parquet")), Policy.from_text(POLICY), folder=tmp_path / "a"
    )
    assert made.histogram.names == ("age", "sex")
    assert api.verify(tmp_path / "a").valid
    (tmp_path / "policy.yaml").write_text(f"data: {{path: people.parquet}}\n{POLICY.strip()}\n", encoding="utf-8")
    command = [
        "release",
        str(tmp_path / "policy.yaml"),
        "-o",
        str(tmp_path / "b"),
        "--engine",
        cluster.address,
        "--json",
    ]
    assert run(incrowd, command) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["epsilon"] == 2
    assert api.verify(tmp_path / "b").valid
    assert spark.range(3).count() == 3, "a session that runs already is left running"
    assert run(incrowd, [*command[:3], str(tmp_path / "c"), *command[4:], "--most-cells", "5"]) == 0
    assert "small cells stayed where it is" in capsys.readouterr().out
    assert api.verify(tmp_path / "c").valid


def test_a_table_of_the_catalogue_from_a_first_look_to_a_release(spark, cluster, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    ages, sexes = rng.integers(18, 80, 3000), rng.choice(["f", "m"], 3000)
    table = pa.table({"id": range(3000), "age": ages, "sex": sexes, "tags": [[1]] * 3000, "nothing": [None] * 3000})
    view = table.set_column(4, "nothing", pa.nulls(3000, pa.string()))
    spark.createDataFrame(view).createOrReplaceTempView("people")
    here = ("--engine", cluster.address, "--table", "people")

    def answer(*command):
        assert run(incrowd, [*command, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    draft = answer("init", *here)
    roles = {column["name"]: column["role"] for column in draft["columns"]}
    assert roles == {"id": "drop", "age": "quasi", "sex": "quasi", "tags": "drop", "nothing": "drop"}
    assert draft["policy"] == "people.yaml"
    assert f"--engine {cluster.address}" in Path("people.yaml").read_text(encoding="utf-8").replace("\n# ", " ")
    confirmed = Path("people.yaml").read_text(encoding="utf-8").replace("# CONFIRM", "#")
    Path("people.yaml").write_text(confirmed, encoding="utf-8")
    assert answer("release", "people.yaml", "-o", "out", "--engine", cluster.address)["release"]
    assert answer("verify", "out")["valid"]

    cells = Counter(zip(ages.tolist(), sexes.tolist(), strict=True))
    audit = answer("audit", *here, "--quasi", "age,sex", "--population-table", "people")
    assert (audit["records"], audit["groups"], audit["k"]) == (3000, len(cells), min(cells.values()))
    assert audit["risks"]["journalist"]["expected"] == pytest.approx(len(cells))
    weighed = answer("audit", *here, "--quasi", "age,sex", "--weights", "age")
    assert weighed["risks"]["journalist"]["estimator"] != audit["risks"]["journalist"]["estimator"]
    assert answer("compare", *here, "--columns", "sex", "--epsilon", "1", "--runs", "1")["records"] == 3000
    wanted = ("--epsilon", "1", "--delta", "0.1")
    assert answer("plan", "sample", *here, "--columns", "age,sex", *wanted)["distinct"] == len(cells)
    assert run(incrowd, ["audit", *here, "--quasi", "age,sex", "--most-cells", "5"]) == 2
    assert "cells-too-many" in capsys.readouterr().err


def test_values_as_they_are_mean_the_same_as_in_a_file(spark, tmp_path):
    table = pa.table(
        {
            "t": ["a", "A", "a ", "", None, "é"],
            "f": [0.0, -0.0, 1.5, float("nan"), None, 1e300],
            "d": [dt.date(2024, 2, 29), dt.date(1900, 1, 1), None, None, dt.date(9999, 12, 31), dt.date(1, 1, 1)],
            "m": pa.array([0, 1, None, 10**15, -1, 0], pa.timestamp("us", "UTC")),
            "x": [Decimal("1.50"), Decimal("1.5"), None, Decimal("-3"), Decimal("0"), Decimal("0.01")],
            "b": [True, False, None, True, True, False],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    expected = count_observed(open_source(tmp_path / "t.parquet"), table.column_names).histogram
    found = count_observed(open_source(tmp_path / "t.parquet", engine="spark"), table.column_names).histogram
    assert found == expected
    frame = spark.createDataFrame(table.select(["t"])).selectExpr("t COLLATE UTF8_LCASE AS t")
    expected = count_observed(open_source(table), ["t"]).histogram
    assert count_observed(open_source(frame), ["t"]).histogram == expected, "whatever the collation"


def test_a_draft_looks_at_a_part_of_a_large_table_and_says_so(spark, monkeypatch):
    frame = spark.range(0, 20_000).selectExpr("id % 50 AS age", "id % 2 = 0 AS female")
    monkeypatch.setattr("incrowd.sources.spark_rows._MOST_ROWS", 2000)
    draft = api.draft_policy(frame)
    questions = [decision.question for decision in draft.decisions if "of 20,000 records" in decision.question]
    assert len(questions) == 1
    assert 1500 < draft.profiles[0].records < 2500
    assert {column.name: column.role for column in draft.columns} == {"age": "quasi", "female": "quasi"}
    monkeypatch.setattr("incrowd.sources.spark_rows._MOST_ROWS", 20_000)
    assert not any("20,000" in decision.question for decision in api.draft_policy(frame).decisions)


def test_a_worker_that_is_killed_half_way_changes_nothing(spark, cluster):
    """Its results are lost with it, and worked out again by the others."""
    tasks, rows = 48, 240_000
    tracker = spark.sparkContext.statusTracker()
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    before = executors().size()
    victim = cluster.add_worker()
    wait_until(lambda: executors().size() > before)
    # Slow to work out, and equal to the number's last digits, which Spark cannot know.
    slow = "sha2(concat('a', id), 512)"
    for _ in range(12):
        slow = f"sha2({slow}, 512)"
    frame = spark.range(0, rows, 1, tasks).selectExpr(f"id % 10 + (length({slow}) - 128) AS x", "id % 3 AS y")
    outcome = []
    codings = [Coding("x", DIGITS), Coding("y", DIGITS)]
    job = threading.Thread(target=lambda: outcome.append(counts(open_source(frame), *codings)))
    job.start()
    try:
        stage = wait_until(lambda: half_way(tracker, tasks))
        cluster.kill(victim)
        assert 0 < stage.numCompletedTasks < tasks
    finally:
        job.join()
    numbers = np.arange(rows)
    assert outcome == [dict(Counter(zip(map(str, numbers % 10), map(str, numbers % 3), strict=True)))]


def half_way(tracker, tasks):
    for number in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(number)
        if stage is not None and stage.numTasks == tasks and stage.numCompletedTasks >= tasks // 4:
            return stage
    return None


def wait_until(true, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it never happened")
