"""The experiment on realistic adversaries: its numbers against brute force, and what the paper concludes from them."""

import csv
import math
from collections import Counter
from fractions import Fraction

import pytest

from incrowd.core.errors import ParameterError
from incrowd.papers.gallery import FIGURES, Material, draw
from incrowd.papers.gallery import adversaries as experiment

QUICK = Material(quick=True)


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    wanted = [name for name, at in FIGURES.items() if "adversaries" in at]
    return folder, {one.name: one for one in draw(folder, wanted, QUICK)}


def test_every_conclusion_of_the_paper_holds_on_the_example(figures):
    for one in figures[1].values():
        assert one.numbers["conclusions"]
        assert all(one.numbers["conclusions"].values()), one.numbers["conclusions"]


def test_what_the_paper_says_of_its_survey_is_not_said_to_agree_with_another_table(figures):
    """Theorems can be checked on any table; conclusions from a table that is not to be had cannot."""
    for name, one in figures[1].items():
        assert {claim.agrees for claim in one.claims} == ({True} if name == "definitions" else {None}), name
    (claim,) = [claim for claim in figures[1]["stubbornness"].claims if "Figure 2(b)" in claim.said]
    assert claim.found.startswith("not so in an example census")
    best = figures[1]["stubbornness"].numbers["best"]["average group"]
    at = figures[1]["stubbornness"].numbers["stubbornness"].index(1e5)
    assert best["any shape"][at] is None
    assert best["uniform prior"][at] > 0


def test_the_same_utility_is_noticed_where_it_is():
    tables = experiment.lattice(None, 3_000)
    same = {name: [1.0] * len(experiment._SIGMAS) for name in ("first", "second")}
    claim = experiment._same_utility(tables, {"discernibility": same})
    assert claim.found.startswith("so in")
    assert "discernibility at σ = 10², 10³, 10⁴, 10⁵" in claim.found


def test_the_page_stands_alone(figures):
    folder, drawn = figures
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page
    for one in drawn.values():
        assert one.title.replace("’", "’") in page


def test_utility_falls_with_stubbornness_by_every_measure(figures):
    """Against any shape fewer tables withstand the more stubborn, so the best of them cannot get better."""
    best = figures[1]["stubbornness"].numbers["best"]
    assert set(best) == {
        "discernibility",
        "average group",
        "divergence, in bits",
        "mean relative error of counts",
    }
    for by_name in best.values():
        values = [math.inf if value is None else value for value in by_name["any shape"]]
        assert values == sorted(values)
        assert 0 < values[0] < math.inf


def test_the_divergence_of_a_generalization_by_hand():
    """Records spread evenly over what their labels cover, cell by cell."""
    tables = experiment.lattice(None, 3_000)
    assert tables.divergence[0, 0, 0, 0] == 0
    assert tables.query_error[0, 0, 0, 0] == 0
    top = tables.divergence[5, 0, 0, 0]
    assert 0 < tables.divergence[1, 0, 0, 0] < top
    people = experiment._grown_up(3_000).to_pylist()
    shown = [p for p in people if p["race"] is not None and p["salary-class"] is not None]

    def cell(person):
        rest = (person["marital-status"], person["race"], person["sex"], person["salary-class"] >= 50_000)
        return (person["age"], *rest), rest

    fine, coarse = Counter(cell(p)[0] for p in shown), Counter(cell(p)[1] for p in shown)
    n = len(shown)
    bits = sum(c / n * math.log2((c / n) / (coarse[key[1:]] / n / 105)) for key, c in fine.items())  # ages 15 to 119
    assert top == pytest.approx(bits, rel=1e-9)


def test_there_are_72_generalizations_and_the_top_one_is_private(figures):
    ratios = figures[1]["adversaries"].numbers["ratios"]
    assert len(ratios) == 72
    top = ratios["[5, 2, 1, 1]"]
    assert top[5] == 1.0  # the shape is the table's own: nothing is learned


def test_unknown_figures_and_data_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="no figure"):
        draw(tmp_path, ["no-such"])
    with pytest.raises(ParameterError, match="no kind of data"):
        draw(tmp_path, [], Material({"no-such": tmp_path}))


def test_adult_against_a_count_by_hand(benchmark_data):
    """[5, 1, 1, 0]: marital status in two classes, and sex. Ratios from the definition, with fractions."""
    married = {"Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent", "Separated"}
    path = benchmark_data / "adult" / "adult.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    groups: dict[tuple[bool, str], Counter[str]] = {}
    for row in rows:
        key = (row["marital-status"] in married, row["sex"])
        groups.setdefault(key, Counter())[row["salary-class"]] += 1
    worst = Fraction(1)
    for counts in groups.values():
        n = counts.total()
        for hits in counts.values():
            inside, outside = Fraction(hits, n), Fraction(hits, n + 1000 - 1)  # class II, one per value
            worst = max(worst, inside / outside, (1 - outside) / (1 - inside))
    numbers = draw_numbers(path)
    at = numbers["adversaries"].index("any shape, σ = 10³")
    assert numbers["ratios"]["[5, 1, 1, 0]"][at] == pytest.approx(float(worst), rel=1e-12)
    assert all(numbers["conclusions"].values())


def draw_numbers(path):
    return experiment.minimum_ratios(Material({"adult": path})).numbers
