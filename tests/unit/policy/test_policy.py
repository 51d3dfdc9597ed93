"""The policy file: what it means, what it refuses, and where it says so."""

import datetime as dt
import json
import pickle
import re
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from incrowd.core.errors import PolicyError
from incrowd.domain import Bins, Categories, DateRange, IntegerRange
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.policy import Intervals, Mask, Node, Policy, Taxonomy, digest
from incrowd.policy.attributes import Attribute
from incrowd.policy.domains import DOMAINS
from incrowd.policy.hierarchies import HIERARCHIES
from incrowd.policy.sections import Data, LedgerSection, People
from incrowd.policy.texts import keys_of
from json_schema import accepts

DOCS = Path(__file__).resolve().parents[3] / "docs" / "policy.md"

EVERYTHING = """
incrowd: 1
title: Everything
data: {path: census.csv, delimiter: ";", encoding: latin-1, missing_values: ["", NA]}
attributes:
  age: {type: integer, domain: {from: 0, to: 120}, hierarchy: {widths: [5, 10, 20, 40], top: 90}, level: 2}
  income: {type: number, domain: {cuts: [0, 10000, 20000, .inf]}, hierarchy: {cuts: [[0, 20000, .inf]]}, missing: keep}
  weight: {type: number, domain: {from: 0, to: 1, step: 0.1}, hierarchy: {widths: 0.5}}
  birth: {type: date, domain: {from: 1900-01-01, to: 2026-12-31}, hierarchy: {dates: [month, year]}, missing: drop}
  zip: {domain: {digits: 5}, hierarchy: {mask: 5}}
  country: {domain: [no, se, dk], other: elsewhere}
  marital: {hierarchy: {taxonomy: {married: [civil, church], alone: [single, widowed], unknown: }}}
  member: {type: boolean}
  grade: {domain: [a, b, c, d], hierarchy: {ordinal: 2}}
  disease: {role: sensitive, domain: [flu, none]}
  name: drop
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.1, crowd_of_interest: 200}
ledger: {path: budget.sqlite, dataset: my-census, epsilon: 4, delta: 1e-5}
unlisted: refuse
"""


def attribute(text: str) -> Attribute:
    return Policy.from_text(f"incrowd: 1\nattributes:\n  x: {text}\n").attributes["x"]


def problems(text: str, base: Path | None = None) -> list[dict]:
    with pytest.raises(PolicyError) as caught:
        Policy.from_text(text, base)
    assert caught.value.code == "policy-invalid"
    return caught.value.details["problems"]


# ------------------------------------------------------------------------------------------------- what it means


def test_a_policy_with_everything_is_read():
    policy = Policy.from_text(EVERYTHING)
    assert policy.title == "Everything"
    assert policy.data.missing_values == ("", "NA")
    assert list(policy.published) == [*policy.attributes][:-1]
    assert policy.attributes["age"].hierarchy == Intervals(widths=(5, 10, 20, 40), top=90)
    assert policy.attributes["zip"].hierarchy.mask == (1, 2, 3, 4, 5)
    assert policy.attributes["name"].role == "drop"
    assert policy.release == SampledCrowd(
        mechanism="sampled_crowd", epsilon=2, delta=1e-5, selection_epsilon=0.1, crowd_of_interest=200
    )
    assert policy.release.beta is None
    assert policy.ledger.dataset == "my-census"


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("{domain: [no, on, y, 007, 1e3, 2020-01-01, null, ~, '']}", None),
        ("{type: integer, domain: [1, -2, 010]}", Categories((1, -2, 10))),
        ("{type: number, domain: [1.50, 1e-2, 100]}", Categories((Decimal("1.5"), Decimal("0.01"), Decimal(100)))),
        ("{type: date, domain: [2020-02-29]}", Categories((dt.date(2020, 2, 29),))),
        ("{type: boolean, domain: [no]}", Categories((False,))),
        ("{type: boolean}", Categories((False, True))),
        ("{type: integer, domain: {from: -1, to: 3}}", IntegerRange(-1, 3)),
        (
            "{type: date, domain: {from: 2020-01-01, to: 2020-01-03}}",
            DateRange(dt.date(2020, 1, 1), dt.date(2020, 1, 3)),
        ),
        ("{type: number, domain: {from: 0, to: 0.3, step: 0.1}}", Bins((0.0, 0.1, 0.2, 0.3))),
        ("{type: integer, domain: {cuts: [-.inf, 0, .inf]}}", Bins((-float("inf"), 0.0, float("inf")))),
        ("{domain: {digits: 2}}", Categories(tuple(f"{i:02}" for i in range(100)))),
    ],
)
def test_domains(written, domain):
    if domain is None:  # the empty text means missing unless said otherwise
        text = f"incrowd: 1\ndata: {{missing_values: [NA]}}\nattributes:\n  x: {written}\n"
        values = Policy.from_text(text).attributes["x"].domain
        assert values == ("no", "on", "y", "007", "1e3", "2020-01-01", "null", "~", "")
    else:
        assert attribute(written).declared() == domain
        types = [type(v) for v in getattr(domain, "values", ())]
        assert types == [type(v) for v in getattr(attribute(written).declared(), "values", ())]


