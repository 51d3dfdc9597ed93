"""Priors that depend on what is known of a person: each group of people has its own, from an earlier table."""

import itertools
import json
from fractions import Fraction
from math import prod

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.core.errors import PolicyError, UnreachableError
from incrowd.policy import Policy
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import belief_ratio

POLICY = """
incrowd: 1
attributes:
  sex: {{role: quasi, domain: [f, m], {level}}}
  age: {{role: quasi, type: integer, domain: {{from: 20, to: 59}}, hierarchy: {{widths: [10, 20]}}}}
  ill: {{role: sensitive, domain: ["no", "yes"]}}
release:
  mechanism: generalization
  adversaries: [{{name: a reader, belief_ratio: {ratio}, earlier_table: {{file: last.csv, column: ill, count: n{by}}}}}]
"""
LAST_YEAR = "sex,ill,n\nf,no,900\nf,yes,100\nm,no,500\nm,yes,500\n"


def policy(folder, *, ratio=2, by=", by: sex", level="level: 0", last=LAST_YEAR):
    (folder / "last.csv").write_text(last)
    return Policy.from_text(POLICY.format(ratio=ratio, by=by, level=level), folder)


def people(rows=2000):
    rng = np.random.default_rng(5)
    sex = rng.choice(["f", "m"], rows)
    ill = rng.random(rows) < np.where(sex == "f", 0.1, 0.5)
    return pd.DataFrame({"sex": sex, "age": rng.integers(20, 60, rows), "ill": np.where(ill, "yes", "no")})


def test_each_group_of_people_has_its_own_prior(tmp_path):
    made = incrowd.release(people(), policy(tmp_path), folder=tmp_path / "out")
    assert api.verify(tmp_path / "out").valid
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    described = certificate["mechanism"]["adversaries"]
    assert [one["name"] for one in described] == [f"a reader, of people with sex {sex}" for sex in "fm"]
    assert [one["weights"] for one in described] == [{"no": 901.0, "yes": 101.0}, {"no": 501.0, "yes": 501.0}]
    table = made.to_pandas()
    for sex, found in zip("fm", certificate["promise"]["adversaries"], strict=True):
        own = table[table.sex == sex].groupby(["age", "ill"], observed=True).size().unstack(fill_value=0)
        prior = DirichletPrior.from_counts((900, 100) if sex == "f" else (500, 500))
        expected = belief_ratio(own[["no", "yes"]].to_numpy(), Adversary.with_prior(prior))
        assert found["belief_ratio_reached"] == expected.ratio


def test_one_prior_for_everyone_would_not_do(tmp_path):
    """Of men and women together 30% were ill; the women's group, with 10%, surprises whoever believes that of them."""
    made = incrowd.release(people(), policy(tmp_path, ratio=1.3), folder=tmp_path / "by")
    with pytest.raises(UnreachableError):
        incrowd.release(people(), policy(tmp_path, ratio=1.3, by=""), folder=tmp_path / "one")
    assert set(made.to_pandas().sex) == {"f", "m"}


def test_of_whom_she_has_seen_nobody_she_knows_nothing(tmp_path):
    last = "sex,ill,n\nm,no,500\nm,yes,500\n"
    incrowd.release(people(), policy(tmp_path, ratio=50, last=last), folder=tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["mechanism"]["adversaries"][0]["weights"] == {"no": 1.0, "yes": 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"level": "hierarchy: {taxonomy: {'*': [f, m]}}"}, "give 'sex' a 'level'"),
        ({"by": ", by: [sex, sex]"}, "twice"),
        ({"by": ", by: ill"}, "role 'quasi'"),
        ({"by": ", by: age"}, "give 'age' a 'level'"),
    ],
)
def test_groups_that_mix_people_with_different_priors_are_refused(tmp_path, changes, message):
    with pytest.raises(PolicyError, match=message):
        policy(tmp_path, **changes)


@pytest.mark.parametrize("last", ["sex,ill,n\nx,no,900\n", "ill,n\nno,900\n"])
def test_an_earlier_table_must_have_the_columns_and_their_values(tmp_path, last):
    with pytest.raises(PolicyError, match="earlier table"):
        incrowd.release(people(), policy(tmp_path, last=last), folder=tmp_path / "out")


# --- why groups may not mix -------------------------------------------------------------------------------------------


def rising(start, steps):
    return prod((start + i for i in range(steps)), start=Fraction(1))


def beliefs(classes, published, priors):
    """P[the first person has value 1 | the group's values], over all worlds; each class has its own Dirichlet prior."""
    weights = {0: Fraction(0), 1: Fraction(0)}
    for world in itertools.product((0, 1), repeat=len(classes)):
        if sum(world) != published:
            continue
        chance = Fraction(1)
        for one, prior in priors.items():
            values = [value for value, of in zip(world, classes, strict=True) if of == one]
            own = rising(prior[0], values.count(0)) * rising(prior[1], values.count(1))
            chance *= own / rising(sum(prior), len(values))
        weights[world[0]] += chance
    return weights[1] / (weights[0] + weights[1])


@pytest.mark.parametrize("published", range(6))
def test_in_a_group_of_one_kind_the_belief_is_the_share_whatever_the_prior(published):
    for prior in ((1, 1), (90, 10), (3, 200)):
        assert beliefs("aaaaa", published, {"a": prior}) == Fraction(published, 5)


def test_in_a_mixed_group_it_is_not():
    priors = {"a": (1, 100), "b": (100, 1)}
    assert beliefs("ab", 1, priors) > Fraction(99, 100)  # not 1/2, which the closed form would take
    assert beliefs("aabb", 2, priors) > Fraction(9, 10)
