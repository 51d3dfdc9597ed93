"""The benchmarks have one shape, and the pages say what was recorded and nothing else. Nothing is timed here."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are no part of the package

from bench import MODULES, measuring, paper, readme, recording, results, tables, views  # noqa: E402
from bench.curves import CURVES, draw  # noqa: E402
from bench.measuring import Row, Spent  # noqa: E402

from incrowd.histogram import Column, Histogram  # noqa: E402

SHARED = {"measuring", "tables", "results", "recording", "readme", "paper", "rival_work", "view_rival_work"}
APART = {"cells", "hundred_million", "studio_jobs", "views"}
UNRECORDED = {"studio_jobs"}  # it is about no speed


@pytest.fixture(scope="module")
def record():
    return recording.recorded()


def test_every_benchmark_is_run():
    there = {path.stem for path in (ROOT / "bench").glob("*.py") if not path.stem.startswith("__")}
    assert there == {*MODULES, *SHARED, *APART}
    assert len(MODULES) == len(set(MODULES))


def test_benchmarks_have_one_shape():
    for name in (*MODULES, *APART):
        run = importlib.import_module(f"bench.{name}").run
        first = next(iter(inspect.signature(run).parameters.values()))
        assert (first.name, first.default) == ("quick", False), name
        assert run.__annotations__["return"] == "Iterator[Row]", name
        assert results.about(name).endswith("."), name


def test_no_benchmark_has_a_clock_of_its_own():
    """What is measured is measured in one place; a service that is under load for some seconds may look at a clock."""
    for name in (*MODULES, *APART):
        tree = ast.parse((ROOT / "bench" / f"{name}.py").read_text(encoding="utf-8"))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & {"perf_counter", "getrusage", "ru_maxrss"}, name


def test_a_tree_without_noise_draws_nothing_but_the_sample():
    """Whatever the bits, its boxes are the same; those of a private tree are others each time."""
    from bench import tree

    from incrowd.mechanisms.sampled_crowd.tree.draw import draw_tree
    from incrowd.randomness import RandomSource

    case = next(case for case in tree.cases(True) if case.name == "census")
    _, settings = case.release(tree.PROMISES[0], "recoding: tree, splits: binary")
    free, private = (
        [how(settings, case.table, RandomSource.seeded(seed)) for seed in (1, 2)]
        for how in (tree.without_noise, draw_tree)
    )
    assert len({made.outcome.tree.to_bytes() for made in free}) == 1
    assert len({made.outcome.tree.to_bytes() for made in private}) == 2
    exact = free[0].outcome
    assert all(exact.tree.boxes[n].size == exact.records[n] for n in exact.tree.leaves)
    assert tree.kept(free[0], case.attributes)[0] > tree.kept(private[0], case.attributes)[0]


# --- measuring ----------------------------------------------------------------------------------------------------


def test_what_is_compared_takes_turns():
    order = []
    took = measuring.in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert set(took) == {"a", "b"}


def test_medians_are_of_each_figure_by_itself():
    times = iter([Spent(1, 30), Spent(3, 10), Spent(2, 20)])
    assert measuring.in_turns({"a": lambda: next(times)}, 3) == {"a": Spent(2, 20, turns=3)}


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Row("k", "w", Spent(1, 1, turns=3), "o", Spent(1, 1, turns=3)), "3"),
        (Row("k", "w", Spent(1, 1, turns=3), "o", Spent(1, 1)), "3 against 1"),
        (Row("k", "w", Spent(1, 1)), "1"),
        (Row("k", "w"), ""),
    ],
)
def test_rows_tell_how_often_they_were_measured(row, shown):
    assert row.turns == measuring.cells(row)[-1] == shown


def test_the_share_of_other_work_is_the_larger_of_before_and_after(monkeypatch):
    monkeypatch.setattr(recording, "busy", lambda: 0.4)
    found = [recording.afterwards({"busy": before, "cores": 2}) for before in (0.1, 0.7)]
    assert found == [{"busy": 0.4, "cores": 2}, {"busy": 0.7, "cores": 2}]


def test_whole_histograms_are_compared_with_what_an_engine_found():
    ours = Histogram.of(
        [Column("sex", ("f", "m"), np.array([0, 1])), Column("age", ("7", "8"), np.array([1, 0]))], np.array([3, 4])
    )
    found = pa.table({"sex": ["m", "f"], "age": [7, 8], "count": [4, 3]})
    tables.require_same(ours, found)
    for wrong in (
        pa.table({"sex": ["m", "f"], "age": [7, 8], "count": [3, 4]}),
        pa.table({"sex": ["m", "f"], "age": [8, 7], "count": [4, 3]}),
        pa.table({"sex": ["m", "x"], "age": [7, 8], "count": [4, 3]}),
        found.slice(1),
        pa.concat_tables([found, pa.table({"sex": ["m"], "age": [8], "count": [1]})]),
    ):
        with pytest.raises(AssertionError):
            tables.require_same(ours, wrong)


def test_processor_time_leaves_out_waiting():
    took = measuring.spent(lambda: time.sleep(0.05))
    assert took.cpu < 0.05 <= took.seconds


def test_memory_is_that_of_the_command_and_not_of_whoever_starts_it():
    mine = b"x" * 400_000_000
    small = measuring.command("python", "-c", "pass").megabytes
    large = measuring.command("python", "-c", "x = b'x' * 200_000_000").megabytes
    assert small < 100
    assert 180 < large < len(mine) / 2**20


def test_a_command_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="no such thing"):
        measuring.command("python", "-c", "raise SystemExit('no such thing')")


def test_rows_survive_being_written():
    row = Row(
        "k", "what", Spent(1.5, 2.5, 3.5, 3), "other", Spent(1.0, 0.5), target=1.2, figures={"cells": 3}, note="indeed"
    )
    assert Row.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    assert Row.from_dict(Row("k", "what").to_dict()) == Row("k", "what")
    assert Row("k", "w", Spent(1.23456, 0)).to_dict()["ours"] == {"seconds": 1.235, "cpu": 0.0, "turns": 1}


@pytest.mark.parametrize(
    ("row", "ratio", "missed", "shown"),
    [
        (Row("k", "w", Spent(3, 1), "o", Spent(2, 2), target=1.4), 1.5, True, "≤ 1.40 × (missed)"),
        (Row("k", "w", Spent(3, 1), "o", Spent(2, 2), target=1.5), 1.5, False, "≤ 1.50 ×"),
        (Row("k", "w", Spent(3, 1, 900), target=800, target_for="megabytes"), None, True, "≤ 800 MB (missed)"),
        (Row("k", "w", Spent(3, 1, 900), target=3, target_for="seconds"), None, False, "≤ 3 s"),
        (Row("k", "w", target=3, note="not here"), None, False, "≤ 3.00 ×"),
        (Row("k", "w", Spent(3, 1)), None, False, ""),
    ],
)
def test_targets(row, ratio, missed, shown):
    assert (row.ratio, row.missed, measuring.target(row)) == (ratio, missed, shown)


def test_small_sizes_have_no_targets():
    def run(quick=False):
        yield Row("k", "w", Spent(3, 1), "o", Spent(2, 2), target=1.4)

    assert [[row.target for row in measuring.measured(run, quick)] for quick in (False, True)] == [[1.4], [None]]


@pytest.mark.parametrize(
    ("ratio", "shown"), [(1.234, "1.23 ×"), (0.5, "0.50 ×"), (0.02, "1/50 ×"), (0.1, "0.10 ×"), (None, "")]
)
def test_ratios_are_readable(ratio, shown):
    assert measuring.times(ratio) == shown


# --- the record and the pages -------------------------------------------------------------------------------------


def test_the_pages_are_what_the_record_makes_of_them(record):
    for path, text in readme.files(record):
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not up to date: python -m bench.readme"


def test_the_pages_ask_for_everything_that_is_made(record):
    pages = [ROOT / "README.md", ROOT / "docs" / "cost.md"]
    asked = [found["name"] for page in pages for found in readme.MARKED.finditer(page.read_text(encoding="utf-8"))]
    assert sorted(asked) == sorted(readme.parts(record))


def test_the_pages_show_rows_that_were_recorded(record):
    missing = [place for place in (*readme.SHOWN, *(place for _, place in readme.SPEED)) if record.row(*place) is None]
    assert not missing
    assert len(readme.SPEED) == 5
    assert set(record.benchmarks) == {*MODULES, *APART, views.COSTS} - UNRECORDED


def test_keys_tell_rows_apart(record):
    for name, (_, rows) in record.benchmarks.items():
        keys = [row.key for row in rows]
        assert len(keys) == len(set(keys)), name


def test_a_run_of_some_benchmarks_leaves_the_record_of_others(tmp_path):
    path = tmp_path / "recorded.json"
    dates = iter(["1", "2", "3"])

    def made(**more):
        return {"date": next(dates), "cores": 2, "seconds": {"a": 1.0}, **more}

    recording.keep({"a": [Row("k", "first")], "b": [Row("k", "first")]}, made(), path)
    recording.keep({"b": [Row("k", "second")]}, made(quick=True), path)
    kept = recording.recorded(path)
    assert (kept.row("a", "k").name, kept.row("b", "k").name) == ("first", "second")
    assert kept.runs == {"1": {"cores": 2}, "2": {"cores": 2, "quick": True}}
    recording.keep({"a": [Row("k", "third")]}, made(), path)
    assert set(recording.recorded(path).runs) == {"2", "3"}


def test_pages_tell_small_sizes_busy_machines_and_several_runs():
    how = {"processor": "p", "cores": 2, "memory_gigabytes": 3, "system": "s", "python": "3", "busy": 0.03}
    one = recording.Recorded({"1": how}, {"a": ("1", [])})
    assert readme.conditions(one).startswith("Measured 1 on 2 cores (p), 3 GB, s; Python 3. Times are")
    two = recording.Recorded({"1": how, "2": how | {"busy": 0.9}}, {"a": ("1", []), "b": ("2", [])})
    assert readme.conditions(two).startswith("Measured 1 to 2 on 2 cores (p), 3 GB, s; Python 3. **")
    assert "busy with other work" in readme.conditions(two)
    other = recording.Recorded({"1": how, "2": how | {"python": "4", "quick": True}}, {"a": ("1", []), "b": ("2", [])})
    assert "Python 3. Measured 2 on 2 cores (p), 3 GB, s; Python 4. **" in readme.conditions(other)
    assert "small sizes" in readme.conditions(other)


def test_the_worked_example_is_right():
    rates = paper.Rates(
        rows_few=1e6,
        rows_many=2.5e5,
        bytes_a_row=5.0,
        bytes_a_cell=64,
        thinning=1e-9,
        choice=2e-8,
        choice_bytes=500,
        redrawing=1e-7,
    )
    lines = list(paper._lines(rates))
    shown = " ".join(example for _, _, _, example in lines)
    sources = " ".join(source for _, _, source, _ in lines)
    for name in ("spark_release", "curves", "cell_memory", "thinning", "main_job", "pram"):
        assert f"`{name}`" in sources
        assert name in MODULES
    assert "10¹¹ ÷ (500 × 1,000,000) = 200 s" in shown
    assert "10¹¹ ÷ (500 × 250,000) = 13 min" in shown
    assert "250,000 rows a second: `spark_release`, many" in sources
    assert "10¹¹ × 5.0 = 500 GB, in 3,726 tasks" in shown  # 5·10¹¹/2²⁷ = 3725.3
    assert "3,726 × 10⁷ × 28 = 1.04 TB at most, 2.09 GB a core" in shown
    assert "10⁷ × (64 + 16) = 800 MB" in shown
    assert "10¹¹ × 1 ns = 100 s" in shown
    assert "10⁷ × 200,000 × 20 ns = 11.1 h" in shown
    assert "10⁷ × 500 = 5 GB" in shown
    assert "10¹¹ × 100 ns ÷ 500 = 20 s, in 10¹¹ ÷ 2^20 = 95,368 parts" in shown


@pytest.mark.parametrize("curve", CURVES)
def test_curves_can_be_drawn_from_any_points(curve):
    line = CURVES[curve].lines[0]
    rows = [Row(f"{curve}, {line}, {x}", "w", Spent(x / 3, 1, 100 * x), figures={curve: x}) for x in (1, 10, 100)]
    picture = draw(rows, curve)
    assert picture.count('class="curve" d="M') == 2
    assert CURVES[curve].title in picture


def test_results_are_one_page(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    rows = [Row("k", "what <b>", Spent(1, 1, 50), "other", Spent(2, 2), target=1.5), Row("n", "absent", note="why")]
    machine = {"date": "d", "processor": "p", "cores": 2, "memory_gigabytes": 3, "system": "s", "python": "3"}
    results.write({"planner": rows}, machine | {"quick": False, "seconds": {"planner": 3.0}})
    page = (tmp_path / "results.html").read_text(encoding="utf-8")
    assert "what &lt;b&gt;" in page
    assert "1 of 1" in page
    assert "| absent (why) |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["rows"]["planner"][1]["note"] == "why"


def test_the_studio_does_what_the_benchmark_asks_of_it(tmp_path):
    """A job of the very form, so that the benchmark goes with the studio."""
    from bench.studio_jobs import asked_of

    from incrowd.studio.work import KINDS

    (tmp_path / "table.csv").write_text("a,b\n1,2\n1,2\n3,4\n", encoding="utf-8")
    found = KINDS["count"](asked_of(tmp_path / "table.csv"), tmp_path, lambda *_: None)
    assert found == {"sizes": [(1, 1), (2, 1)], "records": 3, "distinct": 2}


@pytest.mark.parametrize("different", [2000, 1000])
def test_nearly_distinct_tables_have_as_many_different_tuples_as_is_said(different):
    from bench import cells

    groups = f"SELECT count(*) AS n FROM '{cells.nearly_distinct(4000, different)}' GROUP BY {', '.join(cells.COLUMNS)}"
    query = f"SELECT sum(n)::INT, count(*), count(*) FILTER (n = 1) FROM ({groups})"
    [(rows, tuples, once)] = duckdb.sql(query).fetchall()
    assert (rows, once) == (4000, different)
    assert tuples - once == 4000 // 200  # the frequent ones


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says it there")
def test_the_most_memory_of_a_process_is_what_it_once_had():
    from bench.spark_release import peak_megabytes

    program = "x = bytearray(100 << 20); del x; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        peak = peak_megabytes(process.pid)
        process.stdin.close()
    assert 100 < peak < 200