def test_words_that_yaml_would_take_for_something_else_are_fine_as_names():
    policy = Policy.from_text("incrowd: 1\nattributes: {no: {domain: [off]}, 1: {domain: [x]}, null: drop}")
    assert list(policy.attributes) == ["no", "1", "null"]
    assert policy.attributes["no"].domain == ("off",)


def test_numbers_are_read_as_people_write_them():
    release = "release: {mechanism: sampled_crowd, epsilon: 1e0, delta: 1e-5, k: 10, already_sampled: yes, beta: .1}"
    policy = Policy.from_text(f"incrowd: 1\nattributes: {{a: {{domain: [x]}}}}\n{release}")
    assert (policy.release.epsilon, policy.release.delta, policy.release.k) == (1.0, 1e-5, 10)
    assert policy.release.already_sampled is True
    assert policy.release.beta == 0.1


@pytest.mark.parametrize(
    ("written", "node"),
    [
        ("{a: [x, y], b: [z]}", Node("*", (Node("a", (Node("x"), Node("y"))), Node("b", (Node("z"),))))),
        ("{all: {a: [x], b: }}", Node("all", (Node("a", (Node("x"),)), Node("b")))),
        ("[a, {b: [x, y]}]", Node("*", (Node("a"), Node("b", (Node("x"), Node("y")))))),
        ("[no, 1]", Node("*", (Node("no"), Node("1")))),
        ("{x: }", Node("*", (Node("x"),))),
    ],
)
def test_taxonomies(written, node):
    assert attribute(f"{{hierarchy: {{taxonomy: {written}}}}}").hierarchy == Taxonomy(taxonomy=node)


def test_anchors_and_merge_keys():
    text = "incrowd: 1\nattributes:\n  a: &a {domain: [x], level: 1}\n  b: *a\n  c: {<<: *a, level: 0}\n"
    policy = Policy.from_text(text)
    assert policy.attributes["b"] == policy.attributes["a"]
    assert (policy.attributes["c"].domain, policy.attributes["c"].level) == (("x",), 0)


def test_python_values_mean_what_their_texts_mean():
    policy = Policy.from_dict(
        {
            "incrowd": 1,
            "attributes": {
                "zip": {"domain": ["01", 2], "hierarchy": {"mask": [1]}},
                "age": {"type": "integer", "domain": {"from": 0, "to": 9}, "hierarchy": {"cuts": [[5]]}},
                "day": {"type": "date", "domain": {"from": dt.date(2020, 1, 1), "to": "2020-12-31"}},
                "sum": {"type": "number", "domain": {"cuts": [0, 0.1, float("inf")]}},
            },
        }
    )
    text = """
    incrowd: 1
    attributes:
      zip: {domain: [01, 2], hierarchy: {mask: [1]}}
      age: {type: integer, domain: {from: 0, to: 9}, hierarchy: {cuts: [[5]]}}
      day: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}}
      sum: {type: number, domain: {cuts: [0, 0.1, .inf]}}
    """
    assert policy == Policy.from_text(text)


