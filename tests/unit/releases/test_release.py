"""A release from the outside: files, certificate, verification, tampering, estimates."""

import json
import os
import re
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import incrowd
from incrowd import api
from incrowd.core import signing
from incrowd.core.errors import BudgetError, GuaranteeError, InputError, InternalError, PolicyError
from incrowd.mechanisms.tables import write_table
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases import driver
from incrowd.releases import release as release_module
from incrowd.releases.folders import staged, writing
from incrowd.releases.release import measured

POLICY = """
incrowd: 1
title: A little town
attributes:
  name: drop
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher], missing: keep}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.5, beta: 0.4}
"""
ROWS = 4321


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(ROWS)],
            "age": rng.integers(0, 100, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "job": rng.choice(np.array(["baker", "smith", "teacher", None], dtype=object), ROWS),
        }
    )


@pytest.fixture
def policy():
    return Policy.from_text(POLICY)


@pytest.fixture
def folder(people, policy, tmp_path):
    api.release(people, policy, folder=tmp_path / "out")
    return tmp_path / "out"


def test_the_public_folder_and_the_internal_one(folder):
    assert sorted(p.name for p in folder.iterdir()) == [
        "certificate.json",
        "datapackage.json",
        "release.parquet",
        "report.html",
        "values.json",
    ]
    internal = folder.with_name("out.internal")
    assert sorted(p.name for p in internal.iterdir()) == ["policy.yaml", "report.html"]
    assert sorted(p.name for p in folder.parent.iterdir()) == ["out", "out.internal"]
    assert stat.S_IMODE(internal.stat().st_mode) == 0o700
    assert "never publish" in (internal / "report.html").read_text(encoding="utf-8").lower()


def test_only_the_listed_columns_come_out_in_canonical_order(folder):
    table = pq.read_table(folder / "release.parquet")
    assert table.column_names == ["age", "sex", "job"]
    assert table.num_rows > 0
    counts = table.to_pandas().value_counts(dropna=False)
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert counts.min() >= certificate["mechanism"]["k"]
    labels = {c["name"]: c["labels"] for c in certificate["columns"]}
    keys = [tuple(labels[n].index(v) for n, v in row.items()) for row in table.to_pylist()]
    assert keys == sorted(keys)


def test_the_certificate_says_what_is_promised_and_nothing_read_off_the_data(people, policy, tmp_path):
    made = api.release(people, policy, folder=tmp_path / "out")
    certificate = made.certificate
    assert certificate["promise"]["epsilon"] == 2
    assert certificate["promise"]["delta"] == 1e-5
    assert certificate["promise"]["relation"] == "add/remove"
    assert certificate["promise"]["void"] is None
    assert certificate["mechanism"]["exact_delta"] <= 1e-5
    assert certificate["policy_digest"] == policy.digest()
    assert certificate["randomness"] == RandomSource().kind
    text = (tmp_path / "out" / "certificate.json").read_bytes()
    assert text == signing.to_bytes(certificate)  # canonical, byte for byte
    for name in ("certificate.json", "report.html"):
        content = re.sub(r"<[^>]*>", " ", (tmp_path / "out" / name).read_text(encoding="utf-8"))
        for secret in (str(ROWS), f"{ROWS:,}", "person 1"):
            assert secret not in content


def test_row_order_and_format_of_the_input_leave_no_trace(people, policy, tmp_path):
    """The same seed and the same people give the same bytes, however they come."""
    shuffled = people.sample(frac=1.0, random_state=3)
    fixed = policy.with_levels({"age": 2, "sex": 0, "job": 0})
    csv = tmp_path / "people.csv"
    people.to_csv(csv, index=False)
    inputs = [people, shuffled, pl.from_pandas(people), pa.Table.from_pandas(people), str(csv)]
    releases = [api.release(i, fixed, _source=RandomSource.seeded(1)) for i in inputs]
    digests = {r.certificate["files"]["release.parquet"]["sha256"] for r in releases}
    assert len(digests) == 1


