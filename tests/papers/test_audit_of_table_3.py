"""Table 3 of Machanavajjhala, Gehrke, Götz, audited as a stranger would: from the published table alone."""

from fractions import Fraction

import pyarrow as pa
import pytest

import incrowd

ROWS = {("<40", "M"): (200, 300), (">=40", "M"): (1800, 2700), (">=40", "F"): (18_000, 2_000)}
WOMEN, YOUNG_MEN = 2, 1  # in the order of the values


@pytest.fixture(scope="module")
def audit():
    people = [
        (age, sex, disease)
        for (age, sex), counts in ROWS.items()
        for disease, count in zip(("flu", "cancer"), counts, strict=True)
        for _ in range(count)
    ]
    columns = [list(column) for column in zip(*people, strict=True)]
    return incrowd.audit(
        pa.table(columns, names=["age", "sex", "disease"]),
        "age,sex",
        "disease",
        [
            "I prior=12000,18000",
            "I prior=cancer:18000,flu:12000",
            "II sigma=30000",
            "II sigma=1000",
            "III shape=0.4,0.6",
            "III shape=uniform",
            "I shape=.4,.6 sigma=30000",
            "II sigma=1000 b=300",
        ],
        domains={"disease": ["flu", "cancer"]},
    )


def against(audit, name):
    return next(b for b in audit.sensitive[0].beliefs if b.adversary == name)


def test_the_prior_of_the_earlier_table_gives_4_00008_and_not_2_5(audit):
    """An erratum: Section 3 says 2.5."""
    belief = against(audit, "I prior=12000,18000")
    assert belief.exact == Fraction(200_000, 49_999)
    assert belief.ratio == pytest.approx(4.00008, abs=5e-6)
    assert belief.shown == "4.001"
    assert (belief.group, belief.size) == (WOMEN, 20_000)
    assert (belief.p_in, belief.p_out) == (0.9, pytest.approx(0.6, abs=1e-4))
    assert against(audit, "I prior=cancer:18000,flu:12000").exact == belief.exact
    assert against(audit, "I shape=.4,.6 sigma=30000").exact == belief.exact


def test_class_two_is_61_for_the_young_men_and_6_4_for_the_women(audit):
    belief = against(audit, "II sigma=30000")
    assert belief.exact == Fraction(30_499, 500)
    assert belief.group == YOUNG_MEN
    place = [b.adversary for b in audit.sensitive[0].beliefs].index("II sigma=30000")
    women = next(w for w in audit.sensitive[0].worst if w.group == WOMEN)
    assert women.ratios[place] == pytest.approx(6.4, abs=1e-4)


def test_class_two_with_stubbornness_1000_is_three_private(audit):
    assert 2.9 < against(audit, "II sigma=1000").ratio <= 3


def test_class_three_gives_six(audit):
    belief = against(audit, "III shape=0.4,0.6")
    assert (belief.exact, belief.p_in, belief.p_out, belief.group) == (6, 0.9, 0.4, WOMEN)


def test_c2_diversity_is_half_of_c_plus_one_for_two_values(audit):
    """The women are (c,2)-diverse for c above 9, which is ratio (9+1)/2 = 5 against the uniform shape."""
    assert audit.sensitive[0].recursive_c[2].value == 9
    assert against(audit, "III shape=uniform").exact == 5


def test_who_knows_all_the_others_of_a_group_knows_the_rest(audit):
    belief = against(audit, "II sigma=1000 b=300")
    assert (belief.ratio, belief.group, belief.p_in) == (float("inf"), YOUNG_MEN, 1)


def test_everything_else(audit):
    assert (audit.records, audit.groups, audit.k, audit.l_diversity) == (25_000, 3, 500, 2)
    assert audit.t_closeness == 0.4  # 80% of all have flu, 40% of the men
    assert audit.sensitive[0].declared
    assert not any("taken to be" in note for note in audit.notes)


def test_class_four_is_refused(audit):
    with pytest.raises(incrowd.GuaranteeError, match="Theorem 4") as refusal:
        incrowd.audit(pa.table({"a": [1], "s": [1]}), "a", "s", "IV")
    assert refusal.value.code == "any-adversary"