def test_a_file_is_read_and_its_paths_start_at_its_folder(tmp_path):
    (tmp_path / "tree.csv").write_text("a;*\nb;*\n")
    (tmp_path / "p.yaml").write_bytes(
        b"\xef\xbb\xbfincrowd: 1\r\nattributes:\r\n  x: {hierarchy: {file: tree.csv}}\r\n"
    )
    policy = Policy.from_file(tmp_path / "p.yaml")
    assert policy.resolve("tree.csv") == tmp_path / "tree.csv"
    assert list(policy.files()) == [("attributes", "x", "hierarchy")]


# ----------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("written", "path", "says"),
    [
        ("{rol: quasi, domain: [a]}", "rol", "did you mean 'role'"),
        ("{role: quasy, domain: [a]}", "role", "did you mean 'quasi'"),
        ("{type: integr}", "type", "did you mean 'integer'"),
        ("{domian: [a]}", "domian", "did you mean 'domain'"),
        ("{xyz: 1, domain: [a]}", "xyz", "known are 'role', 'type'"),
        ("{domain: [a], level: -1}", "level", "at least 0"),
        ("{domain: [a], level: one}", "level", "whole number"),
        ("{domain: [a], level: [1]}", "level", "whole number"),
        ("", "", "'domain' is missing"),
        ("{domain: []}", "domain", "at least one value"),
        ("{domain: [a, b, a]}", "domain.2", "listed above"),
        ("{domain: ['']}", "domain.0", "missing_values"),
        ("{domain: 5}", "domain", "must be a list of values"),
        ("{domain: {form: a, to: b}}", "domain.form", "did you mean 'from'"),
        ("{domain: [[a]]}", "domain.0", "must be a text"),
        ("{domain: {from: a, to: b}}", "domain", "for type 'text'"),
        ("{type: integer, domain: [1, x]}", "domain.1", "whole number"),
        ("{type: integer, domain: {from: 3, to: 1}}", "domain", "runs from 3 down to 1"),
        ("{type: integer, domain: {from: 3}}", "domain", "'to' is missing"),
        ("{type: integer, domain: {from: 0, to: 9999999}}", "domain", "more than 1,000,000"),
        ("{type: number, domain: {from: 0, to: 9}}", "domain", "'step'"),
        ("{type: number, domain: {from: 0, to: 1, step: 0.3}}", "domain", "whole number of steps"),
        ("{type: number, domain: {from: 0, to: 1, step: -1}}", "domain", "whole number of steps"),
        ("{type: number, domain: {from: 0, to: 1e9, step: 1}}", "domain", "more than 1,000,000"),
        ("{type: number, domain: {cuts: [1, 0]}}", "domain", "increasing"),
        ("{type: number, domain: [nan]}", "domain.0", "must be a number"),
        ("{type: date, domain: [31.1.2020]}", "domain.0", "year-month-day"),
        ("{type: date, domain: [2020-02-30]}", "domain.0", "year-month-day"),
        ("{type: boolean, domain: [maybe]}", "domain.0", "true or false"),
        ("{domain: {digits: 9}}", "domain.digits", "at most 6"),
        ("{domain: [a], hierarchy: {}}", "hierarchy", "one of the keys"),
        ("{domain: [a], hierarchy: widths}", "hierarchy", "one of the keys"),
        ("{domain: [a], hierarchy: {taxonmy: {x: [a]}}}", "hierarchy.taxonmy", "did you mean 'taxonomy'"),
        ("{domain: [a], hierarchy: {widths: 5}}", "hierarchy", "intervals need"),
        ("{domain: [a], hierarchy: {ordinal: [2, 3]}}", "hierarchy.ordinal", "3 is not a multiple of 2"),
        ("{domain: [a], hierarchy: {ordinal: [0]}}", "hierarchy.ordinal", "above 0"),
        ("{domain: [a], hierarchy: {mask: [2, 1]}}", "hierarchy.mask", "increasing"),
        ("{domain: [a], hierarchy: {mask: 1, character: xx}}", "hierarchy.character", ""),
        ("{type: integer, domain: [1], hierarchy: {mask: 1}}", "hierarchy", "type 'text'"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {ordinal: 2}}", "hierarchy", "lists its values"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: [2, 5]}}", "hierarchy.widths", "multiple"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: [0.5]}}", "hierarchy", "whole numbers"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: []}}", "hierarchy.widths", "increasing"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: [-1]}}", "hierarchy.widths", "above 0"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {cuts: [[5, 2]]}}", "hierarchy.cuts.0", "increasing"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {cuts: [[5, a]]}}", "hierarchy.cuts.0.1", "number"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {start: 1, top: 3}}", "hierarchy.start", "widths"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {top: x}}", "hierarchy.top", "whole number"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {top: }}", "hierarchy.top", "no value"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {dates: month}}", "hierarchy", "type 'date'"),
        ("{type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: 2, cuts: [[1]]}}", "hierarchy", "only one of"),
        ("{type: date, domain: {from: 2020-01-01, to: 2020-02-01}, hierarchy: {widths: 7}}", "hierarchy", "'dates'"),
        (
            "{type: date, domain: {from: 2020-01-01, to: 2020-02-01}, hierarchy: {dates: [moth]}}",
            "hierarchy.dates.0",
            "did you mean 'month'",
        ),
        ("{hierarchy: {taxonomy: {x: [a, b], y: [a]}}}", "hierarchy.taxonomy", "two places"),
        ("{hierarchy: {taxonomy: {p: {x: [a]}, q: {x: [b]}}}}", "hierarchy.taxonomy", "same name"),
        ("{hierarchy: {taxonomy: {x: [a, a]}}}", "hierarchy.taxonomy.x.1", "already given"),
        ("{hierarchy: {taxonomy: 5}}", "hierarchy.taxonomy", "names with lists"),
        ("{domain: [a], other: ''}", "other", "not be empty"),
    ],
)
def test_wrong_attributes(written, path, says):
    found = problems(f"incrowd: 1\nattributes:\n  x: {written}\n")
    assert len(found) == 1
    assert found[0]["path"].removeprefix("attributes.x").removeprefix(".") == path
    assert says in found[0]["text"]
    assert found[0]["line"] == 3


