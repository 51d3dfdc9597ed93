"""A release that the executors of a cluster draw and write, from the outside."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import incrowd
from incrowd import api
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import DataError, IncrowdError, InputError
from incrowd.policy import Policy

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
RECORDS, PER_PART = 5000, 1500
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher], missing: keep}
release: {mechanism: pram, %s}
ledger: {path: %s, dataset: town, epsilon: 50, delta: 1e-3, relation: replace-one}
"""


@pytest.fixture(autouse=True)
def small_parts(spark, monkeypatch):
    from incrowd.mechanisms.pram import parts as parts_on_spark
    from incrowd.mechanisms.pram import spark as pram_on_spark
    from incrowd.releases import verify

    monkeypatch.setattr(pram_on_spark, "RECORDS_PER_DRAW", 2000)
    monkeypatch.setattr(parts_on_spark, "RECORDS_PER_PART", PER_PART)
    monkeypatch.setattr(verify, "RECORDS_PER_PART", PER_PART)
    return parts_on_spark


@pytest.fixture
def people(tmp_path):
    """A Parquet file; about two in three women and every other person without a job are the truth to be found."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, RECORDS),
            "sex": np.where(rng.random(RECORDS) < 2 / 3, "f", "m"),
            "job": rng.choice(np.array(["baker", "smith", None], dtype=object), RECORDS, p=[0.3, 0.2, 0.5]),
        }
    )
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    return frame


def policy_of(tmp_path, how="k: 5"):
    return Policy.from_text(POLICY % (how, tmp_path / "ledger.db"))


def failing(folder):
    return [check.name for check in api.verify(folder).checks if not check.holds]


def test_executors_write_a_release_that_verifies(spark, people, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY % ("k: 5", tmp_path / "ledger.db"), encoding="utf-8")
    api.make_keys(tmp_path / "secret.pem", tmp_path / "public.pem")
    out = tmp_path / "out"
    options = [
        "-o",
        str(out),
        "--data",
        str(tmp_path / "people.parquet"),
        "--engine",
        "spark",
        "--write-with",
        "executors",
    ]
    assert (
        run(
            command,
            [
                "release",
                str(tmp_path / "policy.yaml"),
                *options,
                "--new-ledger",
                "--sign-with",
                str(tmp_path / "secret.pem"),
            ],
        )
        == 0
    )
    assert {p.name for p in tmp_path.iterdir() if p.name.startswith((".", "out"))} == {"out", "out.internal"}
    assert sorted(p.name for p in out.iterdir()) == [
        "certificate.json",
        "datapackage.json",
        "release.parquet",
        "report.html",
    ]
    parts = sorted((out / "release.parquet").iterdir())
    assert [p.name for p in parts] == [f"part-{i:05d}.parquet" for i in range(4)]
    assert [pq.read_metadata(p).num_rows for p in parts] == [PER_PART] * 3 + [RECORDS - 3 * PER_PART]
    assert failing(out) == []
    assert api.verify(out, tmp_path / "public.pem").valid

    certificate = json.loads((out / "certificate.json").read_bytes())
    spent = api.ledger_statement(tmp_path / "ledger.db", "town").releases
    assert [one.recorded.release_digest for one in spent] == [certificate["digest"]]
    assert spent[0].recorded.entry.promise.epsilon == certificate["promise"]["epsilon"]

    # Everyone reads it under its usual name, and finds the same.
    assert (
        len(pd.read_parquet(out / "release.parquet"))
        == spark.read.parquet(str(out / "release.parquet")).count()
        == RECORDS
    )
    truth = people.fillna("nothing").groupby(["sex", "job"]).size()
    for row in incrowd.estimate(out, ["sex", "job"]).rows:
        known = truth.get(tuple("nothing" if value is None else value for value in row.values), 0)
        assert abs(row.estimate - known) < 7 * row.standard_error + 1
    for page in (out / "report.html", tmp_path / "out.internal" / "report.html"):
        assert "sex" in page.read_text(encoding="utf-8")

    # One record changed in one part.
    table = pq.read_table(parts[2]).to_pandas()
    table.loc[7, "sex"] = "f" if table.loc[7, "sex"] == "m" else "m"
    table.to_parquet(parts[2], index=False)
    assert "release.parquet/part-00002.parquet is the file certified" in failing(out)


def test_from_a_frame_with_shares_that_stay_as_they_are(spark, people, tmp_path):
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    policy = policy_of(tmp_path, "rho: 0.5, invariant: true").model_copy(update={"ledger": None})
    made = api.release(frame, policy, folder=tmp_path / "out", write_with="executors")
    assert failing(tmp_path / "out") == []
    assert made.histogram.total == len(made.to_pandas()) == RECORDS
    women = int(made.histogram.project(["sex"]).counts[0])
    assert abs(women - (people.sex == "f").sum()) < 7 * RECORDS**0.5
    with pytest.raises(InputError, match="already"):
        made.save(tmp_path / "again")


def test_a_table_that_is_itself_a_sample_is_redrawn_as_a_whole(spark, people, tmp_path):
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    policy = policy_of(tmp_path, "rho: 0.5, delta: 1e-6, beta: 0.1, already_sampled: true, records: 50000")
    made = api.release(frame, policy, folder=tmp_path / "out", write_with="executors", new_ledger=True)
    assert failing(tmp_path / "out") == []
    assert made.histogram.total == RECORDS
    whole = policy_of(tmp_path, "rho: 0.5, delta: 1e-6").model_copy(update={"ledger": None})
    other = api.release(frame, whole, folder=tmp_path / "whole", write_with="executors")
    ours, theirs = (one.certificate["promise"]["epsilon"] for one in (made, other))
    assert ours < theirs / 2  # sampling is counted
    drawn = policy_of(tmp_path, "rho: 0.5, delta: 1e-6, beta: 0.1").model_copy(update={"ledger": None})
    with pytest.raises(IncrowdError, match="do not sample"):
        api.release(frame, drawn, folder=tmp_path / "drawn", write_with="executors")


def test_what_fails_leaves_nothing_but_the_charge(spark, people, tmp_path, small_parts, monkeypatch):
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    policy = policy_of(tmp_path)
    before = {p.name for p in tmp_path.iterdir()}

    monkeypatch.setattr(small_parts, "__version__", "0")
    with pytest.raises(InputError) as other:
        api.release(frame, policy, folder=tmp_path / "out", write_with="executors", new_ledger=True)
    assert other.value.code == "executors-unfit"
    with pytest.raises(DataError):
        api.release(
            frame.selectExpr("age + 90 AS age", "sex", "job"),
            policy,
            folder=tmp_path / "out",
            write_with="executors",
            new_ledger=True,
        )
    assert {p.name for p in tmp_path.iterdir()} == before, "refused before anything was charged or written"
    monkeypatch.undo()

    def failing_half_way(rows):
        def fail(cells):
            raise RuntimeError("SECRET")

        return fail

    monkeypatch.setattr(small_parts, "counting", failing_half_way)
    with pytest.raises(DataError) as caught:
        api.release(frame, policy, folder=tmp_path / "out", write_with="executors", new_ledger=True)
    assert "was charged for it" in caught.value.to_dict()["message"]
    assert "SECRET" not in str(caught.value.to_dict())
    assert {p.name for p in tmp_path.iterdir()} - before == {"ledger.db"}
    assert len(api.ledger_statement(tmp_path / "ledger.db", "town").releases) == 1


def test_what_is_written_is_what_was_counted(spark, people, tmp_path, monkeypatch):
    """As if the table had changed, with as many records, while it was drawn once more to be written."""
    from dataclasses import replace

    from incrowd.mechanisms.pram import executors

    def tell_of_another(cells, records, sets, told=executors.Told.of):
        found = told(cells, records, sets)
        first, *others = found.published.parts
        moved = first.with_counts(first.counts[::-1])
        seen.append(moved)
        return replace(found, published=replace(found.published, parts=(moved, *others)))

    seen = []
    monkeypatch.setattr(executors.Told, "of", tell_of_another)
    policy = policy_of(tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    with pytest.raises(DataError, match="not the same"):
        api.release(frame, policy, folder=tmp_path / "out", write_with="executors", new_ledger=True)
    assert len(seen) == 1
    assert {p.name for p in tmp_path.iterdir()} - before == {"ledger.db"}