def test_a_seeded_release_says_that_it_promises_nothing(people, policy, tmp_path):
    made = api.release(people, policy, folder=tmp_path / "out", _source=RandomSource.seeded(1))
    assert "promises nothing" in made.certificate["promise"]["void"]
    assert "promises nothing" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    found = api.verify(tmp_path / "out")
    assert not found.valid


def test_in_python(people, policy):
    made = incrowd.release(people, policy)
    assert isinstance(made.table, pa.Table)
    assert len(made.to_pandas()) == made.table.num_rows == made.histogram.total
    assert len(made) == made.table.num_rows
    assert made.to_polars().equals(pl.from_arrow(made.table))
    assert repr(made).startswith("Release by sampled_crowd\n")
    assert made.certificate["promise"]["in_words"] in repr(made)
    assert made.policy.attributes["age"].level == made.certificate["mechanism"]["levels"]["age"]


def test_the_mapping_is_exported_and_can_be_used_again(folder, people, tmp_path):
    again = Policy.from_file(folder.with_name("out.internal") / "policy.yaml")
    assert again.release.selection_epsilon == 0
    assert all(a.level is not None for a in again.published.values())
    made = api.release(people, again, folder=tmp_path / "again")
    assert made.certificate["mechanism"]["levels_chosen"] == []
    assert api.verify(tmp_path / "again").valid


def test_csv_output(people, policy, tmp_path):
    text = POLICY.replace("beta: 0.4}", "beta: 0.4, output: csv}")
    api.release(people, Policy.from_text(text), folder=tmp_path / "out")
    table = pacsv.read_csv(tmp_path / "out" / "release.csv")
    assert table.column_names == ["age", "sex", "job"]
    assert api.verify(tmp_path / "out").valid
    assert api.estimate(tmp_path / "out", ["job"]).rows


def test_an_empty_release_is_written_and_valid(people, policy, tmp_path):
    fixed = policy.with_levels({"age": 2, "sex": 0, "job": 0})  # chosen ones may hide a column
    api.release(people.head(3), fixed, folder=tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "release.parquet").num_rows == 0
    assert api.verify(tmp_path / "out").valid
    rows = api.estimate(tmp_path / "out", ["sex"]).rows
    assert [(row.values, row.estimate, row.low, row.crowds) for row in rows] == [
        (("f",), None, 0, 0),
        (("m",), None, 0, 0),
    ]
    assert all(row.high >= 3 for row in rows)


def test_several_at_once_are_independent(people, policy, tmp_path):
    made = api.release_copies(
        people, policy.with_levels({"age": 2, "sex": 0, "job": 0}), copies=3, folder=tmp_path / "out"
    )
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(".internal")) == ["out-1", "out-2", "out-3"]
    assert len({m.certificate["files"]["release.parquet"]["sha256"] for m in made}) == 3
    assert all(api.verify(tmp_path / f"out-{i}").valid for i in (1, 2, 3))
    together = made[0].certificate["promise"]["together"]
    assert (together["copies"], together["epsilon"]) == (3, 6)


# --- verification -------------------------------------------------------------------------------------------------


def test_an_untouched_release_is_valid(folder):
    found = api.verify(folder)
    assert found.valid, [c for c in found.checks if not c.holds]
    assert len(found.checks) >= 9
    assert any("sampled independently" in claim for claim in found.claimed)


def failing(folder, key=None):
    found = api.verify(folder, key)
    assert not found.valid
    return {check.name for check in found.checks if not check.holds}


def rewrite(folder, change, *, reseal=False):
    path = folder / "certificate.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(signing.to_bytes(signing.seal(content) if reseal else content))


def refile(content, folder):
    """Make the certificate's digest of the table fit what is there."""
    path = folder / "release.parquet"
    content["files"][path.name] = {"sha256": signing.file_sha256(path), "bytes": path.stat().st_size}


