"""Tables in parts: folders that are right, folders that were tampered with, and requests that make no sense."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import incrowd
from incrowd import api
from incrowd.core import signing
from incrowd.core.bits import DerivedBits
from incrowd.core.errors import InputError, ParameterError
from incrowd.mechanisms.tables import part_names
from incrowd.policy import Policy
from incrowd.releases import verify
from incrowd.releases.published import read_table
from incrowd.releases.release import measured

ROWS, PER_PART = 2000, 600
POLICY = """
incrowd: 1
attributes:
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher], missing: keep}
  age: {type: integer, domain: {from: 0, to: 9}}
release: {mechanism: pram, rho: 0.4%s}
"""


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], ROWS),
            "job": rng.choice(np.array(["baker", "smith", None], dtype=object), ROWS),
            "age": rng.integers(0, 10, ROWS),
        }
    )


def certify_parts(folder, change=lambda content: None):
    """The certificate of what is in the folder, whatever that is."""
    path = folder / "certificate.json"
    content = json.loads(path.read_bytes())
    parts = sorted((folder / "release.parquet").glob("*.parquet"))
    content["files"] = {f"release.parquet/{part.name}": measured(part) for part in parts} | {
        "report.html": content["files"]["report.html"]
    }
    (folder / "datapackage.json").unlink(missing_ok=True)  # it is about one file; earlier releases have none
    content["randomness"] = DerivedBits.kind
    change(content)
    path.write_bytes(signing.to_bytes(signing.seal(content)))


def cut(folder, sizes):
    """Puts a table of these parts into the place of the one file."""
    place = folder / "release.parquet"
    table = pq.read_table(place)
    place.unlink()
    place.mkdir()
    start = 0
    for name, size in zip(part_names(len(sizes)), sizes, strict=True):
        pq.write_table(table.slice(start, size), folder / name, store_schema=False, write_statistics=False)
        start += size
    assert start == table.num_rows
    certify_parts(folder)


@pytest.fixture
def folder(people, tmp_path, monkeypatch):
    monkeypatch.setattr(verify, "RECORDS_PER_PART", PER_PART)
    api.release(people, Policy.from_text(POLICY % ""), folder=tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def parts(folder):
    cut(folder, [600, 600, 600, 200])
    return folder


def failing(folder):
    return {check.name for check in api.verify(folder).checks if not check.holds}


CANONICAL = "rows come in canonical order, and the file's notes say nothing else"
ELSE = "nothing else is in the folder"
LISTED = "the files are those of a release"


def test_a_table_in_parts_is_read_like_any_other(folder):
    whole = incrowd.estimate(folder, ["sex", "job"], mean="age")
    cut(folder, [600, 600, 600, 200])
    assert failing(folder) == set()
    assert incrowd.estimate(folder, ["sex", "job"], mean="age") == whole
    assert len(pd.read_parquet(folder / "release.parquet")) == ROWS


def counted_by(monkeypatch):
    """The columns and the number of cells of every table that is read from now on."""
    found = []

    def spy(*arguments):
        table = read_table(*arguments)
        found.append((table.histogram.names, len(table.histogram)))
        return table

    monkeypatch.setattr(verify, "read_table", spy)
    return found


def test_of_a_table_in_parts_no_more_is_held_than_is_asked_for(people, parts, monkeypatch):
    found = counted_by(monkeypatch)
    api.verify(parts)
    incrowd.estimate(parts, ["sex"])
    assert found == [((), 1), (("sex",), 2)]

    def load():
        pytest.fail("the whole table was loaded")

    drawn = api.release(people, Policy.from_text(POLICY % ""))
    written = replace(drawn, folder=parts, load=load)  # as executors leave it
    assert incrowd.estimate(written, ["job"], mean="age") == incrowd.estimate(parts, ["job"], mean="age")
    assert {names for names, _ in found[2:]} == {("job", "age")}


@pytest.mark.parametrize("sizes", [[600, 600, 800], [600, 600, 599, 201], [2000], [600, 600, 600, 200, 0], [500] * 4])
def test_parts_are_cut_where_they_must_be(folder, sizes):
    cut(folder, sizes)
    assert failing(folder) == {CANONICAL}


def test_bits_of_one_file_and_of_parts_have_different_names(folder, parts):
    certify_parts(parts, lambda content: content.update(randomness="AES-256-CTR keyed by the operating system"))
    assert failing(parts) == {verify.VOID}


def swap(folder):
    first, second = (folder / name for name in part_names(2))
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)
    certify_parts(folder)


def rename_one(folder):
    (folder / part_names(4)[3]).rename(folder / "release.parquet" / "part-00009.parquet")
    certify_parts(folder)


def note(folder):
    part = folder / part_names(1)[0]
    table = pq.read_table(part)
    with pq.ParquetWriter(part, table.schema, store_schema=False, write_statistics=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"suppressed": "17"})
    certify_parts(folder)


def drop_one(folder):
    (folder / part_names(4)[1]).unlink()


def change_one(folder):
    part = folder / part_names(4)[1]
    table = pq.read_table(part)
    pq.write_table(table.set_column(0, "sex", pa.array(["m"] * table.num_rows)), part)


def link_one(folder):
    part = folder / part_names(4)[2]
    part.rename(folder.parent / "elsewhere.parquet")
    part.symlink_to(folder.parent / "elsewhere.parquet")


def link_all(folder):
    (folder / "release.parquet").rename(folder.parent / "elsewhere")
    (folder / "release.parquet").symlink_to(folder.parent / "elsewhere", target_is_directory=True)


def nest(folder):
    (folder / "release.parquet" / "raw").mkdir()


def nest_one(folder):
    (folder / part_names(4)[2]).unlink()
    (folder / part_names(4)[2]).mkdir()


def add_one(folder):
    (folder / "release.parquet" / "part-00004.parquet").write_bytes(b"")


def add_hidden(folder):
    (folder / "release.parquet" / ".part-00000.parquet.crc").write_bytes(b"17")


def add_beside(folder):
    (folder / "release.csv").write_bytes(b"")


def no_folder(folder):
    for part in (folder / "release.parquet").iterdir():
        part.unlink()
    (folder / "release.parquet").rmdir()


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (swap, CANONICAL),
        (note, CANONICAL),
        (rename_one, LISTED),
        (drop_one, "release.parquet/part-00001.parquet is the file certified"),
        (change_one, "release.parquet/part-00001.parquet is the file certified"),
        (link_one, "release.parquet/part-00002.parquet is the file certified"),
        (nest_one, "release.parquet/part-00002.parquet is the file certified"),
        (link_all, "release.parquet is a folder"),
        (no_folder, "release.parquet is a folder"),
        (nest, ELSE),
        (add_one, ELSE),
        (add_hidden, ELSE),
        (add_beside, ELSE),
    ],
)
def test_what_was_done_to_the_parts_is_found(parts, tamper, check):
    tamper(parts)
    assert check in failing(parts)
    with pytest.raises(InputError):
        incrowd.estimate(parts, ["sex"])


@pytest.mark.parametrize(
    "listed",
    [
        ["../secret.parquet"],
        ["release.parquet/../../secret.parquet"],
        ["release.parquet/part-0.parquet"],
        ["release.parquet/part-00000.parquet", "release.parquet/part-00002.parquet"],
        ["release.parquet/part-00000.csv"],
        [],
        ["release.csv"],
        ["release.parquet", "release.parquet/part-00000.parquet"],
    ],
)
def test_files_of_other_names_are_not_opened(parts, listed):
    (parts.parent / "secret.parquet").write_bytes(b"secret")
    entry = measured(parts / part_names(1)[0])

    def forge(content):
        content["files"] = dict.fromkeys(listed, entry) | {"report.html": content["files"]["report.html"]}

    certify_parts(parts, forge)
    assert failing(parts) & {LISTED, "release.parquet is the file certified"}


def test_a_text_table_has_no_parts(people, tmp_path):
    api.release(people, Policy.from_text(POLICY % ", output: csv"), folder=tmp_path / "out")
    out = tmp_path / "out"
    table = pd.read_csv(out / "release.csv", dtype=str)
    (out / "release.csv").unlink()
    (out / "release.parquet").mkdir()
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), out / part_names(1)[0])
    certify_parts(out)
    assert LISTED in failing(out)


# --- asking for it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "options", "said"),
    [
        ("", {"folder": "out"}, "Spark"),
        ("", {}, "folder"),
        (", output: csv", {"folder": "out"}, "Parquet"),
        ("", {"folder": "out", "copies": 2}, "one release"),
    ],
)
def test_executors_are_refused_what_they_cannot_do(people, tmp_path, extra, options, said):
    given = {"copies": 1} | options
    if "folder" in given:
        given["folder"] = tmp_path / given["folder"]
    with pytest.raises(ParameterError, match=said) as caught:
        api.release_copies(people, Policy.from_text(POLICY % extra), write_with="executors", **given)
    assert caught.value.code == "parameter-combination"
    assert not list(tmp_path.iterdir())


def test_other_mechanisms_and_other_writers_are_refused(people, tmp_path):
    crowd = POLICY.partition("release:")[0] + "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}"
    with pytest.raises(ParameterError, match="pram"):
        api.release(people, Policy.from_text(crowd), folder=tmp_path / "out", write_with="executors")
    with pytest.raises(ParameterError, match="driver") as caught:
        api.release(people, Policy.from_text(POLICY % ""), folder=tmp_path / "out", write_with="magic")
    assert caught.value.code == "parameter-range"