@pytest.mark.parametrize(
    ("release", "path", "says"),
    [
        ("{mechanism: sampled, epsilon: 1, delta: .1}", "mechanism", "'sampled_crowd'"),
        ("{epsilon: 1, delta: .1}", "", "'mechanism' is missing"),
        ("{mechanism: sampled_crowd, epsilom: 1, delta: .1}", "epsilom", "did you mean 'epsilon'"),
        ("{mechanism: sampled_crowd, epsilon: 0, delta: .1}", "epsilon", "above 0"),
        ("{mechanism: sampled_crowd, epsilon: inf, delta: .1}", "epsilon", "finite"),
        ("{mechanism: sampled_crowd, epsilon: nan, delta: .1}", "epsilon", "finite"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: 0}", "delta", "above 0"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: 1}", "delta", "below 1"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, beta: 1}", "beta", "below 1"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, beta: 0}", "beta", "above 0"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, k: 0}", "k", "at least 1"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, k: 1.5}", "k", "whole number"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, selection_epsilon: 1}", "selection_epsilon", "smaller"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, selection_epsilon: -1}", "selection_epsilon", "at least 0"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, already_sampled: yes}", "already_sampled", "'beta'"),
        ("{mechanism: sampled_crowd, epsilon: 1, delta: .1, already_sampled: perhaps}", "already_sampled", "true or"),
        (
            "{mechanism: sampled_crowd, epsilon: 1, delta: .1, beta: .1, already_sampled: yes, selection_epsilon: .5}",
            "selection_epsilon",
            "on the sample",
        ),
        (
            "{mechanism: sampled_crowd, epsilon: 1, delta: .1, output: json}",
            "output",
            "'parquet', 'csv', 'arrow', 'sav', 'dta' or 'xlsx'",
        ),
    ],
)
def test_wrong_releases(release, path, says):
    (found,) = problems(f"incrowd: 1\nattributes: {{x: {{domain: [a]}}}}\nrelease: {release}\n")
    assert found["path"].removeprefix("release").removeprefix(".") == path
    assert says in found["text"]
    assert found["line"] == 3