def test_a_changed_cell_is_found(folder):
    table = pq.read_table(folder / "release.parquet").to_pandas()
    table.loc[0, "sex"] = "m" if table.loc[0, "sex"] == "f" else "f"
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), folder / "release.parquet")
    assert "release.parquet is the file certified" in failing(folder)


def test_a_small_crowd_is_found_even_if_the_digest_is_made_to_fit(folder):
    table = pq.read_table(folder / "release.parquet")
    first = table.slice(0, 1).to_pylist()[0]
    size = sum(row == first for row in table.to_pylist())
    # One record of the first crowd is left.
    pq.write_table(table.slice(size - 1), folder / "release.parquet", store_schema=False, write_statistics=False)

    rewrite(folder, lambda content: refile(content, folder), reseal=True)
    assert any("records or more" in name for name in failing(folder))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("promise", "epsilon", 1.0),
        ("promise", "delta", 1e-9),
        ("mechanism", "k", 3),
        ("mechanism", "beta", 0.9),
        ("mechanism", "selection_epsilon", 0.0),
        ("promise", "in_words", "trust me"),
    ],
)
def test_a_changed_parameter_is_found(folder, section, key, value):
    rewrite(folder, lambda content: content[section].update({key: value}))
    assert "the certificate's own digest" in failing(folder)


MEANING = "the promise says what the parameters mean"
TOGETHER = "the policy's parameters go together"


def forged_policy(content, **release):
    content["policy"]["release"].update(release)
    content["policy_digest"] = signing.sha256(signing.canonical(content["policy"]))


def negative_selection(content):
    forged_policy(content, epsilon=0.01, selection_epsilon=-5.0)
    content["promise"]["epsilon"] = 0.01
    content["mechanism"]["selection_epsilon"] = -5.0


def chosen_on_the_sample(content):
    forged_policy(content, already_sampled=True)
    content["mechanism"]["already_sampled"] = True


def chosen_for_free(content):
    forged_policy(content, selection_epsilon=0.0)
    content["mechanism"]["selection_epsilon"] = 0.0


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda c: c["promise"].update(epsilon=1.0), MEANING),
        (lambda c: c["mechanism"].update(k=3), "epsilon and delta follow from k and beta"),
        (lambda c: c["mechanism"].update(beta=0.9), TOGETHER),
        (lambda c: c["policy"]["release"].update(epsilon=1.0), "the policy is the one digested"),
        (lambda c: c["mechanism"]["levels"].pop("age"), "the levels are the policy's, where it fixes them"),
        (lambda c: c["mechanism"]["levels"].update(age=77), "every stated level exists"),
        (lambda c: c["mechanism"]["levels"].update(age=True), "every stated level exists"),
        (lambda c: c["mechanism"]["levels"].update(age="17 people were left out"), "every stated level exists"),
        (lambda c: c["columns"].pop(), "the columns are the policy's"),
        (lambda c: c.pop("mechanism"), "the certificate is complete"),
        (negative_selection, "the certificate is complete"),
        (chosen_on_the_sample, TOGETHER),
        (chosen_for_free, TOGETHER),
        (lambda c: c["promise"].update(in_words="nobody is ever at risk"), MEANING),
        (lambda c: c["promise"].update(notion="pure DP"), MEANING),
        (lambda c: c.update(title="Something else"), "the title is the policy's"),
        (lambda c: c["mechanism"].update(exact_delta=1e-30), MEANING),
        (lambda c: c["mechanism"].update(name="magic"), "the mechanism is the policy's"),
        (lambda c: c.update(assumptions=[]), MEANING),
        (lambda c: c.update(assumptions=5), MEANING),
        (lambda c: c.update(randomness="seeded (not safe to publish)"), "the promise is not void"),
        (lambda c: c["files"].update({"raw.csv": {"sha256": "", "bytes": 0}}), "the files are those of a release"),
        (lambda c: c["files"].pop("report.html"), "the files are those of a release"),
        (lambda c: c["files"]["release.parquet"].update(bytes=1), "release.parquet is the file certified"),
    ],
)
def test_a_forged_certificate_must_still_add_up(folder, change, check):
    """Whoever makes the digest fit as well is found by what the numbers say."""
    rewrite(folder, change, reseal=True)
    assert check in failing(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(rare_values=12),
        lambda c: c.update(signature={"note": "12"}),
        lambda c: c["columns"][0].update(counts=[1, 2]),
        lambda c: c["files"]["report.html"].update(rows=12),
        lambda c: c.pop("title"),
    ],
)
def test_a_certificate_has_no_fields_of_somebodys_own(folder, change):
    """A digest that fits is no leave to say more of the data than the promise covers."""
    content = json.loads((folder / "certificate.json").read_bytes())
    change(content)
    signature = {"signature": content["signature"]} if "signature" in content else {}
    (folder / "certificate.json").write_bytes(signing.to_bytes(signing.seal(content) | signature))
    assert "the certificate has the fields of a certificate" in failing(folder)


