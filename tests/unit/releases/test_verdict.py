"""What `verify` says of folders made to look right: labels, signatures, reports, and words between the lines."""

import base64
import copy
import hashlib
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import incrowd
from incrowd import Policy, api
from incrowd.releases import certificate as certificates
from incrowd.releases.again import report_again

ROWS = 4000
ATTRIBUTES = """
incrowd: 1
title: A town
attributes:
  person: {role: drop}
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 2}
  sex: {domain: [f, m], missing: keep, level: 0}
  job: {role: sensitive, hierarchy: {taxonomy: {food: [baker, cook], other: [smith]}}, level: 0}
"""
RELEASES = {
    "sampled_crowd": "{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}",
    "csv": "{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, output: csv}",
    "pram": "{mechanism: pram, k: 20}",
    "invariant": "{mechanism: pram, rho: 0.5, invariant: true}",
    "sample": "{mechanism: sample, epsilon: 0.5, delta: 0.05}",
    "generalization": "{mechanism: generalization, require: [{k: 5}],"
    " adversaries: [{name: a, stubbornness: 100, knows: 2, belief_ratio: 9}]}",
    "local": "{mechanism: generalization, recoding: local, require: [{k: 5}]}",
}
LABELS = "the labels are the policy's at the stated levels, where it lists them"
REPORT = "the report is the one that certificate and table give"
FIELDS = "the certificate has the fields of a certificate"
IS_POLICY = "the policy is one, and says nothing else"


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    sexes = np.array(["f", "m", None], dtype=object)
    return pa.table(
        {
            "person": [f"p{i}" for i in range(ROWS)],
            "age": rng.integers(0, 100, ROWS),
            "sex": pa.array(rng.choice(sexes, ROWS, p=[0.5, 0.4, 0.1]).tolist(), pa.string()),
            "job": rng.choice(["baker", "cook", "smith"], ROWS).tolist(),
        }
    )


@pytest.fixture(scope="module")
def originals(people, tmp_path_factory):
    """A release of each kind, made when it is asked for."""
    made = {}

    def folder_of(name):
        if name not in made:
            text = re.sub(", level: [02]}(?=\n  (sex|job))", "}", ATTRIBUTES) if name == "local" else ATTRIBUTES
            made[name] = tmp_path_factory.mktemp(name) / "out"
            api.release(people, Policy.from_text(f"{text}release: {RELEASES[name]}"), folder=made[name])
        return made[name]

    return folder_of


@pytest.fixture(params=RELEASES)
def made(request, originals, tmp_path):
    return shutil.copytree(originals(request.param), tmp_path / "out")


@pytest.fixture
def crowd(originals, tmp_path):
    return shutil.copytree(originals("sampled_crowd"), tmp_path / "out")


def read(folder):
    return json.loads((folder / "certificate.json").read_bytes())


def forge(folder, change):
    """Change the certificate and make every digest fit, that of files too."""
    content = read(folder)
    change(content)
    content["policy_digest"] = certificates.sha256(certificates.canonical(content["policy"]))
    for name in content["files"]:
        path = folder / name
        content["files"][name] = {"sha256": certificates.file_sha256(path), "bytes": path.stat().st_size}
    (folder / "certificate.json").write_bytes(certificates.to_bytes(certificates.seal(content)))


def failing(folder, key=None):
    return {check.name for check in api.verify(folder, key).checks if not check.holds}


def test_every_kind_of_release_is_valid_and_its_report_comes_out_the_same(made):
    found = api.verify(made)
    assert found.valid
    assert {LABELS, REPORT, FIELDS, IS_POLICY} <= {check.name for check in found.checks}
    assert not any("the report says" in claim for claim in found.claimed)
    assert [claim for claim in found.claimed if "labels" in claim] == [
        "that the labels of job, whose values only a taxonomy lists, are in its order"
    ]


# --- labels -----------------------------------------------------------------------------------------------------------


