"""Crowds under a private tree, from policy to verified folder."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import partialmethod

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import GuaranteeError, IncrowdError, PolicyError, UnreachableError
from incrowd.core.signing import canonical
from incrowd.hierarchy import codings
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.promises import ConcentratedPromise, CrowdPromise
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.one_way import OneWay
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
from incrowd.mechanisms.sampled_crowd.tree.state import MAPPING, ONE_WAY, check_table, settled_again, tree_of
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.growth import cost
from incrowd.releases.verify import VOID, read_release
from incrowd.theory.crowd import smallest_k
from incrowd.theory.views import NoiseStep

ATTRIBUTES = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [20, 40]}}
  sex: {domain: [f, m]}
  job: {domain: [none, office, shop, farm], missing: keep}
  town: {hierarchy: {taxonomy: {all: {north: [a, b, c], south: [d, e]}}}}
"""
RELEASE = "mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, recoding: tree"


def policy(more="", release=RELEASE, attributes=ATTRIBUTES):
    return Policy.from_text(f"{attributes}release: {{{release}{more}}}\n")


def people(rows=4000, seed=3):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 80, rows)
    job = rng.choice(["office", "shop", "farm", None], rows, p=[0.5, 0.3, 0.1, 0.1])
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "job": np.where(age < 20, "none", job),
            "town": rng.choice(list("abcde"), rows, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
        }
    )


def test_unions_of_too_many_values_are_refused_before_anything_is_drawn(tmp_path):
    (tmp_path / "towns.txt").write_text("\n".join(f"t{n}" for n in range(16_385)))
    wide = ATTRIBUTES.replace(
        "town: {hierarchy", f"zip: {{domain: {{file: {tmp_path}/towns.txt}}}}\n  town: {{hierarchy"
    )
    for more in (", splits: binary", ", splits: binary, flat: true", ", flat: true"):
        with pytest.raises(PolicyError, match="zip: 16,385 of its values or groups stand side by side") as refused:
            api.release(people().assign(zip="t1"), policy(more, attributes=wide))
        assert ("splits: hierarchy" in refused.value.remedy) == ("flat" not in more)
    api.release(people().assign(zip="t1"), policy(attributes=wide))
    grouped = wide.replace("towns.txt}}", "towns.txt}, hierarchy: {mask: [2, 3, 6]}}")
    for more in (", splits: binary", ", flat: true"):
        api.release(people().assign(zip="t1"), policy(more, attributes=grouped))


def made(folder, more="", seed=1, **options):
    return api.release(people(**options), policy(more), folder=folder, _source=RandomSource.seeded(seed))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree") / "out"
    made(folder, ", splits: binary")
    return folder


@pytest.mark.parametrize("more", ["", ", splits: binary", ", score: queries", ", importance: {age: 3}"])
def test_a_release_holds_all_that_is_checked(tmp_path, more):
    made(tmp_path / "out", more)
    verdict = api.verify(tmp_path / "out")
    assert [check for check in verdict.checks if not check.holds and check.name != VOID] == []
    certificate, published = read_release(tmp_path / "out")
    tree, one_way = tree_of(published.beside)
    assert len(tree.leaves) > 10
    assert published.table.counts.min() >= certificate.mechanism.k
    assert (tree.places(published.table) >= 0).all()
    assert certificate.mechanism.tree.rho == 0.04
    assert abs(one_way.total - 4000) < 300


def test_the_report_draws_the_tree(released):
    page = next(released.glob("*report.html")).read_text(encoding="utf-8")
    assert "The tree of boxes" in page
    assert page.count("<rect") > 20
    internal = (released.parent / "out.internal" / "report.html").read_text(encoding="utf-8")
    assert "The groups that lost most" in internal or "Every record is in a box" in internal