def test_a_key_said_twice_is_found_even_in_a_signed_certificate(people, policy, tmp_path):
    api.make_keys(tmp_path / "a.secret.pem", tmp_path / "a.public.pem")
    api.release(people, policy, folder=tmp_path / "out", sign_with=tmp_path / "a.secret.pem")
    path = tmp_path / "out" / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b'"promise":{', b'"promise":{"epsilon":0.0001,'))
    assert "the certificate's own digest" in failing(tmp_path / "out", tmp_path / "a.public.pem")


def test_rows_in_another_order_are_found(folder):
    table = pq.read_table(folder / "release.parquet")
    backwards = table.take(list(range(table.num_rows))[::-1])
    pq.write_table(backwards, folder / "release.parquet", store_schema=False, write_statistics=False)

    rewrite(folder, lambda content: refile(content, folder), reseal=True)
    assert any("canonical order" in name for name in failing(folder))


def test_only_columns_with_a_label_for_it_may_have_missing_values(folder):
    """So says the file; files that leave it open say nothing else."""
    path = folder / "release.parquet"
    table = pq.read_table(path)
    labels = {c["name"]: c["labels"] for c in json.loads((folder / "certificate.json").read_bytes())["columns"]}
    assert {field.name: field.nullable for field in table.schema} == {name: None in labels[name] for name in labels}
    assert api.verify(folder).valid
    left_open = pa.schema([field.with_nullable(True) for field in table.schema])
    pq.write_table(table.cast(left_open), path, compression="zstd", store_schema=False, write_statistics=False)
    rewrite(folder, lambda content: refile(content, folder), reseal=True)
    # The report shows the digest of what was certified, and was not made again.
    assert set(failing(folder)) == {"the report is the one that certificate and table give"}


@pytest.mark.parametrize("when", ["drawing", "writing"])
def test_only_what_is_wrong_with_writing_is_said_to_be(people, policy, tmp_path, when):
    """A listener that goes away is its own affair; nothing is left of the release all the same."""

    def progress(what, part):
        if what == when:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        api.release(people, policy, folder=tmp_path / "out", progress=progress)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_notes_in_the_file_are_found(folder):
    table = pq.read_table(folder / "release.parquet").replace_schema_metadata({"suppressed": "17"})
    pq.write_table(table, folder / "release.parquet")

    rewrite(folder, lambda content: refile(content, folder), reseal=True)
    assert any("canonical order" in name for name in failing(folder))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["promise"].update(epsilon=10**400),
        lambda c: c["policy"]["release"].update(beta=0),
        lambda c: c.update(files=5),
        lambda c: c.update(files={"release./../../outside.csv": {}}),
        lambda c: c.update(files={"x" * 5000: {}}),
        lambda c: c.update(policy=None),
        lambda c: c.update(columns="no"),
        lambda c: c["mechanism"].update(k=-1),
        lambda c: c["mechanism"].update(beta=1e-323),
    ],
)
def test_hostile_certificates_get_a_verdict_and_no_estimate(folder, change):
    rewrite(folder, change, reseal=True)
    assert failing(folder)
    with pytest.raises(InputError) as error:
        api.estimate(folder, ["sex"])
    assert error.value.code == "release-unreadable"


