"""The pages of reference and of proofs say what the code says, and name tests that are there."""

import ast
import inspect
import re
import runpy
from pathlib import Path

import pytest

import incrowd
from incrowd import api
from incrowd.mechanisms.generalization.adversaries import AdversarySpec
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.policy.attributes import Attribute
from incrowd.policy.sections import Data, LedgerSection
from incrowd.policy.texts import keys_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_page_about_certificates_says_what_certificates_hold():
    pages = runpy.run_path(str(DOCS / "reference.py"))["PAGES"]
    assert (DOCS / "certificate.md").read_text(encoding="utf-8") == pages["certificate.md"](), "run `make reference`"


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_field_of_a_certificate_is_described_where_it_is_defined(name):
    described = runpy.run_path(str(DOCS / "certificate_page.py"))["described"]
    texts = described(MECHANISMS[name].certificate)
    assert ("mechanism", "levels") in texts
    assert [path for path, text in texts.items() if text in ("None", "")] == []


def headings() -> dict[str, str]:
    """What the page on Python says of each public name: all that stands in its heading."""
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    return {re.match(r"\w+", text)[0]: text for text in re.findall(r"^### `(.+)`$", page, flags=re.MULTILINE)}


FUNCTIONS = [name for name in incrowd.__all__ if inspect.isfunction(getattr(api, name, None))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented_with_their_whole_signature(name):
    signature = inspect.signature(getattr(api, name))
    shown = [p.replace(annotation=p.empty) for p in signature.parameters.values() if not p.name.startswith("_")]
    assert headings()[name] == f"{name}{signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)}"


@pytest.mark.parametrize("name", [name for name in incrowd.__all__ if name not in FUNCTIONS])
def test_other_public_names_are_documented_by_name(name):
    assert headings()[name] == name


SECTIONS = {
    "## The top": [Policy],
    "## `data`": [Data],
    "## `attributes`": [Attribute],
    "## `ledger`": [LedgerSection],
    **{f"### `mechanism: {name}`": [mechanism.section] for name, mechanism in MECHANISMS.items()},
}
SECTIONS["### `mechanism: generalization`"].append(AdversarySpec)


@pytest.mark.parametrize("heading", SECTIONS)
def test_tables_of_the_policy_page_list_every_key_and_no_other(heading):
    page = (DOCS / "policy.md").read_text(encoding="utf-8")
    section = re.split(r"^#{2,4} ", page.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    keys = {key for model in SECTIONS[heading] for key in keys_of(model)}
    if heading.startswith("###"):
        keys -= {"mechanism", "output"}  # which all of them have, and which stand above them
    assert sorted(listed) == sorted(keys)


NAMED = [
    (page.name, *found)
    for page in sorted(DOCS.glob("*.md"))
    for found in re.findall(r"`(tests/[\w/.]+\.py)(?:::([\w:]+))?`", page.read_text(encoding="utf-8"))
]


def named_in(path: Path) -> set[str]:
    """The tests of a file, those in a class as Class::test."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


@pytest.mark.parametrize(("page", "file", "test"), NAMED, ids=lambda value: value or "all")
def test_tests_named_on_a_page_are_there(page, file, test):
    assert (ROOT / file).is_file(), f"{page} names {file}"
    assert not test or test in named_in(ROOT / file), f"{page} names {file}::{test}"


def test_every_proof_names_a_test():
    sections = re.split(r"^## ", (DOCS / "proofs.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(sections) >= 7
    for section in sections:
        assert re.search(r"\*Checked by\*\s`tests/[\w/.]+::\w+", section), section.splitlines()[0]
        assert "∎" in section or section.startswith(("From adding", "Checked by a machine")), section.splitlines()[0]