def test_the_same_bits_make_the_same_release(tmp_path):
    for name in ("one", "other"):
        made(tmp_path / name)
    for path in sorted((tmp_path / "one").iterdir()):
        if not path.name.endswith("certificate.json"):
            assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_what_others_could_forge_is_found(released):
    certificate, published = read_release(released)
    mapping = json.loads(published.beside[MAPPING])

    def failing(document=None, **files):
        beside = {**published.beside, **files}
        if document is not None:
            beside[MAPPING] = json.dumps(
                document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
            ).encode()
        checks = check_table(certificate, Publication(published.table, beside))
        return {check.name for check in checks if not check.holds}

    assert failing() == failing(mapping) == set()
    cheap = json.loads(published.beside[MAPPING])
    cheap["boxes"][0]["failed"] = ["age"] * 100_000
    assert failing(cheap) == {"the choice cost no more than it may"}
    apart = json.loads(published.beside[MAPPING])
    split = next(box for box in apart["boxes"] if box["column"] is not None)
    apart["boxes"][split["parts"][0]]["sets"] = split["sets"]  # now the parts overlap
    assert failing(apart) == {"the boxes are disjoint and cover the domain"}
    renamed = json.loads(published.beside[MAPPING])
    renamed["columns"][0]["sets"][0]["label"] = "everyone"
    assert "the labels are those of the mapping" in failing(renamed)
    louder = json.loads(published.beside[ONE_WAY])
    louder["variance"] += 1
    louder = json.dumps(louder, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    assert failing(**{ONE_WAY: louder}) == {"the choice cost no more than it may"}
    small = published.table.with_counts(np.where(np.arange(len(published.table)) == 0, 1, published.table.counts))
    found = check_table(certificate, Publication(small, published.beside))
    assert any("records or more" in check.name for check in found if not check.holds)


def test_trees_of_earlier_releases_are_priced_by_the_noise_they_had(tmp_path, monkeypatch):
    """Then it was a quarter of the threshold, and the certificate said nothing of it."""
    monkeypatch.setattr(TreeSettled, "__init__", partialmethod(TreeSettled.__init__, by_budget=False))
    made(tmp_path / "out", ", splits: binary, choice_rho: 0.06")
    monkeypatch.undo()
    certificate, published = read_release(tmp_path / "out")
    assert certificate.mechanism.tree.noise is None
    assert [c.name for c in api.verify(tmp_path / "out").checks if not c.holds] == [VOID]
    tree, _ = tree_of(published.beside)
    then = settled_again(certificate).growth([c.name for c in tree.columns])
    assert cost(tree, then) <= then.budget
    assert cost(tree, replace(then, by_budget=True)) > cost(tree, then)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flat") / "out"
    made(folder, ", splits: binary, flat: true")
    return folder


def test_a_flat_release_has_one_label_for_each_value(flat, tmp_path):
    assert [c.name for c in api.verify(flat).checks if not c.holds] == [VOID]
    certificate, published = read_release(flat)
    tree, one_way = tree_of(published.beside)
    assert certificate.mechanism.tree.cuts == 12 >= len(tree.cuts) > 4
    assert certificate.mechanism.tree.noise is None
    for place, column in enumerate(tree.columns):
        labels = dict(zip(column.labels, column.sets, strict=True))
        covered = [value for label in certificate.labels[column.name] for value in labels[label]]
        assert sorted(covered) == list(range(len(column.base)))
        assert published.table[column.name].labels == tree.labels(place)
    page = (flat / "report.html").read_text(encoding="utf-8")
    assert "The labels of each column" in page
    assert "Boxes may overlap" not in page
    rows = api.estimate(flat, ["sex"]).rows
    assert sum(row.estimate for row in rows) == pytest.approx(one_way.total, rel=0.01)
    assert all(row.low <= row.estimate <= row.high for row in api.estimate(flat, ["sex", "town"]).rows)
    # The same labels next year, for nothing.
    again = policy(f", mapping: {flat / 'mapping.json'}")
    api.release(people(seed=9), again, folder=tmp_path / "again", _source=RandomSource.seeded(2))
    assert [c.name for c in api.verify(tmp_path / "again").checks if not c.holds] == [VOID]
    assert read_release(tmp_path / "again")[0].labels == certificate.labels


def test_a_flat_release_may_keep_to_the_hierarchies(tmp_path):
    made(tmp_path / "out", ", flat: true")
    assert [c.name for c in api.verify(tmp_path / "out").checks if not c.holds] == [VOID]
    certificate, published = read_release(tmp_path / "out")
    tree, _ = tree_of(published.beside)
    assert tree.cuts
    levels = api.policy_levels(policy(", flat: true"))
    for column in tree.columns:
        known = {label for level in levels[column.name] for label in level.labels}
        assert set(certificate.labels[column.name]) <= known
    rows = api.estimate(tmp_path / "out", ["sex"]).rows
    assert all(row.low <= row.estimate <= row.high for row in rows)


def test_a_column_that_a_flat_tree_hides_has_no_level_to_be_fixed():
    found = api.release(people(rows=300), policy(", flat: true"), _source=RandomSource.seeded(1)).verdict.warnings
    hidden = [one for one in found if one.code == "hidden"]
    assert hidden
    assert all("importance: {" in one.text and "level" not in one.text for one in hidden)


def test_what_others_could_forge_in_a_flat_release_is_found(flat, released):
    certificate, published = read_release(flat)

    def failing(content, beside=published.beside):
        checks = check_table(certificate, Publication(published.table, {**beside, MAPPING: content}))
        return {check.name for check in checks if not check.holds}

    assert failing(published.beside[MAPPING]) == set()
    fewer = json.loads(published.beside[MAPPING])
    fewer["cuts"].pop()
    assert failing(canonical(fewer)) >= {"the labels are those of the mapping"}
    assert "the choice cost no more than it may" in failing(read_release(released)[1].beside[MAPPING])


def test_more_cuts_than_were_paid_for_are_found(flat, monkeypatch):
    certificate, published = read_release(flat)
    monkeypatch.setattr(TreeSettled, "cuts", 3)
    found = check_table(certificate, published)
    assert [check.name for check in found if not check.holds] == ["the choice cost no more than it may"]


def test_a_mapping_is_used_again_for_nothing(released, tmp_path):
    mapping = next(released.glob("*mapping.json"))
    again = policy(f", mapping: {mapping}")
    out = api.release(people(seed=9), again, folder=tmp_path / "again", _source=RandomSource.seeded(2))
    assert [c for c in api.verify(tmp_path / "again").checks if not c.holds and c.name != VOID] == []
    first, _ = read_release(released)
    certificate, published = read_release(tmp_path / "again")
    assert certificate.mechanism.tree.rho == 0
    assert certificate.mechanism.k < first.mechanism.k
    assert ONE_WAY not in published.beside
    assert all(box["size"] is None for box in json.loads(published.beside[MAPPING])["boxes"])
    assert out.certificate["mechanism"]["tree"]["path_budget"] is None
    rows = api.estimate(tmp_path / "again", ["sex"]).rows
    assert sum(row.estimate for row in rows) == pytest.approx(4000, rel=0.2)


def test_a_mapping_that_is_used_again_spreads_as_the_release_that_it_comes_from(released, tmp_path):
    mapping = next(released.glob("*mapping.json"))
    now = people(seed=9)
    truth = now["town"].value_counts()
    errors = {}
    for name, content in {"with": mapping.read_bytes(), "without": _without_weights(mapping)}.items():
        (tmp_path / f"{name}.json").write_bytes(content)
        out = tmp_path / name
        api.release(now, policy(f", mapping: {tmp_path}/{name}.json"), folder=out, _source=RandomSource.seeded(2))
        found = api.estimate(out, ["town"])
        assert any("comes from" in note for note in found.notes) == (name == "with")
        errors[name] = sum(abs(row.estimate - truth[row.values[0]]) for row in found.rows)
    assert errors["with"] < 0.5 * errors["without"]


def _without_weights(mapping):
    document = json.loads(mapping.read_bytes())
    for column in document["columns"]:
        column["weights"] = None
    return canonical(document)


def test_weights_are_those_of_the_one_way_tables(released):
    certificate, published = read_release(released)
    tree, tables = tree_of(published.beside)
    as_in_0_3 = tree.weighted({name: counts.tolist() for name, counts in tables.counts.items()}).to_bytes()
    assert as_in_0_3 != published.beside[MAPPING]
    paid = "the choice cost no more than it may"
    earlier = check_table(certificate, Publication(published.table, {**published.beside, MAPPING: as_in_0_3}))
    assert [check.holds for check in earlier if check.name == paid] == [True]
    document = json.loads(published.beside[MAPPING])
    document["columns"][1]["weights"][0] += 1
    checks = check_table(certificate, Publication(published.table, {**published.beside, MAPPING: canonical(document)}))
    assert [check.name for check in checks if not check.holds] == ["the choice cost no more than it may"]


def test_a_table_too_small_for_a_split_is_a_concern_before_anything_is_charged(tmp_path):
    small = made(tmp_path / "small", rows=60)
    assert [c.code for c in small.concerns if c.code == "one-box"] == ["one-box"]
    assert all(c.internal for c in small.concerns)
    assert "one-box" not in (tmp_path / "small" / "report.html").read_text(encoding="utf-8")
    large = made(tmp_path / "large")
    assert not [c for c in large.concerns if c.code == "one-box"]
    dear = api.release(people(), policy(", choice_rho: 1e-7"), _source=RandomSource.seeded(1))
    assert [c.code for c in dear.concerns if c.code == "one-box"] == ["one-box"]
    with pytest.raises(UnreachableError, match="one box"):
        api.release(people(), policy(", choice_rho: 1e-13"), _source=RandomSource.seeded(1))


def test_a_mapping_of_other_columns_is_refused(released):
    mapping = next(released.glob("*mapping.json"))
    other = policy(f", mapping: {mapping}", attributes=ATTRIBUTES.replace("[f, m]", "[f, m, x]"))
    with pytest.raises(PolicyError, match="other columns"):
        api.release(people(), other, _source=RandomSource.seeded(1))


def test_a_file_that_is_no_mapping_is_refused(tmp_path):
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(PolicyError, match="not a mapping"):
        api.release(people(), policy(f", mapping: {tmp_path}/no.json"), _source=RandomSource.seeded(1))


def test_the_mapping_of_a_rehearsal_is_refused(released, tmp_path):
    """It was chosen on the table, and nobody paid for it."""
    (tmp_path / "mapping.void.json").write_bytes((released / "mapping.json").read_bytes())
    with pytest.raises(PolicyError, match="rehearsal"):
        api.release(people(), policy(f", mapping: {tmp_path}/mapping.void.json"), _source=RandomSource.seeded(1))


def one_way(counts, other):
    return OneWay(NoiseStep(400), {"a": tuple("uvwx"), "b": ("y", "z")}, {"a": np.array(counts), "b": np.array(other)})


def test_one_way_tables_keep_no_noise_of_values_that_nobody_has():
    tables = one_way([630, 430, 40, -20], [500, 520])
    assert tables.total == 1040
    assert tables.spread("a").tolist() == [610, 410, 20, 0]
    assert tables.spread("b").tolist() == [510, 530]
    assert tables.weights() == {"a": [610, 410, 20, 0], "b": [510, 530]}
    assert one_way([-3, 0, -1, 0], [-2, 1]).spread("a").tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (", selection_epsilon: 0.1", "share of its own"),
        (", already_sampled: true, beta: 0.1", "on the sample"),
        (", importance: {height: 2}", "no such published column"),
        (", crowd_of_interest: 50", "size that beta and k want"),
        (", choice_rho: 0.1, mapping: x.json", "the 'mapping' is given"),
        (", flat: true, splits: binary, mapping: x.json", "the 'mapping' is given"),
        (", flat: true, score: queries", "leave 'score' out"),
    ],
)
def test_what_does_not_go_together_is_refused(more, words):
    with pytest.raises(PolicyError, match=words):
        policy(more)


