"""Labels, codes beside numbers, and formats: what a policy may say of them."""

import pytest
from pydantic import ValidationError

from incrowd import Policy
from incrowd.core.errors import PolicyError
from incrowd.hierarchy import codings

SEX = "sex: {type: integer, labels: {1: male, 2: female}}"


def read(*attributes, base=None, more=""):
    lines = "".join(f"  {line}\n" for line in attributes)
    return Policy.from_text(f"incrowd: 1\n{more}attributes:\n{lines}", base)


def coded(*attributes, **how):
    return codings(read(*attributes, **how))[0]


def test_values_that_have_labels_are_the_domain_in_order():
    found = coded("x: {type: integer, labels: {10: ten, 9: nine, -1: none}}")
    assert found.coding.domain.values == (-1, 9, 10)
    assert found.coding.labels == ("none", "nine", "ten")
    assert coded("x: {labels: {10: ten, 9: nine, b: B}}").coding.domain.values == ("9", "10", "b")


def test_a_domain_may_have_values_without_labels_which_print_as_they_are():
    found = coded("x: {type: integer, domain: [3, 2, 1], labels: {1: one}, missing: keep, other: else}")
    assert found.coding.labels == ("3", "2", "one", "else", None)
    assert coded("x: {type: integer, domain: {from: 0, to: 2}, labels: {0: none}}").coding.labels == ("none", "1", "2")
    assert coded("x: {type: boolean, labels: {true: yes, false: no}}").coding.labels == ("no", "yes")
    assert coded("x: {type: number, domain: {cuts: [0, 1, 2]}, labels: {'[0, 1)': low}}").coding.labels[0] == "low"


def test_codes_are_found_as_values_of_the_type():
    assert read("x: {type: integer, labels: {01: a, +2: b}}").attributes["x"].labels == {"1": "a", "2": "b"}
    assert read("x: {labels: {01: a, 1: b}}").attributes["x"].labels == {"01": "a", "1": "b"}


def test_a_level_shows_a_value_that_is_alone_as_it_is_published():
    found = coded("x: {hierarchy: {taxonomy: {g: [a, b], c: }}, labels: {a: A, b: B, c: C}}")
    assert found.hierarchy.recode(1).labels == ("g", "C")
    ordinal = coded("x: {type: integer, labels: {1: low, 2: mid, 3: high}, hierarchy: {ordinal: 2}}")
    assert ordinal.hierarchy.recode(1).labels == ("low to mid", "high")
    # A group called like a code is a group.
    other = coded("x: {hierarchy: {taxonomy: {a: [a1, b], c: }}, labels: {b: B}}")
    assert other.hierarchy.recode(1).labels == ("a", "c")


def test_codes_come_behind_the_domain_and_stay_what_they_are():
    found = coded(
        "x: {type: integer, domain: {from: 0, to: 3}, codes: {N: nothing, -9: refused}, other: else, missing: keep, "
        "hierarchy: {widths: 2}}"
    )
    assert found.coding.labels == ("0", "1", "2", "3", "refused", "nothing", "else", None)
    assert found.hierarchy.recode(1).labels == ("0 to 1", "2 to 3", "refused", "nothing", "else", None)
    assert read("x: {type: integer, domain: {from: 0, to: 3}, codes: [N, -9]}").attributes["x"].codes == {
        "N": "N",
        "-9": "-9",
    }


