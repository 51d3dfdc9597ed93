"""Views from policy to folder: what is asked for, drawn, certified, checked, estimated and refused."""

import io
import itertools
import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from incrowd import api
from incrowd.core.errors import BudgetError, InputError, ParameterError, PolicyError, UnreachableError
from incrowd.core.signing import seal, sha256, to_bytes
from incrowd.hierarchy import codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.views.choose import Candidate, Chooser
from incrowd.mechanisms.views.draw import fitted, run
from incrowd.mechanisms.views.estimate import deviations
from incrowd.mechanisms.views.settle import prepare, settle
from incrowd.mechanisms.views.truth import Truth
from incrowd.mechanisms.views.view import file_names
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table
from incrowd.sources.kept import KeptTable
from incrowd.theory.intervals import noisy_between
from incrowd.theory.views import LaplaceStep, NoiseStep, ViewsPlan

ATTRIBUTES = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 39}, hierarchy: {widths: [10, 20]}}
  sex: {domain: [f, m]}
  job: {domain: [none, office, shop]}
  home: {domain: [flat, house]}
  secret: drop
"""


def policy(release):
    return Policy.from_text(f"{ATTRIBUTES}release: {{mechanism: views, {release}}}\n")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    rows = 6000
    age = rng.integers(0, 40, rows)
    job = np.where(age < 15, 0, rng.integers(0, 3, rows))
    sex = rng.integers(0, 2, rows)
    home = np.where(rng.random(rows) < 0.85, sex, 1 - sex)
    return pd.DataFrame(
        {
            "age": age,
            "sex": np.array(["f", "m"])[sex],
            "job": np.array(["none", "office", "shop"])[job],
            "home": np.array(["flat", "house"])[home],
            "secret": "x",
        }
    )


def outcome(people, release, seed=1):
    plan = policy(release)
    attributes = codings(plan)
    settings = settle(plan.release, plan, attributes)
    table = count_table(people, plan, attributes, show_values=False, progress=lambda part: None)
    settings, table = prepare(settings, table, lambda what, part: None)
    return settings, run(settings, table, RandomSource.seeded(seed))


def distance(table, told, names):
    one, two = (h.project(names) for h in (table, told))
    places = two.places(one)
    counts = np.where(places >= 0, two.counts[places], 0) / two.total
    return 1 - np.minimum(counts, one.counts / one.total).sum()


# --- what is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["crowd", "noise"])
def test_one_way_tables_come_first_and_a_tree_connects_all_columns(people, by):
    _, found = outcome(people, f"epsilon: 2, delta: 1e-5, by: {by}, choose: {{how: tree}}")
    assert [view.columns for view in found.views[:4]] == [("age",), ("sex",), ("job",), ("home",)]
    pairs = [view.columns for view in found.views[4:]]
    assert len(pairs) == 3
    assert {("sex", "home"), ("age", "job")} <= set(pairs)
    reached = {"age"}
    for _ in pairs:
        reached |= {name for pair in pairs if reached & set(pair) for name in pair}
    assert reached == {"age", "sex", "job", "home"}


@pytest.mark.parametrize(("by", "views"), [("crowd", 6), ("noise", 3)])
def test_if_nothing_is_said_crowds_are_chosen_adaptively_and_noise_along_a_tree(people, by, views):
    settings, found = outcome(people, f"epsilon: 1, delta: 1e-5, by: {by}")
    assert settings.choice.how == ("adaptive" if by == "crowd" else "tree")
    assert (settings.plan.views, settings.plan.choices, len(found.views)) == (views, views, 4 + views)


@pytest.mark.parametrize(
    "how", ["{columns: 3, how: tree}", "{columns: 2, how: adaptive}", "{columns: 3, how: adaptive}"]
)
def test_other_choices(people, how):
    settings, found = outcome(people, f"epsilon: 4, delta: 1e-5, by: noise, choose: {how}")
    views = [view.columns for view in found.views]
    assert len(set(views)) == len(views) == settings.plan.singles + settings.plan.views
    assert settings.plan.choices == settings.plan.views
    assert distance(found.truth.table, found.combined, ["sex", "home"]) < 0.03


@pytest.mark.parametrize("by", ["crowd", "noise"])
def test_views_beat_the_one_way_control_and_improve_with_epsilon(people, by):
    def score(release):
        errors = []
        for seed in range(3):
            _, found = outcome(people, release, seed)
            pairs = itertools.combinations(found.truth.table.names, 2)
            errors.append(np.mean([distance(found.truth.table, found.combined, pair) for pair in pairs]))
        return 1000 * (1 - np.mean(errors))

    views = [score(f"epsilon: {epsilon}, delta: 1e-5, by: {by}") for epsilon in (0.5, 8)]
    control = score(f"epsilon: 8, delta: 1e-5, by: {by}, views: [[age], [sex], [job], [home]]")
    assert views[1] > views[0]
    assert views[1] > control + 20


def test_crowds_are_true_counts_of_sampled_people_and_never_small(people):
    settings, found = outcome(people, "epsilon: 1, delta: 1e-5, choose: {how: tree}")
    assert all(isinstance(view.step, NoiseStep) for view in found.views[:4])
    for view in found.views[4:]:
        shown = view.counts[view.counts > 0]
        assert shown.min() >= view.step.k
        truth = found.truth.total
        assert shown.sum() <= truth
        assert shown.sum() == pytest.approx(view.step.beta * truth, rel=0.5)
    assert settings.plan.kept


def test_a_view_that_cannot_carry_base_values_is_shown_at_a_coarser_level(people):
    _, found = outcome(people.head(1500), "epsilon: 1, delta: 1e-6, views: [[age, job]]")
    view = found.views[-1]
    assert view.columns == ("age", "job")
    assert view.levels[0] > 0
    assert view.counts.shape[0] < 40


def test_a_seed_gives_the_same_bytes(people):
    one, two, other = (
        api.release(people, policy("epsilon: 1, delta: 1e-5"), _source=RandomSource.seeded(seed)) for seed in (1, 1, 2)
    )
    assert one.beside == two.beside
    assert one.histogram == two.histogram
    assert one.beside != other.beside


@pytest.mark.parametrize(
    "how", ["by: crowd, choose: {how: tree}", "by: noise, choose: {columns: 3, how: tree}", "views: [[age, sex, job]]"]
)
def test_a_table_whose_cells_stay_in_the_engine_gives_the_same_release(people, tmp_path, how, monkeypatch):
    """Of the table, only counts by the columns of some view or possible view come out of the engine, many at once."""
    asked = []
    tables = KeptTable.tables

    def counted(self, sets):
        asked.append([tuple(columns) for columns in sets])
        return tables(self, sets)

    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    plan = policy(f"epsilon: 2, delta: 1e-5, {how}")
    whole = api.release(path, plan, _source=RandomSource.seeded(3))
    monkeypatch.setattr(KeptTable, "tables", counted)
    kept = api.release(path, plan, most_cells=100, _source=RandomSource.seeded(3))
    assert kept.beside == whole.beside
    assert kept.histogram == whole.histogram
    assert kept.certified.mechanism == whole.certified.mechanism
    assert b"furthest off" in kept.internal["report.html"]
    assert all(len(columns) <= 3 for sets in asked for columns in sets)
    seen = [columns for sets in asked for columns in sets]
    assert len(seen) == len(set(seen))
    assert len([sets for sets in asked if sets]) <= 4


def test_the_score_of_a_choice_moves_by_one_at_most(people):
    settings, found = outcome(people.head(400), "epsilon: 1, delta: 1e-5, by: noise")
    model = fitted(found.truth.sizes, found.views)
    table, whole = found.truth.table, Chooser(settings, found.truth)
    candidates = [Candidate(pair, (0, 0)) for pair in itertools.combinations(range(4), 2)]
    before = [whole.score(candidate, model) for candidate in candidates]
    for place in range(0, len(table), 9):
        counts = table.counts.copy()
        counts[place] += 1
        more = Chooser(settings, Truth(table.with_counts(counts)))
        after = [more.score(candidate, model) for candidate in candidates]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= 1
        assert all(isinstance(score, int) for score in after)


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_has_views_and_a_synthetic_table_that_says_so(people, tmp_path):
    api.release(people, policy("epsilon: 1, delta: 1e-5, by: noise, rows: 500"), folder=tmp_path / "out")
    assert api.verify(tmp_path / "out").valid
    schema = pq.read_schema(tmp_path / "out" / "combined.parquet")
    assert schema.metadata[b"synthetic"] == b"true"
    assert pq.read_metadata(tmp_path / "out" / "combined.parquet").num_rows == 500
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_bytes())
    assert "nobody's records" in certificate["mechanism"]["synthetic"]
    assert "nobody&#x27;s records" in (tmp_path / "out" / "report.html").read_text() or "nobody's records" in (
        tmp_path / "out" / "report.html"
    ).read_text(encoding="utf-8")
    view = pq.read_table(tmp_path / "out" / "views" / "sex.parquet").to_pandas()
    assert list(view.columns) == ["sex", "count", "standard_deviation"]
    assert view["count"].sum() == pytest.approx(len(people), rel=0.2)


def test_a_report_says_the_noise_of_both_kinds_of_tables_and_which_file_is_which(people, tmp_path):
    made = api.release(people, policy("epsilon: 1, delta: 1e-5, by: noise"), folder=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    one, several = (math.sqrt(made.certificate["mechanism"][step]["variance"]) for step in ("single", "view"))
    assert one != several
    assert re.search(
        rf">{several:.4g}<.*of counts of several columns, Gaussian; {one:.4g} of one column", page, re.DOTALL
    )
    assert "standard deviation of each count" not in page
    assert "as they are" in page
    assert "as it is, as it is" not in page
    assert "views/" not in page
    text = f"{ATTRIBUTES}release: {{mechanism: views, epsilon: 1, delta: 1e-5, by: noise}}\n"
    spaced = Policy.from_text(text.replace("home:", "where home is:"))
    api.release(people.rename(columns={"home": "where home is"}), spaced, folder=tmp_path / "spaced")
    assert "views/001.parquet" in (tmp_path / "spaced" / "report.html").read_text(encoding="utf-8")


def test_views_alone_have_no_table(people, tmp_path):
    made = api.release(
        people, policy("epsilon: 1, delta: 1e-5, views: [[sex, job]], combine: none"), folder=tmp_path / "out"
    )
    assert not (tmp_path / "out" / "combined.parquet").exists()
    assert api.verify(tmp_path / "out").valid
    assert not made.histogram.total


def forged(folder, target, change):
    """A copy in which a view's file was changed, with a certificate around it that fits."""
    shutil.copytree(folder, target)
    certificate = json.loads((target / "certificate.json").read_bytes())
    change(target, certificate)
    for name, stated in certificate["files"].items():
        content = (target / name).read_bytes()
        stated.update(sha256=sha256(content), bytes=len(content))
    (target / "certificate.json").write_bytes(to_bytes(seal(certificate)))
    return api.verify(target)