def relabel(folder, column, labels):
    """Other labels in the certificate and, where records have them, in the table."""
    old = next(c["labels"] for c in read(folder)["columns"] if c["name"] == column)
    change = dict(zip(old, labels, strict=False))
    if (folder / "release.parquet").exists():
        table = pq.read_table(folder / "release.parquet").to_pydict()
        columns = {n: [change.get(v, v) for v in vs] if n == column else vs for n, vs in table.items()}
        schema = pa.schema([(name, pa.string()) for name in columns])
        new = pa.table(columns, schema=schema)
        pq.write_table(new, folder / "release.parquet", store_schema=False, write_statistics=False)
    else:
        lines = (folder / "release.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join([lines[0], *(line.replace(f'"{old[0]}"', f'"{labels[0]}"') for line in lines[1:])])
        (folder / "release.csv").write_text(text, encoding="utf-8")
    forge(folder, lambda c: next(d for d in c["columns"] if d["name"] == column).update(labels=labels))


@pytest.mark.parametrize("column", ["age", "sex", "job"])
def test_a_label_that_the_policy_does_not_have_is_found_for_every_mechanism(made, column):
    old = next(c["labels"] for c in read(made)["columns"] if c["name"] == column)
    relabel(made, column, ["17 people", *old[1:]])
    assert LABELS in failing(made)


@pytest.mark.parametrize("release", ["sampled_crowd", "pram", "sample", "generalization"])
def test_labels_of_another_level_are_found(originals, tmp_path, release):
    folder = shutil.copytree(originals(release), tmp_path / "out")
    relabel(folder, "age", ["0 to 9", "10 to 19"])  # of level 1, where level 2 is stated
    assert LABELS in failing(folder)


def test_an_order_of_labels_that_is_not_the_policys_is_found(crowd):
    forge(crowd, lambda c: c["columns"][1].update(labels=["m", "f", None]))
    assert LABELS in failing(crowd)


def test_rounded_numbers_are_looked_at_as_such(people, tmp_path):
    policy = Policy.from_text(
        "incrowd: 1\nattributes: {age: {type: integer, domain: {from: 0, to: 99}}}\n"
        "release: {mechanism: sample, epsilon: 0.5, delta: 0.05, round: {age: 10}}"
    )
    api.release(people.select(["age"]), policy, folder=tmp_path / "out")
    assert api.verify(tmp_path / "out").valid


@pytest.fixture
def in_files(people, tmp_path):
    (tmp_path / "jobs.csv").write_text("baker,food,*\ncook,food,*\nsmith,other,*\n", encoding="utf-8")
    (tmp_path / "sexes.csv").write_text("f\nm\n", encoding="utf-8")
    text = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 2}
  sex: {domain: {file: sexes.csv}, missing: keep}
  job: {domain: [baker, cook, smith], hierarchy: {file: jobs.csv}, level: 1}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}
"""
    api.release(people, Policy.from_text(text, tmp_path), folder=tmp_path / "out")
    for name in ("jobs.csv", "sexes.csv"):
        (tmp_path / name).unlink()  # nobody but the publisher has them
    return tmp_path / "out"


def test_what_is_in_files_is_taken_on_trust_column_by_column(in_files):
    found = api.verify(in_files)
    assert found.valid
    assert [claim for claim in found.claimed if "labels" in claim] == [
        "that the labels of job are those of its hierarchy's file at level 1",
        "that the labels of sex are those of the policy's file at level 0",
    ]
    relabel(in_files, "age", ["x", "y"])  # and the others are checked all the same
    assert LABELS in failing(in_files)


def test_a_level_of_a_hierarchy_in_a_file_may_be_any(people, tmp_path):
    (tmp_path / "ages.csv").write_text("\n".join(f"{i},{i // 10},{i // 50},all" for i in range(100)), encoding="utf-8")
    text = """