def test_missing_values_survive_csv_even_in_a_single_column(tmp_path):
    """A record with nothing but a missing value is an empty line: it must not vanish on reading."""
    text = (
        "incrowd: 1\nattributes: {job: {domain: [x], missing: keep}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4, output: csv}\n"
    )
    table = pa.table({"job": ["x"] * 300 + [None] * 300})
    made = api.release(table, Policy.from_text(text), folder=tmp_path / "out")
    assert len(made.histogram) == 2
    assert api.verify(tmp_path / "out").valid
    shown = {row.values[0]: row.estimate for row in api.estimate(tmp_path / "out", ["job"]).rows}
    assert set(shown) == {"x", None}


def test_other_files_in_the_folder_are_found(folder):
    (folder / "sample-size.txt").write_text("3", encoding="utf-8")
    assert "nothing else is in the folder" in failing(folder)


def test_a_missing_file_is_found(folder):
    (folder / "report.html").unlink()
    assert "report.html is the file certified" in failing(folder)


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[]", b'{"format": "other/9"}', b"\xff\xfe", b"[" * 100_000, b'{"format": NaN}'],
)
def test_what_is_no_release_is_an_input_error(tmp_path, content):
    if content is not None:
        (tmp_path / "certificate.json").write_bytes(content)
    with pytest.raises(InputError) as error:
        api.verify(tmp_path)
    assert error.value.code == "release-unreadable"


# --- signatures ---------------------------------------------------------------------------------------------------


def test_signed_and_checked(people, policy, tmp_path):
    api.make_keys(tmp_path / "a.secret.pem", tmp_path / "a.public.pem")
    api.make_keys(tmp_path / "b.secret.pem", tmp_path / "b.public.pem")
    assert stat.S_IMODE((tmp_path / "a.secret.pem").stat().st_mode) == 0o600
    api.release(people, policy, folder=tmp_path / "out", sign_with=tmp_path / "a.secret.pem")
    assert api.verify(tmp_path / "out").valid
    assert api.verify(tmp_path / "out", tmp_path / "a.public.pem").valid
    assert failing(tmp_path / "out", tmp_path / "b.public.pem") == {"the signature is by the key given"}
    rewrite(tmp_path / "out", lambda c: c["promise"].update(in_words="trust me"))
    content = json.loads((tmp_path / "out" / "certificate.json").read_bytes())
    resealed = {**signing.seal(content), "signature": content["signature"]}
    (tmp_path / "out" / "certificate.json").write_bytes(signing.to_bytes(resealed))
    assert "the signature is by the key that it names" in failing(tmp_path / "out", tmp_path / "a.public.pem")


def test_an_unsigned_release_does_not_pass_for_a_signed_one(folder, tmp_path):
    api.make_keys(tmp_path / "a.secret.pem", tmp_path / "a.public.pem")
    assert failing(folder, tmp_path / "a.public.pem") == {"the signature is by the key given"}


def test_keys_that_are_none(people, policy, tmp_path):
    (tmp_path / "key.pem").write_text("hello", encoding="utf-8")
    for key in (tmp_path / "key.pem", tmp_path / "absent.pem"):
        with pytest.raises(InputError) as error:
            api.release(people, policy, folder=tmp_path / "out", sign_with=key)
        assert error.value.code == "key-unreadable"
    assert not (tmp_path / "out").exists()


# --- refusals -----------------------------------------------------------------------------------------------------


def test_nothing_is_ever_overwritten(people, policy, folder):
    with pytest.raises(InputError) as error:
        api.release(people, policy, folder=folder)
    assert error.value.code == "output-exists"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(people, policy, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError) as error:
        api.release(people, policy, folder=tmp_path / "out")
    tmp_path.chmod(0o700)
    assert error.value.code == "output-unwritable"