def small_crowd(folder, certificate):
    table = pq.read_table(folder / "views" / "sex.parquet").to_pandas()
    table.loc[0, "count"] = 1
    table.to_parquet(folder / "views" / "sex.parquet", index=False)


def other_label(folder, certificate):
    table = pq.read_table(folder / "views" / "sex.parquet").to_pandas()
    table.loc[0, "sex"] = "x"
    table.to_parquet(folder / "views" / "sex.parquet", index=False)


def smaller_k(folder, certificate):
    certificate["mechanism"]["view"]["k"] -= 1


def uncharged_choice(folder, certificate):
    certificate["mechanism"]["choices"] = 0


def more_views(folder, certificate):
    views = certificate["mechanism"]["views"]
    views.append({**views[-1], "columns": ["sex", "job"], "levels": [0, 0], "file": "views/sex.job.parquet"})
    shutil.copy(folder / "views" / "sex.parquet", folder / "views" / "sex.job.parquet")
    certificate["files"]["views/sex.job.parquet"] = {}


def unmarked(folder, certificate):
    table = pq.read_table(folder / "combined.parquet").replace_schema_metadata(None)
    pq.write_table(table, folder / "combined.parquet", store_schema=False, write_statistics=False, compression="zstd")


@pytest.mark.parametrize("change", [small_crowd, other_label, smaller_k, uncharged_choice, more_views, unmarked])
def test_forgeries_are_not_verified(people, tmp_path, change):
    folder = tmp_path / "out"
    api.release(people, policy("epsilon: 1, delta: 1e-5"), folder=folder)
    assert forged(folder, tmp_path / "same", lambda *_: None).valid
    assert not forged(folder, tmp_path / change.__name__, change).valid


