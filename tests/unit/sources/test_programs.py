"""Files of statistics packages and other programs, written by the libraries that are made for them."""

import bz2
import lzma
import zipfile

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

import incrowd
from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.programs import file_labels, read_program

PEOPLE = pd.DataFrame({"sex": [1.0, 2.0, 2.0, None], "town": ["Ulm", "Köln", "Ulm", "Ulm"], "age": [30, 41, 41, 7]})
LABELS = {"sex": {1: "male", 2: "female"}}
CODINGS = (
    Coding("sex", IntegerRange(1, 2), missing="keep"),
    Coding("town", Categories(("Köln", "Ulm"))),
    Coding("age", IntegerRange(0, 99)),
)


def counted(thing, **options):
    table = open_source(thing, **options).count_by(CODINGS)
    rows = zip(*([column.labels[code] for code in column.codes] for column in table.columns), strict=True)
    return {row: int(count) for row, count in zip(rows, table.counts, strict=True)}


EXPECTED = {("1", "Ulm", "30"): 1, ("2", "Köln", "41"): 1, ("2", "Ulm", "41"): 1, (None, "Ulm", "7"): 1}


def write_statistics(path):
    pyreadstat = pytest.importorskip("pyreadstat")
    writers = {".sav": pyreadstat.write_sav, ".zsav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}
    if path.suffix in (".por", ".xpt"):
        {".por": pyreadstat.write_por, ".xpt": pyreadstat.write_xport}[path.suffix](
            PEOPLE.replace("Köln", "Bonn"), path
        )
        return
    options = {"compress": True} if path.suffix == ".zsav" else {}
    writers[path.suffix](PEOPLE, path, column_labels=["Sex", "Town", "Age"], variable_value_labels=LABELS, **options)


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta"])
def test_statistics_packages_keep_codes_and_say_what_they_mean(tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    write_statistics(path)
    assert counted(path) == EXPECTED
    said = file_labels(path)
    assert said.variables == {"sex": "Sex", "town": "Town", "age": "Age"}
    assert said.values == {"sex": {"1": "male", "2": "female"}}


@pytest.mark.parametrize("suffix", [".por", ".xpt"])
def test_old_exchange_formats(tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    write_statistics(path)
    columns = [column.name.lower() for column in open_source(path).columns()]
    assert columns == ["sex", "town", "age"]


def test_kinds_of_missing_values_stay_apart(tmp_path):
    """Stata's .a and .b among numbers; SPSS: one code, a short range, an open one."""
    pyreadstat = pytest.importorskip("pyreadstat")
    table = pd.DataFrame({"age": [30.0, 41.5, "a", "b", None]})
    labels = {"age": {"a": "refused", "b": "does not apply"}}
    pyreadstat.write_dta(
        table, tmp_path / "x.dta", missing_user_values={"age": ["a", "b"]}, variable_value_labels=labels
    )
    read = open_source(tmp_path / "x.dta").count_by(["age"])["age"]
    assert [read.labels[code] for code in read.codes].count(None) == 1
    assert {read.labels[code] for code in read.codes} == {"30", "41.5", "a", "b", None}
    assert file_labels(tmp_path / "x.dta").values == labels
    ranges = {"sex": [9], "age": [{"lo": 97, "hi": 99}], "town": ["Ulm"], "job": [{"lo": 90, "hi": 1e300}]}
    pyreadstat.write_sav(PEOPLE.assign(job=1.0), tmp_path / "x.sav", missing_ranges=ranges)
    assert file_labels(tmp_path / "x.sav").missing == {
        "sex": ("9",),
        "age": ("97", "98", "99"),
        "town": ("Ulm",),
        "job": (),
    }


@pytest.mark.parametrize("kept", [0.4, 0.9])
def test_a_transport_file_that_is_cut_short_is_refused(tmp_path, kept):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_xport(pd.DataFrame({"age": [float(i) for i in range(1000)]}), tmp_path / "x.xpt")
    assert open_source(tmp_path / "x.xpt").count_by(["age"]).total == 1000
    whole = (tmp_path / "x.xpt").read_bytes()
    for size in {int(len(whole) * kept), int(len(whole) * kept) // 80 * 80}:
        (tmp_path / "x.xpt").write_bytes(whole[:size])
        with pytest.raises(DataError, match="cut short"):
            open_source(tmp_path / "x.xpt")


def write_workbook(path, sheets):
    pytest.importorskip("fastexcel")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        sheet.append(list(PEOPLE.columns))
        for row in PEOPLE.astype(object).where(PEOPLE.notna(), None).itertuples(index=False):
            sheet.append(list(row))
    book.save(path)


def test_a_workbook_of_one_sheet(tmp_path):
    write_workbook(tmp_path / "people.xlsx", ["people"])
    assert counted(tmp_path / "people.xlsx") == EXPECTED


def write_sheet(path, rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_no_cell_of_a_sheet_is_lost_because_others_are_of_another_kind(tmp_path):
    """A column that holds numbers for 1,500 rows, then texts."""
    write_sheet(tmp_path / "x.xlsx", [["a"], *([n] for n in range(1500)), *(["none"] for _ in range(5))])
    read = read_program(tmp_path / "x.xlsx", None)
    assert read["a"].null_count == 0
    assert read["a"].to_pylist()[-1] == "none"


def test_what_looks_missing_among_the_numbers_of_a_sheet_stays_there(tmp_path, capfd):
    """The reader passes over n/a when it looks for a type, and warns of columns without values."""
    write_sheet(tmp_path / "x.xlsx", [["a", "b", "none"], [1, 2.5, None], ["n/a", 3, None], [3, "n/a", None]])
    read = read_program(tmp_path / "x.xlsx", None)
    assert read.to_pydict() == {"a": ["1", "n/a", "3"], "b": ["2.5", "3", "n/a"], "none": [None] * 3}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([["a", "a"], [1, 2]], "data-format"),
        ([["a", None], [1, 2]], "data-format"),
        ([["a"], [1], ["#DIV/0!"], [3]], "data-unreadable"),
        ([["a", "b"], [1, 2], [None, None], [3, 4]], "data-format"),
    ],
)
def test_a_sheet_with_doubtful_names_or_cells_is_refused(tmp_path, rows, code):
    write_sheet(tmp_path / "x.xlsx", rows)
    with pytest.raises(DataError) as caught:
        read_program(tmp_path / "x.xlsx", None)
    assert caught.value.code == code


def test_of_several_sheets_one_is_named(tmp_path):
    write_workbook(tmp_path / "people.xlsx", ["a", "b"])
    with pytest.raises(DataError, match="2 tables"):
        open_source(tmp_path / "people.xlsx")
    with pytest.raises(DataError, match="no table of the name"):
        open_source(tmp_path / "people.xlsx", table="c")
    assert counted(tmp_path / "people.xlsx", table="b") == EXPECTED


def test_arrow_files_and_streams(tmp_path):
    table = pa.Table.from_pandas(PEOPLE)
    feather.write_feather(table, tmp_path / "people.feather", compression="zstd")
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert counted(tmp_path / "people.feather") == counted(tmp_path / "people.arrow") == EXPECTED


@pytest.mark.parametrize("suffix", [".bz2", ".xz", ".zip"])
def test_compressed_texts(tmp_path, suffix):
    text = PEOPLE.to_csv(index=False).encode()
    path = tmp_path / f"people.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("people.csv", text)
    else:
        path.write_bytes({".bz2": bz2, ".xz": lzma}[suffix].compress(text))
    assert counted(path) == EXPECTED
    assert [c.name for c in open_source(path).columns()] == ["sex", "town", "age"]


@pytest.mark.parametrize("suffix", [".bz2", ".xz", ".zip"])
def test_a_compressed_text_that_is_cut_short_is_refused(tmp_path, suffix):
    text = ("sex,town,age\n" + "1,Ulm,30\n" * 200_000).encode()
    path = tmp_path / f"people.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", text)
    else:
        path.write_bytes({".bz2": bz2, ".xz": lzma}[suffix].compress(text))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="damaged or cut short"):
        counted(path)


def test_an_archive_made_on_a_mac_holds_one_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "people.zip", "w") as archive:
        archive.writestr("people.csv", PEOPLE.to_csv(index=False))
        archive.writestr("__MACOSX/._people.csv", "\0")
    assert counted(tmp_path / "people.zip") == EXPECTED


