"""How adversaries, columns and domains are spelled."""

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.auditing.suspects import DEFAULT, read_adversary
from incrowd.auditing.tables import columns_meant, domains_meant
from incrowd.core.errors import GuaranteeError, InputError, ParameterError
from incrowd.theory.adversaries import Adversary, DirichletPrior

LABELS, TOTALS = ("flu", "cancer"), (3, 5)


@pytest.mark.parametrize(
    ("text", "adversary"),
    [
        ("I prior=12000,18000", Adversary.with_prior(DirichletPrior((12_000, 18_000)))),
        ("i prior=cancer:2,flu:1", Adversary.with_prior(DirichletPrior((1, 2)))),
        ("I shape=uniform sigma=10 b=3", Adversary.with_prior(DirichletPrior((5, 5)), known_records=3)),
        ("I shape=table sigma=16", Adversary.with_prior(DirichletPrior((6, 10)))),
        ("II sigma=1e3", Adversary.with_stubbornness(1000)),
        ("II sigma=1000 b=2", Adversary.with_stubbornness(1000, known_records=2)),
        ("III shape=uniform", Adversary.with_shape((1, 1))),
        ("III shape=table", Adversary.with_shape(TOTALS)),
        ("III shape=2,3", Adversary.with_shape((2, 3))),
    ],
)
def test_spellings(text, adversary):
    assert read_adversary(text).adversary(LABELS, TOTALS) == adversary


def test_what_must_not_be_learned_and_about_whom():
    suspect = read_adversary("II sigma=5 predicates=subsets 'about=the disease'")
    assert (suspect.predicates, suspect.about) == ("subsets", "the disease")
    assert read_adversary("II sigma=5").predicates == "values"


def test_a_missing_value_has_no_name():
    suspect = read_adversary("III shape=flu:1,cancer:2,:3")
    assert suspect.adversary(("flu", "cancer", None), (1, 1, 1)) == Adversary.with_shape((1, 2, 3))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "V sigma=2",
        "sigma=2",
        "II",
        "II sigma",
        "II sigma=",
        "II sigma=much",
        "II sigma=nan",
        "II sigma=5 sigma=6",
        "II shape=uniform",
        "II sigma=5 b=1.5",
        "II sigma=5 b=-1",
        "II sigma=5 predicates=some",
        "II sigma=5 'about",
        "III sigma=5",
        "III",
        "I",
        "I shape=uniform",
        "I prior=1,2 sigma=5",
        "I prior=1,x",
        "I prior=flu:1,2",
        "I prior=flu:1,flu:2",
        "I prior=table",
    ],
)
def test_what_is_no_adversary(text):
    with pytest.raises(ParameterError) as error:
        read_adversary(text)
    assert error.value.code == "adversary-invalid"
    assert "'II sigma=1000'" in error.value.remedy


def test_class_four_is_refused_with_the_reason():
    with pytest.raises(GuaranteeError, match="Theorem 4"):
        read_adversary("IV b=2")


def test_names_must_be_those_of_the_domain():
    with pytest.raises(ParameterError) as error:
        read_adversary("III shape=flu:1,plague:2").adversary(LABELS, TOTALS)
    assert error.value.details == {"unknown": 1, "lacking": 1}
    assert "flu" not in error.value.message + error.value.remedy


def test_the_default_is_never_too_weak_for_a_large_domain():
    _, second = DEFAULT
    assert second.for_values(2).name == "II sigma=1000"
    large = second.for_values(2500)
    assert (large.name, large.sigma) == ("II sigma=2500", 2500)
    assert read_adversary("II sigma=5").for_values(7).sigma == 5  # what somebody asked for is not changed


def test_columns():
    there = ["a", "b", "city, state", "b,c"]
    assert columns_meant("a,b", there) == ["a", "b"]
    assert columns_meant(("a", "city, state"), there) == ["a", "city, state"]
    assert columns_meant(("b,c",), there) == ["b,c"]
    assert columns_meant((), there) == []