incrowd: 1
attributes: {age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {file: ages.csv}, level: 2}}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}
"""
    api.release(people, Policy.from_text(text, tmp_path), folder=tmp_path / "out")
    assert api.verify(tmp_path / "out").valid


# --- signatures -------------------------------------------------------------------------------------------------------


def signed(folder, secret):
    content = certificates.sign(read(folder), certificates.load_secret_key(secret))
    (folder / "certificate.json").write_bytes(certificates.to_bytes(content))


@pytest.fixture
def keys(tmp_path):
    return {name: api.make_keys(tmp_path / f"{name}.secret.pem", tmp_path / f"{name}.public.pem") for name in "ab"}


def test_an_unsigned_release_is_said_to_be(crowd, keys, tmp_path):
    found = api.verify(crowd)
    assert found.valid
    assert found.signature == "Not signed."
    assert "who published it: the certificate is not signed" in found.claimed
    assert failing(crowd, tmp_path / "a.public.pem") == {"the signature is by the key given"}
    assert keys["a"] != keys["b"]


def test_which_key_signed_and_what_it_was_compared_with_is_said(crowd, keys, tmp_path):
    signed(crowd, tmp_path / "b.secret.pem")
    alone = api.verify(crowd)
    assert alone.valid
    assert alone.signature == f"Signed by the key {keys['b']}, compared with no key that you trust."
    assert any(keys["b"] in claim and "compared with none" in claim for claim in alone.claimed)
    right = api.verify(crowd, tmp_path / "b.public.pem")
    assert right.valid
    assert right.signature == f"Signed by the key {keys['b']}, compared with the key given."
    assert not any("key" in claim for claim in right.claimed)
    assert failing(crowd, tmp_path / "a.public.pem") == {"the signature is by the key given"}


def test_the_fingerprint_is_the_one_that_other_programs_print(keys, tmp_path):
    pem = (tmp_path / "a.public.pem").read_text(encoding="ascii")
    der = base64.b64decode("".join(pem.splitlines()[1:-1]))
    assert keys["a"] == f"SHA256:{hashlib.sha256(der).hexdigest()}"


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(algorithm="17 people"),
        lambda s: s.update(value=s["value"][:-2] + ("==" if not s["value"].endswith("==") else "A=")),
        lambda s: s.update(value=s["value"].replace("=", "\n=", 1)),
        lambda s: s.update(public_key=5),
        lambda s: s.update(value=_other_last_bits(s["value"])),
    ],
)
def test_a_signature_has_no_room_for_words(crowd, keys, tmp_path, change):
    signed(crowd, tmp_path / "a.secret.pem")
    content = read(crowd)
    change(content["signature"])
    (crowd / "certificate.json").write_bytes(certificates.to_bytes(content))
    assert "the signature is by the key that it names" in failing(crowd)
    assert api.verify(crowd).signed_by is None


def _other_last_bits(text):
    """Base64 of 64 bytes ends in a sign of which four bits say nothing."""
    signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return f"{text[:-3]}{signs[signs.index(text[-3]) ^ 1]}=="


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_report_that_says_something_else_is_found(made):
    path = made / "report.html"
    path.write_bytes(path.read_bytes().replace(b"records", b"secrets", 1))
    forge(made, lambda _: None)
    assert failing(made) == {REPORT}


def test_a_report_by_other_software_is_taken_on_trust_unless_it_is_the_same(crowd):
    forge(crowd, lambda c: c["software"].update(numpy="1.2.3"))
    assert api.verify(crowd).valid
    assert REPORT in {check.name for check in api.verify(crowd).checks}
    path = crowd / "report.html"
    path.write_bytes(path.read_bytes().replace(b"records", b"secrets", 1))
    forge(crowd, lambda _: None)
    found = api.verify(crowd)
    assert found.valid
    assert REPORT not in {check.name for check in found.checks}
    assert any("other versions of the software" in claim for claim in found.claimed)


def test_the_report_follows_from_certificate_and_table_in_another_process(crowd):
    """No hash order, no state of this process is in it."""
    code = "import sys, incrowd; sys.exit(0 if incrowd.verify(sys.argv[1]).valid else 3)"
    assert subprocess.run([sys.executable, "-c", code, str(crowd)], check=False).returncode == 0


def test_the_report_is_made_of_nothing_else(crowd):
    from incrowd.releases.verify import read_release

    certificate, table = read_release(crowd)
    again = report_again(certificate, table)
    assert again == (crowd / "report.html").read_bytes()


# --- between the lines ------------------------------------------------------------------------------------------------


def test_fields_of_versions_and_the_day_hold_nothing_else(crowd):
    for change in (
        lambda c: c["software"].update(numpy="17 people were left out"),
        lambda c: c["software"].update(numpy="1.0+seventeen.people"),
        lambda c: c["software"].update(numpy="1." + "9" * 50),
        lambda c: c["software"].update(people="17"),
        lambda c: c["software"].pop("numpy"),
        lambda c: c.update(created="some day"),
        lambda c: c.update(created="20260101"),
        lambda c: c.update(created="2026-02-30"),
        lambda c: c.update(created="2026-01-01T17:17:17"),
    ):
        before = copy.deepcopy(read(crowd))
        forge(crowd, change)
        assert {FIELDS, "the certificate is complete"} & failing(crowd), before["created"]
        (crowd / "certificate.json").write_bytes(certificates.to_bytes(before))
    assert api.verify(crowd).valid


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(note="17 people"),
        lambda p: p["data"].update(note="17 people"),
        lambda p: p["release"].update(note="17 people"),
        lambda p: p["attributes"]["person"].update(note="17 people"),
        lambda p: p["attributes"]["person"].update(domain=["17 people"]),
        lambda p: p["attributes"]["person"].update(other="17 people"),
        lambda p: p["attributes"].update(gone="drop"),
        lambda p: p["attributes"].update(gone={"role": "drop"}),
        lambda p: p["attributes"]["age"]["domain"].update(note="17 people"),
        lambda p: p["attributes"]["age"]["domain"].update({"from": "0"}),
        lambda p: p["attributes"]["age"]["hierarchy"].update(widths=["10.0", "50"]),
        lambda p: p["attributes"]["age"].pop("other"),
        lambda p: p.pop("unlisted"),
        lambda p: p.update(incrowd="1"),
        lambda p: p.update(ledger=None),
    ],
)
def test_a_policy_in_a_certificate_says_what_a_policy_says_and_nothing_else(crowd, change):
    forge(crowd, lambda c: change(c["policy"]))
    assert IS_POLICY in failing(crowd)


def test_a_file_stands_there_by_its_digest_and_by_nothing_else(in_files):
    forge(in_files, lambda c: c["policy"]["attributes"]["sex"]["domain"]["file"].update(sha256="17 people"))
    assert IS_POLICY in failing(in_files)


def test_what_is_said_of_a_dropped_column_is_not_published(people, tmp_path):
    text = ATTRIBUTES.replace("person: {role: drop}", "person: {role: drop, domain: [p1, p2], other: p3}")
    api.release(people, Policy.from_text(f"{text}release: {RELEASES['sampled_crowd']}"), folder=tmp_path / "out")
    assert read(tmp_path / "out")["policy"]["attributes"]["person"]["domain"] is None
    assert api.verify(tmp_path / "out").valid


def test_columns_may_be_called_like_parts_of_a_policy(people, tmp_path):
    table = people.select(["age", "sex", "job"]).rename_columns(["sha256", "taxonomy", "file"])
    text = """
incrowd: 1
attributes:
  sha256: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [50]}, level: 1}
  taxonomy: {domain: [f, m], missing: keep}
  file: {hierarchy: {taxonomy: {food: [baker, cook], other: [smith], none: }}, level: 0}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}
"""
    for number, names in enumerate((["sha256"], ["taxonomy"], ["file"], ["sha256", "taxonomy", "file"])):
        content = Policy.from_text(text)
        kept = {name: content.attributes[name] for name in names}
        policy = content.model_copy(update={"attributes": kept})
        incrowd.release(table.select(names), policy, folder=tmp_path / f"{number}")
        assert incrowd.verify(tmp_path / f"{number}").valid
