"""Scores of tables whose cells stay in the engine, against those of the same tables in memory."""

import numpy as np
import pyarrow as pa
import pytest

from incrowd.hierarchy import codings
from incrowd.histogram import Histogram
from incrowd.policy import Policy
from incrowd.recoding.lattice import Ladder, Lattice
from incrowd.recoding.pieces import Range, kept_score, kept_scores, pieces
from incrowd.recoding.quality import Apart, Asked, Classified, CrowdCount, Detail
from incrowd.sources import open_source
from incrowd.sources.at_least import CrowdsAsked, count_crowds
from incrowd.sources.kept import KeptTable

POLICY = Policy.from_text("""
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 29}, hierarchy: {widths: [5, 10]}}
  area: {domain: [a, b, c, d, e], missing: keep}
  job: {domain: [baker, smith, teacher]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, selection_epsilon: 0.2}
""")
ATTRIBUTES = codings(POLICY)
K, BETA, TARGET = 5, 0.5, 2
QUALITIES = [
    Detail(K, BETA),
    CrowdCount(K, BETA),
    Apart(K, BETA),
    Asked(K, BETA, [[0, 1], [2]]),
    Classified(K, BETA, TARGET),
]


def ladder(attribute, *, fixed):
    """With weights that tell levels, columns and codes apart."""
    levels = attribute.hierarchy.levels[:1] if fixed else attribute.hierarchy.levels
    weights = [np.arange(len(level.labels)) + 10 * (len(levels) - i) for i, level in enumerate(levels)]
    return Ladder(tuple(level.to.astype(np.int64) for level in levels), tuple(weights))


def lattice_for(quality):
    classified = isinstance(quality, Classified)
    return Lattice([ladder(a, fixed=classified and i == TARGET) for i, a in enumerate(ATTRIBUTES)])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    rows = 700
    return pa.table(
        {
            "age": np.minimum(29, rng.exponential(8, rows).astype(np.int64)),
            "area": rng.choice(np.array(["a", "a", "a", "b", "c", None], dtype=object), rows),
            "job": rng.choice(["baker", "baker", "smith", "teacher"], rows),
        }
    )


def asked(people, most):
    return count_crowds(open_source(people, most_cells=most), [a.coding for a in ATTRIBUTES], CrowdsAsked({}, None))


@pytest.fixture(scope="module", params=[1, 2, 30, 200])
def tables(request, people):
    full, kept = asked(people, 1000), asked(people, request.param)
    assert isinstance(full, Histogram)
    assert isinstance(kept, KeptTable)
    assert kept.cells == len(full) > request.param
    return full, kept


@pytest.mark.parametrize("quality", QUALITIES, ids=lambda q: type(q).__name__)
def test_the_same_scores_of_all_nodes_and_of_each(tables, quality):
    full, kept = tables
    lattice, columns = lattice_for(quality), [full[a.name].codes for a in ATTRIBUTES]
    found = quality.scores(lattice, columns, full.counts)
    assert len(np.unique(found)) > len(found) // 2  # nodes differ
    assert kept_scores(kept, lattice, quality).tolist() == found.tolist()
    for number in range(0, lattice.size, 3):
        node = lattice.node_at(number)
        assert kept_score(kept, lattice, node, quality) == found[number]
        assert quality.score(lattice, node, columns, full.counts) == found[number]


def test_pieces_are_as_large_as_they_may_be_but_for_a_column_that_stays_whole(tables):
    _, kept = tables
    lattice = lattice_for(QUALITIES[-1])
    ranges = [Range(0, one.height) for one in lattice.ladders]
    for piece in pieces(kept, lattice, ranges):
        assert len(piece.counts) <= kept.most
    whole = list(pieces(kept, lattice, ranges, frozenset({TARGET})))
    assert all(len(piece.counts) <= max(kept.most, 3) for piece in whole)
    assert any(len(piece.counts) > 1 for piece in whole)


def test_scoring_pieces_that_take_the_target_apart_is_noticed(people):
    """What `Quality.whole` is for."""
    quality, kept = Classified(K, BETA, TARGET), asked(people, 1)
    lattice = lattice_for(quality)
    right = kept_scores(kept, lattice, quality)

    class Torn(Classified):
        whole = frozenset()

    assert (kept_scores(kept, lattice, Torn(K, BETA, TARGET)) != right).any()