def test_domains():
    assert domains_meant(["s=a,b", "s=c"], ["s"]) == {"s": ["a", "b", "c"]}
    assert domains_meant(['s="a,b",c'], ["s"]) == {"s": ["a,b", "c"]}
    assert domains_meant(["x=y=1,2"], ["x", "x=y"]) == {"x=y": ["1", "2"]}
    with pytest.raises(InputError):
        domains_meant(["t=1"], ["s"])
    with pytest.raises(InputError):
        domains_meant(["s"], ["s"])


# --- what policies can say, too -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "adversary"),
    [
        ("I prior=3,4 or-less-stubborn", Adversary.with_prior(DirichletPrior((3, 4)), or_less_stubborn=True)),
        ("III or-less-stubborn shape=2,3", Adversary.with_shape((2, 3), or_less_stubborn=True)),
    ],
)
def test_those_who_believe_less_firmly(text, adversary):
    suspect = read_adversary(text)
    assert suspect.adversary(LABELS, TOTALS) == adversary
    assert "or-less-stubborn" in suspect.name.split()


def test_groups_of_values_by_their_names():
    suspect = read_adversary('II sigma=9 "predicates=lungs:flu+asthma,none:"')
    (lungs, none) = suspect.statements(("asthma", "cancer", "flu", None))
    assert (lungs.values, lungs.name) == ((0, 2), "lungs")
    assert (none.values, none.name) == ((3,), "none")  # a missing value has no name
    with pytest.raises(ParameterError) as error:
        suspect.statements(LABELS)
    assert error.value.details == {"unknown": 2}
    assert "asthma" not in error.value.message + error.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "II sigma=5 or-less-stubborn",
        "I prior=1,2 or-less-stubborn or-less-stubborn",
        "I prior=1,2 earlier=a.csv",
        "I earlier=a.csv sigma=5",
        "II sigma=5 earlier=a.csv",
        "II sigma=5 predicates=:flu",
        "II sigma=5 predicates=a:flu,a:cancer",
    ],
)
def test_what_does_not_go_together(text):
    with pytest.raises(ParameterError) as error:
        read_adversary(text)
    assert error.value.code == "adversary-invalid"


def test_shares_of_a_table_that_lacks_a_value_are_no_prior():
    with pytest.raises(ParameterError, match="1 of the declared values do not occur") as error:
        read_adversary("I shape=table sigma=16").adversary((*LABELS, "plague"), [3, 5, 0])
    assert "plague" not in error.value.message
    assert read_adversary("III shape=table").adversary((*LABELS, "plague"), [3, 5, 0])


