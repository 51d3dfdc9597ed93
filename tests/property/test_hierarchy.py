"""Laws of hierarchies and policies, on made-up ones."""

import json
import string
from pathlib import Path

import numpy as np
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.domain import Categories, Coding
from incrowd.hierarchy import Hierarchy, build, codings, to_csv
from incrowd.hierarchy.table import HierarchyTable, Origin, read_table
from incrowd.policy import Policy

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), min_size=1, max_size=6)
words = st.text(string.ascii_letters + "é-_ .", min_size=1, max_size=5).map(str.strip).filter(bool)
moderate = settings(max_examples=60, deadline=None)


@st.composite
def tables(draw, names=texts):
    """Rows of values with ever fewer groups; every level is made by merging groups of the one below."""
    values = draw(st.lists(names, min_size=1, max_size=12, unique=True))
    columns = [values]
    groups = np.arange(len(values))
    for level in range(draw(st.integers(0, 3))):
        count = int(groups.max()) + 1
        merged = np.array(draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count)))
        groups = np.unique(merged[groups], return_inverse=True)[1]
        labels = draw(st.lists(names, min_size=len(values), max_size=len(values), unique=True))
        columns.append([labels[group] for group in groups])
        del level
    columns.append([draw(names)] * len(values))
    return columns


@st.composite
def policies(draw):
    """Policies as dictionaries, of every kind of attribute that needs no file."""
    low = draw(st.integers(-50, 50))
    size = draw(st.integers(1, 60))
    step = draw(st.sampled_from([2, 3, 5]))
    span = {"from": low, "to": low + size}
    some = draw(st.lists(words, min_size=1, max_size=8, unique_by=str.lower))
    kinds = {
        "integer": {"type": "integer", "domain": span, "hierarchy": {"widths": [step, 2 * step, 6 * step]}},
        "limited": {"type": "integer", "domain": span, "hierarchy": {"bottom": low, "cuts": [[low + size]]}},
        "bins": {"type": "number", "domain": {**span, "to": low + step, "step": "0.5"}, "hierarchy": {"widths": "0.5"}},
        "date": {"type": "date", "domain": {"from": "1999-11-28", "to": f"20{10 + size}-03-01"}}
        | {"hierarchy": {"dates": draw(st.sampled_from([["month", "year"], ["week"], ["quarter", "decade"]]))}},
        "mask": {"domain": {"digits": 2}, "hierarchy": {"mask": 2}},
        "ordinal": {"domain": some, "hierarchy": {"ordinal": [step, 2 * step]}},
        "taxonomy": {"hierarchy": {"taxonomy": {f"g{i}": some[i::step] for i in range(min(step, len(some)))}}},
        "plain": {"domain": some},
        "boolean": {"type": "boolean"},
        "drop": "drop",
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5, unique=True))
    attributes = {name: kinds[name] for name in [*chosen, "plain"]}
    for attribute in attributes.values():
        if isinstance(attribute, dict):
            attribute["missing"] = draw(st.sampled_from(["refuse", "keep", "drop"]))
            attribute.update(draw(st.sampled_from([{}, {"other": "§ else"}])))
    policy = {"incrowd": 1, "attributes": attributes}
    if draw(st.booleans()):
        epsilon = draw(st.floats(0.01, 20))
        policy["release"] = {"mechanism": "sampled_crowd", "epsilon": epsilon, "delta": draw(st.floats(1e-12, 0.5))}
        policy["release"]["selection_epsilon"] = epsilon / 10
    return policy


def check_laws(hierarchy: Hierarchy, coding: Coding) -> None:
    height = hierarchy.height
    base = len(coding.base_labels)
    assert hierarchy.levels[0].labels == coding.base_labels
    assert np.array_equal(hierarchy.levels[0].to, np.arange(base))
    assert len(hierarchy.levels[height].labels) == 1
    for lower in range(height + 1):
        fine = hierarchy.recode(lower)
        assert set(fine.to.tolist()) == set(range(len(fine.labels)))
        assert len(set(fine.labels)) == len(fine.labels)
        assert hierarchy.covered(lower).sum() == base
        if lower < height:
            for code in (coding.other_code, coding.missing_code):
                assert code is None or hierarchy.covered(lower)[fine.to[code]] == 1
        for upper in range(lower, height + 1):
            coarse, step = hierarchy.recode(upper), hierarchy.coarsen(lower, upper)
            assert np.array_equal(step.to[fine.to], coarse.to)
            assert step.labels == coarse.labels
            summed = np.bincount(step.to, weights=hierarchy.covered(lower), minlength=len(coarse.labels))
            assert np.array_equal(summed, hierarchy.covered(upper))


@given(policies())
@moderate
def test_every_hierarchy_of_a_policy_obeys_the_laws(content):
    policy = Policy.from_dict(content)
    found = codings(policy)
    assert [name for name, _, _ in found] == list(policy.published)
    for _, coding, hierarchy in found:
        check_laws(hierarchy, coding)


@given(tables(), st.booleans())
@moderate
def test_tables_are_read_as_they_are(columns, keep):
    coding = Coding("x", Categories(tuple(columns[0])), "keep" if keep else "refuse")
    table = HierarchyTable(tuple(map(tuple, columns)), range(len(columns[0])), Origin("t"))
    hierarchy = build(table, coding)
    check_laws(hierarchy, coding)
    for level, column in zip(hierarchy.levels, columns, strict=True):
        assert [level.labels[code] for code in level.to[: len(column)]] == column


@given(tables(), st.randoms(use_true_random=False))
@moderate
def test_writing_and_reading_gives_the_same_hierarchy_whatever_the_order_of_lines(columns, random):
    coding = Coding("x", Categories(tuple(columns[0])), "keep")
    hierarchy = build(HierarchyTable(tuple(map(tuple, columns)), range(len(columns[0])), Origin("t")), coding)
    written = to_csv(hierarchy)
    table = read_table(written, Origin("t"))
    assert [list(column) for column in table.columns] == columns
    rows = list(zip(*columns, strict=True))
    random.shuffle(rows)
    shuffled = HierarchyTable(tuple(zip(*rows, strict=True)), range(len(rows)), Origin("t"))
    for again in (build(table, coding), build(shuffled, coding)):
        assert [level.labels for level in again.levels] == [level.labels for level in hierarchy.levels]
        assert all(np.array_equal(a.to, b.to) for a, b in zip(again.levels, hierarchy.levels, strict=True))


def shuffled(value, random):
    """The same mappings with their keys in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, random)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@given(policies(), st.randoms(use_true_random=False))
@moderate
def test_a_policy_survives_being_written_and_its_digest_being_rearranged(content, random):
    policy = Policy.from_dict(content)
    again = Policy.from_text(policy.to_yaml())
    assert again == policy
    assert again.to_yaml() == policy.to_yaml()
    assert list(again.attributes) == list(policy.attributes)
    assert again.digest() == policy.digest()
    rearranged = yaml.safe_dump(shuffled(content, random), default_flow_style=random.random() < 0.5)
    assert Policy.from_text(f"# a comment\n{rearranged}").digest() == policy.digest()
    assert Policy.from_dict(content, Path("/somewhere")).digest() == policy.digest()
    json.dumps(policy.canonical(), allow_nan=False)


@given(st.text(st.characters(codec="utf-8"), max_size=60))
@moderate
def test_any_text_means_itself_in_a_text_domain(text):
    content = {"incrowd": 1, "data": {"missing_values": []}, "attributes": {"x": {"domain": [text, text + "x"]}}}
    policy = Policy.from_dict(content)
    assert Policy.from_text(policy.to_yaml()).attributes["x"].domain == (text, text + "x")