def negative_singles(folder, certificate):
    """A one-way table less than none pays for the others."""
    certificate["mechanism"] |= {"singles": -1}
    certificate["mechanism"]["view"]["decay"] *= 2


def negative_exponent(folder, certificate):
    certificate["mechanism"] |= {"exponent": -12.0}
    certificate["mechanism"]["view"]["decay"] *= 2


@pytest.mark.parametrize("change", [negative_singles, negative_exponent])
def test_nothing_negative_pays_for_noise_that_is_too_small(people, tmp_path, change):
    folder = tmp_path / "out"
    asked = policy("epsilon: 1, delta: 1e-6, by: noise, views: [[sex, home]], combine: none")
    api.release(people, asked, folder=folder)
    assert forged(folder, tmp_path / "same", lambda *_: None).valid
    assert not forged(folder, tmp_path / change.__name__, change).valid


@pytest.mark.parametrize("changes", [{"singles": -1}, {"choices": -1}, {"exponent": -1.0}, {"views": -1}, {"rows": 0}])
def test_a_plan_has_no_negative_parts(changes):
    plan = ViewsPlan(1.0, 1e-6, 2, LaplaceStep(0.1), 1, LaplaceStep(0.1))
    with pytest.raises(ParameterError):
        replace(plan, **changes)