@pytest.mark.parametrize(
    ("written", "place", "says"),
    [
        ("x: {type: integer, domain: [1, 2], labels: {1: a, 3: c}}", "labels.3", "not a value of the domain"),
        ("x: {type: integer, labels: {1: a, 2: a}}", "labels.2", "same name"),
        ("x: {type: integer, domain: [1, 2], labels: {1: '2'}}", "labels", "same name"),
        ("x: {type: integer, labels: {1: a, 01: b}}", "labels.01", "already"),
        ("x: {type: integer, labels: {one: a}}", "labels.one", "whole number"),
        ("x: {type: integer, labels: {1: }}", "labels.1", "has no value"),
        ("x: {type: integer, labels: {1: ''}}", "labels.1", "not be empty"),
        ("x: {type: integer, domain: [1], labels: {1: a}, other: a}", "labels.1", "same name"),
        ("x: {type: integer, labels: [a, b]}", "labels", "'file'"),
        ("x: {labels: {}}", "", "domain"),
        ("x: {domain: [a], codes: {N: none}}", "codes", "list them too"),
        ("x: {type: integer, domain: {from: 0, to: 9}, codes: {N: a, M: a}}", "codes", "same name"),
        ("x: {type: integer, domain: {from: 0, to: 9}, codes: {N: a}, other: a}", "codes", "same name"),
        ("x: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}, format: dd.mm.yy}", "format", "yyyy"),
        ("x: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}, format: dd.mm.yyyyy}", "format", "yyyy"),
        ("x: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}, format: 'dd.mm.yyyy hh'}", "format", "yyyy"),
        ("x: {type: number, domain: {cuts: [0, 1]}, format: '1.234.5'}", "format", "1234.5"),
        ("x: {type: number, domain: {cuts: [0, 1]}, format: comma}", "format", "1234.5"),
        ("x: {domain: [a], format: dd.mm.yyyy}", "format", "neither"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(written, place, says):
    with pytest.raises(PolicyError) as refused:
        read(written)
    [problem] = refused.value.details["problems"][:1]
    assert says in problem["text"]
    assert problem["path"] == ".".join(part for part in ("attributes.x", place) if part)


def test_a_code_cannot_mean_missing_too():
    for said in ("labels: {1: a, -9: b}", "domain: {from: 0, to: 3}, codes: [-9]"):
        with pytest.raises(PolicyError, match="missing_values"):
            read(f"x: {{type: integer, {said}}}", more="data: {missing_values: ['-9']}\n")


def test_labels_of_a_taxonomy_must_be_of_its_values():
    with pytest.raises(PolicyError) as refused:
        coded("x: {hierarchy: {taxonomy: {g: [a, b]}}, labels: {c: C}}")
    assert refused.value.code == "labels-unfit"


def test_a_policy_without_them_has_the_digest_that_it_had():
    plain = read("x: {domain: [a, b]}")
    assert plain.canonical()["attributes"]["x"].keys().isdisjoint({"labels", "codes", "format"})
    dated = "x: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}"
    assert read(f"{dated}, format: dd.mm.yyyy}}").digest() == read(f"{dated}}}").digest()
    assert read(SEX).digest() == read("sex: {type: integer, labels: {2: female, 01: male}}").digest()
    assert read(SEX).digest() != read(SEX.replace("male", "man", 1)).digest()


@pytest.mark.parametrize(
    "attribute",
    [
        SEX,
        "x: {type: number, domain: {cuts: [0, 1]}, codes: {'-9': a, 'no': b, \"\\N\": c}, format: '1 234,5'}",
        'x: {domain: [a, "b\\N"], labels: {"b\\N": "\\L"}}',
    ],
)
def test_it_is_written_and_read_again(attribute):
    policy = read(attribute)
    assert Policy.from_text(policy.to_yaml()) == policy
    assert Policy.from_canonical(policy.canonical()).canonical() == policy.canonical()


def test_labels_cannot_be_changed():
    with pytest.raises((TypeError, ValidationError)):
        read(SEX).attributes["sex"].labels["1"] = "x"


# --- code books -------------------------------------------------------------------------------------------------------

BOOK = "variable;value;label\nsex;1;male\n;2;female\nwork;1;yes\nwork;2;no\nwork;-9;refused\n"


@pytest.fixture
def book(tmp_path):
    def write(text, name="book.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return coded("sex: {type: integer, labels: {file: " + name + "}}", base=tmp_path)

    return write


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("book.csv", BOOK),
        ("book.csv", "code,meaning\n1,male\n2,female\n"),
        ("book.tsv", "Variable\tValue\tLabel\nsex\t1\tmale\nsex\t2\t female \n"),
        ("book.json", '{"sex": {"1": "male", "2": "female"}, "work": {"x": "y"}}'),
        ("book.json", '{"1": "male", "2": "female"}'),
    ],
)
def test_code_books(book, name, text):
    found = book(text, name).coding
    assert (found.domain.values, found.labels) == ((1, 2), ("male", "female"))


def test_a_code_book_may_say_more_than_a_domain_needs(tmp_path):
    (tmp_path / "book.csv").write_text(BOOK)
    found = coded("work: {type: integer, domain: [2, 1], labels: {file: book.csv}}", base=tmp_path)
    assert found.coding.labels == ("no", "yes")
    missing = "data: {missing_values: ['-9']}\n"
    assert coded("work: {type: integer, labels: {file: book.csv}}", base=tmp_path, more=missing).coding.labels == (
        "yes",
        "no",
    )


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("b.csv", "", "labels-file"),
        ("b.csv", "a;b\n1;2\n", "labels-file"),
        ("b.csv", "value;label\n1;male\n2\n", "labels-file"),
        ("b.csv", "value;label\n1;male\n1;female\n", "labels-file"),
        ("b.csv", "value;label\n1;\n", "labels-file"),
        ("b.csv", "variable;value;label\nage;1;x\n", "labels-file"),
        ("b.csv", "value;label\n1;male\ntwo;female\n", "labels-file"),
        ("b.csv", "value;label\n1;male\n01;female\n", "labels-file"),
        ("b.csv", "value;label\n1;male\n2;male\n", "labels-unfit"),
        ("b.json", "[1]", "labels-file"),
        ("b.json", "{", "labels-file"),
        ("b.json", "{}", "labels-file"),
        ("b.json", "[" * 100_000, "labels-file"),
        ("b.json", '{"sex": {"1": 2}}', "labels-file"),
        ("b.json", '{"sex": "male", "age": {}}', "labels-file"),
        ("b.json", '{"sex": {"1": "male", "1": "female"}}', "labels-file"),
    ],
)
def test_code_books_that_cannot_be_used(book, name, text, code):
    with pytest.raises(PolicyError) as refused:
        book(text, name)
    assert refused.value.code == code
    assert "male" not in str(refused.value)


def test_a_code_book_counts_by_its_content(tmp_path):
    policies = []
    for folder, text in (("a", BOOK), ("b", BOOK), ("c", BOOK.replace("female", "woman"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "book.csv").write_text(text)
        policies.append(read("sex: {type: integer, labels: {file: book.csv}}", base=tmp_path / folder).digest())
    assert policies[0] == policies[1] != policies[2]
    with pytest.raises(PolicyError, match="no file"):
        read("sex: {type: integer, labels: {file: book.csv}}", base=tmp_path)
