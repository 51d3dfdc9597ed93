"""Releases in the formats of other programs: read again the same, verified, and refused where they would not fit."""

import json
import random
import sys
import zipfile

import pandas as pd
import pyarrow as pa
import pytest

import incrowd
from incrowd.core import signing
from incrowd.core.errors import InputError, MissingLibraryError
from incrowd.releases import certificate as certificates

POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 20, to: 29}, title: Age in years}
  sex: {type: integer, labels: {1: männlich, 2: weiblich}, missing: keep}
  town: {domain: [Köln, Ulm]}
release: {mechanism: sample, epsilon: 1, delta: 1e-3, rate: 0.05}
"""
GENERALIZED = POLICY.replace(
    "mechanism: sample, epsilon: 1, delta: 1e-3, rate: 0.05", "mechanism: generalization, require: {k: 2}"
)


def people(rows=2000):
    draw = random.Random(7)
    return pd.DataFrame(
        {
            "age": [draw.randrange(20, 30) for _ in range(rows)],
            "sex": pd.array([draw.choice([1, 2, None]) for _ in range(rows)], dtype="Int64"),
            "town": [draw.choice(["Köln", "Ulm"]) for _ in range(rows)],
        }
    )


@pytest.mark.parametrize("output", ["parquet", "csv", "arrow", "sav", "dta", "xlsx"])
def test_each_format_is_verified_and_reads_the_same(tmp_path, output):
    policy = incrowd.Policy.from_text(GENERALIZED)
    made = incrowd.release(people(), policy, folder=tmp_path / "out", output=output)
    checked = incrowd.verify(tmp_path / "out")
    assert checked.valid, [c for c in checked.checks if not c.holds]
    assert not any("other software wrote it" in text for text in checked.claimed)
    assert (tmp_path / "out" / f"release.{output}").exists()
    assert made.policy.release.output == output


@pytest.mark.parametrize("output", ["sav", "dta"])
def test_labels_and_titles_are_kept(tmp_path, output):
    pyreadstat = pytest.importorskip("pyreadstat")
    made = incrowd.release(people(), incrowd.Policy.from_text(GENERALIZED), folder=tmp_path / "out", output=output)
    read = {"sav": pyreadstat.read_sav, "dta": pyreadstat.read_dta}[output]
    frame, meta = read(str(tmp_path / "out" / f"release.{output}"))
    assert meta.variable_value_labels["sex"] == {1: "männlich", 2: "weiblich"}
    assert meta.variable_value_labels["town"] == {1: "Köln", 2: "Ulm"}
    assert "age" not in meta.variable_value_labels
    assert meta.column_labels[0] == "Age in years"
    back = frame["sex"].astype("float").map({1.0: "männlich", 2.0: "weiblich"})
    assert back.isna().sum() == made.to_pandas()["sex"].isna().sum()
    assert [str(int(age)) for age in frame["age"]] == list(made.to_pandas()["age"])


@pytest.mark.parametrize(
    ("output", "old", "new"),
    [
        ("sav", "Köln", "K" * 121),
        ("sav", "Köln", "ö" * 61),  # labels are limited by bytes
        ("sav", "Age in years", "A" * 257),
        ("xlsx", "Köln", "K" * 32768),
        ("dta", "town", "t" * 33),
        ("dta", "Age in years", "A" * 81),
        ("sav", "town", "AGE"),  # names must differ by more than case
    ],
)
def test_what_would_not_come_back_is_refused_and_nothing_is_written(tmp_path, output, old, new):
    table = people().rename(columns={old: new}).replace(old, new)
    with pytest.raises(InputError) as caught:
        incrowd.release(
            table, incrowd.Policy.from_text(GENERALIZED.replace(old, new)), folder=tmp_path / "out", output=output
        )
    assert caught.value.code == "output-inexact"
    column = new if new in table.columns else "town"
    assert (f"of column {column!r}" in str(caught.value)) == (new not in ("AGE", "A" * 257, "A" * 81))
    assert not list(tmp_path.iterdir())


def test_a_table_that_may_have_too_many_rows_for_a_sheet_is_refused(tmp_path, monkeypatch):
    from incrowd.mechanisms import packages

    monkeypatch.setitem(packages.MOST_ROWS, "xlsx", 1999)
    with pytest.raises(InputError) as caught:
        incrowd.release(people(), incrowd.Policy.from_text(GENERALIZED), folder=tmp_path / "out", output="xlsx")
    assert caught.value.code == "output-inexact"


@pytest.mark.parametrize("output", ["arrow", "sav", "dta", "xlsx"])
def test_a_changed_file_is_noticed(tmp_path, output):
    incrowd.release(people(), incrowd.Policy.from_text(GENERALIZED), folder=tmp_path / "out", output=output)
    path = tmp_path / "out" / f"release.{output}"
    path.write_bytes(path.read_bytes() + b"\0")
    assert not incrowd.verify(tmp_path / "out").valid


@pytest.mark.parametrize(("output", "same_versions"), [("arrow", True), ("arrow", False), ("xlsx", True)])
def test_a_file_that_is_written_otherwise_is_invalid_or_taken_on_trust(tmp_path, monkeypatch, output, same_versions):
    folder = tmp_path / "out"
    incrowd.release(people(), incrowd.Policy.from_text(GENERALIZED), folder=folder, output=output)
    path = folder / f"release.{output}"
    if output == "arrow":
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        with pa.ipc.new_file(path.with_suffix(".new"), table.schema) as writer:
            writer.write_table(table, max_chunksize=100)  # how many records come at once could say something
        path.with_suffix(".new").rename(path)
    else:
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = b"what nobody is to know"
    document = json.loads((folder / "certificate.json").read_bytes())
    document["files"][path.name] = {"sha256": signing.file_sha256(path), "bytes": path.stat().st_size}
    (folder / "certificate.json").write_bytes(signing.to_bytes(signing.seal(document)))
    if not same_versions:
        monkeypatch.setattr(certificates, "_SOFTWARE", ("numpy", "cryptography", "duckdb"))
    found = incrowd.verify(folder)
    certain = output == "arrow" and same_versions
    # The report shows the digest of what was certified, and was not made again.
    failed = {check.name for check in found.checks if not check.holds}
    assert bool(failed - {"the report is the one that certificate and table give"}) == certain, failed
    assert any("other software wrote it" in text for text in found.claimed) != certain


def test_a_local_recoding_is_refused_because_its_labels_are_not_known(tmp_path):
    policy = incrowd.Policy.from_text(GENERALIZED.replace("require: {k: 2}", "require: {k: 2}, recoding: local"))
    with pytest.raises(InputError) as caught:
        incrowd.release(people(), policy, folder=tmp_path / "out", output="sav")
    assert caught.value.code == "output-inexact"


def test_a_synthetic_sheet_needs_a_number_of_rows(tmp_path):
    views = POLICY.replace("sample, epsilon: 1, delta: 1e-3, rate: 0.05", "views, epsilon: 3, delta: 1e-3, by: noise")
    with pytest.raises(InputError, match="set 'rows'"):
        incrowd.release(people(), incrowd.Policy.from_text(views), folder=tmp_path / "out", output="xlsx")
    policy = incrowd.Policy.from_text(views.replace("by: noise", "by: noise, rows: 500"))
    incrowd.release(people(), policy, folder=tmp_path / "out", output="xlsx")
    assert (tmp_path / "out" / "combined-synthetic.xlsx").exists()
    assert incrowd.verify(tmp_path / "out").valid


@pytest.mark.parametrize(("output", "name"), [("sav", "pyreadstat"), ("dta", "pyreadstat"), ("xlsx", "fastexcel")])
def test_without_its_library_neither_releasing_nor_verifying_says_more_than_what_to_install(
    tmp_path, monkeypatch, output, name
):
    policy = incrowd.Policy.from_text(GENERALIZED)
    incrowd.release(people(), policy, folder=tmp_path / "out", output=output)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError, match=r"incrowd\[stat\]"):
        incrowd.verify(tmp_path / "out")
    with pytest.raises(MissingLibraryError, match=r"incrowd\[stat\]"):
        incrowd.release(people(), policy, folder=tmp_path / "again", output=output)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("output", ["sav", "dta"])
def test_labels_of_a_code_book_are_numbered_because_the_certificate_has_its_digest_alone(tmp_path, output):
    pyreadstat = pytest.importorskip("pyreadstat")
    (tmp_path / "sex.csv").write_text("value,label\n1,männlich\n9,weiblich\n", encoding="utf-8")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        GENERALIZED.replace("labels: {1: männlich, 2: weiblich}", "labels: {file: sex.csv}"), encoding="utf-8"
    )
    incrowd.release(people().replace({"sex": {2: 9}}), policy, folder=tmp_path / "out", output=output)
    assert incrowd.verify(tmp_path / "out").valid
    read = {"sav": pyreadstat.read_sav, "dta": pyreadstat.read_dta}[output]
    _, meta = read(str(tmp_path / "out" / f"release.{output}"))
    assert meta.variable_value_labels["sex"] == {1: "männlich", 2: "weiblich"}
