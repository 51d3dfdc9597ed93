"""The papers' printed values come out, and the page is complete."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from incrowd.cli import incrowd
from incrowd.errors import DataError
from incrowd.gallery import FIGURES, Material, crowds, randomised, samples

QUICK = Material(quick=True)


def test_every_printed_value_of_tables_1_and_2_comes_out():
    for figure, values in ((crowds.table_1(QUICK), 4), (crowds.table_2(QUICK), 18)):
        assert figure.numbers["printed"] == values
        assert figure.numbers["agree"] == values


def test_a_wrong_printed_value_would_be_noticed(monkeypatch):
    monkeypatch.setitem(crowds.PRINTED_TABLE_2, 0.1, (4.19e-06, 1.61e-09, 3.44e-12, 4.08e-14, 3.22e-16, 1.89e-18))
    figure = crowds.table_2(QUICK)
    assert figure.numbers["agree"] == 17
    assert any("not all agree" in part for part in figure.content)


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
    assert page.count("<section") == 2
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
