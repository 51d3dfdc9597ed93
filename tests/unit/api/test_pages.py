"""What pages show: pictures that need no style of their own, and the lattice as data."""

import json
import re
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from incrowd import api
from incrowd.core.errors import DataError, InputError

GENERAL = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 7}, hierarchy: {widths: [2, 4]}}
  sex: {domain: [f, m]}
  illness: {role: sensitive, domain: [none, flu, asthma]}
release:
  mechanism: generalization
  require: [{k: 30}]
  suppression: 0.1
"""


@pytest.fixture(scope="module")
def lattice():
    people = {
        "age": [i % 8 for i in range(400)],
        "sex": ["fm"[i % 3 == 0] for i in range(400)],
        "illness": [("none", "flu", "asthma")[i % 5 % 3] for i in range(400)],
    }
    made = api.release(pa.table(people), api.policy_from_text(GENERAL))
    return json.loads(made.internal["lattice.json"]), made


def test_the_lattice_says_of_each_table_what_the_policy_asks(lattice):
    content, made = lattice
    nodes = {tuple(one["node"]): one for one in content["nodes"]}
    assert len(nodes) == content["size"] == 4 * 2
    assert nodes[0, 0]["information"] == 1.0
    assert nodes[3, 1]["information"] == 0.0
    assert nodes[0, 1]["groups"] == 8
    assert nodes[0, 1]["measures"] == [50.0]  # everyone of an age
    (chosen,) = [node for node, one in nodes.items() if one["chosen"]]
    levels = made.certificate["mechanism"]["levels"]
    assert chosen == (levels["age"], levels["sex"])
    assert nodes[chosen]["kept"]
    assert nodes[chosen]["minimal"]
    best = max(one["information"] for one in nodes.values() if one["kept"])
    assert nodes[chosen]["information"] == best


def test_the_lattice_is_drawn_with_every_table_to_be_found(lattice):
    content, _ = lattice
    drawn = ET.fromstring(api.draw_lattice(content))
    found = {group.get("data-node") for group in drawn.iter("{http://www.w3.org/2000/svg}g")} - {None}
    assert found == {",".join(map(str, one["node"])) for one in content["nodes"]}


@pytest.mark.parametrize("content", [{}, {"nodes": [1], "columns": [], "demands": []}, {"nodes": 5}])
def test_a_damaged_lattice_is_refused(content):
    with pytest.raises(DataError):
        api.draw_lattice(content)


def test_pictures_bring_no_style_and_the_style_sheet_has_theirs():
    plan = api.plan_crowd(epsilon=1, delta=1e-6, beta=0.2)
    style = api.style_sheet()
    for picture in (api.draw_plan(plan), api.draw_frontier(api.frontier(1, 1e-6), plan)):
        assert "style" not in re.sub(r'aria-label="[^"]*"', "", picture)
        for name in set(" ".join(re.findall(r'class="([^"]+)"', picture)).split()):
            assert f".{name}" in style
        ET.fromstring(picture)


def test_the_frontier_shows_the_chosen_crowd():
    plan = api.plan_crowd(epsilon=1, delta=1e-6, beta=0.2)
    assert f"k = {plan.k}" in api.draw_frontier(api.frontier(1, 1e-6), plan)


def test_columns_are_drawn_without_what_few_records_share(tmp_path):
    rows = [f"{i % 60},{'<b>' if i % 2 else 'town'}" for i in range(600)] + ["61,lonely"]
    (tmp_path / "t.csv").write_text("number,place\n" + "\n".join(rows) + "\n", encoding="utf-8")
    number, place = map(api.draw_column, api.draft_policy(str(tmp_path / "t.csv"), "-").profiles)
    assert "lonely" not in place
    assert "rarer values" in place
    assert "&lt;b&gt;" in place
    counts = [int(text.replace(",", "")) for text in re.findall(r'<td class="number">([\d,]+)</td>', number)]
    assert sum(counts) == 601
    for markup in (number, place):
        ET.fromstring(markup)


def test_a_policy_is_saved_only_as_yaml_and_never_over_another(tmp_path):
    api.save_policy("a: 1", tmp_path / "p.yaml")
    with pytest.raises(InputError) as refused:
        api.save_policy("b: 2", tmp_path / "p.yaml")
    assert refused.value.code == "output-exists"
    with pytest.raises(InputError) as refused:
        api.save_policy("b: 2", tmp_path / "p.csv")
    assert refused.value.code == "output-format"
    api.save_policy("b: 2", tmp_path / "p.yaml", overwrite=True)
    assert (tmp_path / "p.yaml").read_text() == "b: 2"


def test_every_path_of_a_policy_is_named():
    policy = api.policy_from_text(
        "incrowd: 1\ndata: {path: t.csv}\nattributes: {a: {domain: {file: d.txt}}, b: {hierarchy: {file: h.csv}}}\n"
        "ledger: {path: l.sqlite, dataset: x, epsilon: 1, delta: 0}"
    )
    assert sorted(api.policy_paths(policy)) == ["d.txt", "h.csv", "l.sqlite", "t.csv"]


def test_every_path_of_a_mechanism_is_named_too():
    general = api.policy_from_text(
        "incrowd: 1\nattributes: {a: {domain: [x]}, s: {role: sensitive, domain: [p, q]}}\nrelease: {mechanism: "
        "generalization, adversaries: [{belief_ratio: 3, earlier_table: {file: old.csv, column: s}}]}"
    )
    assert api.policy_paths(general) == ["old.csv"]
    pram = api.policy_from_text(
        "incrowd: 1\nattributes: {a: {domain: [x, y]}}\nrelease: {mechanism: pram, matrix: {a: {file: m.csv}}}"
    )
    assert api.policy_paths(pram) == ["m.csv"]
