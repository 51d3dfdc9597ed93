"""Drafts for surveys: codes among numbers, files beside the table, households and weights, a hundred columns."""

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from incrowd import api
from incrowd.core.errors import PolicyError
from incrowd.domain import Bins, DateRange, IntegerRange
from incrowd.drafting import draft
from incrowd.drafting.capacity import fitting
from incrowd.hierarchy import codings
from incrowd.policy import LabelFile, Policy, TreeFile
from incrowd.releases.pipeline import count_table
from incrowd.sources import open_source
from incrowd.sources.profile import profile, writing_of


def drafted(**columns):
    """The draft for these columns, and the policy in it with every column published, which must fit the table."""
    table = pa.table(columns)
    made = draft(table)
    policy = Policy.from_text(made.text.replace("role: drop # or", "role: quasi #"))
    source = open_source(table, missing_values=policy.data.missing_values, decimal=policy.data.decimal)
    found = {one.name: one for one in codings(policy)}
    for coded in found.values():
        assert source.count_by([coded.coding]).total == table.num_rows
    return made, policy, found


def covered(path):
    policy = Policy.from_file(path)
    return count_table(None, policy, codings(policy), show_values=False, progress=lambda _: None)


def numbers(count, top=300):
    return [str(7 * i % top) for i in range(count)]


# --- codes among numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["N"] * 900, {"N": "N"}),
        (["not applicable"] * 40 + ["X"] * 20, {"X": "X", "not applicable": "not applicable"}),
        (["-9"] * 50 + ["-8"] * 50 + ["-1"] * 20, {"-9": "code -9", "-8": "code -8", "-1": "code -1"}),
        (["999"] * 30 + ["998"] * 30, {"999": "code 999", "998": "code 998"}),
        (["N"] * 30 + ["9999"] * 30, {"N": "N", "9999": "code 9999"}),
    ],
)
def test_codes_among_numbers(codes, expected):
    made, policy, found = drafted(x=numbers(900) + codes)
    about = policy.attributes["x"]
    assert about.kind == "integer"
    assert about.codes == expected
    assert not isinstance(found["x"].coding.domain, tuple)
    [question] = [text for column in made.columns for text in column.questions if "something else than" in text]
    assert all(code in question for code in expected)
    assert "codes:" in made.text
    assert any(mark.path.endswith("codes") for mark in policy.unconfirmed)


def test_numbers_that_all_differ_are_amounts_beside_a_code():
    """And name records without one: nobody is numbered -9 two hundred times."""
    made, policy, _ = drafted(x=[97 * i % 30_011 for i in range(900)] + [-9] * 200)
    assert [column.role for column in made.columns] == ["quasi"]
    assert policy.attributes["x"].codes == {"-9": "code -9"}
    without = draft(pa.table({"x": [97 * i % 30_011 for i in range(900)], "y": ["north", "south", "east"] * 300}))
    assert [column.role for column in without.columns] == ["drop", "quasi"]


@pytest.mark.parametrize(
    "values",
    [
        [str(i % 30 - 9) for i in range(900)],  # a scale that goes below zero without gaps
        [str(i % 30 - 50) for i in range(900)],
        [str(i % 5 + 1) for i in range(900)] + ["N"] * 50,  # a few codes among codes are listed
        [f"{i % 90:05d}" for i in range(900)] + ["N"] * 50,  # leading zeros: these are no numbers
        ["north", "south", "east"] * 300,
    ],
)
def test_what_is_no_code_among_numbers(values):
    _, policy, _ = drafted(x=values)
    assert policy.attributes["x"].codes is None


def test_texts_that_are_numbers_are_listed_in_their_order():
    _, policy, _ = drafted(x=[str(i % 11 + 1) for i in range(880)] + ["N"] * 120)
    assert policy.attributes["x"].domain == (*map(str, range(1, 12)), "N")


def test_prefixes_give_a_level():
    towns = [f"{state:02d}-{town:05d}" for state in (1, 2, 13) for town in (101, 205, 1301)]
    _, policy, found = drafted(x=towns * 40)
    assert found["x"].hierarchy.recode(1).labels == ("01", "02", "13")
    assert found["x"].hierarchy.height == 2
    _, policy, _ = drafted(x=["a-b", "c-d", "e-f", "g-h", "i-j"] * 40)  # nothing is taken together
    assert policy.attributes["x"].hierarchy is None