def test_nothing_is_left_if_the_public_folder_cannot_get_its_name(tmp_path):
    def write():
        with staged([tmp_path / "out"]) as stage, writing(tmp_path):
            (stage.releases[0].public / "table").touch()
            (stage.releases[0].internal / "report").touch()
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "of somebody else").touch()
            stage.appear()

    with pytest.raises(InputError) as caught:
        write()
    assert caught.value.code == "output-unwritable"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["of somebody else"]


# --- the table is encoded once ------------------------------------------------------------------------------------


@pytest.fixture
def encoded(monkeypatch):
    """How many tables have been encoded."""
    tables = []

    def write(published, output, sink, **notes):
        tables.append(published)
        return write_table(published, output, sink, **notes)

    monkeypatch.setattr(release_module, "write_table", write)
    return tables


@pytest.mark.parametrize("output", ["parquet", "csv"])
def test_a_table_with_a_folder_to_go_to_is_encoded_once(people, tmp_path, encoded, output):
    plan = Policy.from_text(POLICY.replace("beta: 0.4", f"beta: 0.4, output: {output}"))
    made = api.release(people, plan, folder=tmp_path / "out")
    assert len(encoded) == 1
    table = tmp_path / "out" / f"release.{output}"
    assert made.certificate["files"][table.name] == measured(table)
    assert api.verify(tmp_path / "out").valid
    made.save(tmp_path / "again")
    assert len(encoded) == 2
    for file in (tmp_path / "out").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_copies_are_encoded_once_each_and_signed(people, policy, tmp_path, encoded):
    api.make_keys(tmp_path / "a.secret.pem", tmp_path / "a.public.pem")
    made = api.release_copies(people, policy, copies=3, folder=tmp_path / "out", sign_with=tmp_path / "a.secret.pem")
    assert len(encoded) == 3
    for number, one in enumerate(made, start=1):
        assert api.verify(tmp_path / f"out-{number}", tmp_path / "a.public.pem").valid
        kept = json.loads((tmp_path / f"out-{number}" / "certificate.json").read_bytes())
        assert kept == one.certificate


def test_a_release_without_a_folder_is_saved_as_often_as_wanted(people, policy, tmp_path, encoded):
    made = api.release(people, policy)
    assert len(encoded) == 1
    assert not list(tmp_path.iterdir())
    for name in ("a", "b"):
        made.save(tmp_path / name)
        assert api.verify(tmp_path / name).valid


def test_another_table_than_the_one_certified_is_not_saved(people, policy, tmp_path):
    made = api.release(people, policy)
    other = replace(made, load=lambda: made.histogram.with_counts(made.histogram.counts + 1))
    with pytest.raises(InternalError):
        other.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


LEDGER = "ledger: {path: budget.ledger, dataset: town, epsilon: 100, delta: 0.1}\n"


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("failing_part", ["files_of", "certify", "write_around"])
def test_nothing_is_left_of_a_release_that_failed_while_it_was_made(
    people, tmp_path, monkeypatch, failing_part, copies
):
    (tmp_path / "policy.yaml").write_text(POLICY + LEDGER, encoding="utf-8")
    calls = []
    place = driver if hasattr(driver, failing_part) else release_module
    working = getattr(place, failing_part)

    def fails(*arguments, **options):
        calls.append(arguments)
        found = working(*arguments, **options)  # what it had to write is there
        if len(calls) == copies:
            raise OSError(28, "No space left on device")
        return found

    monkeypatch.setattr(place, failing_part, fails)
    with pytest.raises(InputError, match="No space left") as error:
        api.release_copies(people, tmp_path / "policy.yaml", copies=copies, folder=tmp_path / "out", new_ledger=True)
    assert error.value.code == "output-unwritable"
    assert "was charged for it: epsilon = " in error.value.to_dict()["message"]
    assert {path.name for path in tmp_path.iterdir()} == {"policy.yaml", "budget.ledger"}
    statement = api.ledger_statement(tmp_path / "budget.ledger", "town").to_dict()
    assert [line["state"] for line in statement["releases"]] == ["charged"]  # what was drawn is spent


