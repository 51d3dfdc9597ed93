"""How adversaries, columns and domains are spelled."""

import pytest

from incrowd.auditing.spelling import DEFAULT, read_adversary
from incrowd.auditing.tables import columns_meant, domains_meant
from incrowd.core.errors import GuaranteeError, InputError, ParameterError
from incrowd.theory.beliefs import Adversary, DirichletPrior

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