def test_levels_are_fixed_or_paid_for():
    head = "incrowd: 1\nattributes:\n  x: {hierarchy: {taxonomy: {a: [b]}}%s}\n  y: {domain: [a]}\n"
    tail = "release: {mechanism: sampled_crowd, epsilon: 1, delta: .1%s}\n"
    Policy.from_text(head % ", level: 0" + tail % "")
    Policy.from_text(head % "" + tail % ", selection_epsilon: .1")
    (found,) = problems(head % "" + tail % "")
    assert (found["line"], found["path"]) == (3, "attributes.x")
    (found,) = problems(head.replace("[a]}", "[a], level: 1}") % ", level: 0" + tail % ", selection_epsilon: .1")
    assert (found["line"], found["path"]) == (5, "release.selection_epsilon")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("# nothing", "empty"),
        ("[1]", "mapping"),
        ("incrowd: 2\nattributes: {a: {domain: [x]}}", "must be '1'"),
        ("attributes: {a: {domain: [x]}}", "'incrowd' is missing"),
        ("incrowd: 1", "'attributes' is missing"),
        ("incrowd: 1\nattributes:", "has no value"),
        ("incrowd: 1\nattributes: {}", "at least one"),
        ("incrowd: 1\nattributes: {a: drop}", "at least one"),
        ("incrowd: 1\nattributes: [a]", "mapping"),
        ("incrowd: 1\ndata: {encoding: utf9}\nattributes: {a: {domain: [x]}}", "known encoding"),
        ("incrowd: 1\ndata: {delimiter: ab}\nattributes: {a: {domain: [x]}}", "one character"),
        ("incrowd: 1\nattributes: {a: {domain: [x]}}\nunlisted: keep", "'drop' or 'refuse'"),
    ],
)
def test_wrong_policies(text, says):
    with pytest.raises(PolicyError, match=re.escape(says)) as caught:
        Policy.from_text(text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\n  b: 2", 2, "not the YAML"),
        ("a: 1\nb: 'x", 2, "not the YAML"),
        ("a: 1\na: 2", 2, "already given in line 1"),
        ("a: 1\n---\nb: 1", 2, "one document"),
        ("a: !!python/object/apply:os.system [ls]", 1, "tags"),
        ("a: !mine 1", 1, "tags"),
        ("a: *b", 1, "no anchor"),
        ("a: &a [*a]", 1, "no anchor"),
        ("? [a]\n: b", 1, "key must be"),
        ("a: {<<: 5}", 1, "'<<'"),
        ("[" * 2000, 1, "nested"),
        ("\x00", None, "characters"),
        ("\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 1}]" for i in range(12)), 8, "far too much"),
    ],
)
def test_what_is_not_the_yaml_of_a_policy(text, line, says):
    with pytest.raises(PolicyError, match=re.escape(says)) as caught:
        Policy.from_text(text)
    assert caught.value.code == "policy-syntax"
    assert caught.value.details["line"] == line


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(PolicyError, match="No such file") as caught:
        Policy.from_file(tmp_path / "p.yaml")
    assert caught.value.code == "policy-file"
    with pytest.raises(PolicyError):
        Policy.from_file(tmp_path)
    (tmp_path / "p.yaml").write_bytes("incrowd: 1\ntitle: é\n".encode("latin-1"))
    with pytest.raises(PolicyError, match=r"line 2: this is not UTF-8"):
        Policy.from_file(tmp_path / "p.yaml")


def test_named_files_must_be_there(tmp_path):
    text = "incrowd: 1\nattributes:\n  x:\n    hierarchy: {file: no.csv}\n  y: {domain: {file: no.txt}}\n"
    assert [(p["line"], p["path"]) for p in problems(text, tmp_path)] == [
        (4, "attributes.x.hierarchy.file"),
        (5, "attributes.y.domain.file"),
    ]
    Policy.from_text(text)  # without a folder there is nowhere to look yet


def test_all_problems_are_said_at_once_and_fit_on_a_screen():
    lines = [f"  a{i}: {{domian: [x], levle: 1}}" for i in range(30)]
    with pytest.raises(PolicyError) as caught:
        Policy.from_text("\n".join(["incrowd: 1", "attributes:", *lines]))
    message = str(caught.value)
    assert len(caught.value.details["problems"]) == 60
    assert len(message.splitlines()) == 12
    assert "line 3, attributes.a0.domian: there is no such key; did you mean 'domain'?" in message
    assert message.endswith("and 50 more")


