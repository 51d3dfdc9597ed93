"""A certificate is a model: its schema and its model accept what is published, and nothing else."""

import contextlib
import copy
import json

import pytest
from conformance_mechanisms import ATTRIBUTES, CASES

from incrowd import api
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from json_schema import accepts

ADVERSARIES = """
  - {belief_ratio: 9, stubbornness: 5, knows: 2}
  - {belief_ratio: 20, shape: {none: 0.5, office: 0.3, shop: 0.2}, predicates: {a: [office, shop], b: {not: [none]}}}
  - {belief_ratio: 20, prior: {none: 50, office: 30, shop: 20}, or_less_stubborn: true, predicates: subsets}
  - {belief_ratio: 30, stubbornness: 9, predicates: {a: [office]}, for: {sex: [f]}, knows_not: [shop]}
"""
MORE = {
    "chosen": "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-3, selection_epsilon: 0.3}",
    "local": "{mechanism: generalization, recoding: local, require: [{k: 3}, {t: 0.9}]}",
    "adversaries": f"\n  mechanism: generalization\n  adversaries:{ADVERSARIES}",
    "sets": "{mechanism: generalization, require: [{k: 3, for: [[age], [sex]]}]}",
    "planned": "{mechanism: sample, rate: 0.1, delta: 0.2}",
    "invariant": "{mechanism: pram, rho: 0.5, invariant: true}",
    "sampled": "{mechanism: pram, rho: 0.5, beta: 0.5}",
    "matrix": "{mechanism: pram, rho: {age: 0.5, job: 0.3}, matrix: {sex: [[2/3, 1/3], [0.25, 0.75]]}}",
}
NAMES = [*CASES, *MORE]


@pytest.fixture(scope="module")
def documents(people):
    """Certificates of all mechanisms, in all their variants."""
    policies = {name: case.policy for name, case in CASES.items()}
    for name, release in MORE.items():
        attributes = ATTRIBUTES.replace("    level: 1\n", "") if name in ("chosen", "local") else ATTRIBUTES
        policies[name] = Policy.from_text(f"{attributes}release: {release}\n")
    found = {}
    for name, policy in policies.items():
        made = api.release(people, policy, _source=RandomSource.seeded(1))
        found[name] = json.loads(json.dumps(made.certificate))
    return found


def model_of(document):
    return MECHANISMS[document["mechanism"]["name"]].certificate


SCHEMA = api.certificate_schema()


def by_schema(document):
    return accepts(SCHEMA, document, SCHEMA)


def by_model(document):
    """Whether any mechanism would read it."""
    for mechanism in MECHANISMS.values():
        with contextlib.suppress(ValueError):
            mechanism.certificate.read(document)
            return True
    return False


def places(part, path=()):
    """Every place of a document, the policy's apart, which is a document of its own."""
    yield path
    if path == ("policy",):
        return
    children = part.items() if isinstance(part, dict) else enumerate(part[:1]) if isinstance(part, list) else ()
    for key, inner in children:
        yield from places(inner, (*path, key))


def changed(document, path, change):
    """A copy in which something was done to the thing at a place, by its parent and key."""
    other = copy.deepcopy({"root": document})
    parent, key = other, "root"
    for step in path:
        parent, key = parent[key], step
    change(parent, key)
    return other["root"]


def at(document, path):
    for step in path:
        document = document[step]
    return document


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_accepted_and_written_back(documents, name):
    document = documents[name]
    assert by_schema(document)
    assert model_of(document).read(document).document() == document


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_another_type_is_accepted(documents, name):
    document = documents[name]
    for path in places(document):
        if path[:1] == ("policy",) and len(path) > 1:
            continue
        for wrong in (["x"], {"x": [None]}, *([True] if not isinstance(at(document, path), bool) else [1])):
            if type(wrong) is type(at(document, path)):
                continue  # of the same type: a list of labels, or names by column
            forged = changed(document, path, lambda parent, key, wrong=wrong: parent.__setitem__(key, wrong))
            if path:
                assert not by_model(forged), (path, wrong)
                assert not by_schema(forged), (path, wrong)


NAMED = {"levels", "rounded", "trees", "weights", "seen", "predicates", "files", "policy"}
"""Their keys are names of columns, values or files."""
EARLIER = {"choice", "tables_scale"}
"""Certificates of earlier versions are without them, and still verified."""


@pytest.mark.parametrize("name", NAMES)
def test_no_field_is_added_or_left_out(documents, name):
    document = documents[name]
    for path in places(document):
        part = at(document, path)
        if not isinstance(part, dict) or (path and path[-1] in NAMED):
            continue
        wider = changed(document, path, lambda parent, key: parent[key].update(rare=12))
        assert not by_model(wider), path
        assert not by_schema(wider), path
        for field in set(part) - EARLIER:
            fewer = changed(document, path, lambda parent, key, field=field: parent[key].pop(field))
            assert not by_model(fewer), (path, field)
            assert not by_schema(fewer), (path, field)


def test_the_same_number_written_otherwise_is_not_accepted(documents):
    """Python takes 1 for 1.0; the bytes differ, and there is one way to write a certificate."""
    document = copy.deepcopy(documents["adversaries"])
    assert document["mechanism"]["suppression"] == 0.0
    document["mechanism"]["suppression"] = 0
    assert not by_model(document)
    document["mechanism"]["suppression"] = False
    assert not by_model(document)


def test_certificates_of_earlier_versions_name_what_drew_their_choices(documents):
    software = {**documents["sample"]["software"], "opendp": "0.16.0"}
    document = {**documents["sample"], "software": software}
    assert by_schema(document)
    assert model_of(document).read(document).document() == document
    assert not by_model({**document, "software": {**software, "opendp": None}})


def test_no_signature_is_no_field(documents):
    assert not by_model({**documents["sample"], "signature": None})


def test_copies_say_what_they_promise_together(people):
    for name in ("sampled_crowd", "pram"):
        made = api.release_copies(people, CASES[name].policy, copies=2)[0]
        document = json.loads(json.dumps(made.certificate))
        assert document["promise"]["together"]["copies"] == 2
        assert by_schema(document)
        assert by_model(document)
        document["promise"]["together"]["copies"] = True
        assert not by_model(document)
