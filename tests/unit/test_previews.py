"""What a page shows of a table before there is a policy: the first lines of its file, shapes, rows of people."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import api
from incrowd.core.errors import DataError, InputError

LINES = "Größe;Ort\n170;Köln\n181;Ulm\n"


def write(path, encoding):
    path.write_text(LINES, encoding=encoding)
    return path


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8", "utf-8"), ("utf-16", "utf-16"), ("cp1252", "windows-1252"), ("latin-1", "windows-1252")],
)
def test_a_file_is_shown_in_the_first_encoding_that_fits(tmp_path, encoding, found):
    shown = api.preview_text(write(tmp_path / "a.csv", encoding))
    assert (shown.encoding, shown.delimiter) == (found, ";")
    assert shown.lines == (("Größe", "Ort"), ("170", "Köln"), ("181", "Ulm"))


def test_what_no_other_encoding_has_is_read_in_the_last(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a;b\n1;\x81\n")  # windows-1252 has no such letter
    assert api.preview_text(path).encoding == "latin-1"
    assert api.preview_text(path, unfit=["utf-8", "windows-1252"]).encoding == "latin-1"


def test_an_encoding_that_was_given_is_taken_at_its_word(tmp_path):
    path = write(tmp_path / "a.csv", "latin-1")
    assert api.preview_text(path, encoding="cp850").lines[0][0] == "Gr÷▀e"
    with pytest.raises(DataError) as caught:
        api.preview_text(path, encoding="utf-8")
    assert caught.value.code == "data-encoding"
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(DataError) as caught:
        api.preview_text(tmp_path / "a.parquet")
    assert caught.value.code == "data-format"


def test_how_a_file_is_read_is_said_within_bounds(tmp_path):
    pytest.importorskip("jinja2", reason="the extra 'studio' is not installed")
    from incrowd.studio.folders import Folders
    from incrowd.studio.tables import reading

    folders = Folders.of([tmp_path])
    said = {"delimiter": "tab", "encoding": "latin-1", "codebook": "", "quote": None}
    assert reading(folders, {"reading": said}, tmp_path) == {"delimiter": "\t", "encoding": "latin-1"}
    assert reading(folders, {"reading": ["utf-8"]}, tmp_path) == {}
    for wrong in ({"delimiter": "::"}, {"table": "people"}, {"codebook": "/etc/passwd"}):
        with pytest.raises(InputError):
            reading(folders, {"reading": wrong}, tmp_path)


def test_a_draft_without_the_remarks_around_it_says_the_same(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("person,age\n" + "".join(f"{i // 2},{i % 80}\n" for i in range(400)), encoding="utf-8")
    draft = api.draft_policy(path, "-")
    text = api.without_preamble(draft.text)
    assert text.startswith("incrowd: 1\n")
    assert not text.splitlines()[-1].startswith("#")
    assert api.policy_outline(text) == api.policy_outline(draft.text)
    assert api.unconfirmed(text) == api.unconfirmed(draft.text)
    assert api.without_preamble("# nothing else\n") == "# nothing else\n"

    # What is drawn is what is there: the ranges hold all records, and bars are as high as they are large.
    age = next(one for one in draft.profiles if one.name == "age")
    assert sum(size for _, _, size in api.column_ranges(age)) == 400
    heights = [float(text) for text in re.findall(r'height="([\d.]+)"', api.draw_shape(age))]
    sizes = [size for _, _, size in api.column_ranges(age)]
    assert heights == pytest.approx([max(1, 28 * size / max(sizes)) for size in sizes], abs=0.06)
    assert api.rows_of_people(path, ["person"]) == ((2, 200),)


def test_examples_are_made_once_and_get_out_of_the_way(tmp_path):
    made = api.make_example("survey", tmp_path)
    assert [path.name for path in made] == ["example-survey.yaml", "example-survey.texts.yaml"]
    before = made[0].stat().st_mtime_ns
    assert api.make_example("survey", tmp_path) == made
    assert made[0].stat().st_mtime_ns == before
    made[1].unlink()  # half of it is somebody else's now
    assert [path.name for path in api.make_example("survey", tmp_path)] == [
        "example-survey-2.yaml",
        "example-survey-2.texts.yaml",
    ]