# --- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("{d:02}.{m:02}.{y}", "dd.mm.yyyy"),
        ("{d}.{m}.{y}", "dd.mm.yyyy"),
        ("{d:02}/{m:02}/{y}", "dd/mm/yyyy"),
        ("{m:02}/{d:02}/{y}", "mm/dd/yyyy"),
        ("{y}/{m:02}/{d:02}", "yyyy/mm/dd"),
        ("{d:02}-{m:02}-{y}", "dd-mm-yyyy"),
        ("{y}{m:02}{d:02}", "yyyymmdd"),
    ],
)
def test_dates_as_they_are_written(written, form):
    days = [written.format(d=i % 28 + 1, m=i % 12 + 1, y=2021 + i % 4) for i in range(600)]
    _, policy, found = drafted(birthdate=days, other=["a", "b"] * 300)
    assert policy.attributes["birthdate"].format == form
    assert found["birthdate"].coding.domain == DateRange(*map(_day, ("2021-01-01", "2024-12-31")))


def _day(text):
    import datetime as dt

    return dt.date.fromisoformat(text)


@pytest.mark.parametrize(
    ("days", "remedy"),
    [
        ([f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(300)], "format: dd/mm/yyyy"),  # which is the day?
        ([f"{i % 28 + 1:02}.12.24" for i in range(300)], "four digits"),  # of which century?
        ([f"{i % 28 + 1:02}{'./'[i % 2]}12{'./'[i % 2]}2024" for i in range(300)], "format: dd/mm/yyyy"),
        ([f"{i % 28 + 1:02}/{i % 27 + 1:02}/2024" for i in range(300)], "format: dd/mm/yyyy"),
    ],
)
def test_dates_that_may_mean_several_days_are_asked_about(days, remedy):
    made = draft(pa.table({"x": days, "y": ["a", "b"] * 150}))
    about = made.columns[0]
    assert about.role == "drop"
    assert any(remedy in question for question in about.questions)


# --- files beside the table -------------------------------------------------------------------------------------------


@pytest.fixture
def survey(tmp_path):
    chance = random.Random(4)
    lines = ["sex,region,income,age"]
    for _ in range(3000):
        income = chance.choice(["-9", "N"]) if chance.random() < 0.3 else str(chance.randrange(0, 90_000, 50))
        lines.append(
            f"{chance.choice('12')},{chance.choice(['1', '2', '3', '10'])},{income},{chance.randrange(18, 90)}"
        )
    (tmp_path / "survey2024.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "survey2024.csv"


def test_hierarchies_beside_the_table_are_used(survey):
    path = survey.with_name("survey_hierarchy_Region.csv")
    path.write_text("1;west;*\n2;west;*\n3;east;*\n10;east;*\n11;east;*\n")
    survey.with_name("other_hierarchy_sex.csv").write_text("1;*\n2;*\n")  # of another table
    made = draft(survey)
    policy = Policy.from_file(made.path)
    assert policy.attributes["region"].hierarchy == TreeFile(file="survey_hierarchy_Region.csv")
    assert policy.attributes["region"].kind == "integer"
    assert policy.attributes["sex"].hierarchy is None
    assert covered(made.path).total == 3000
    assert any("in a file beside the table" in decision.question for decision in made.decisions)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1;west;*\n2;west;+\n", "last column"),
        ("1;west;*\n2;west;*\n", "it lacks what"),
        ("1\n2\n", "one column only"),
        ("", "empty"),
    ],
)
def test_a_hierarchy_that_cannot_be_used_is_said_and_left(survey, text, says):
    survey.with_name("hierarchy_region.csv").write_text(text)
    made = draft(survey)
    assert any(says in decision.question and "is not used" in decision.question for decision in made.decisions)
    assert Policy.from_file(made.path).attributes["region"].hierarchy is None
    assert covered(made.path).total == 3000


def test_a_value_that_a_hierarchy_lacks_becomes_other(survey):
    with survey.open("a") as file:
        file.write("1,77,100,20\n")
    survey.with_name("hierarchy_region.csv").write_text("1;*\n2;*\n3;*\n10;*\n")
    made = draft(survey)
    assert Policy.from_file(made.path).attributes["region"].other == "other"
    assert covered(made.path).total == 3001


BOOK = """variable;value;label
sex;1;male
sex;2;female
region;1;North
region;2;South
region;3;East
region;10;Islands
region;11;Abroad
income;-9;refused
income;N;no income
"""


