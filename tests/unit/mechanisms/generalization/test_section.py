"""`mechanism: generalization` in a policy: what it means, what it refuses, and where it says so."""

import json
import pickle
from pathlib import Path

import pytest

from incrowd.core.errors import PolicyError
from incrowd.mechanisms.generalization.adversaries import AdversarySpec, EarlierTable
from incrowd.mechanisms.generalization.requirements import REQUIREMENTS, Closeness, Diversity, GroupSize
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.policy import Policy
from incrowd.policy.texts import keys_of

DOCS = Path(__file__).resolve().parents[4] / "docs" / "policy.md"

POLICY = """incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [f, m]}
  disease: {role: sensitive, domain: [flu, ulcer, cancer], missing: keep}
release: {mechanism: generalization, %s}
"""
PRIOR = "prior: {flu: 10, ulcer: 2, cancer: 4, (missing): 1}"
LINE = 6


def read(release: str, base=None) -> Policy:
    return Policy.from_text(POLICY % release, base)


def problems(release: str, text: str = POLICY) -> list[dict]:
    with pytest.raises(PolicyError) as caught:
        Policy.from_text(text % release)
    assert caught.value.code == "policy-invalid"
    return caught.value.details["problems"]


# ------------------------------------------------------------------------------------------------- what it means


def test_adversaries_and_requirements_are_read():
    policy = read(
        f"adversaries: [{{belief_ratio: 3, {PRIOR}}}, {{name: Eve, belief_ratio: 1e1, stubbornness: 50, knows: 2}}], "
        "require: [{k: 5}, {l: 2}, {l: 2.5, kind: entropy}, {t: .2, distance: ordered}]"
    )
    release = policy.release
    assert isinstance(release, Generalization)
    assert release.adversaries[0].prior == {"flu": 10.0, "ulcer": 2.0, "cancer": 4.0, "(missing)": 1.0}
    assert [release.called(i) for i in (0, 1)] == ["adversary 1", "Eve"]
    assert (release.adversaries[1].belief_ratio, release.adversaries[1].knows) == (10.0, 2)
    assert release.require == (
        GroupSize(k=5),
        Diversity(l=2),
        Diversity(l=2.5, kind="entropy"),
        Closeness(t=0.2, distance="ordered"),
    )
    assert (release.minimise, release.suppression, release.recoding) == ("loss", 0.0, "full_domain")


def test_a_single_one_may_be_written_without_brackets():
    assert read("require: {k: 5}").release == read("require: [{k: 5}]").release
    one = "{belief_ratio: 2, shape: uniform}"
    assert read(f"adversaries: {one}").release == read(f"adversaries: [{one}]").release


def test_it_is_a_value_and_can_be_written_and_read_again():
    policy = read(
        "adversaries: [{belief_ratio: 3, shape: {flu: .5, ulcer: .1, cancer: .3, (missing): .1}, stubbornness: 9, "
        "predicates: {any stomach disease: [ulcer], something: {not: [flu, (missing)]}}}], "
        "require: {alpha: .5, values: cancer}"
    )
    assert Policy.from_text(policy.to_yaml()) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert hash(policy) == hash(Policy.from_text(policy.to_yaml()))
    json.dumps(policy.canonical())
    # The certificate's reader finds the same section again.
    assert Generalization.model_validate(json.loads(json.dumps(policy.canonical()["release"]))) == policy.release


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("belief_ratio: 3", "belief_ratio: 4"),
        ("flu: 10", "flu: 11"),
        ("belief_ratio: 3", "belief_ratio: 3, knows: 1"),
        ("belief_ratio: 3", "belief_ratio: 3, predicates: subsets"),
        ("belief_ratio: 3", "belief_ratio: 3, or_less_stubborn: true"),
    ],
)
def test_the_digest_changes_with_what_is_said(one, other):
    said = f"adversaries: {{belief_ratio: 3, {PRIOR}}}"
    assert one in said
    assert read(said).digest() != read(said.replace(one, other)).digest()