def test_a_folder_that_cannot_be_made_costs_nothing(people, tmp_path, monkeypatch):
    (tmp_path / "policy.yaml").write_text(POLICY + LEDGER, encoding="utf-8")

    def refuses(*_, **__):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(release_module.Path, "mkdir", refuses)
        with pytest.raises(InputError) as error:
            api.release(people, tmp_path / "policy.yaml", folder=tmp_path / "out", new_ledger=True)
    assert error.value.code == "output-unwritable"
    assert "charged" not in error.value.to_dict()["message"]
    assert {path.name for path in tmp_path.iterdir()} == {"policy.yaml"}


def test_the_budget_is_spent_before_anything_is_drawn(people, tmp_path, monkeypatch):
    (tmp_path / "policy.yaml").write_text(POLICY + LEDGER.replace("delta: 0.1", "delta: 1e-9"), encoding="utf-8")

    def draws(*_):
        raise AssertionError("nothing may be drawn")

    monkeypatch.setattr(RandomSource, "binomial", draws)
    with pytest.raises(BudgetError):
        api.release(people, tmp_path / "policy.yaml", folder=tmp_path / "out", new_ledger=True)
    assert {path.name for path in tmp_path.iterdir()} == {"policy.yaml"}


def test_a_missing_parent_folder_is_refused(people, policy, tmp_path):
    with pytest.raises(InputError) as error:
        api.release(people, policy, folder=tmp_path / "no" / "such" / "folder")
    assert error.value.code == "output-unwritable"


def test_a_policy_without_a_release_section(people):
    with pytest.raises(PolicyError):
        api.release(people, Policy.from_text("incrowd: 1\nattributes: {sex: {domain: [f, m]}}\n"))


def test_no_table_at_all(policy):
    with pytest.raises(PolicyError) as error:
        api.release(None, policy)
    assert error.value.code == "data-missing"


def test_columns_that_the_policy_does_not_know(people, policy):
    text = POLICY.replace("  name: drop\n", "") + "unlisted: refuse\n"
    with pytest.raises(InputError) as error:
        api.release(people, Policy.from_text(text))
    assert error.value.code == "column-unlisted"
    assert api.release(people, Policy.from_text(text.replace("refuse", "drop"))).table.column_names


def test_a_level_that_is_not_there(people):
    text = POLICY.replace("hierarchy: {widths: [10, 50]}", "hierarchy: {widths: [10, 50]}, level: 9")
    with pytest.raises(InputError) as error:
        api.release(people, Policy.from_text(text))
    assert error.value.code == "hierarchy-level"