def test_a_code_book_beside_the_table_gives_labels_and_codes(survey):
    survey.with_name("survey_codebook.csv").write_text(BOOK)
    made = draft(survey)
    policy = Policy.from_file(made.path)
    assert policy.attributes["sex"].labels == LabelFile(file="survey_codebook.csv")
    assert policy.attributes["income"].codes == {"-9": "refused", "N": "no income"}
    assert policy.data.missing_values == ("",)
    found = {one.name: one.coding for one in codings(policy)}
    assert found["region"].labels == ("North", "South", "East", "Islands", "Abroad")
    assert isinstance(found["income"].domain, Bins | IntegerRange)
    counted = covered(made.path)
    assert counted.total == 3000
    assert {counted["income"].labels[code] for code in counted["income"].codes} > {"refused", "no income"}


def test_a_code_book_may_be_anywhere(survey, tmp_path):
    book = tmp_path / "elsewhere.json"
    book.write_text('{"sex": {"1": "male", "2": "female"}}')
    made = draft(survey, codebook=book)
    assert Policy.from_file(made.path).attributes["sex"].labels == LabelFile(file="elsewhere.json")
    book.write_text("{")
    with pytest.raises(PolicyError, match="not JSON"):
        draft(survey, codebook=book, overwrite=True)


@pytest.mark.parametrize("extra", ["not applicable", "9"])
def test_what_a_code_book_lacks_is_added_to_its_codes(tmp_path, extra):
    """A word beside codes made the column "the same in every record", as if the codes stood beside numbers."""
    path = tmp_path / "people.csv"
    rows = [random.Random(i).choice(["1", "2", "3", extra]) for i in range(400)]
    path.write_text("sex,marital\n" + "".join(f"{i % 2},{value}\n" for i, value in enumerate(rows)))
    path.with_name("codebook.csv").write_text(
        "variable,value,label\nmarital,1,married\nmarital,2,single\nmarital,3,widowed\n"
    )
    made = draft(path)
    found = next(one.coding for one in codings(Policy.from_file(made.path)) if one.name == "marital")
    assert found.labels == ("married", "single", "widowed", extra)
    assert covered(made.path).total == 400


def test_a_99_among_words_is_asked_about(tmp_path):
    path = tmp_path / "people.csv"
    rows = [random.Random(i).choice(["yes", "no", "sometimes", "99"]) for i in range(400)]
    path.write_text("sex,smoker\n" + "".join(f"{i % 2},{value}\n" for i, value in enumerate(rows)))
    assert any("Does 99 mean 'not known'?" in one.question for one in draft(path).decisions if one.column == "smoker")


def test_files_beside_a_table_have_its_encoding_or_utf_8(survey):
    text = BOOK.replace("Islands", "Färöer")
    survey.with_name("survey_codebook.csv").write_text(text, encoding="latin-1")
    survey.with_name("hierarchy_sex.csv").write_text("1;é;*\n2;é;*\n", encoding="utf-8")
    made = draft(survey, encoding="latin-1")
    policy = Policy.from_file(made.path)
    assert policy.attributes["region"].labels == LabelFile(file="survey_codebook.csv", encoding="latin-1")
    found = {one.name: one for one in codings(policy)}
    assert "Färöer" in found["region"].coding.labels
    assert found["sex"].hierarchy.recode(1).labels == ("é",)


def test_labels_go_with_a_hierarchy(survey):
    survey.with_name("codebook.csv").write_text(BOOK)
    survey.with_name("hierarchy_region.csv").write_text("1;main;*\n2;main;*\n3;main;*\n10;10;*\n")
    made = draft(survey)
    region = next(one for one in codings(Policy.from_file(made.path)) if one.name == "region")
    assert region.hierarchy.recode(0).labels == ("North", "South", "East", "Islands")
    assert region.hierarchy.recode(1).labels == ("main", "Islands")


# --- how the survey was made ------------------------------------------------------------------------------------------