def test_an_earlier_table_counts_by_its_content(tmp_path):
    said = "adversaries: {belief_ratio: 3, earlier_table: {file: before.csv, column: disease}}"
    (tmp_path / "before.csv").write_text("disease\nflu\n")
    policy = read(said, tmp_path)
    place = ("release", "adversaries", 0, "earlier_table")
    assert list(policy.files()) == [place]
    digest = policy.digest()
    assert "before.csv" not in json.dumps(policy.canonical())
    (tmp_path / "before.csv").write_text("disease\nulcer\n")
    assert policy.digest() != digest
    with pytest.raises(PolicyError, match=r"adversaries\.0\.earlier_table\.file: there is no file"):
        read(said.replace("before", "after"), tmp_path)
    moved = policy.relocated(tmp_path / "deeper")
    assert moved.release.adversaries[0].earlier_table.file == "../before.csv"


# ----------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("release", "path", "says"),
    [
        ("suppression: 0", "", "give 'adversaries' or 'require'"),
        ("adversaries: [], require: []", "", "give 'adversaries' or 'require'"),
        ("adversaries: 5", "adversaries", "must be a list"),
        ("adversaries: {belief_ratio: 0.9, shape: uniform}", "adversaries.0.belief_ratio", "at least 1"),
        ("adversaries: {shape: uniform}", "adversaries.0", "'belief_ratio' is missing"),
        ("adversaries: {belief_ratio: 2}", "adversaries.0", "Theorem 4"),
        ("adversaries: {belief_ratoi: 2, shape: uniform}", "adversaries.0.belief_ratoi", "did you mean 'belief_ratio'"),
        ("adversaries: {belief_ratio: 2, anyone: true, shape: uniform}", "adversaries.0.anyone", "contradicts 'shape'"),
        (f"adversaries: {{belief_ratio: 2, shape: uniform, {PRIOR}}}", "adversaries.0.shape", "only one of"),
        (f"adversaries: {{belief_ratio: 2, stubbornness: 9, {PRIOR}}}", "adversaries.0.stubbornness", "follows from"),
        (
            "adversaries: {belief_ratio: 2, stubbornness: 9, or_less_stubborn: yes}",
            "adversaries.0.or_less_stubborn",
            "anyway",
        ),
        ("adversaries: {belief_ratio: 2, prior: 5}", "adversaries.0.prior", "a number for each value"),
        ("adversaries: {belief_ratio: 2, prior: {flu: x}}", "adversaries.0.prior.flu", "must be a number"),
        ("adversaries: {belief_ratio: 2, prior: {flu: -1}}", "adversaries.0.prior.flu", "not below 0"),
        ("adversaries: {belief_ratio: 2, prior: {flu: inf}}", "adversaries.0.prior.flu", "finite"),
        ("adversaries: {belief_ratio: 2, prior: {flu: 1, ulcer: 2}}", "adversaries.0.prior", "leaves out 2 of the"),
        (
            f"adversaries: {{belief_ratio: 2, {PRIOR.replace('}', ', gout: 1}')}}}",
            "adversaries.0.prior.gout",
            "is not a value",
        ),
        (f"adversaries: {{belief_ratio: 2, {PRIOR.replace('10', '0')}}}", "adversaries.0.prior", "above 0 for every"),
        (
            "adversaries: {belief_ratio: 2, prior: {flu: .1, ulcer: .1, cancer: .1, (missing): .1}}",
            "adversaries.0.prior",
            "add up to 1 at least",
        ),
        (
            "adversaries: {belief_ratio: 2, shape: {flu: 0, ulcer: 0, cancer: 0, (missing): 0}}",
            "adversaries.0.shape",
            "above 0 for some",
        ),
        ("adversaries: {belief_ratio: 2, stubbornness: 3}", "adversaries.0.stubbornness", "at least 4"),
        ("adversaries: {belief_ratio: 2, shape: uniform, predicates: all}", "adversaries.0.predicates", "'subsets'"),
        (
            "adversaries: {belief_ratio: 2, shape: uniform, predicates: {bad: [gout]}}",
            "adversaries.0.predicates.bad.0",
            "is not a value",
        ),
        (
            "adversaries: {belief_ratio: 2, shape: uniform, predicates: {bad: []}}",
            "adversaries.0.predicates.bad",
            "must be a list",
        ),
        (
            "adversaries: {belief_ratio: 2, shape: uniform, predicates: {all: [flu, ulcer, cancer, (missing)]}}",
            "adversaries.0.predicates.all",
            "every value",
        ),
        ("adversaries: {belief_ratio: 2, shape: uniform, knows: -1}", "adversaries.0.knows", "at least 0"),
        ("adversaries: {belief_ratio: 2, shape: uniform, sensitive: sex}", "adversaries.0.sensitive", "'sensitive'"),
        (
            "adversaries: [{belief_ratio: 2, shape: uniform, name: a}, {belief_ratio: 2, shape: uniform, name: a}]",
            "adversaries.1.name",
            "another adversary",
        ),
        (
            "adversaries: {belief_ratio: 2, earlier_table: {file: x.csv}}",
            "adversaries.0.earlier_table",
            "'column' is missing",
        ),
        (
            "adversaries: {belief_ratio: 2, earlier_table: {file: x.csv, colum: y}}",
            "adversaries.0.earlier_table.colum",
            "did you mean 'column'",
        ),
        ("require: [{k: 0}]", "require.0.k", "at least 1"),
        ("require: [{q: 0}]", "require.0", "one of the keys"),
        ("require: [{l: 1.5}]", "require.0.l", "whole number"),
        ("require: [{t: 2}]", "require.0.t", "at most 1"),
        ("require: [{t: .2, distnce: equal}]", "require.0.distnce", "did you mean 'distance'"),
        ("require: [{c: 2}]", "require.0", "'l' is missing"),
        ("require: [{alpha: .5, values: [gout]}]", "require.0.values.0", "is not a value"),
        ("require: [{k: 5}], suppression: 1", "suppression", "below 1"),
        ("require: [{k: 5}], minimise: los", "minimise", "did you mean 'loss'"),
        ("require: [{k: 5}], recoding: lokal", "recoding", "did you mean 'local'"),
        ("require: [{k: 5}], time_limit: 0", "time_limit", "above 0"),
        ("require: [{k: 5}], splits: binary", "splits", "recoding: local"),
        ("require: [{k: 5}], recoding: local, suppression: .1", "suppression", "leaves nobody out"),
    ],
)
def test_wrong_sections(release, path, says):
    (found,) = problems(release)
    assert found["path"].removeprefix("release").removeprefix(".") == path
    assert says in found["text"]
    assert found["line"] == LINE


