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


GERMAN = [f"{i % 89 + 1}.{i % 10}00" for i in range(890)]  # 1.000 to 89.900
ENGLISH = [f"{i % 90 + 1},{i % 997:03d}" for i in range(890)]  # hardly any two alike


def asked(made, column):
    return [decision.question for decision in made.decisions if decision.column == column]


@pytest.mark.parametrize("others", [{}, {"size": [f"1,{i % 9}" for i in range(890)]}])
def test_points_that_may_stand_between_thousands_are_not_read(others):
    made, policy = drafted(Einkommen=GERMAN, sex=["1", "2"] * 445, **others)
    assert policy.attributes["Einkommen"].role == "drop"
    [question] = asked(made, "Einkommen")
    assert question.startswith("Left out: its points may stand between thousands. Is 1.234 one thousand")
    assert policy.data.decimal == ("," if others else ".")  # which it does not stand in the way of


def test_three_decimals_beside_decimal_points_are_read_and_asked_about():
    made, policy = drafted(weight=GERMAN, size=[f"1.{i % 9}" for i in range(890)])
    assert policy.attributes["weight"].kind == "number"
    assert ["It is read as the latter" in question for question in asked(made, "weight")] == [True]


def test_a_slip_does_not_make_thousands_decimals_and_one_like_them_costs_no_column():
    _, policy = drafted(Einkommen=[*GERMAN, "12.5"], sex=["1"] * 891, plain=["a", "b", "c"] * 297)
    assert policy.attributes["Einkommen"].role == "drop"
    made, policy = drafted(points=[*(str(i % 89) for i in range(890)), "1.234"], plain=["a", "b", "c"] * 297)
    assert policy.attributes["points"].role == "quasi"
    assert any("Is 1.234 one thousand" in question for question in asked(made, "points"))


def test_numbers_of_the_table_itself_are_clear():
    made, policy = drafted(weight=[float(text) for text in GERMAN], plain=["a", "b"] * 445)
    assert policy.attributes["weight"].role == "quasi"
    assert asked(made, "weight") == []


def test_commas_between_thousands_are_seen_among_rare_values():
    made, policy = drafted(income=ENGLISH, gpa=[f"{i % 4}.5" for i in range(890)])
    assert policy.attributes["income"].role == "drop"
    assert policy.attributes["gpa"].kind == "number"
    [question] = asked(made, "income")
    assert "Is 1,234 one thousand" in question
    assert "decimal:" not in question  # nothing could read the other column then
    _, policy = drafted(income=ENGLISH, size=[f"1,{i % 9}" for i in range(890)])
    assert policy.data.decimal == ","
    assert policy.attributes["income"].kind == "number"


def test_a_decimal_comma_beside_points_is_a_format_of_its_own():
    _, policy = drafted(size=[f"{i},5" for i in range(890)], gpa=[f"{i % 4}.5" for i in range(890)])
    assert policy.data.decimal == "."
    assert (policy.attributes["size"].kind, policy.attributes["size"].format) == ("number", "1234,5")
    assert policy.attributes["gpa"].format is None
    assert any(mark.path == "attributes.size.format" for mark in policy.unconfirmed)


@pytest.mark.parametrize("odd", ["4.{:03d},50", "4,{:03d}.50"])
def test_thousands_among_decimals_are_asked_about(odd):
    mark = odd[-3]
    sizes = [f"{i % 40}{mark}5" for i in range(870)] + [odd.format(i) for i in range(30)]
    made, policy = drafted(size=sizes, plain=["a", "b"] * 450)
    assert (policy.attributes["size"].kind, policy.attributes["size"].other) == ("number", "other")
    assert any(question.startswith("30 records have a number like 1,234") for question in asked(made, "size"))


def test_thousands_among_rare_decimals_are_asked_about():
    sizes = [*(f"{i},5" for i in range(870)), *(f"4.{i:03d},50" for i in range(30))]
    made, policy = drafted(size=sizes, plain=["a", "b"] * 450)
    assert (policy.attributes["size"].kind, policy.attributes["size"].other) == ("number", "other")
    assert any(question.startswith("30 records have a number like 1,234") for question in asked(made, "size"))


def test_commas_beside_words_stay_texts():
    _, policy = drafted(size=["1,5"] * 300 + ["2,5"] * 300 + ["tall"] * 200, other=["1,5", "2,5"] * 400)
    assert policy.attributes["size"].domain == ("1,5", "2,5", "tall")


def test_words_beside_commas_are_codes_if_the_rest_is_a_range_of_numbers():
    hours = [f"{10 + n % 40},{n % 10}" for n in range(600)]
    _, policy = drafted(hours=[*hours, *["not applicable"] * 500], other=["1,5", "2,5"] * 550)
    assert policy.attributes["hours"].kind == "number"
    assert "not applicable" in policy.attributes["hours"].codes


def test_a_decimal_comma_is_to_be_confirmed():
    made, _ = drafted(size=["1,5", "2,5"] * 300)
    [line] = [line for line in made.text.splitlines() if line.strip().startswith("decimal:")]
    assert "# CONFIRM" in line


@pytest.mark.parametrize("sizes", [["1,5", "2,5", "-9"], ["1.5", "2.5", "9"]])
def test_minus_nine_among_few_decimals_is_asked_about(sizes):
    made, policy = drafted(size=sizes * 200)
    assert policy.attributes["size"].kind == "number"
    assert any("mean 'not known'" in question for question in asked(made, "size"))


@pytest.mark.parametrize(
    ("values", "shown"),
    [(["+", "-"] * 300, "'-'"), (["A", "B", "-"] * 200, "'-'"), ([*["yes"] * 598, "NA", "NA"], "NA")],
)
def test_a_value_that_is_spelled_like_a_missing_one_is_asked_about(values, shown):
    made, _ = drafted(x=values, y=["a", "b"] * 300)
    assert [question.split(",")[0] for question in asked(made, "x")] == [f"{shown} is taken as missing"]


def test_a_few_missing_values_are_not_asked_about():
    made, _ = drafted(x=[*["a", "b"] * 290, *["NA"] * 20], y=["a", ""] * 300)
    assert asked(made, "x") == asked(made, "y") == []


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
    assert any("33.3% of the records" in decision.question for decision in made.decisions)
