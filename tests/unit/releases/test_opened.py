"""A release that is looked through: the same rows, groups and estimates as pandas and `estimate` find in its file."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import IncrowdError
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import release

TEXT = """\
incrowd: 1
attributes:
  size: {domain: [small, large, huge]}
  place: {domain: [north, south], missing: keep}
  age: {type: integer, domain: {from: 0, to: 9}}
release: {mechanism: generalization, require: [{k: 2}], suppression: 0.2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows = [(["small", "large", "huge"][i % 3], ["north", "south", None][i % 5 % 3], str(i % 10)) for i in range(300)]
    table = pd.DataFrame(rows, columns=["size", "place", "age"])
    made = release(table, api.policy_from_text(TEXT), _source=RandomSource())
    return made.save(tmp_path_factory.mktemp("opened") / "out")


@pytest.fixture(scope="module")
def opened(folder):
    return api.open_release(folder)


@pytest.fixture(scope="module")
def frame(folder):
    return pd.read_parquet(folder / "release.parquet")


def values(found):
    return [row.values for row in found.rows]


def as_tuples(frame):
    return [tuple(None if pd.isna(v) else v for v in row) for row in frame.itertuples(index=False)]


def test_pages_together_are_the_file(opened, frame):
    pages = [opened.rows(offset=at, limit=77) for at in range(0, len(frame) + 77, 77)]
    assert [row for page in pages for row in values(page)] == as_tuples(frame)
    assert {page.of for page in pages} == {len(frame)}


def test_filters_and_orders_are_those_of_pandas(opened, frame):
    found = opened.rows(filters={"size": "e"}, order="size", descending=True, limit=500)
    wanted = frame[frame["size"].str.contains("e")]
    assert sorted(map(str, values(found))) == sorted(map(str, as_tuples(wanted)))
    sizes = [row[0] for row in values(found)]
    assert sizes == sorted(sizes, key=["small", "large", "huge"].index, reverse=True)  # as they are declared
    assert opened.rows(filters={"size": "=larg"}).of == 0
    assert opened.rows(filters={"place": "=(missing)"}).of == int(frame["place"].isna().sum())
    assert opened.rows(offset=10_000).rows == ()


def test_groups_are_counted_and_estimated(opened, folder, frame):
    found = opened.groups(["place", "size"], descending=True, limit=500)
    counted = frame.groupby(["place", "size"], dropna=False).size()
    assert {row.values: row.records for row in found.rows} == {
        tuple(None if pd.isna(v) else v for v in key): n for key, n in counted.items()
    }
    assert [row.records for row in found.rows] == sorted(counted, reverse=True)
    told = {row.values: row for row in api.estimate(folder, ["place", "size"]).rows}
    assert found.estimated
    assert all((row.estimate, row.low, row.high) == (
        told[row.values].estimate, told[row.values].low, told[row.values].high) for row in found.rows)  # fmt: skip
    assert opened.groups(["size"], filters={"size": "huge"}).estimated
    elsewhere = opened.groups(["size"], filters={"age": "=3"}, order="size")
    assert not elsewhere.estimated  # an estimate of all ages would stand beside counts of one
    assert {row.values[0]: row.records for row in elsewhere.rows} == frame[frame["age"] == "3"][
        "size"
    ].value_counts().to_dict()


def sheet(path):
    import fastexcel

    return fastexcel.read_excel(path).load_sheet(0, dtypes="string").to_pandas()


@pytest.mark.parametrize("output", ["parquet", "csv", "arrow", "sav", "dta", "xlsx"])
def test_every_format_says_the_same_or_is_refused(opened, frame, tmp_path, output):
    if output in ("sav", "dta"):
        pytest.importorskip("pyreadstat", reason="the extra 'stat' is not installed")
    if output == "xlsx":
        pytest.importorskip("fastexcel", reason="the extra 'stat' is not installed")
    path = opened.write(output, tmp_path)
    assert path.name == f"release.{output}"
    read = {
        "parquet": pd.read_parquet,
        "csv": lambda p: pd.read_csv(p, dtype=str),
        "arrow": pd.read_feather,
        "sav": pd.read_spss,
        "dta": pd.read_stata,
        "xlsx": sheet,
    }[output](path)
    text = read.astype(object).where(read.notna(), None)
    said = [tuple(v if v is None or isinstance(v, str) else f"{v:g}" for v in row) for row in as_tuples(text)]
    assert said == as_tuples(frame)


@pytest.mark.parametrize("how", [{"_source": RandomSource.seeded(1)}, {"rehearse": True}], ids=["seeded", "rehearsed"])
def test_a_void_release_is_written_as_one(opened, tmp_path, how):
    table = pd.DataFrame({"size": ["small", "large", "huge"] * 9, "place": "north", "age": "1"})
    made = release(table, api.policy_from_text(TEXT), **how).save(tmp_path / "out")
    assert api.open_release(made).write("csv", tmp_path).name == "release.void.csv"


def test_sums_and_another_synthetic_table(folder, opened, tmp_path):
    text = TEXT.partition("release:")[0]
    people = pd.DataFrame({"size": ["small", "large", "huge"] * 200, "place": "north", "age": "7"})
    made = release(people, api.policy_from_text(f"{text}release: {{mechanism: sample, epsilon: 1, delta: 0.3}}"))
    place = made.save(tmp_path / "sample")
    found = api.open_release(place).estimate(["size"], sum_of="age")
    assert found.sums == api.estimate(place, ["size"], sum_of="age").sums
    assert found.sums
    views = f"{text}release: {{mechanism: views, by: noise, epsilon: 2, delta: 1e-5, views: [[size], [place]]}}"
    place = release(people, api.policy_from_text(views)).save(tmp_path / "views")
    again = api.open_release(place)
    assert again.draws_again
    path = again.write_again("csv", tmp_path, rows=500, seed=3)
    assert path.name == "combined-synthetic.csv"
    assert api.combine(place, rows=500, seed=3, output=tmp_path / "c.csv").total == 500
    assert path.read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert not opened.draws_again
    with pytest.raises(IncrowdError):
        opened.write_again("csv", tmp_path)
    for wrong in ({"rows": 0}, {"seed": -1}):
        with pytest.raises(IncrowdError):
            again.write_again("csv", tmp_path, **wrong)


def test_what_does_not_hold_is_refused(opened, folder, tmp_path, monkeypatch):
    for wrong in (
        lambda: opened.rows(filters={"nothing": "x"}),
        lambda: opened.rows(order="nothing"),
        lambda: opened.rows(limit=10_000),
        lambda: opened.groups(["nothing"]),
        lambda: opened.estimate(["nothing"]),
        lambda: opened.write("docx", tmp_path),
    ):
        with pytest.raises(IncrowdError):
            wrong()
    from incrowd.mechanisms import packages

    monkeypatch.setitem(packages.MOST_ROWS, "xlsx", 3)
    with pytest.raises(IncrowdError) as refused:
        opened.write("xlsx", tmp_path)
    assert refused.value.code == "output-inexact"
    certificate = folder / "certificate.json"
    told = json.loads(certificate.read_bytes())
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in folder.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    told["promise"]["in_words"] = "Nobody can be found."
    (broken / "certificate.json").write_text(json.dumps(told))
    with pytest.raises(IncrowdError):
        api.open_release(broken)


def test_the_pages_of_the_studio_show_it(folder):
    pytest.importorskip("starlette", reason="the studio's packages are not installed")
    pytest.importorskip("jinja2", reason="the studio's packages are not installed")
    from incrowd.studio import browsed, work

    first, answer = work.KEPT["browse"]({"folder": str(folder)}, lambda *_: None)
    job = SimpleNamespace(ask=answer, result=first)
    rows = browsed.rows(job, {"offset": 50}).body.decode()
    assert "51 to 100" in rows
    assert "<em>missing</em>" in rows
    groups = browsed.rows(job, {"by": ["size"], "descending": True, "filters": {"size": ""}}).body.decode()
    assert "people, estimated" in groups
    shown = browsed.estimate(job, {"by": ["size", "place"], "total": "300"}).body.decode()
    assert "<svg" in shown
    assert "<style" not in shown
    for wrong in ({"filters": [1]}, {"offset": -1}, {"offset": "x"}):
        with pytest.raises(IncrowdError) as refused:
            browsed.rows(job, wrong)
        assert refused.value.code == "request-malformed"
    for total in ("9" * 5000, "9" * 400, "1.5", "-1"):
        with pytest.raises(IncrowdError) as refused:
            browsed.estimate(job, {"by": ["size"], "total": total})
        assert refused.value.code == "request-malformed"
    assert browsed.estimate(job, {"by": ["size"], "total": "999,999,999,999"}).status_code == 200