@pytest.mark.parametrize(
    ("release", "key", "words"),
    [
        (
            "mechanism: views, epsilon: 1, delta: 1e-6, by: noise, beta: 0.1",
            "beta",
            "counts of a sample err more",
        ),
        ("mechanism: views, epsilon: 1, delta: 1e-6, by: noise, already_sampled: true", "already_sampled", "'beta'"),
        ("mechanism: views, epsilon: 1, delta: 1e-6, already_sampled: true, beta: 0.1", "already_sampled", "by: noise"),
        ("mechanism: views, epsilon: 1, delta: .2, by: noise, already_sampled: true, beta: 0.1", "delta", "'beta'"),
        ("mechanism: sample, epsilon: 1, delta: 0.1, noise: 2", "noise", "'mechanism: pram' with 'beta'"),
        ("mechanism: sample, epsilon: 1, delta: 0.1, threshold: 5", "threshold", "'mechanism: sampled_crowd'"),
        ("mechanism: views, epsilon: 1, delta: 1e-6, recoding: local", "recoding", "at one level; leave it out"),
        ("mechanism: pram, rho: 0.5, recoding: local", "recoding", "at one level; leave it out"),
        ("mechanism: views, epsilon: 1, delta: 1e-6, flat: true", "flat", "there is no such key; known are"),
    ],
)
def test_a_key_that_is_refused_on_purpose_says_why(release, key, words):
    (found,) = problems(f"incrowd: 1\nattributes: {{sex: {{domain: [f, m]}}}}\nrelease: {{{release}}}\n")
    assert found["path"] == f"release.{key}"
    assert words in found["text"]
    assert ("no such key" in found["text"]) == ("no such key" in words)


def test_values_of_a_domain_are_never_repeated_in_a_message():
    secret = "Mr Secret"
    for written in (f"[{secret}, {secret}]", f"{{from: {secret}, to: 3}}", f"[1, {secret}]", f"{{cuts: [{secret}]}}"):
        for kind in ("text", "integer", "number", "date", "boolean"):
            with pytest.raises(PolicyError) as caught:
                attribute(f"{{type: {kind}, domain: {written}, level: -1}}")
            assert secret not in str(caught.value)
            assert secret not in json.dumps(caught.value.to_dict())


# ------------------------------------------------------------------------------------------- value and digest


def test_a_policy_is_a_value():
    policy = Policy.from_text(EVERYTHING)
    assert policy == Policy.from_text(EVERYTHING)
    assert hash(policy) == hash(Policy.from_text(EVERYTHING))
    assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(ValueError, match="frozen"):
        policy.title = "other"
    with pytest.raises(TypeError):
        policy.attributes["new"] = policy.attributes["age"]
    with pytest.raises(TypeError):
        policy.attributes.update({})


def test_it_is_written_and_read_again():
    policy = Policy.from_text(EVERYTHING)
    again = Policy.from_text(policy.to_yaml())
    assert again == policy
    assert again.digest() == policy.digest()
    # What is written means the same to a reader that does guess.
    assert yaml.safe_load(policy.to_yaml())["attributes"]["country"]["domain"] == ["no", "se", "dk"]
    assert Policy.from_dict(yaml.safe_load(policy.to_yaml())) == policy


def test_the_digest_is_of_what_is_said_and_not_of_how():
    one = (
        "incrowd: 1\nattributes:\n  a: {domain: [x, no], missing: keep}\n  b: {type: integer, domain: {from: 0, to: 9}}"
    )
    two = """
    # the same
    attributes:
      b: {domain: {to: "9", from: +0}, type: integer, role: quasi, hierarchy: , missing: refuse}
      a:
        missing: keep
        domain: ['x', "no"]
    unlisted: drop
    data: {path: /home/me/data.csv, delimiter: ;}
    incrowd: 1
    """
    assert Policy.from_text(one).digest() == Policy.from_text(two).digest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon: 2,", "epsilon: 3,"),
        ("[5, 10, 20, 40]", "[5, 10, 20]"),
        ("top: 90", "top: 85"),
        ("[no, se, dk]", "[no, se]"),
        ("other: elsewhere", "other: abroad"),
        ("missing: keep", "missing: drop"),
        ("level: 2", "level: 1"),
        ('["", NA]', '["", NA, "-"]'),
        ("unknown:", "unsaid:"),
        ("role: sensitive, ", ""),
        ("unlisted: refuse", "unlisted: drop"),
        ("unlisted: refuse", "unlisted: refuse\nrows_are_people: true"),
        ("unlisted: refuse", "unlisted: refuse\npeople: {column: name, at_most: 1}"),
    ],
)
def test_the_digest_changes_with_what_is_said(old, new):
    assert old in EVERYTHING
    assert Policy.from_text(EVERYTHING).digest() != Policy.from_text(EVERYTHING.replace(old, new)).digest()


