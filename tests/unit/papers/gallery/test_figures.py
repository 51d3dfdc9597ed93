"""The papers' printed values come out, and the page is complete."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from incrowd.cli import incrowd
from incrowd.core.errors import DataError
from incrowd.papers.gallery import FIGURES, Material, crowds, draw, printed, randomised, samples
from incrowd.papers.gallery.hasse import hasse
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import belief_ratio

QUICK = Material(quick=True)


def test_every_printed_value_of_tables_1_and_2_comes_out():
    for figure, values in ((crowds.table_1(QUICK), 6), (crowds.table_2(QUICK), 18)):
        assert figure.numbers["printed"] == values
        assert figure.numbers["agree"] == values
        assert all(claim.agrees for claim in figure.claims)


def test_a_wrong_printed_value_would_be_noticed(monkeypatch):
    monkeypatch.setitem(crowds.PRINTED_TABLE_2, 0.1, (4.19e-06, 1.61e-09, 3.44e-12, 4.08e-14, 3.22e-16, 1.89e-18))
    figure = crowds.table_2(QUICK)
    assert figure.numbers["agree"] == 17
    assert not any(claim.agrees for claim in figure.claims)


def test_statements_about_the_figures_that_do_not_come_out_are_marked():
    """k = 1 has δ = β at best. How similar the pairs of Figure 4 are meant to be is not said."""
    assert [claim.agrees for claim in crowds.figure_5(QUICK).claims] == [False, True]
    assert [claim.agrees for claim in crowds.figure_4(QUICK).claims] == [None]
    for which in (1, 2, 3, 6):
        assert all(claim.agrees for claim in getattr(crowds, f"figure_{which}")(QUICK).claims)


def test_of_table_5_as_printed_two_values_cannot_be_right():
    figure = printed.printed_ratios(QUICK)
    by_column = figure.numbers["impossible"]
    assert by_column == {
        "the table’s shares, σ = 10⁶": ["[5, 1, 0, 1]"],
        "the table’s shares, σ = ∞": [],
        "any shape, σ = 10⁶": ["[5, 0, 0, 1]"],
    }
    assert [claim.agrees for claim in figure.claims].count(True) == 9
    assert [claim.said.partition(",")[0] for claim in figure.claims if claim.agrees is False] == [
        "§3",  # 2.5-private
        *["Table 5"] * 2,
        *["§4.1"] * 3,  # 4 tables; and what is said of all tables, for the row [5, 0, 0, 1]
        "§4.1 on Figure 2(b)",
    ]


def test_what_figure_2b_is_said_to_show_contradicts_table_5(monkeypatch):
    (claim,) = [claim for claim in printed.printed_ratios(QUICK).claims if "Figure 2(b)" in claim.said]
    assert claim.agrees is False
    assert "[5, 2, 0, 1] needs 25.8 or more; [5, 2, 0, 0] needs 53.6 or more" in claim.found
    others = {row: values for row, values in printed.TABLE_5.items() if row not in printed._TURNED}
    monkeypatch.setattr(printed, "TABLE_5", others)
    (claim,) = [claim for claim in printed.printed_ratios(QUICK).claims if "Figure 2(b)" in claim.said]
    assert claim.agrees is True


@pytest.mark.parametrize(("n", "c"), [(100, 3), (100, 50), (100, 97), (5000, 40)])
def test_against_any_shape_a_ratio_is_concave_in_stubbornness(n, c):
    ratios = [belief_ratio([[n - c, c]], Adversary.with_stubbornness(sigma)).exact for sigma in (10**4, 10**5, 10**6)]
    for place, sigma in enumerate((10**4, 10**5)):
        assert (ratios[place] - 1) * (10**6 - 1) >= (ratios[2] - 1) * (sigma - 1)


def test_what_is_said_of_other_data_or_without_a_number_is_not_said_to_agree(tmp_path):
    figures = {one.name: one for one in draw(tmp_path, ["sampling-figure-4", "rare-values", "pram-figure-4"], QUICK)}
    assert [claim.agrees for claim in figures["pram-figure-4"].claims] == [None, None]
    assert [claim.agrees for claim in figures["rare-values"].claims] == [True]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "What cannot be compared" in page
    assert page.count("<td>cannot be compared</td>") == 3


def test_errors_on_the_paper_s_own_census_are_compared(tmp_path):
    runs = [randomised.Run(100, 4, k, 0.5, 1.0, 1.0, e, e, 0.0) for k, e in ((2, 0.1), (10, 0.2))]
    own = Material({"census1990": tmp_path / "census.csv"})
    assert randomised._claim("larger", runs, own).agrees is True
    assert randomised._claim("larger", runs[::-1], own).agrees is False
    assert randomised._claim("smaller", runs, own, falling=True).agrees is False
    stand_in = randomised._claim("smaller", runs, QUICK, falling=True)
    assert stand_in.agrees is None
    assert "not so in an example census" in stand_in.found


@pytest.mark.parametrize("people", [400, 40_000, 4_000_000])
@pytest.mark.parametrize("minority", [0.004, 0.1, 0.3])
def test_the_limits_of_table_5_hold_for_the_library_s_own_ratios(monkeypatch, people, minority):
    """Two groups, and the six adversaries of the paper: what is computed for them lies within the limits."""
    groups = [[round(n * (1 - m)), round(n * m)] for n, m in ((people, minority), (3 * people, minority + 0.05))]
    against = [
        *(Adversary.with_prior(DirichletPrior.from_shape(shape, 1e6)) for shape in ((0.5, 0.5), (0.666, 0.334))),
        *(Adversary.with_stubbornness(sigma) for sigma in (1e3, 1e6)),
        *(Adversary.with_shape(shape) for shape in ((0.5, 0.5), (0.666, 0.334))),
    ]
    ratios = [belief_ratio(groups, one, "subsets").ratio for one in against]
    monkeypatch.setattr(printed, "TABLE_5", {"row": tuple(f"{ratio:.4f}" for ratio in ratios)})
    assert all(found["row"][2] for found in (printed._following(*at) for at in printed._FOLLOWING.values()))
    wrong = [*ratios[:1], ratios[1] * 0.6, *ratios[2:]]
    monkeypatch.setattr(printed, "TABLE_5", {"row": tuple(f"{ratio:.4f}" for ratio in wrong)})
    limits = printed._following(*printed._FOLLOWING["the table’s shares, σ = 10⁶"])["row"]
    assert limits[2] == (limits[1][0] <= wrong[1] + 1e-4)


def test_the_page_says_first_where_it_differs(tmp_path):
    figures = draw(tmp_path, ["sampling-table-2", "sampling-figure-5"], QUICK)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [claim.agrees for one in figures for claim in one.claims] == [True, False, True]
    assert page.index("What differs") < page.index("What agrees") < page.index('id="sampling-table-2"')
    assert "With k = 1, δ is less than β" in page.partition("What agrees")[0]


def test_a_diagram_of_a_lattice_has_a_line_to_each_next_finer_table():
    nodes = {(1, 1): (True, False), (1, 0): (True, True), (0, 1): (False, False), (0, 0): (False, False)}
    drawn = hasse("A lattice", ["first", "second"], nodes)
    assert drawn.count("<line") == 4
    assert drawn.count("<circle") == 2 + 3  # the legend, and three marks
    assert "[1, 0]: first, second" in drawn


@pytest.mark.parametrize("which", range(2, 6))
def test_the_exact_curve_is_below_the_papers(which):
    for curve in getattr(crowds, f"figure_{which}")(QUICK).numbers.values():
        for paper, exact in zip(curve["paper"], curve["exact"], strict=True):
            assert paper is None or exact <= paper * (1 + 1e-9)


def test_rates_against_rare_values():
    numbers = samples.rare_values(QUICK).numbers
    assert numbers["1,000 values of 1,000 rows"]["theorem"] == pytest.approx(0.083, abs=5e-4)
    assert numbers["1,000 values of 1,000 rows"]["exact"] == pytest.approx(0.278, abs=5e-4)
    assert numbers["a Zipf table"]["theorem"] == pytest.approx(2.05e-7, rel=5e-3)
    assert numbers["a Zipf table"]["exact"] == pytest.approx(0.0504, rel=5e-3)
    for exact in numbers["exact"].values():
        assert exact == sorted(exact, reverse=True)


def test_the_command_draws_what_is_asked_for(tmp_path):
    wanted = ["sampling-table-1", "sampling-figure-5"]
    options = [text for name in wanted for text in ("--only", name)]
    done = CliRunner().invoke(incrowd, ["gallery", "-o", str(tmp_path / "g"), "--quick", "--json", *options])
    assert done.exit_code == 0
    assert [one["name"] for one in json.loads(done.stdout)["figures"]] == wanted
    page = (tmp_path / "g" / "index.html").read_text(encoding="utf-8")
    assert page.count("<section") == 3  # and the one that says where they agree
    assert set(wanted) <= set(FIGURES)


def test_a_census_of_ones_own_with_and_without_a_line_of_names(tmp_path):
    rng = np.random.default_rng(0)
    tops = {"SEX": 2, "AGE": 91, "RPINCOME": 90_000, "WORK89": 3, "WORKLWK": 3, "YEARSCH": 18, "TRAVTIME": 99}
    table = pd.DataFrame({name: rng.integers(0, top, 50) for name, top in tops.items()})
    table.rename(columns=str.lower).to_csv(tmp_path / "named.csv", index=False)
    table.to_csv(tmp_path / "bare.csv", index=False, header=False)
    named, bare = (randomised._own.__wrapped__(tmp_path / f"{name}.csv") for name in ("named", "bare"))
    assert named == bare
    assert named.total == 50
    table.to_csv(tmp_path / "more.csv", header=False)
    table.drop(columns="AGE").to_csv(tmp_path / "lacking.csv", index=False)
    table.rename(columns="x{}".format).to_parquet(tmp_path / "strange.parquet")
    for name in ("more.csv", "lacking.csv", "strange.parquet"):
        with pytest.raises(DataError, match="in this order") as caught:
            randomised._own.__wrapped__(tmp_path / name)
        assert caught.value.code == "column-unknown"