def test_views_that_noise_would_drown_are_not_chosen_where_there_are_others():
    """Two columns of 300 values: their pair would have 90,000 cells for 2,000 people."""
    rng = np.random.default_rng(5)
    day = rng.integers(0, 300, 2000)
    table = pd.DataFrame({"born": day, "seen": day, "sex": rng.choice(["f", "m"], 2000)})
    days = "{type: integer, domain: {from: 0, to: 299}}"
    asked = Policy.from_text(
        f"incrowd: 1\nattributes: {{born: {days}, seen: {days}, sex: {{domain: [f, m]}}}}\n"
        "release: {mechanism: views, epsilon: 1, delta: 1e-5, by: noise}\n"
    )
    chosen = [view["columns"] for view in api.release(table, asked).certificate["mechanism"]["views"]]
    assert ["born", "seen"] not in chosen
    assert len(chosen) == 5


# --- estimates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["crowd", "noise"])
def test_estimates_come_from_views_and_are_marked_beyond_them(people, tmp_path, by):
    asked = policy(f"epsilon: 2, delta: 1e-5, by: {by}, views: [[sex, home]]")
    api.release(people, asked, folder=tmp_path / "out", _source=RandomSource.seeded(1))
    carried = api.estimate(tmp_path / "out", ["home", "sex"])
    truth = people.groupby(["home", "sex"]).size()
    assert len(carried.rows) == 4
    for row in carried.rows:
        assert not row.modelled
        assert row.low <= row.estimate <= row.high
        assert abs(row.estimate - truth[row.values]) < 6 * row.standard_error
    modelled = api.estimate(tmp_path / "out", ["sex", "job"])
    truth = people.groupby(["sex", "job"]).size()
    for row in modelled.rows:
        assert row.modelled
        assert row.standard_error is None
        assert row.low <= truth[row.values] <= row.high
        assert row.estimate == pytest.approx(truth[row.values], rel=0.5)


@pytest.mark.parametrize("by", ["crowd", "noise"])
def test_a_cell_has_no_fewer_people_than_are_left_for_it(by):
    """Nine in ten are a, and nine in ten are x: at least eight in ten are both, whatever depends on what."""
    both = pd.DataFrame(
        {"one": np.repeat(["a", "b"], [9000, 1000]), "two": np.repeat(["x", "y", "x"], [8100, 900, 1000])}
    )
    text = f"""
incrowd: 1
attributes: {{one: {{domain: [a, b]}}, two: {{domain: [x, y]}}}}
release: {{mechanism: views, epsilon: 2, delta: 1e-6, by: {by}, views: [[one], [two]]}}
"""
    missed, truth = 0, both.groupby(["one", "two"]).size()
    for seed in range(20):
        found = api.estimate(
            api.release(both, Policy.from_text(text), _source=RandomSource.seeded(seed)), ["one", "two"]
        )
        rows = {row.values: row for row in found.rows}
        assert 7000 < rows["a", "x"].low <= rows["a", "x"].estimate <= rows["a", "x"].high
        assert rows["b", "y"].low == 0
        missed += sum(not row.low <= truth.get(values, 0) <= row.high for values, row in rows.items())
    assert missed <= 8  # of 80


