"""Views as `draw.run` draws them, on worst-case neighbours: the promise stands, and broken twins are caught.

The twins replace one step of the real code and run all of it: views that share one sample, and choices beyond what was
charged. The bounds used are wrong with probability 1e-6 each.
"""

from fractions import Fraction

import numpy as np
import pytest

from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.views import draw
from incrowd.mechanisms.views.choose import Chooser
from incrowd.mechanisms.views.section import Choose
from incrowd.mechanisms.views.settle import ViewsSettled
from incrowd.mechanisms.views.truth import Truth
from incrowd.noise import choose
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.profile import compose
from incrowd.theory.views import CrowdStep, NoiseStep, ViewsPlan
from incrowd.theory.zcdp import BoundedRange
from power_audit import audit

pytestmark = pytest.mark.statistical

# --- a fresh sample for each view -------------------------------------------------------------------------------------

RUNS = 100_000
K, BETA, EPSILON = 3, 0.3, 0.7
OTHERS = 12


def table_of(records):
    """For each of many values of a column, some records with b = 0, and `records` with b = 1: each value is one run."""
    a = np.repeat(np.arange(RUNS), 2)
    b = np.tile([0, 1], RUNS)
    counts = np.tile([OTHERS, records], RUNS)
    labels = tuple(str(code) for code in range(RUNS))
    there = counts > 0
    return Histogram.of([Column("a", labels, a[there]), Column("b", ("0", "1"), b[there])], counts[there])


def settings_of(attributes):
    step = CrowdStep(K, BETA)
    # δ = 1 lets a broken twin through the mechanism's own check; the audit judges it by the δ promised.
    plan = ViewsPlan(EPSILON, 1.0, 2, step, 1, step)
    return ViewsSettled(plan, "crowd", None, ("a", "b"), (("a", "b"),), attributes, {"a": 0, "b": 0}, False, None)


def shown(records):
    """What the views of a, and of a and b, show of each value of a, as one number."""
    a = f"a: {{type: integer, domain: {{from: 0, to: {RUNS - 1}}}}}"
    attributes = codings(Policy.from_text(f"incrowd: 1\nattributes: {{{a}, b: {{domain: ['0', '1']}}}}\n"))
    table = table_of(records)
    views = draw.run(settings_of(attributes), table, RandomSource()).views
    by_a, both = views[0].counts, views[2].counts
    assert both.shape == (RUNS, 2)
    return (by_a * 100 + both[:, 0]) * 100 + both[:, 1]


def shared_sample(real):
    """A twin: all views of a run are counted from one and the same sample."""
    samples = {}

    def drawn(chooser, candidate, step, source):
        if id(chooser) not in samples:
            counts = source.binomial(chooser.truth.table.counts, step.beta)
            samples[id(chooser)] = chooser, Chooser(chooser.settings, Truth(chooser.truth.table.with_counts(counts)))
        thinned = samples[id(chooser)][1]
        whole = real(thinned, candidate, CrowdStep(1, 1 - 2**-53), source)
        cells = np.where(whole.counts >= step.k, whole.counts, 0)
        return draw.View(whole.columns, whole.places, whole.levels, whole.recodes, step, cells)

    return drawn


def promised():
    """Of the two views that are looked at."""
    return compose([CrowdProfile(K, BETA)] * 2).delta(EPSILON)


@pytest.mark.parametrize("records", [1, 2, 5])
def test_views_with_fresh_samples_keep_their_promise(records):
    larger, smaller = shown(records), shown(records - 1)
    assert audit(larger, smaller, EPSILON).delta_at_least <= promised()
    assert audit(smaller, larger, EPSILON).delta_at_least <= promised()


def test_views_that_share_a_sample_are_caught(monkeypatch):
    """The view of a less that of a and b then tells whether the record in the hidden cell was sampled."""
    monkeypatch.setattr(draw, "_drawn", shared_sample(draw._drawn))
    assert audit(shown(1), shown(0), EPSILON).delta_at_least > 0.8 * BETA > promised()


# --- a charge for each choice -----------------------------------------------------------------------------------------

DRAWS = 600
EXPONENT = 1.0


def three_columns(extra):
    """Columns of which all pairs have the same score; one record more raises that of b and c alone."""
    cells = {(0, 0, 0): 30, (1, 1, 1): 30} | ({(1, 0, 0): extra} if extra else {})
    codes = np.array(list(cells)).T
    columns = [Column(name, ("0", "1"), of) for name, of in zip("abc", codes, strict=True)]
    return Histogram.of(columns, np.array(list(cells.values())))


def first_choices(monkeypatch, extra):
    """Which pair is chosen first, time and again. The one-way tables are never shown, so nothing else tells."""
    table = three_columns(extra)
    names = ("a", "b", "c")
    binary = ", ".join(f"{name}: {{domain: ['0', '1']}}" for name in names)
    attributes = codings(Policy.from_text(f"incrowd: 1\nattributes: {{{binary}}}\n"))
    plan = ViewsPlan(1.0, 1.0, 3, CrowdStep(500, 0.5), 2, NoiseStep(4), 2, EXPONENT)
    monkeypatch.setattr(ViewsPlan, "kept", True)  # crowds and noise are never planned together but here
    settings = ViewsSettled(plan, "noise", Choose(), names, (), attributes, dict.fromkeys(names, 0), False, None)
    source = RandomSource()
    picked = []
    for _ in range(DRAWS):
        views = draw.run(settings, table, source).views
        assert not any(view.counts.any() for view in views[:3])
        picked.append(views[3].places[0] * 3 + views[3].places[1])
    return np.array(picked)


def uncharged(factor):
    """A twin that draws by `factor` times the exponent that was charged; the best one, if that is None."""

    def pick(self, candidates, model, source):
        scores = [self.score(candidate, model) for candidate in candidates]
        if factor is None:
            return candidates[int(np.argmax(scores))]
        half = Fraction(self.settings.plan.exponent) * factor / 2
        return candidates[choose(source, [half * score for score in scores])]

    return pick


def worst(monkeypatch, epsilon):
    larger, smaller = first_choices(monkeypatch, 1), first_choices(monkeypatch, 0)
    return max(audit(larger, smaller, epsilon).delta_at_least, audit(smaller, larger, epsilon).delta_at_least)


def test_a_choice_keeps_within_its_charge(monkeypatch):
    charged = BoundedRange(Fraction(EXPONENT))
    larger, smaller = first_choices(monkeypatch, 1), first_choices(monkeypatch, 0)
    assert len(np.unique(larger)) == 3
    for epsilon in (0.0, 0.3):
        assert audit(larger, smaller, epsilon).delta_at_least <= charged.delta(epsilon)
        assert audit(smaller, larger, epsilon).delta_at_least <= charged.delta(epsilon)


@pytest.mark.parametrize("factor", [8, None])
def test_an_uncharged_choice_is_caught(monkeypatch, factor):
    monkeypatch.setattr(Chooser, "pick", uncharged(factor))
    assert worst(monkeypatch, 0.3) > BoundedRange(Fraction(EXPONENT)).delta(0.3)