def test_several_sensitive_columns_must_be_told_apart():
    text = POLICY.replace("  sex:", "  income: {role: sensitive, domain: [low, high]}\n  sex:")
    found = problems("adversaries: {belief_ratio: 2, shape: uniform}, require: [{k: 2}, {l: 2}]", text)
    assert [problem["path"] for problem in found] == ["release.adversaries.0", "release.require.1"]
    Policy.from_text(
        text % "adversaries: {belief_ratio: 2, shape: uniform, sensitive: income}, require: [{k: 2}, {l: 2, "
        "sensitive: disease}]"
    )


def test_a_local_recoding_has_no_levels():
    (found,) = problems("require: {k: 5}, recoding: local", POLICY.replace("[f, m]", "[f, m], level: 0"))
    assert found["path"] == "attributes.sex.level"
    Policy.from_text(POLICY.replace("missing: keep", "level: 0") % "require: {k: 5}, recoding: local")


def test_roles_are_needed():
    (found,) = problems("require: {l: 2}", POLICY.replace("role: sensitive, ", ""))
    assert "no attribute has the role 'sensitive'" in found["text"]
    only = "incrowd: 1\nattributes:\n  disease: {role: sensitive, domain: [flu, none]}\nrelease: {mechanism: "
    (found,) = problems("require: {l: 2}", only + "generalization, %s}\n")
    assert (found["path"], found["line"]) == ("attributes", 2)


@pytest.mark.parametrize("mechanism", ["sampled_crowd", "sample"])
@pytest.mark.parametrize("recoding", ["local", "full_domain"])
def test_other_mechanisms_have_no_recoding_to_choose(mechanism, recoding):
    text = f"incrowd: 1\nattributes: {{sex: {{domain: [f, m]}}}}\nrelease: {{mechanism: {mechanism}, epsilon: 1, "
    (found,) = problems("", text + f"delta: .1, recoding: {recoding}%s}}\n")
    assert found["path"] == "release.recoding"
    assert ("'lattice' or 'tree'" if mechanism == "sampled_crowd" else "one level") in found["text"]


# ----------------------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("model", [AdversarySpec, EarlierTable, *(model for model, _ in REQUIREMENTS.values())])
def test_every_key_is_described_in_the_schema_and_on_the_page(model):
    page = DOCS.read_text(encoding="utf-8")
    for name, info in model.model_fields.items():
        assert info.description, name
    for key in keys_of(model):
        assert f"`{key}`" in page or f"{{{key}: " in page or f", {key}: " in page, key