@pytest.mark.parametrize("by", ["crowd", "noise"])
def test_intervals_hold(people, by):
    """Of 40 ages in 5 releases, each interval holds with 95%: 17 or more misses come once in 10,000 runs at worst."""
    plan = policy(f"epsilon: 1, delta: 1e-5, by: {by}, views: [[age], [sex], [job], [home]], combine: none")
    truth = people.groupby("age").size()
    missed = 0
    for seed in range(5):
        found = api.estimate(api.release(people, plan, _source=RandomSource.seeded(seed)), ["age"])
        missed += sum(not row.low <= truth[int(row.values[0])] <= row.high for row in found.rows)
    assert missed < 22


def test_a_view_at_coarser_levels_bounds_the_cells_within_its_own(people):
    made = api.release(people, policy("epsilon: 0.4, delta: 1e-6, views: [[age, job]]"), _source=RandomSource.seeded(4))
    view = made.certified.mechanism.views[-1]
    assert view.columns == ("age", "job")
    assert view.levels[0] > 0
    found = api.estimate(made, ["age", "job"])
    assert any("more coarsely" in note for note in found.notes)
    truth = people.groupby(["age", "job"]).size()
    tops = {}
    for row in found.rows:
        assert row.modelled
        assert row.low <= row.estimate <= row.high
        tops.setdefault(row.values[0], []).append(row.high)
    missed = sum(not row.low <= truth.get((int(row.values[0]), row.values[1]), 0) <= row.high for row in found.rows)
    assert missed <= 6  # of 120
    # The one-way tables alone would leave the same room to all three jobs of an age.
    assert all(len(set(ends)) > 1 for age, ends in tops.items() if int(age) < 10)


def test_noisy_counts_below_zero_are_estimated_within_their_interval(people):
    few = people[people.age < 5]
    made = api.release(few, policy("epsilon: 1, delta: 1e-6, by: noise"), _source=RandomSource.seeded(6))
    for by in (["age"], ["sex"], ["age", "job"]):
        rows = api.estimate(made, by).rows
        assert all(row.low <= row.estimate <= row.high for row in rows)
        assert all(row.high > 0 for row in rows)