def test_who_knows_a_negation_is_audited_as_in_a_table_without_it():
    """docs/proofs.md, "Who knows what a person does not have": against the rest of the table and of the prior."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "ill": rng.choice(["none", "flu", "ulcer", "cold"], 400)})
    rest = table[~table.ill.isin(["none", "cold"])]
    for knowing, plain in (
        ("I prior=cold:5,flu:20,none:300,ulcer:9 not=none+cold", "I prior=flu:20,ulcer:9"),
        ("II sigma=100 not=none+cold", "II sigma=98"),
        ("III shape=1,2,3,4 not=none+cold b=2", "III shape=2,4 b=2"),
    ):
        found = api.audit(table, "sex", "ill", knowing).sensitive[0].beliefs[0]
        expected = api.audit(rest, "sex", "ill", plain).sensitive[0].beliefs[0]
        assert found.exact == expected.exact
        assert found.ratio > 1


def test_groups_without_anyone_she_thinks_possible_tell_her_nothing():
    table = pd.DataFrame({"sex": ["f"] * 6 + ["m"] * 6, "ill": ["none"] * 6 + ["flu", "ulcer"] * 3})
    audit = api.audit(table, "sex", "ill", "II sigma=20 not=none")
    assert audit.sensitive[0].beliefs[0].group == 2
    assert all(np.isfinite(worst.ratios[0]) for worst in audit.sensitive[0].worst)


def test_numbers_from_one_to_another_are_groups_of_values():
    table = pd.DataFrame({"sex": ["f", "m"] * 50, "pay": [10, 20, 30, 40, 50] * 20})
    by_interval = api.audit(table, "sex", "pay", "II sigma=100 predicates=high:30..,low:..20,mid:20..40")
    listed = api.audit(table, "sex", "pay", "II sigma=100 predicates=high:30+40+50,low:10+20,mid:20+30+40")
    assert by_interval.sensitive[0].beliefs[0].exact == listed.sensitive[0].beliefs[0].exact


@pytest.mark.parametrize(
    "spelled", ["II sigma=9 not=rabies", "II sigma=9 not=none+flu", "II sigma=9 predicates=a:7..8"]
)
def test_values_that_are_not_there_or_leave_nothing_are_refused(spelled):
    table = pd.DataFrame({"sex": ["f", "m"] * 3, "ill": ["none", "flu", "ulcer"] * 2})
    with pytest.raises(ParameterError):
        api.audit(table, "sex", "ill", spelled)


def test_who_knows_more_and_whom_it_is_about_are_audited_as_finer_groups_and_as_a_part_of_the_table():
    """Against audits by more columns and of fewer people; the group that is named is one of the table's own."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 600),
            "age": rng.integers(20, 26, 600),
            "job": rng.choice(["a", "b", "c"], 600),
            "ill": rng.choice(["none", "flu", "ulcer"], 600, p=[0.6, 0.3, 0.1]),
        }
    )
    belief = "II sigma=50"
    hers = api.audit(table, ["sex", "age"], ["job", "ill"], [belief, f"{belief} knowing=job about=ill"], worst=12)
    finer = api.audit(table, ["sex", "age", "job"], "ill", belief, worst=36, show_values=True)
    ill = next(one for one in hers.sensitive if one.name == "ill")
    assert ill.beliefs[1].exact == finer.sensitive[0].beliefs[0].exact
    assert ill.beliefs[1].size == finer.sensitive[0].beliefs[0].size < ill.k
    assert len(next(one for one in hers.sensitive if one.name == "job").beliefs) == 1
    plain = api.audit(table, ["sex", "age"], "ill", show_values=True, worst=12).sensitive[0]
    labels = {one.group: one.labels for one in plain.worst}
    worst = {}
    for one in finer.sensitive[0].worst:
        key = one.labels["sex"], one.labels["age"]
        worst[key] = max(worst.get(key, 1.0), one.ratios[0])
    assert {(labels[w.group]["sex"], labels[w.group]["age"]): w.ratios[1] for w in ill.worst} == worst

    part = table[(table.sex == "m") & table.age.isin([20, 21, 25])]
    about = api.audit(table, ["sex", "age"], "ill", f"{belief} for=sex:m,age:20..21+25", worst=12, show_values=True)
    alone = api.audit(part, ["sex", "age"], "ill", belief, worst=3, show_values=True)
    assert about.sensitive[0].beliefs[0].exact == alone.sensitive[0].beliefs[0].exact
    assert [w.labels for w in about.sensitive[0].worst[:3]] == [w.labels for w in alone.sensitive[0].worst]
    assert [w.ratios for w in about.sensitive[0].worst[3:]] == [(1.0,)] * 9


@pytest.mark.parametrize("setting", ["knowing=sex", "knowing=ill", "for=ill:flu", "for=sex:x", "for=sex"])
def test_columns_of_the_wrong_kind_and_nobody_are_refused(setting):
    table = pd.DataFrame({"sex": ["f", "m"] * 3, "ill": ["none", "flu", "ulcer"] * 2})
    with pytest.raises(ParameterError):
        api.audit(table, "sex", "ill", f"II sigma=9 {setting}")
