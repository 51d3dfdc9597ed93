"""What a whole table says about its texts: which of them mean that there is no value."""

import pyarrow as pa
import pytest

from incrowd.drafting import draft
from incrowd.hierarchy import codings
from incrowd.policy import Policy
from incrowd.sources import open_source


def drafted(**columns):
    """The draft for these columns and the policy in it, which must fit the table."""
    table = pa.table(columns)
    made = draft(table)
    policy = Policy.from_text(made.text)
    source = open_source(table, missing_values=policy.data.missing_values, decimal=policy.data.decimal)
    assert source.count_by([one.coding for one in codings(policy)]).total == table.num_rows
    return made, policy


def test_minus_nine_is_missing_where_no_number_is_below_zero():
    ages = [str(20 + i % 60) for i in range(600)]
    made, policy = drafted(age=[*ages[:-30], *["-9"] * 30], answer=["1", "2", "3", "-9"] * 150, sex=["1", "2"] * 300)
    assert set(policy.data.missing_values) == {"", "-9"}
    assert policy.attributes["answer"].domain == (1, 2, 3)
    assert (policy.attributes["age"].missing, policy.attributes["age"].other) == ("keep", None)
    assert policy.attributes["sex"].missing == "refuse"
    asked = [decision.question for decision in made.decisions if "-9" in decision.question]
    assert len(asked) == 1
    assert asked[0].startswith("age, answer: -9 is taken as missing")


@pytest.mark.parametrize(
    "other",
    [["-9", "-8", "0", "5"] * 150, ["-20", "3", "4", "5"] * 150],
)
def test_minus_nine_is_asked_about_where_another_column_may_mean_it(other):
    made, policy = drafted(answer=["1", "2", "3", "-9"] * 150, change=other)
    assert policy.data.missing_values == ("",)
    assert -9 in policy.attributes["answer"].domain
    assert any("Does -9 mean" in decision.question for decision in made.decisions)


def test_minus_one_is_asked_about():
    _, policy = drafted(answer=["1", "2", "3", "-1"] * 150)
    assert policy.data.missing_values == ("",)


def test_a_rare_minus_nine_counts_too():
    _, policy = drafted(a=["1", "2", "3", "-9"] * 150, b=[*["1", "2", "3"] * 199, "1", "1", "-9"])
    assert policy.attributes["b"].domain == (1, 2, 3)
    assert policy.attributes["b"].missing == "keep"


def test_years_keep_their_decade_when_a_missing_one_goes():
    _, policy = drafted(year=[*(str(1987 + i % 30) for i in range(600)), *["-9"] * 40])
    assert policy.attributes["year"].domain.first <= 1987
    assert policy.attributes["year"].missing == "keep"


def test_words_for_missing():
    _, policy = drafted(
        sex=["w", "m", "d", "k.A."] * 150,
        size=[*(f"{150 + i % 40},5" for i in range(540)), *["k.A."] * 60],
        town=[*["Aa", "Bb"] * 297, *["k.A."] * 2, *["C"] * 4],
    )
    assert set(policy.data.missing_values) == {"", "k.A."}
    assert policy.attributes["sex"].domain == ("d", "m", "w")
    assert policy.attributes["size"].kind == "number"
    assert policy.attributes["town"].missing == "keep"  # too rare to be seen there


def test_unknown_is_a_value_among_words_and_none_among_numbers():
    _, policy = drafted(place=["here", "there", "unknown"] * 200)
    assert "unknown" in policy.attributes["place"].domain
    _, policy = drafted(score=[*(str(i % 50) for i in range(500)), *["unknown"] * 100])
    assert policy.attributes["score"].kind == "integer"
    assert "unknown" in policy.data.missing_values
    _, policy = drafted(score=[*(str(i % 50) for i in range(570)), *["none"] * 30], pain=["none", "some"] * 300)
    assert "none" in policy.attributes["pain"].domain
    assert "none" not in policy.data.missing_values


def test_survey_weights_are_left_out():
    made, policy = drafted(WTFINAL=[f"{0.5 + i / 700:.3f}" for i in range(600)], sex=["1", "2"] * 300)
    assert policy.attributes["WTFINAL"].role == "drop"
    assert any(decision.column == "WTFINAL" for decision in made.decisions)
    _, policy = drafted(weight=[f"{50 + i % 60}.5" for i in range(600)], sex=["1", "2"] * 300)
    assert policy.attributes["weight"].role == "quasi"  # of bodies


def test_many_rare_values_are_asked_about():
    titles = ["clerk", "nurse"] * 200 + [f"officer {i}" for i in range(200)]
    made, policy = drafted(title=titles)
    assert policy.attributes["title"].other == "other"
    assert any("33% of the records" in decision.question for decision in made.decisions)