def test_a_noisy_count_far_below_zero_does_not_claim_an_empty_cell():
    counts = np.array([-1000, -3, 0, 3, 1000])
    low, high = noisy_between(counts, 10)
    assert low.tolist() == [0, 0, 0, 0, 990]
    assert high.tolist() == [10, 10, 10, 13, 1010]


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("surprise", [0.025, 0.01, 0.001])
def test_sums_of_noise_stay_within_so_many_deviations(surprise, laplace):
    """The law of a sum, from the powers of its Fourier transform."""
    points = 1 << 16
    x = np.minimum(np.arange(points), points - np.arange(points))
    for scale in (0.7, 3.0, 12.0):
        law = np.exp(-x / scale) if laplace else np.exp(-(x**2) / (2 * scale**2))
        law /= law.sum()
        variance = float(law @ x**2)
        for number in (1, 2, 5, 30):
            summed = np.fft.irfft(np.fft.rfft(law) ** number, points)
            margin = math.ceil(deviations(surprise, laplace=laplace) * math.sqrt(number * variance)) + 1
            above = summed[margin + 1 : points // 2].sum()
            assert above <= surprise
    near = math.ceil(0.8 * deviations(surprise, laplace=laplace) * math.sqrt(variance))
    assert law[near + 1 : points // 2].sum() > surprise


def test_a_listed_view_with_noise_is_a_table_of_counts(people, tmp_path):
    """All of ε goes to it, every declared cell is listed, and errors are those of Laplace noise at ε = 1."""
    plan = Policy.from_text(
        """
        incrowd: 1
        attributes: {age: drop, sex: {domain: [f, m]}, job: {domain: [none, office, shop]}, home: drop, secret: drop}
        release: {mechanism: views, epsilon: 1, delta: 1e-6, by: noise, views: [[job, sex]], combine: none}
        """
    )
    made = api.release(people, plan)
    view = pq.read_table(io.BytesIO(made.beside["views/sex.job.parquet"])).to_pandas()
    assert len(view) == 6
    truth = people.groupby(["sex", "job"]).size()
    errors = [abs(row["count"] - truth[row.sex, row.job]) for _, row in view.iterrows()]
    assert max(errors) < 30
    a = made.certificate["mechanism"]["view"]["decay"]
    assert a == pytest.approx(1.0)
    assert view.standard_deviation[0] == pytest.approx(math.sqrt(2 * math.exp(-a)) / (1 - math.exp(-a)))


# --- more tables, plans, refusals ------------------------------------------------------------------------------------


def test_more_tables_are_drawn_from_the_same_views(people, tmp_path):
    api.release(people, policy("epsilon: 2, delta: 1e-5, by: noise"), folder=tmp_path / "out")
    one, two, other = (api.combine(tmp_path / "out", rows=700, seed=seed) for seed in (1, 1, 2))
    assert one == two
    assert one != other
    assert one.total == 700
    api.combine(tmp_path / "out", seed=3, output=tmp_path / "more.parquet")
    assert pq.read_schema(tmp_path / "more.parquet").metadata[b"synthetic"] == b"true"
    rows = pq.read_metadata(tmp_path / "more.parquet").num_rows
    assert rows == pytest.approx(len(people), rel=0.1)
    with pytest.raises(InputError):
        api.combine(tmp_path / "out", output=tmp_path / "more.txt")
    plain = Policy.from_text(
        f"{ATTRIBUTES}release: {{mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, selection_epsilon: 0.2}}"
    )
    api.release(people, plain, folder=tmp_path / "crowd")
    with pytest.raises(InputError):
        api.combine(tmp_path / "crowd")


def test_the_planner_says_what_is_carried():
    crowds = api.plan_views(columns=4, rows=2_000, epsilon=1, delta=1e-6)
    assert crowds.views == 3
    assert [option.views for option in crowds.options] == [3, 2, 6]
    assert crowds.k / crowds.beta < 90
    assert crowds.carried == 0  # groups of 20 people do not show
    noise = api.plan_views(columns=10, rows=27_000, epsilon=1, delta=1e-6, by="noise")
    assert noise.standard_deviation == pytest.approx(16, rel=0.05)
    assert noise.carried > 100
    three = api.plan_views(columns=10, rows=27_000, epsilon=1, delta=1e-6, by="noise", rows_per_person=3)
    assert three.standard_deviation == pytest.approx(3 * noise.standard_deviation, rel=0.01)
    survey = {"columns": 10, "rows": 27_000, "epsilon": 1, "delta": 1e-6, "sample_rate": 0.05}
    assert api.plan_views(**survey, by="noise").standard_deviation < noise.standard_deviation / 3
    with pytest.raises(ParameterError, match="itself a sample"):
        api.plan_views(**survey)


@pytest.mark.parametrize(
    ("release", "about"),
    [
        ("views: [[age, shoe]]", "shoe"),
        ("views: [[age, secret]]", "secret"),
        ("views: [[age, sex], [sex, age]]", "twice"),
        ("views: [[age, age]]", "each once"),
        ("views: [[age, sex]], choose: {columns: 2}", "listed already"),
        ("choose: {columns: 4}", "columns"),
        ("combine: none, rows: 5", "synthetic"),
        ("by: magic", "by"),
        ("share: 0", "share"),
    ],
)
def test_bad_sections_are_refused(release, about):
    with pytest.raises(PolicyError, match=about):
        policy(f"epsilon: 1, delta: 1e-6, {release}")


@pytest.mark.parametrize(("by", "epsilon"), [("crowd", 0.05), ("noise", 0.004)])
def test_more_views_than_the_budget_carries_are_refused_with_the_number_that_it_does(people, by, epsilon):
    listed = [list(pair) for pair in itertools.combinations(["age", "sex", "job", "home"], 2)]
    with pytest.raises(UnreachableError, match="It carries") as refused:
        api.release(people, policy(f"epsilon: {epsilon}, delta: 1e-6, by: {by}, views: {listed}"))
    assert 0 < refused.value.details["carried"] < 6


def test_views_that_do_not_connect_are_combined_with_a_word(people):
    made = api.release(people, policy("epsilon: 4, delta: 1e-5, by: noise, views: [[age, job], [sex, home]]"))
    assert b"unconnected" in made.report
    [said] = [warning for warning in made.warnings if warning.code == "unconnected"]
    assert "age, job; sex, home" in said.text
    for release in ("views: [[age, job], [sex, home]], combine: none", "views: [[age, job], [job, sex], [sex, home]]"):
        made = api.release(people, policy(f"epsilon: 4, delta: 1e-5, by: noise, {release}"))
        assert "unconnected" not in {warning.code for warning in made.warnings}
    table = Histogram.of([made.histogram["sex"], made.histogram["home"]], made.histogram.counts)
    assert len(table) == 4


def test_the_report_names_views_that_the_model_has_no_room_for(people, monkeypatch):
    from incrowd.mechanisms.views import report

    listed = policy("epsilon: 5, delta: 1e-6, by: noise, views: [[age, sex], [sex, job], [age, job]]")
    assert b"no room" not in api.release(people, listed).report
    monkeypatch.setattr(report, "LIMIT", 100)
    shown = api.release(people, listed).report.decode("utf-8")
    assert "no room for 1 view, which it does not follow: age × job." in " ".join(shown.split())


SURVEY = "already_sampled: true, beta: 0.05, by: noise"
LEDGER = "ledger: {path: ledger.sqlite, dataset: survey, epsilon: 9, delta: 1e-4}"


def survey(release, base, ledger=LEDGER):
    return Policy.from_text(f"{ATTRIBUTES}release: {{mechanism: views, {release}}}\n{ledger}\n", base=base)


@pytest.fixture(scope="module")
def surveyed(people, tmp_path_factory):
    """The people as a survey of a twentieth of a population, published for a promise to all of it."""
    folder = tmp_path_factory.mktemp("survey")
    plan = survey(f"epsilon: 1, delta: 1e-6, {SURVEY}", folder)
    return api.release(people, plan, folder=folder / "out", new_ledger=True), folder / "out"


def test_a_survey_has_less_noise_for_the_same_promise_and_serves_once(people, surveyed):
    made, folder = surveyed
    assert api.verify(folder).valid
    said = made.certified
    assert (said.mechanism.beta, said.mechanism.already_sampled) == (0.05, True)
    plain = api.release(people, policy("epsilon: 1, delta: 1e-6, by: noise")).certified
    assert said.mechanism.view.variance < plain.mechanism.view.variance / 5
    assert "already_sampled" not in json.loads(plain.model_dump_json())["mechanism"]
    assert "in the population" in said.promise.in_words
    assert "known to be in the table" in said.promise.in_words
    assert any("itself a random sample" in premise for premise in said.assumptions)
    report = " ".join(made.report.decode("utf-8").split())
    assert "the rate at which people came into the table" in report
    assert "ε is 3.57 and δ is" in report  # ln(1 + (e − 1)/0.05)
    with pytest.raises(BudgetError) as refused:
        api.release(people, survey(f"epsilon: 1, delta: 1e-6, {SURVEY}", folder.parent), folder=folder.parent / "two")
    assert refused.value.code == "sample-reused"


def test_estimates_of_a_survey_are_of_the_people_sampled_from(people, surveyed):
    _, folder = surveyed
    found = api.estimate(folder, ["sex", "home"], mean="age")
    assert any("rate 0.05" in note for note in found.notes)
    counts = people.groupby(["sex", "home"]).size() / 0.05
    for row in found.rows:
        assert row.estimate == pytest.approx(counts[row.values], abs=5 * row.standard_error)
        assert row.low < counts[row.values] < row.high
        assert row.standard_error > math.sqrt(counts[row.values] * 0.95 / 0.05) * 0.9  # that of sampling alone
        assert row.high - row.low > 3.9 * row.standard_error
    assert sum(mean.people for mean in found.means) == pytest.approx(len(people) / 0.05, rel=0.05)
    (mean,) = [one for one in api.estimate(folder, ["sex"], mean="age").means if one.values == ("f",)]
    assert mean.people == pytest.approx((people.sex == "f").sum() / 0.05, rel=0.1)
    modelled = api.estimate(folder, ["age", "sex", "home"])
    assert sum(row.estimate for row in modelled.rows) == pytest.approx(len(people) / 0.05, rel=0.05)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"beta": 0.04}, "the promise says what the parameters mean"),
        ({"rate": 0.2}, "epsilon and delta follow from all steps together"),
        ({"whole": True}, "epsilon and delta follow from all steps together"),
    ],
)
def test_a_survey_of_another_rate_does_not_verify(surveyed, tmp_path, change, broken):
    """The mechanism says another rate than the policy; both say a higher one; or that the table is no sample."""
    _, folder = surveyed
    shutil.copytree(folder, tmp_path / "out")
    content = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    mechanism, release = content["mechanism"], content["policy"]["release"]
    if "beta" in change:
        mechanism["beta"] = change["beta"]
    if "rate" in change:
        mechanism["beta"] = release["beta"] = change["rate"]
    if "whole" in change:
        for key in ("beta", "already_sampled"):
            del mechanism[key], release[key]
    content["policy_digest"] = sha256(to_bytes(content["policy"]))
    (tmp_path / "out" / "certificate.json").write_bytes(to_bytes(seal(content)))
    failed = [check.name for check in api.verify(tmp_path / "out").checks if not check.holds]
    assert broken in failed