def test_the_digest_of_a_known_policy_does_not_change():
    """It stands in certificates: whoever changes this must raise the version of the format."""
    policy = Policy.from_text("incrowd: 1\nattributes: {a: {domain: [x]}}")
    assert digest(policy.canonical()) == policy.digest()
    assert policy.digest() == KNOWN_DIGEST


KNOWN_DIGEST = "7b0305407c896de5877d6a870efdf2ace7d60c20801180a3d0ced10b96a9c52e"


def test_files_count_by_their_content_and_not_by_their_place(tmp_path):
    digests = []
    for folder, name, content in (("a", "t.csv", "x;*\n"), ("b", "u.csv", "x;*\n"), ("c", "t.csv", "x;all\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(content)
        text = f"incrowd: 1\nattributes: {{a: {{hierarchy: {{file: {name}}}}}}}"
        policy = Policy.from_text(text, tmp_path / folder)
        assert str(tmp_path) not in json.dumps(policy.canonical())
        digests.append(policy.digest())
    assert digests[0] == digests[1] != digests[2]
    (tmp_path / "c" / "t.csv").unlink()
    with pytest.raises(PolicyError, match="Cannot read"):
        policy.digest()


def test_the_canonical_form_says_nothing_of_the_machine():
    said = json.dumps(Policy.from_text(EVERYTHING).canonical())
    assert "census.csv" not in said
    assert "budget.sqlite" not in said


def test_levels_can_be_fixed_afterwards():
    policy = Policy.from_text(EVERYTHING)
    fixed = policy.with_levels(dict.fromkeys(policy.published, 1))
    assert {attribute.level for attribute in fixed.published.values()} == {1}
    assert fixed.release.selection_epsilon == 0
    assert fixed.release.epsilon == policy.release.epsilon
    assert policy.attributes["zip"].level is None


# -------------------------------------------------------------------------------------------- schema and page


def as_editors_see(text: str):
    """YAML 1.2 with dates left as texts: there 1e-5 is a number."""
    numbers = re.sub(r"\b1e-", "1.0e-", text)
    return json.loads(json.dumps(yaml.safe_load(numbers), default=str).replace("Infinity", "9e99"))


def test_the_schema_accepts_what_is_right():
    schema = Policy.json_schema()
    json.dumps(schema)
    assert accepts(schema, as_editors_see(EVERYTHING), schema)
    assert accepts(schema, as_editors_see(Policy.from_text(EVERYTHING).to_yaml()), schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("incrowd: 1", "incrowd: 2"),
        ("title:", "titel:"),
        ("level: 2", "level: two"),
        ("missing: keep", "missing: ignore"),
        ("name: drop", "name: hide"),
        ("{ordinal: 2}", "{ordinals: 2}"),
        ("{mask: 5}", "{}"),
        ("epsilon: 2,", ""),
        ("delta: 1e-5,", "delta: 1,"),
        ("domain: {digits: 5}", "domain: {digits: five}"),
    ],
)
def test_the_schema_refuses_what_is_wrong(old, new):
    schema = Policy.json_schema()
    assert old in EVERYTHING
    assert not accepts(schema, as_editors_see(EVERYTHING.replace(old, new)), schema)


SPECS = [model for model, _ in [*DOMAINS.values(), *HIERARCHIES.values()]]
SECTIONS = [Policy, Attribute, Data, People, LedgerSection]
MODELS = [*SECTIONS, *(mechanism.section for mechanism in MECHANISMS.values()), *SPECS]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_described_in_the_schema_and_on_the_page(model):
    page = DOCS.read_text(encoding="utf-8")
    for name, info in model.model_fields.items():
        assert info.description, name
    for key in keys_of(model):
        assert f"`{key}`" in page, key


def test_the_examples_on_the_page_are_policies(tmp_path):
    for name in ("region.csv", "world.csv"):
        (tmp_path / name).write_text("no;*\nse;*\ndk;*\n")
    (tmp_path / "towns.csv").write_text("name;size\nA;1\n")
    (tmp_path / "codebook.csv").write_text("variable;value;label\nregion;1;North\n")
    examples = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(examples) > 12
    schema = Policy.json_schema()
    for example in examples:
        lines = "".join(f"  {line}\n" for line in example.splitlines())
        policy = example if "incrowd:" in example else f"incrowd: 1\nattributes:\n{lines}"
        Policy.from_text(policy, tmp_path)
        assert accepts(schema, as_editors_see(policy), schema), example


def test_a_mask_of_one_number_goes_one_by_one():
    assert attribute("{domain: [abc], hierarchy: {mask: 3}}").hierarchy == Mask(mask=(1, 2, 3))
    assert attribute("{domain: [abc], hierarchy: {mask: [3]}}").hierarchy == Mask(mask=(3,))


def test_a_question_ends_with_its_own_mark():
    with pytest.raises(PolicyError, match=r"did you mean 'decimal'\?$") as refused:
        Policy.from_text("incrowd: 1\ndata: {decimals: ','}\nattributes: {a: {domain: [x, y]}}\n")
    assert "?." not in refused.value.message


# ------------------------------------------------------------------------------------------------- people

VISITS = """
incrowd: 1
attributes:
  patient: drop
  ward: {domain: [a, b]}
people: {column: patient, at_most: 3, keep: latest by day of visit}
"""


def test_whose_rows_they_are():
    policy = Policy.from_text(VISITS)
    assert policy.people == People(column=("patient",), at_most=3, keep="latest by day of visit", missing="refuse")
    assert (policy.rows_per_person, policy.people.ranked_by) == (3, ("day of visit", True))
    assert policy.people.columns == ("patient", "day of visit")
    assert Policy.from_text(policy.to_yaml()) == policy
    assert Policy.from_canonical(policy.canonical()).people == policy.people
    assert accepts(Policy.json_schema(), as_editors_see(VISITS), Policy.json_schema())


def test_two_columns_may_say_together_whose_a_row_is():
    text = VISITS.replace("column: patient", "column: [home, patient]").replace("latest by day of visit", "any")
    policy = Policy.from_text(text)
    assert (policy.people.column, policy.people.ranked_by) == (("home", "patient"), None)


def test_without_a_section_a_row_is_a_person():
    policy = Policy.from_text("incrowd: 1\nattributes: {a: {domain: [x]}}")
    assert (policy.people, policy.rows_per_person) == (None, 1)
    assert not {"people", "rows_are_people"} & set(policy.canonical())


@pytest.mark.parametrize(
    ("old", "new", "path", "says"),
    [
        ("at_most: 3", "at_most: 0", "people.at_most", "1"),
        (", at_most: 3", "", "people", "'at_most' is missing"),
        ("column: patient", "column: ward", "people.column", "never published"),
        ("column: patient", "column: [patient, patient]", "people.column", "none twice"),
        ("column: patient", "column: []", "people.column", "at least one"),
        ("latest by day of visit", "newest by day", "people.keep", "'latest by'"),
        ("latest by day of visit", "latest", "people.keep", "'latest by'"),
        ("latest by day of visit", "'latest by '", "people.keep", "'latest by'"),
        ("at_most: 3", "at_most: 3, missing: keep", "people.missing", "'refuse' or 'own'"),
        ("people:", "rows_are_people: true\npeople:", "rows_are_people", "contradicts"),
    ],
)
def test_wrong_people(old, new, path, says):
    assert old in VISITS
    found = problems(VISITS.replace(old, new))
    assert any(problem["path"] == path and says in problem["text"] for problem in found), found