SAMPLED = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 2}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4, already_sampled: true}
ledger: {path: ledger.sqlite, dataset: survey, epsilon: 8, delta: 1e-4}
"""


def test_a_table_that_is_a_sample_serves_one_release(people, tmp_path):
    policy = Policy.from_text(SAMPLED, base=tmp_path)
    made = api.release(people, policy, folder=tmp_path / "out", new_ledger=True)
    assert "itself a random sample" in made.certificate["assumptions"][1]
    assert api.verify(tmp_path / "out").valid
    with pytest.raises(BudgetError) as error:
        api.release(people, policy, folder=tmp_path / "second")
    assert error.value.code == "sample-reused"
    assert not (tmp_path / "second").exists()


def test_a_sample_needs_a_ledger_and_one_copy(people, tmp_path):
    without = Policy.from_text(SAMPLED[: SAMPLED.index("ledger:")])
    for policy, copies in ((without, 1), (Policy.from_text(SAMPLED, base=tmp_path), 2)):
        with pytest.raises(PolicyError) as error:
            api.release_copies(people, policy, copies=copies, folder=tmp_path / "out")
        assert error.value.code == "sample-reused"
    assert list(tmp_path.iterdir()) == []


def test_levels_cannot_be_chosen_on_a_sample(people, tmp_path):
    text = SAMPLED.replace(", level: 2", "").replace("beta: 0.4", "beta: 0.4, selection_epsilon: 0.5")
    with pytest.raises((PolicyError, GuaranteeError)):
        api.release(people, Policy.from_text(text, base=tmp_path))


# --- the budget ---------------------------------------------------------------------------------------------------

BUDGETED = POLICY + "ledger: {path: ledger.sqlite, dataset: town, epsilon: 3, delta: 1e-4}\n"


def test_the_budget_is_spent_once_and_then_refused(people, tmp_path):
    policy = Policy.from_text(BUDGETED, base=tmp_path)
    made, refusal = 0, None
    while refusal is None and made < 20:
        try:
            api.release(people, policy, folder=tmp_path / f"out{made}", new_ledger=not made)
            made += 1
        except BudgetError as error:
            refusal = error
    assert refusal is not None
    assert refusal.code == "budget-overspent"
    assert made >= 1
    assert not (tmp_path / f"out{made}").exists()
    statement = api.ledger_statement(tmp_path / "ledger.sqlite", "town").to_dict()
    assert len(statement["releases"]) == made
    assert {line["state"] for line in statement["releases"]} == {"published"}
    assert statement["spent"]["epsilon"] <= 3


def test_bad_input_costs_nothing(people, tmp_path):
    policy = Policy.from_text(BUDGETED, base=tmp_path)
    with pytest.raises(InputError):
        api.release(people.assign(sex="x"), policy, folder=tmp_path / "out", new_ledger=True)
    assert not (tmp_path / "ledger.sqlite").exists()
    assert not (tmp_path / "out").exists()


def test_a_policy_cannot_raise_the_budget_by_itself(people, tmp_path):
    api.release(people, Policy.from_text(BUDGETED, base=tmp_path), folder=tmp_path / "one", new_ledger=True)
    raised = Policy.from_text(BUDGETED.replace("epsilon: 3,", "epsilon: 30,"), base=tmp_path)
    with pytest.raises(PolicyError) as error:
        api.release(people, raised, folder=tmp_path / "two")
    assert error.value.code == "ledger-budget-differs"


# --- estimates ----------------------------------------------------------------------------------------------------


def test_estimates_come_close_to_the_truth(people, policy, tmp_path):
    """Levels so coarse that every crowd is far above k: the published half of the story is all of it."""
    fixed = policy.with_levels({"age": 3, "sex": 0, "job": 0})
    api.release(people, fixed, folder=tmp_path / "out")
    table = api.estimate(tmp_path / "out", ["sex"])
    truth = people["sex"].value_counts()
    assert {row.values[0] for row in table.rows} == {"f", "m"}
    for row in table.rows:
        assert abs(row.estimate - truth[row.values[0]]) < 6 * row.standard_error
        assert row.crowds == 4


def test_an_unknown_column_is_named_with_the_known_ones(folder):
    with pytest.raises(InputError) as error:
        api.estimate(folder, ["town"])
    assert "age" in error.value.remedy


def test_numbers_with_a_decimal_comma_and_files_without_a_header(tmp_path):
    (tmp_path / "pay.csv").write_text("pay\n" + "1234,5\n99,0\n" * 400, encoding="utf-8")
    text = (
        "incrowd: 1\ndata: {path: pay.csv, delimiter: ';', decimal: ','}\n"
        "attributes: {pay: {type: number, domain: {cuts: [0, 100, 1000, 2000]}}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4}\n"
    )
    made = api.release(None, Policy.from_text(text, base=tmp_path))
    assert len(made.histogram) == 2
    bare = text.replace("path: pay.csv", "path: bare.csv, header: false, columns: [pay]")
    (tmp_path / "bare.csv").write_text("1234,5\n99,0\n" * 400, encoding="utf-8")
    assert len(api.release(None, Policy.from_text(bare, base=tmp_path)).histogram) == 2