def test_a_level_that_is_stated_nowhere_is_found_out(surveyed, tmp_path):
    _, folder = surveyed
    shutil.copytree(folder, tmp_path / "out")
    content = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    content["mechanism"]["views"][0]["levels"] = [1]
    (tmp_path / "out" / "certificate.json").write_bytes(to_bytes(seal(content)))
    failed = [check.name for check in api.verify(tmp_path / "out").checks if not check.holds]
    assert "every view holds declared labels and counts only" in failed


def test_a_survey_needs_a_ledger_one_copy_and_a_row_for_each_person(people, tmp_path):
    release = f"epsilon: 1, delta: 1e-6, {SURVEY}"
    several = survey(release, tmp_path, f"people: {{column: secret, at_most: 1}}\n{LEDGER}")
    with pytest.raises(PolicyError, match="no longer be limited"):
        api.release(people, several, new_ledger=True)
    for plan, copies in ((survey(release, tmp_path, ""), 1), (survey(release, tmp_path), 2)):
        with pytest.raises(PolicyError) as refused:
            api.release_copies(people, plan, copies=copies, folder=tmp_path / "out", new_ledger=plan.ledger is not None)
        assert refused.value.code == "sample-reused"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by", ["noise", "crowd"])
def test_people_with_several_rows_cost_more(people, by):
    text = ATTRIBUTES.replace("secret: drop", "secret: drop\n  id: drop").rstrip()
    found = {}
    for rows in (1, 3):
        plan = (
            f"people: {{column: id, at_most: {rows}}}\nrelease: {{mechanism: views, epsilon: 4, delta: 1e-5, by: {by}}}"
        )
        made = api.release(people.assign(id=np.arange(len(people)) // 3), Policy.from_text(f"{text}\n{plan}\n"))
        found[rows] = made.certified.mechanism.view
    if by == "noise":
        assert found[3].variance == pytest.approx(9 * found[1].variance, rel=0.1)
    else:
        assert found[3].k / found[3].beta > 1.5 * found[1].k / found[1].beta


def test_names_of_files():
    assert file_names([("age",), ("age", "sex")]) == ["views/age.parquet", "views/age.sex.parquet"]
    assert file_names([("a/b",), ("c.d", "e")]) == ["views/001.parquet", "views/002.parquet"]


def test_a_csv_file_says_by_its_name_that_it_is_synthetic(people, tmp_path):
    api.release(people, policy("epsilon: 2, delta: 1e-5, by: noise, output: csv"), folder=tmp_path / "out")
    assert (tmp_path / "out" / "combined-synthetic.csv").is_file()
    assert api.verify(tmp_path / "out").valid


def test_what_is_said_of_a_synthetic_table_only_if_there_is_one(people):
    for combine in ("table", "none"):
        made = api.release(people, policy(f"epsilon: 2, delta: 1e-5, by: noise, combine: {combine}"), rehearse=True)
        assert ("synthetic" in made.certified.promise.in_words) == (combine == "table")


def test_an_empty_list_of_views_is_refused():
    with pytest.raises(PolicyError, match="lists no view"):
        policy("epsilon: 1, delta: 1e-6, views: []")


def test_a_budget_that_carries_no_one_way_tables_says_so(people):
    with pytest.raises(UnreachableError) as error:
        api.release(people, policy("epsilon: 0.0001, delta: 1e-9, by: noise"))
    assert "does not even carry the one-way tables" in error.value.remedy