def households(count=900, seed=5, dense=True):
    """A table like sdcMicro's test data: people in households, and a weight for each household."""
    chance = random.Random(seed)
    columns = {name: [] for name in ("urbrur", "age", "sex", "relat", "expend", "household_weights", "ori_hid")}
    for number in range(count):
        urban, weight = chance.choice("12345"), f"{chance.uniform(20, 900):.7f}"
        key = str(number + 1) if dense else str(chance.randrange(10**7, 10**8))
        for _ in range(chance.choice([1, 3, 4, 5, 7])):
            columns["urbrur"].append(urban)
            columns["age"].append(str(chance.randrange(0, 95)))
            columns["sex"].append(chance.choice("12"))
            columns["relat"].append(str(chance.randrange(1, 9)))
            columns["expend"].append(str(chance.randrange(400, 90_000_000)))
            columns["household_weights"].append(weight)
            columns["ori_hid"].append(key)
    return columns


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_households_and_weights_are_known_by_what_they_do(renamed, dense):
    table = households(dense=dense)
    if renamed:
        table["v6"], table["v7"] = table.pop("household_weights"), table.pop("ori_hid")
    weight, key = ("v6", "v7") if renamed else ("household_weights", "ori_hid")
    made, _, _ = drafted(**table)
    about = {column.name: column for column in made.columns}
    assert "survey weight: it is the same for all of a household" in about[weight].why
    assert "number households or people, of about 4" in about[key].why
    assert not any(word in about[name].why for name in ("age", "expend", "relat") for word in ("weight", "households"))


def test_what_only_looks_like_a_household_or_a_weight():
    chance = random.Random(6)
    made, _, _ = drafted(
        weight=[f"{chance.gauss(70, 9):.1f}" for _ in range(3000)],  # of a body
        area=[f"{chance.uniform(20, 300):.7f}" for _ in range(3000)],
        income=[str(chance.randrange(1000, 9000)) for _ in range(3000)],
        region=[str(chance.randrange(1, 9)) for _ in range(3000)],
        score=[str(i % 300) for i in range(3000)],
    )
    assert {column.role for column in made.columns} <= {"quasi", "sensitive"} or all(
        column.instead for column in made.columns if column.role == "drop"
    )


# --- wide tables ------------------------------------------------------------------------------------------------------


def test_the_larger_the_table_the_more_it_carries():
    carried = [fitting(people, 100).columns for people in (10, 1000, 30_000, 1_000_000, 10**9)]
    assert carried == sorted(carried)
    assert carried[0] == 2
    assert fitting(30_000, 3).proposed == 3
    assert all(fitting(people, 100).proposed >= fitting(people, 100).columns for people in (10, 10**9))


@pytest.mark.parametrize(
    ("people", "columns", "way"),
    [(30_000, 3, "lattice"), (30_000, 5, "tree"), (30_000, 9, "views"), (1_000_000, 8, "tree"), (500, 9, "lattice")],
)
def test_which_way_suits_follows_from_width_and_size(people, columns, way):
    fit = fitting(people, columns)
    assert fit.way == way
    assert fit.proposed == (columns if way != "lattice" else min(columns, fit.columns + 2))


def test_a_draft_proposes_a_tree_where_the_table_carries_all_columns(tmp_path):
    chance = random.Random(8)
    columns = {name: [chance.choice("abcd") for _ in range(20_000)] for name in ("one", "two", "three", "four")}
    made = draft(pa.table(columns), tmp_path / "tree.yaml")
    policy = Policy.from_file(made.path)
    assert (policy.release.mechanism, policy.release.recoding, policy.release.splits) == (
        "sampled_crowd",
        "tree",
        "binary",
    )
    assert len(policy.published) == 4
    release = api.release(pa.table(columns), policy, rehearse=True)
    assert len(release.to_pandas()) > 0.1 * 20_000


def test_of_a_hundred_columns_those_are_proposed_that_the_table_carries(tmp_path):
    chance = random.Random(8)
    rows = 9000
    columns = {f"q{i}": [chance.choice("abcd") for _ in range(rows)] for i in range(70)}
    columns |= {f"constant{i}": ["x"] * (rows - 50) + ["y"] * 50 for i in range(28)}
    columns |= {
        "sex": [chance.choice("12") for _ in range(rows)],
        "region": [chance.choice("ABCDE") for _ in range(rows)],
    }
    made = draft(pa.table(columns), tmp_path / "wide.yaml")
    policy = Policy.from_file(made.path)
    assert 3 <= len(policy.published) <= fitting(rows, 100).proposed
    assert {"sex", "region"} < policy.published.keys()
    about = {column.name: column for column in made.columns}
    assert "nearly every record says the same" in about["constant3"].why
    assert f"more than {fitting(rows, 100).proposed} columns" in next(
        c.why for c in made.columns if c.instead and c.name.startswith("q")
    )
    # A release of it is not empty.
    release = api.release(pa.table(columns), policy, rehearse=True)
    assert len(release.to_pandas()) > 0.1 * rows