def test_levels_are_left_to_the_tree():
    with pytest.raises(PolicyError, match="leave its 'level' out"):
        policy(attributes=ATTRIBUTES.replace("[20, 40]}}", "[20, 40]}, level: 1}"))


@pytest.mark.parametrize("key", ["splits: binary", "score: queries", "choice_rho: 0.1", "flat: true"])
def test_keys_of_trees_are_for_trees(key):
    with pytest.raises(PolicyError, match="is for trees"):
        policy(f", selection_epsilon: 0.1, {key}", release=RELEASE.replace(", recoding: tree", ""))


def settled(more):
    from incrowd.hierarchy import codings

    plan = policy(more)
    return mechanism_named("sampled_crowd").settle(plan, codings(plan), 1)


def test_a_share_too_small_for_any_split_is_refused_before_anything_is_charged():
    with pytest.raises(UnreachableError, match="one box"):
        settled(", choice_rho: 1e-12")


def test_a_share_too_large_for_the_promise_is_refused():
    with pytest.raises(IncrowdError):
        settled(", choice_rho: 5")
    with pytest.raises(GuaranteeError, match="more than"):
        settled(", k: 5, beta: 0.5")


def test_open_parameters_are_found():
    for more in (", beta: 0.3", ", k: 30", ", choice_rho: 0.01", ""):
        crowd = settled(more).crowd
        assert crowd.kept
    assert settled(", beta: 0.3").crowd.k < settled("").crowd.k