def test_an_archive_of_several_files_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "people.csv.zip", "w") as archive:
        archive.writestr("a.csv", "sex\n1\n")
        archive.writestr("b.csv", "sex\n1\n")
    with pytest.raises(DataError, match="holds 2 files"):
        open_source(tmp_path / "people.csv.zip")


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xlsx", ".orc", ".arrow", ".duckdb"])
def test_a_file_that_is_something_else_is_refused(tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    path.write_text("town,sex\nUlm,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="not what its name says"):
        open_source(path)


@pytest.mark.parametrize(
    ("suffix", "start"), [(".sav", b"$FL2@(#) damaged"), (".orc", b"ORC damaged"), (".duckdb", b"01234567DUCK damaged")]
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, suffix, start):
    pytest.importorskip("pyreadstat")
    path = tmp_path / f"people{suffix}"
    path.write_bytes(start)
    with pytest.raises(DataError, match="cannot be read as"):
        open_source(path)


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".por", ".xlsx", ".orc", ".feather", ".duckdb"])
def test_an_empty_file_is_called_empty(tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    path.touch()
    with pytest.raises(DataError, match="is empty"):
        open_source(path)


def test_the_address_of_a_local_file(tmp_path):
    path = tmp_path / "people here.csv"
    PEOPLE.to_csv(path, index=False)
    assert counted(path.as_uri()) == EXPECTED
    with pytest.raises(DataError, match="another machine"):
        open_source("file://elsewhere/people.csv")


def test_a_release_from_a_statistics_file(tmp_path):
    write_statistics(tmp_path / "people.sav")
    policy = incrowd.Policy.from_text(
        "incrowd: 1\nattributes: {town: {domain: [Köln, Ulm]}}\n"
        "release: {mechanism: generalization, require: [{k: 1}]}\nunlisted: drop\n"
    )
    assert incrowd.release(tmp_path / "people.sav", policy).histogram.total == 4
