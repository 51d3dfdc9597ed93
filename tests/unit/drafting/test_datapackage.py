"""What a Data Package beside a table says of it: which file it is, how it is written, and what columns may hold."""

import json

import pytest
import yaml

from incrowd import api
from incrowd.core.errors import DataError
from incrowd.sources.datapackage import described_table

FIELDS = [
    {"name": "age", "type": "integer", "title": "Age in years"},
    {"name": "sex", "categories": [{"value": 1, "label": "female"}, {"value": 2, "label": "male"}, {"value": 3}]},
    {"name": "job", "type": "string", "constraints": {"enum": ["none", "office", "never seen"]}},
]
RESOURCE = {"name": "people", "path": "people.csv", "dialect": {"delimiter": "|"}, "schema": {"fields": FIELDS}}


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{i % 80}|{1 + i % 2}|{('none', 'office')[i % 3 == 0]}\n" for i in range(2400))
    (tmp_path / "people.csv").write_text("age|sex|job\n" + rows)
    (tmp_path / "datapackage.json").write_text(json.dumps({"resources": [{"name": "notes", "path": "a.md"}, RESOURCE]}))
    return tmp_path


@pytest.mark.parametrize("name", ["datapackage.json", "people.csv"])
def test_a_draft_takes_over_what_the_package_says(folder, name):
    made = api.draft_policy(folder / name, "-")
    policy = yaml.safe_load(made.text)
    assert policy["attributes"]["sex"]["labels"] == {"1": "female", "2": "male", "3": "3"}
    assert policy["attributes"]["job"]["domain"] == ["never seen", "none", "office"]
    assert "Age in years" in made.text
    assert ("delimiter" in policy["data"]) == (name == "datapackage.json")
    asked = [decision.question for decision in made.decisions if "datapackage.json" in decision.question]
    said = "What it may hold is what the descriptions in datapackage.json list. See that they list what can occur."
    assert asked == [f"sex, job: {said}"]


def test_texts_that_the_package_calls_missing_are(folder):
    rows = "".join(
        f"{'88' if i % 9 == 0 else i % 80}|{1 + i % 2}|{('none', 'k.A.')[i % 3 == 0]}\n" for i in range(2400)
    )
    (folder / "people.csv").write_text("age|sex|job\n" + rows)
    schema = {"fields": [{"name": "age"}], "missingValues": ["", "88", {"value": "k.A.", "label": "no answer"}]}
    (folder / "datapackage.json").write_text(json.dumps({"resources": [RESOURCE | {"schema": schema}]}))
    policy = yaml.safe_load(api.draft_policy(folder / "datapackage.json", "-").text)
    assert policy["data"]["missing_values"] == ["", "88", "k.A."]
    assert policy["attributes"]["age"]["missing"] == "keep"
    assert policy["attributes"]["job"]["domain"] == ["none"]


def test_a_release_describes_itself_well_enough_for_a_draft(folder, tmp_path):
    text = "incrowd: 1\nattributes:\n  sex: {domain: ['1', '2', '3'], title: Sex of the person}\n"
    text += "  job: {domain: [none, office, shop]}\n"
    (tmp_path / "policy.yaml").write_text(text + "release: {mechanism: pram, rho: 0.9, output: csv}\n")
    (tmp_path / "datapackage.json").unlink()
    api.release(folder / "people.csv", tmp_path / "policy.yaml", folder=tmp_path / "out")
    made = api.draft_policy(tmp_path / "out" / "datapackage.json", "-")
    assert yaml.safe_load(made.text)["attributes"]["job"]["domain"] == ["none", "office", "shop"]
    assert "Sex of the person" in made.text


@pytest.mark.parametrize(
    "package",
    [
        "no JSON",
        "[]",
        "[" * 100_000,
        json.dumps({"resources": 3}),
        json.dumps({"resources": [None]}),
        json.dumps({"resources": []}),
        json.dumps({"resources": [RESOURCE, {**RESOURCE, "name": "others"}]}),
        *(
            json.dumps({"resources": [{**RESOURCE, "path": path}]})
            for path in ("/etc/x.csv", "../x.csv", "http://x/x.csv")
        ),
    ],
)
def test_what_is_no_package_of_one_table_is_refused(folder, package):
    (folder / "datapackage.json").write_text(package)
    with pytest.raises(DataError) as refused:
        api.draft_policy(folder / "datapackage.json", "-")
    assert refused.value.code == "data-format"


def test_of_several_tables_one_is_named(folder):
    others = {**RESOURCE, "name": "others", "path": "others.csv"}
    (folder / "datapackage.json").write_text(json.dumps({"resources": [others, RESOURCE]}))
    assert described_table(folder / "datapackage.json", "people").path == folder / "people.csv"
    assert api.draft_policy(folder / "datapackage.json", "-", table="people").columns
