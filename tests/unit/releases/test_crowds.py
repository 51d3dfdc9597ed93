"""Small cells that stay where the table is: the release is the same, and the publisher is told what is left out."""

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.errors import InternalError
from incrowd.hierarchy import codings
from incrowd.marginals import Crowds
from incrowd.mechanisms.sampled_crowd.draw import run
from incrowd.mechanisms.sampled_crowd.settle import crowds_asked, settle
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import release
from incrowd.sources import open_source
from incrowd.sources.at_least import count_crowds
from incrowd.sources.duckdb_kept import DuckDBKeeper

POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: %s}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher], missing: keep}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6%s}
"""


@pytest.fixture(scope="module")
def people():
    """Ages are uneven, so that some cells are large enough and many are not."""
    rng = np.random.default_rng(2)
    rows = 6000
    return pa.table(
        {
            "age": np.minimum(99, rng.exponential(18, rows).astype(np.int64)),
            "sex": rng.choice(["f", "m"], rows),
            "job": rng.choice(np.array(["baker", "smith", None], dtype=object), rows),
        }
    )


def made(people, most_cells=None, level=0, more="", seed=4):
    plan = Policy.from_text(POLICY % (level, more))
    return release(people, plan, most_cells=most_cells, rehearse=True, _source=RandomSource.seeded(seed))


@pytest.mark.parametrize(("level", "more"), [(0, ""), (1, ""), (2, ""), (1, ", totals: {epsilon: 0.3}")])
def test_equal_bits_give_equal_releases(people, level, more):
    """Noisy counts of each column, too, are those of the whole table."""
    for seed in range(5):
        full, few = (made(people, most, level, more, seed) for most in (None, 20))
        assert few.load() == full.load()
        assert few.beside == full.beside
        assert few.certified.digest == full.certified.digest
        assert few.report == full.report
        assert few.internal != full.internal
    assert len(full.load())
    assert bool(full.beside) == bool(more)


def test_the_publisher_is_told_what_is_left_out(people):
    few = made(people, 20)
    page = few.internal["report.html"].decode()
    assert "What is not on this page" in page
    assert "--most-cells" in page
    assert "6,000" in page
    assert any("column by column" in line for line in few.insight.lines)
    assert [found.columns for found in few.insight.finest] == [1]
    assert few.insight.errors.keys() == {"age", "sex", "job"}
    full = made(people)
    assert few.insight.errors == full.insight.errors
    assert few.insight.finest[0] == full.insight.finest[0]


CHOSEN = [
    ", selection_epsilon: 0.2",
    ", selection_epsilon: 0.2, importance: {age: 2}, totals: {epsilon: 0.3}",
    ", selection_epsilon: 0.2, minimise: class_size",
    ", selection_epsilon: 0.2, minimise: discernibility",
    ", selection_epsilon: 0.2, minimise: misclassified, target: sex",
    ", selection_epsilon: 0.2, minimise: workload, workload: [[age, sex], [job]]",
    ", recoding: tree",
    ", recoding: tree, splits: binary",
    ", recoding: tree, splits: binary, flat: true",
    ", recoding: tree, flat: true",
    ", recoding: tree, score: queries",
]


@pytest.mark.parametrize("most", [6, 20])
@pytest.mark.parametrize("more", CHOSEN)
def test_levels_and_boxes_are_chosen_by_counts_in_the_engine(people, more, most, monkeypatch):
    """The same scores, and so the same release from the same bits. The noisy maximum of levels has bits of its own."""
    monkeypatch.setattr("incrowd.recoding.choice.noisy_max", lambda scores, *_: int(np.argmax(scores)))
    full, few = (made(people, cells, "null", more) for cells in (None, most))
    assert few.load() == full.load()
    assert few.beside == full.beside
    assert few.certified.digest == full.certified.digest
    assert few.report == full.report
    assert few.internal != full.internal
    assert "--most-cells" in few.internal["report.html"].decode()
    assert [found.columns for found in few.insight.finest] == [1]
    assert len(full.load()) > 1


def test_a_level_that_is_fixed_beside_others_that_are_chosen(people, monkeypatch):
    monkeypatch.setattr("incrowd.recoding.choice.noisy_max", lambda scores, *_: int(np.argmax(scores)))
    for level in (0, 1, 2):
        full, few = (made(people, most, level, ", selection_epsilon: 0.2") for most in (None, 7))
        assert few.load() == full.load()
        assert few.certified.digest == full.certified.digest


def test_a_mapping_of_an_earlier_release(people, tmp_path):
    first = made(people, None, "null", ", recoding: tree")
    (tmp_path / "mapping.json").write_bytes(first.beside["mapping.json"])
    more = f", recoding: tree, mapping: {tmp_path / 'mapping.json'}"
    full, few = (made(people, most, "null", more) for most in (None, 20))
    assert few.load() == full.load()
    assert len(full.load()) > 1


def test_what_the_engine_kept_is_gone_afterwards(people, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    ask = DuckDBKeeper.ask
    monkeypatch.setattr(
        DuckDBKeeper, "ask", lambda self, query: seen.append(list(tmp_path.rglob("kept.duckdb"))) or ask(self, query)
    )
    made(people, 20, "null", ", recoding: tree")
    assert seen
    assert all(seen)
    assert not list(tmp_path.rglob("kept.duckdb"))


def test_a_tree_that_cannot_be_split_is_told_before_drawing(people):
    few = people.slice(0, 60)
    told = [[concern.code for concern in made(few, most, "null", ", recoding: tree").concerns] for most in (None, 20)]
    assert told[0] == told[1]
    assert "one-box" in told[0]


def test_other_cells_than_those_asked_for_are_refused(people):
    plan = Policy.from_text(POLICY % (1, ""))
    attributes = codings(plan)
    settled = settle(plan.release, plan, attributes, 1)
    asked = crowds_asked(settled)
    found = count_crowds(open_source(people, most_cells=5), [a.coding for a in attributes], asked)
    assert isinstance(found, Crowds)

    def draw(crowds, fixed=settled.fixed):
        return run(crowds, attributes, fixed, settled.crowd, RandomSource.seeded(1))

    assert draw(found).published.total
    more = settled.crowd.k + 1
    large = found.cells.counts >= more
    small = np.append(found.smaller, int((found.cells.counts == more - 1).sum()))
    with pytest.raises(InternalError):
        draw(Crowds(found.cells.where(large), more, small, found.whole))
    with pytest.raises(InternalError):
        draw(found, {**settled.fixed, "age": 2})


def test_a_table_that_is_a_sample_already(people, tmp_path):
    more = f", already_sampled: true, beta: 0.2}}\nledger: {{path: {tmp_path}/l.db, dataset: d, epsilon: 9, delta: 1e-3"
    full, few = (made(people, most, 1, more) for most in (None, 20))
    assert few.load() == full.load()
    assert len(full.load())
