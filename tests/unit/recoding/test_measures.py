"""The registry of measures: every fast form against the exact one, and everything that is derived from it."""

import re
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from incrowd import api
from incrowd.domain import Recode
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.generalization.section import MINIMISED, Generalization
from incrowd.recoding.demands import Demand
from incrowd.recoding.measures import MEASURES
from incrowd.recoding.search import search
from incrowd.recoding.task import Task
from incrowd.recoding.utility import Comparison
from incrowd.theory.requirements import KAnonymity

ROOT = Path(__file__).resolve().parents[3]


def ladder(size, *widths):
    maps = [np.arange(size) // width for width in (1, *widths, size)]
    return Hierarchy(tuple(Recode(m, tuple(f"{h}:{g}" for g in range(m.max() + 1))) for h, m in enumerate(maps)), size)


TREES = {"a": ladder(8, 2, 4), "b": ladder(5, 3), "c": ladder(2)}


def tables():
    """Random ones, one with a column that is the same everywhere, one with a single record."""
    rng = np.random.default_rng(7)
    for records, values in ((60, (8, 5, 2)), (15, (8, 1, 2)), (1, (1, 1, 1))):
        codes = [rng.integers(0, size, records) ** 2 % size for size in values]
        columns = zip(TREES.items(), codes, strict=True)
        yield Histogram.of([Column(name, tree.levels[0].labels, code) for (name, tree), code in columns])


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("k", [1, 3])
def test_the_fast_form_is_the_exact_one_at_every_node(name, k):
    measure = MEASURES[name]
    if measure.fast is None:
        assert name not in MINIMISED
        return
    seen = 0
    for table in tables():
        task = Task(table, TREES, [Demand(KAnonymity(k))], name, 0.9, 1.0)
        for node in product(*(range(tree.height + 1) for tree in TREES.values())):
            grouped = task.cells.at(node)
            sizes, out = task.cells.judged(grouped)
            if out is None or task.cost.needs_table:  # which has no short cut, and measures exactly
                continue
            exact = measure.exact(task.made(grouped, out).comparison)
            found = task.cost.of(sizes[~out], grouped.weights[~out], int(sizes[out].sum()))
            assert abs(found - exact * task.cost.scale) <= task.cost.slack + 1e-9 * abs(exact) * task.cost.scale
            seen += 1
    assert seen or name == "query_error"


@pytest.mark.parametrize("name", MINIMISED)
def test_what_is_found_and_stated_is_the_exact_one(name):
    table = next(tables())
    found = search(table, TREES, [Demand(KAnonymity(3))], measure=name, suppression=0.2)
    task = Task(table, TREES, [Demand(KAnonymity(3))], name, 0.2, 1.0)
    assert found.cost == MEASURES[name].exact(task.generalized(found.node).comparison)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_a_table_as_it_is_has_the_best_and_nothing_is_beyond_the_worst(measure):
    table = Histogram.of(
        [Column(name, tree.levels[0].labels, np.arange(40) % tree.declared) for name, tree in TREES.items()]
    )
    untouched = {name: tree.recode(0) for name, tree in TREES.items()}
    suppressed = {name: tree.recode(tree.height) for name, tree in TREES.items()}
    best, worst = measure.best(table.total), measure.worst(table.total)
    fine, coarse = (
        measure.shown(Comparison(table, recodes, table.recode(recodes), table.recode(recodes)))
        for recodes in (untouched, suppressed)
    )
    assert fine == pytest.approx(best)
    assert min(best, worst) <= coarse <= max(best, worst)
    assert measure.exact(Comparison(table, untouched, table, table)) <= measure.exact(
        Comparison(table, suppressed, table.recode(suppressed), table.recode(suppressed))
    )


def test_the_policy_the_search_the_studio_and_the_page_name_the_same_measures():
    offered = [name for name, measure in MEASURES.items() if measure.fast is not None]
    assert offered == list(MINIMISED) == list(api.minimised_measures())
    assert get_args(Generalization.model_fields["minimise"].annotation) == tuple(MINIMISED)
    page = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8").partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == ["minimise", *offered]
    policies = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8").partition("### `mechanism: generalization`")[2]
    (row,) = re.findall(r"^\| `minimise` \|.*$", policies, flags=re.MULTILINE)
    assert re.findall(r"`(\w+)`", row)[1:-1] == offered
    scripts = (ROOT / "src" / "incrowd" / "studio" / "static").glob("*.js")
    assert not [path.name for path in scripts if "query_error" in path.read_text(encoding="utf-8")]