def test_what_is_left_out_needs_no_confirmation_and_comes_back_with_one():
    made, _, _ = drafted(**{f"c{i}": [str(7 * j % 300) for j in range(900)] for i in range(9)})
    policy = Policy.from_text(made.text)
    spare = next(column.name for column in made.columns if column.instead)
    kept = next(iter(policy.published))
    asked = {mark.path.split(".")[1] for mark in policy.unconfirmed if mark.path.startswith("attributes.")}
    assert spare not in asked
    assert kept in asked
    again = Policy.from_text(made.text.replace("role: drop # or quasi", "role: quasi"))
    assert any(mark.path.startswith(f"attributes.{spare}") for mark in again.unconfirmed)
    # Written anew, it does not come back without what was to be confirmed.
    assert Policy.from_text(policy.to_yaml()).attributes[spare].domain is None


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_a_text_is_judged_as_the_engine_judges_it():
    texts = ["0", "1", "t", "007", "12", "-9", "7.0", "1.5", "1.234,5", "1,5", "2024-01-31", "2024-01-31 12:00",
             "31.1.2024", "2024/1/31", "J45.0", "text", " 12 ", "1e5", "True"]  # fmt: skip
    for text in texts:
        [column] = profile(open_source(pa.table({"x": [text] * 20}))).columns
        assert [*column.writings] == [writing_of(text)], text


LABELLED = {
    "sex": {1: "male", 2: "female"},
    "school": {1: "primary", 2: "secondary", -9: "refused"},
    "income": {-9: "refused"},
}


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_in_the_file_itself_are_taken_over(tmp_path, suffix):
    """Value labels, labels of columns, and the codes that an SPSS file declares to mean "missing"."""
    pyreadstat = pytest.importorskip("pyreadstat")
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "sex": rng.choice([1.0, 2.0], 2000),
            "school": rng.choice([1.0, 2.0, -9.0], 2000, p=[0.5, 0.45, 0.05]),
            "income": np.where(rng.random(2000) < 0.1, rng.choice([-9.0, -8.0], 2000), rng.integers(0, 9000, 2000)),
        }
    )
    path = tmp_path / f"people{suffix}"
    names = ["Sex of the person", "Highest school", "Income per month"]
    if suffix == ".sav":
        pyreadstat.write_sav(
            table, path, column_labels=names, variable_value_labels=LABELLED, missing_ranges={"income": [-9, -8]}
        )
    else:
        pyreadstat.write_dta(table, path, column_labels=names, variable_value_labels=LABELLED)
    found = api.draft_policy(path, "-")
    said = yaml.safe_load(found.text)["attributes"]
    assert said["sex"]["labels"] == {"1": "male", "2": "female"}
    assert said["school"]["labels"]["-9"] == "refused"
    assert said["income"]["codes"] == {"-9": "refused", "-8": "code -8"}
    assert "Sex of the person" in next(column.why for column in found.columns if column.name == "sex")
    made = api.release(path, Policy.from_text(found.text), rehearse=True)
    assert set(made.histogram["sex"].labels) <= {"male", "female", "*"}


def test_labels_of_some_values_only(tmp_path):
    """None of the others is lost: of few values, one is labelled; beside few amounts, three are; letters of Stata."""
    pyreadstat = pytest.importorskip("pyreadstat")
    rows = range(2000)
    table = pd.DataFrame(
        {
            "sex": [9.0 if i % 50 == 0 else 1.0 + i % 2 for i in rows],
            "rooms": [float((10, 20, 30, 97, 98, 99)[i % 6]) for i in rows],
            "income": ["a" if i % 40 == 0 else float(7 * i % 3000) for i in rows],
        }
    )
    labels = {
        "sex": {1: "male", 9: "refused"},
        "rooms": {97: "unknown", 98: "refused", 99: "none"},
        "income": {"a": "refused"},
    }
    pyreadstat.write_dta(table, tmp_path / "x.dta", variable_value_labels=labels, missing_user_values={"income": ["a"]})
    found = api.draft_policy(tmp_path / "x.dta", "-")
    said = yaml.safe_load(found.text)["attributes"]
    assert said["sex"]["domain"] == [1, 2, 9]
    assert said["sex"]["labels"] == {"1": "male", "9": "refused"}
    assert said["rooms"]["domain"] == [10, 20, 30, 97, 98, 99]
    assert said["income"]["codes"] == {"a": "refused"}
    made = api.release(tmp_path / "x.dta", Policy.from_text(found.text), rehearse=True)
    assert "male" in made.histogram["sex"].labels or made.histogram["sex"].labels == ("*",)