def test_shares_add_up():
    found = settled("")
    assert 4 / (2 * found.one_way_variance) + found.budget / 2**64 <= 0.04
    assert found.budget / 2**64 > 0.033


def test_the_ledger_is_charged_with_what_is_promised(released):
    mechanism = mechanism_named("sampled_crowd")
    spent = mechanism.spending(settled(""))
    assert spent == ConcentratedPromise(0.04, 1e-5, settled("").crowd.k, settled("").crowd.beta)
    assert 1.8 < spent.whole.epsilon(1e-5) <= 2.0
    mapping = next(released.glob("*mapping.json"))
    assert isinstance(mechanism.spending(settled(f", mapping: {mapping}")), CrowdPromise)


def test_people_with_several_rows_are_promised_as_people(tmp_path):
    """The same promise for a person with three rows: each row may pay a ninth, and crowds have the profile of three."""
    section = "people: {column: person, at_most: 3}\n"
    text = f"{ATTRIBUTES}  person: {{role: drop}}\nrelease: {{{RELEASE}}}\n"
    plan = Policy.from_text(text + section)
    table = people(rows=60_000).assign(person=np.arange(60_000) // 5)
    found = api.release(table, plan, folder=tmp_path / "out", _source=RandomSource.seeded(1))
    assert [c.name for c in api.verify(tmp_path / "out").checks if not c.holds] == [VOID]
    assert found.certificate["promise"]["relation"] == "add/remove a person with at most 3 rows"
    assert ", for all rows of a person wherever they lie" in found.certificate["promise"]["grounds"]
    settled_three = mechanism_named("sampled_crowd").settle(plan, codings(plan), 1)
    crowd, alone = settled_three.crowd, settled("").crowd
    assert crowd.rho == alone.rho
    assert crowd.k > alone.k
    assert crowd.row_rho == Fraction(alone.rho) / 9
    assert settled_three.one_way_variance == math.ceil(4 * 9 / (2 * Fraction(3, 20) * Fraction(0.04)))
    assert 1.6 < crowd.exact_delta * 2e5 <= 2.0
    spent = mechanism_named("sampled_crowd").spending(settled_three)
    assert spent == ConcentratedPromise(0.04, 1e-5, crowd.k, crowd.beta, rows_per_person=3)
    assert spent.whole.delta(2.0) <= 1e-5 < CrowdPromise(crowd.k, crowd.beta).parts(spent.relation)[0].delta(0.0)
    assert len(found.histogram) > 1
    # A mapping that is given costs nothing, and the crowd still covers the person.
    mapping = next((tmp_path / "out").glob("*mapping.json"))
    again = Policy.from_text(f"{text.replace('recoding: tree', f'recoding: tree, mapping: {mapping}')}{section}")
    given = mechanism_named("sampled_crowd").settle(again, codings(again), 1).crowd
    assert (given.rho, given.k) == (0.0, smallest_k(2.0, 1e-5, given.beta, 3))


def test_intervals_hold(tmp_path):
    """All cells of two tables over six releases: at least 95% of intervals hold the truth, and they say something."""
    table = people()
    held, cells, narrow = 0, 0, 0
    for seed in range(6):
        made(tmp_path / str(seed), ", splits: binary", seed=seed)
        for by in (["sex"], ["sex", "town"]):
            truth = table.groupby(by, dropna=False).size().to_dict()
            for row in api.estimate(tmp_path / str(seed), by).rows:
                key = row.values if len(by) > 1 else row.values[0]
                true = truth.get(key, 0)
                assert row.low <= row.estimate <= row.high
                held += row.low <= true <= row.high
                narrow += row.high - row.low < 1500
                cells += 1
    assert held >= 0.95 * cells
    assert narrow > cells / 3


def test_estimates_come_close(tmp_path):
    table = people(rows=20_000)
    made(tmp_path / "out", ", splits: binary", rows=20_000)
    truth = table.groupby(["sex", "town"]).size().to_dict()
    for row in api.estimate(tmp_path / "out", ["sex", "town"]).rows:
        assert abs(row.estimate - truth[row.values]) < 600


def test_totals_from_elsewhere_are_refused(released):
    with pytest.raises(IncrowdError, match="no total from elsewhere"):
        api.estimate(released, ["sex"], total=100)


def test_one_box_says_so(tmp_path):
    made(tmp_path / "out", rows=60)
    assert [c for c in api.verify(tmp_path / "out").checks if not c.holds and c.name != VOID] == []
    page = next((tmp_path / "out").glob("*report.html")).read_text(encoding="utf-8")
    assert "There is one box" in page


def test_settings_that_break_the_promise_draw_nothing():
    found = settled("")
    broken = replace(found, crowd=replace(found.crowd, k=2))
    with pytest.raises(IncrowdError):
        mechanism_named("sampled_crowd").draw(broken, None, RandomSource.seeded(1))
