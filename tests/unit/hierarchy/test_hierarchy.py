"""Hierarchies: what the builders build, what the readers read and refuse."""

import csv
import datetime as dt
import json
import math

import numpy as np
import pytest

from incrowd.core.errors import HierarchyError, IncrowdError, InternalError, PolicyError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange, Recode
from incrowd.hierarchy import Hierarchy, build, codings, load, to_csv, write_csv
from incrowd.policy import Policy, TreeFile


def coded(written: str, base=None, **options):
    """The one attribute of a policy."""
    policy = Policy.from_text(f"incrowd: 1\nattributes:\n  x: {written}\n", base)
    (found,) = codings(policy, **options)
    return found


def names(hierarchy: Hierarchy, level: int) -> list[str | None]:
    """The label of every base code at a level."""
    recode = hierarchy.recode(level)
    return [recode.labels[code] for code in recode.to]


def table(written: str, base=None) -> list[list[str | None]]:
    hierarchy = coded(written, base).hierarchy
    return [names(hierarchy, level) for level in range(hierarchy.height + 1)]


# ------------------------------------------------------------------------------------------------------ builders


def test_without_a_hierarchy_values_are_as_they_are_or_all_alike():
    assert table("{domain: [a, b]}") == [["a", "b"], ["*", "*"]]
    assert table("{domain: [a]}") == [["a"], ["*"]]
    assert table("{type: boolean}") == [["false", "true"], ["*", "*"]]


@pytest.mark.parametrize(
    ("low", "high", "start"), [(0, 120, None), (1, 100, None), (-17, 23, None), (1, 100, 1), (5, 6, -3)]
)
def test_widths_of_whole_numbers(low, high, start):
    spec = "" if start is None else f", start: {start}"
    written = f"{{type: integer, domain: {{from: {low}, to: {high}}}, hierarchy: {{widths: [5, 10, 40]{spec}}}}}"
    levels = table(written)
    for level, width in enumerate([5, 10, 40], 1):
        if level == len(levels) - 1:
            assert set(levels[level]) == {"*"}
            break
        for value, name in zip(range(low, high + 1), levels[level], strict=True):
            first = (value - (start or 0)) // width * width + (start or 0)
            a, b = max(first, low), min(first + width - 1, high)
            assert name == (str(a) if a == b else f"{a} to {b}")
    assert set(levels[-1]) == {"*"}


def test_a_width_that_holds_everything_is_the_root():
    written = "{type: integer, domain: {from: 0, to: 9}, missing: keep, hierarchy: {widths: [5, 10]}}"
    hierarchy = coded(written).hierarchy
    assert hierarchy.height == 2
    assert hierarchy.root == "*"


def test_widths_of_bins():
    levels = table("{type: number, domain: {from: 0, to: 1, step: 0.1}, hierarchy: {widths: [0.2, 0.4]}}")
    assert levels[0][:2] == ["[0, 0.1)", "[0.1, 0.2)"]
    assert levels[1] == [n for n in ("[0, 0.2)", "[0.2, 0.4)", "[0.4, 0.6)", "[0.6, 0.8)", "[0.8, 1]") for _ in "ab"]
    assert list(dict.fromkeys(levels[2])) == ["[0, 0.4)", "[0.4, 0.8)", "[0.8, 1]"]


def test_bins_without_an_end_stay_alone():
    levels = table("{type: number, domain: {cuts: [-.inf, 0, 5, 10, 15, .inf]}, hierarchy: {widths: 10}}")
    assert levels[1] == ["(−∞, 0)", "[0, 10)", "[0, 10)", "[10, 15)", "[15, ∞)"]


@pytest.mark.parametrize("ends", ["[18, 65]", "[0, 18, 65]", "[0, 18, 65, 120]", "[-.inf, 18, 65, .inf]"])
def test_cuts_of_whole_numbers(ends):
    levels = table(f"{{type: integer, domain: {{from: 0, to: 120}}, hierarchy: {{cuts: [{ends}, [18]]}}}}")
    assert levels[1] == ["0 to 17"] * 18 + ["18 to 64"] * 47 + ["65 to 120"] * 56
    assert levels[2] == ["0 to 17"] * 18 + ["18 to 120"] * 103


def test_cuts_of_bins_and_of_dates():
    written = "{type: number, domain: {cuts: [0, 1, 2, .inf]}, hierarchy: {cuts: [[0, 2, .inf]]}}"
    assert table(written)[1] == ["[0, 2)", "[0, 2)", "[2, ∞)"]
    written = "{type: date, domain: {from: 2020-01-01, to: 2020-01-04}, hierarchy: {cuts: [[2020-01-03]]}}"
    assert table(written)[1] == ["2020-01-01 to 2020-01-02"] * 2 + ["2020-01-03 to 2020-01-04"] * 2


NAMES = {
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()),
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year}-Q{math.ceil(day.month / 3)}",
    "year": lambda day: f"{day.year}",
    "decade": lambda day: f"{str(day.year)[:3]}0s",
}


@pytest.mark.parametrize("first", [dt.date(1899, 12, 25), dt.date(1968, 2, 29), dt.date(2019, 12, 30)])
@pytest.mark.parametrize("periods", [["month", "quarter", "year", "decade"], ["week"], ["year"]])
def test_periods(first, periods):
    days = [first + dt.timedelta(days=i) for i in range(4200)]
    written = f"{{type: date, domain: {{from: {first}, to: {days[-1]}}}, hierarchy: {{dates: [{', '.join(periods)}]}}}}"
    levels = table(written)
    for level, period in enumerate(periods, 1):
        assert levels[level] == [NAMES[period](day) for day in days]


def test_weeks_do_not_make_months():
    written = "{type: date, domain: {from: 2020-01-01, to: 2020-12-31}, hierarchy: {dates: [week, month]}}"
    with pytest.raises(HierarchyError, match="level 2 begins inside a group of level 1: 2020-02") as caught:
        table(written)
    assert caught.value.code == "hierarchy-nesting"


@pytest.mark.parametrize(
    ("limits", "first", "middle", "last"),
    [
        ("top: 8, bottom: 2", ["≤ 2"] * 3, ["3", "4", "5", "6", "7"], ["≥ 8"] * 3),
        ("top: 10", [], [str(i) for i in range(10)], ["≥ 10"]),
        ("bottom: 0", ["≤ 0"], [str(i) for i in range(1, 11)], []),
        ("widths: 4, top: 9, bottom: 1", ["≤ 1"] * 2, ["2 to 3"] * 2 + ["4 to 7"] * 4 + ["8"], ["≥ 9"] * 2),
        ("bottom: 4, top: 5", ["≤ 4"] * 5, [], ["≥ 5"] * 6),
    ],
)
def test_limits(limits, first, middle, last):
    levels = table(f"{{type: integer, domain: {{from: 0, to: 10}}, hierarchy: {{{limits}}}}}")
    assert levels[1] == first + middle + last
    assert len(levels) == 3


def test_limits_of_bins_and_dates():
    written = "{type: number, domain: {cuts: [0, 1, 2, 3, 4]}, hierarchy: {bottom: 1, top: 3}}"
    assert table(written)[1] == ["< 1", "[1, 2)", "[2, 3)", "≥ 3"]
    written = (
        "{type: date, domain: {from: 2020-01-01, to: 2021-12-31}, hierarchy: {dates: [month, year], top: 2021-01-15}}"
    )
    month, year = table(written)[1:3]
    assert month[366:] == ["2021-01"] * 14 + ["≥ 2021-01-15"] * 351
    assert year[366:] == ["2021"] * 14 + ["≥ 2021-01-15"] * 351


@pytest.mark.parametrize(
    "written",
    [
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {top: 0}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {top: 11}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {bottom: 10}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {bottom: -1}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {bottom: 5, top: 5}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {cuts: [[11]]}}",
        "{type: integer, domain: {from: 0, to: 10}, hierarchy: {cuts: [[1.5]]}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {bottom: 0}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {top: 2}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {top: 1.5}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {cuts: [[0.5]]}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {widths: 0.7}}",
        "{type: number, domain: {cuts: [0, 1, 2]}, hierarchy: {widths: 1e-9}}",
        "{type: number, domain: {cuts: [-.inf, .inf]}, hierarchy: {widths: 1}}",
        "{domain: [a, bb], hierarchy: {mask: 3}}",
    ],
)
def test_what_does_not_fit_the_domain(written):
    with pytest.raises(HierarchyError, match="Attribute x: The hierarchy does not fit its domain") as caught:
        table(written)
    assert caught.value.code == "hierarchy-domain"
    assert caught.value.details["attribute"] == "x"


def test_cuts_of_a_level_are_among_those_of_the_level_below():
    with pytest.raises(HierarchyError) as caught:
        table("{type: integer, domain: {from: 0, to: 120}, hierarchy: {cuts: [[18, 65], [60]]}}")
    assert caught.value.code == "hierarchy-nesting"


def test_masks():
    codes = ["12345", "12346", "12399", "54321"]
    levels = table(f"{{domain: {codes}, hierarchy: {{mask: 5}}}}".replace("'", '"'))
    for hidden in range(1, 5):
        assert levels[hidden] == [code[: 5 - hidden] + "*" * hidden for code in codes]
    assert levels[5] == ["*"] * 4
    assert table("{domain: [ab, abc, abd], hierarchy: {mask: [1, 3], character: x}}")[1:3] == [
        ["ax", "abx", "abx"],
        ["xx", "xxx", "xxx"],
    ]


def test_ordinals():
    levels = table("{domain: [e, d, c, b, a], hierarchy: {ordinal: [2, 4]}}")
    assert levels[1] == ["e to d", "e to d", "c to b", "c to b", "a"]
    assert levels[2] == ["e to b"] * 4 + ["a"]


def test_taxonomies():
    married = "{legally: [civil, church], otherwise: [living together]}"
    tree = f"{{all: {{married: {married}, alone: [single, widowed], unknown: }}}}"
    levels = table(f"{{hierarchy: {{taxonomy: {tree}}}}}")
    assert levels == [
        ["civil", "church", "living together", "single", "widowed", "unknown"],
        ["legally", "legally", "otherwise", "single", "widowed", "unknown"],
        ["married", "married", "married", "alone", "alone", "unknown"],
        ["all"] * 6,
    ]
    # The domain decides the order and what is needed of the tree.
    levels = table(f"{{domain: [single, civil], hierarchy: {{taxonomy: {tree}}}}}")
    assert levels[1:3] == [["single", "legally"], ["alone", "married"]]


def test_a_taxonomy_of_numbers_matches_them_however_they_are_written():
    levels = table("{type: integer, domain: {from: 1, to: 3}, hierarchy: {taxonomy: {odd: [01, +3], even: [2]}}}")
    assert levels[1] == ["odd", "even", "odd"]


# ------------------------------------------------------------------------------------------- missing and other


def test_missing_and_other_stay_apart_below_the_root():
    hierarchy = coded("{domain: [a, b, c, d], missing: keep, other: rest, hierarchy: {ordinal: 2}}").hierarchy
    assert names(hierarchy, 0) == ["a", "b", "c", "d", "rest", None]
    assert names(hierarchy, 1) == ["a to b", "a to b", "c to d", "c to d", "rest", None]
    assert names(hierarchy, 2) == ["*"] * 6
    assert hierarchy.declared == 4
    assert hierarchy.covered(0).tolist() == [1] * 6
    assert hierarchy.covered(1).tolist() == [2, 2, 1, 1]
    assert hierarchy.covered(2).tolist() == [6]


@pytest.mark.parametrize("other", ["a", "b to c", "'5'"])
def test_the_name_for_others_must_be_new(other):
    domain = "[a, b, c]" if other == "a" else "[a, d, b, c]"
    written = f"{{domain: {domain}, other: {other}, hierarchy: {{ordinal: 2}}}}"
    if other == "'5'":
        assert coded(written).coding.other == "5"
        return
    with pytest.raises(HierarchyError, match="outside the domain") as caught:
        coded(written)
    assert caught.value.code == "hierarchy-label"


# ---------------------------------------------------------------------------------------------- the value type


def test_codes_are_small_and_cannot_be_changed():
    found = coded("{type: integer, domain: {from: 0, to: 299}, hierarchy: {widths: [2]}}")
    zero, one, two = (found.hierarchy.recode(level) for level in range(3))
    assert (zero.to.dtype, one.to.dtype, two.to.dtype) == (np.uint16, np.uint8, np.uint8)
    with pytest.raises(ValueError, match="read-only"):
        one.to[0] = 7
    assert found.coding == Coding("x", IntegerRange(0, 299))


def test_levels_that_do_not_exist():
    hierarchy = coded("{domain: [a, b]}").hierarchy
    for level in (-1, 2):
        with pytest.raises(HierarchyError, match="the levels 0 to 1") as caught:
            hierarchy.recode(level)
        assert caught.value.code == "hierarchy-level"
    with pytest.raises(HierarchyError, match="Nothing leads back"):
        hierarchy.coarsen(1, 0)
    with pytest.raises(HierarchyError, match="Attribute x: There is no level 2"):
        coded("{domain: [a, b], level: 2}")


def test_a_hierarchy_cannot_be_wrong():
    base, root = Recode(np.arange(3), ("a", "b", "c")), Recode(np.zeros(3, int), ("*",))
    one, split = Recode(np.array([0, 0, 1]), ("ab", "c")), Recode(np.array([0, 1, 1]), ("a", "bc"))
    Hierarchy((base, one, root), 3)
    for levels in ((base, one, split, root), (base,), (base, one), (base, Recode(np.zeros(2, int), ("*",)))):
        with pytest.raises(InternalError):
            Hierarchy(levels, 3)


# ------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "content",
    [
        b"a;A;*\nb;A;*\nc;C;*\n",
        b"a;A;*\r\nb;A;*\r\nc;C;*",
        b"\xef\xbb\xbfa;A;*\nb;A;*\n\n\nc;C;*\n",
        b"a,A,*\nb,A,*\nc,C,*\n",
        b"a\tA\t*\nb\tA\t*\nc\tC\t*\n",
        b'"a";"A";"*"\n"b";"A";*\nc;C;*\n',
    ],
)
def test_csv_dialects(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    expected = [["a", "b", "c"], ["A", "A", "C"], ["*"] * 3]
    assert table("{hierarchy: {file: t.csv}}", tmp_path) == expected


def test_csv_with_awkward_texts(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'"a;b";"[0, 5)";*\nc "d";"[5, 9]";*\n"e\nf";"[5, 9]";*\n')
    assert table("{hierarchy: {file: t.csv}}", tmp_path)[:2] == [
        ["a;b", 'c "d"', "e\nf"],
        ["[0, 5)", "[5, 9]", "[5, 9]"],
    ]


def test_encodings(tmp_path):
    (tmp_path / "t.csv").write_bytes("Köln;*\nBonn;*\n".encode("latin-1"))
    with pytest.raises(HierarchyError, match=r"t.csv, line 1: this is not text in the encoding utf-8") as caught:
        table("{hierarchy: {file: t.csv}}", tmp_path)
    assert "encoding" in caught.value.remedy
    assert table("{hierarchy: {file: t.csv, encoding: latin-1}}", tmp_path)[0] == ["Köln", "Bonn"]
    (tmp_path / "t.csv").write_bytes("Köln;*\nBonn;*\n".encode("utf-16"))
    assert table("{hierarchy: {file: t.csv, encoding: utf-16}}", tmp_path)[0] == ["Köln", "Bonn"]


SECRET = "Mr Secret"


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ("", "hierarchy-file", None),
        ("\n\n", "hierarchy-file", None),
        (f"{SECRET}\nb\n", "hierarchy-file", 1),
        (f"a;A;*\n\n{SECRET};*\n", "hierarchy-ragged", 3),
        (f"a;A;*\n{SECRET};A;*;*\n", "hierarchy-ragged", 2),
        (f"a;A;*\n{SECRET};;*\n", "hierarchy-ragged", 2),
        (f"{SECRET};A;*\nb;A;*\n{SECRET};A;*\n", "hierarchy-duplicate", 3),
        (f"a;A;X;*\nb;B;X;*\n\n{SECRET};A;Y;*\n", "hierarchy-nesting", 4),
        (f'a;A;X;*\n"b\nb";B;X;*\n{SECRET};A;Y;*\n', "hierarchy-nesting", 4),
        (f"a;A;*\n{SECRET};B;x\n", "hierarchy-root", 2),
        (f'a;A;*\n"{SECRET};B;*\n', "hierarchy-file", 2),
        (f"a;A;*\n{SECRET};B;\0*\n", "hierarchy-file", 2),
    ],
)
def test_wrong_files_name_the_line_and_never_the_value(tmp_path, content, code, line):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(HierarchyError) as caught:
        coded("{hierarchy: {file: t.csv}}", tmp_path)
    assert (caught.value.code, caught.value.details["line"]) == (code, line)
    assert "t.csv" in caught.value.message
    assert SECRET not in json.dumps(caught.value.to_dict())
    if line and code not in ("hierarchy-file",):
        assert f"t.csv, line {line}:" in caught.value.message
        with pytest.raises(HierarchyError, match=SECRET):
            coded("{hierarchy: {file: t.csv}}", tmp_path, show_values=True)


def test_every_declared_value_needs_a_line_and_other_lines_are_not_used(tmp_path):
    (tmp_path / "t.csv").write_text("z;Z;*\na;A;*\nb;A;*\ny;A;*\n")
    assert table("{domain: [b, a], hierarchy: {file: t.csv}}", tmp_path) == [["b", "a"], ["A", "A"], ["*", "*"]]
    with pytest.raises(HierarchyError, match="1 of the 3 values of the domain are missing here") as caught:
        coded(f"{{domain: [b, {SECRET}, a], hierarchy: {{file: t.csv}}}}", tmp_path)
    assert caught.value.code == "hierarchy-uncovered"
    assert (caught.value.details["absent"], caught.value.details["first"]) == (1, 2)
    assert SECRET not in json.dumps(caught.value.to_dict())


def test_a_file_declares_the_domain_except_for_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("2;A;*\nNA;NA;*\n010;B;*\n")
    text = "incrowd: 1\ndata: {missing_values: [NA]}\nattributes: {x: {type: integer, hierarchy: {file: t.csv}}}"
    (found,) = codings(Policy.from_text(text, tmp_path))
    assert found.coding.domain == Categories((2, 10))
    assert names(found.hierarchy, 1) == ["A", "B"]
    with pytest.raises(HierarchyError, match=r"t.csv, line 2: the value must be a whole number"):
        coded("{type: integer, hierarchy: {file: t.csv}}", tmp_path)


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(HierarchyError, match=r"cannot be read: No such file") as caught:
        load(TreeFile(file="t.csv"), base=tmp_path)
    assert caught.value.code == "hierarchy-file"


def test_the_writer_writes_what_arx_reads(tmp_path):
    written = (
        "{domain: [a;b, 'c\"d', e], missing: keep, other: rest, hierarchy: {taxonomy: {x: ['a;b', 'c\"d'], y: [e]}}}"
    )
    hierarchy = coded(written).hierarchy
    assert to_csv(hierarchy) == '"a;b";x;*\r\n"c""d";x;*\r\ne;y;*\r\n'
    write_csv(hierarchy, tmp_path / "t.csv")
    again = coded("{missing: keep, other: rest, hierarchy: {file: t.csv}}", tmp_path).hierarchy
    assert [level.labels for level in again.levels] == [level.labels for level in hierarchy.levels]
    assert all(np.array_equal(a.to, b.to) for a, b in zip(again.levels, hierarchy.levels, strict=True))


# ------------------------------------------------------------------------------------------------ lists of values


def test_domains_in_files(tmp_path):
    (tmp_path / "plain.txt").write_bytes(b"\xef\xbb\xbfSmith, John\r\n\r\n007\r\n")
    assert coded("{domain: {file: plain.txt}}", tmp_path).coding.domain == Categories(("Smith, John", "007"))
    (tmp_path / "t.csv").write_text("size,zip\n1,007\n2,008\n,\n")
    assert coded("{domain: {file: t.csv, column: zip}}", tmp_path).coding.domain == Categories(("007", "008"))
    assert coded("{type: integer, domain: {file: t.csv, column: zip}}", tmp_path).coding.domain == Categories((7, 8))


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ("zip\n1\n2\n1\n", "domain-duplicate", 4),
        ("zip;x\n1\n;\n", "domain-file", 2),
        ("zap;x\n1;1\n", "domain-file", 1),
        ("zip;zip\n1;1\n", "domain-file", 1),
        ("zip;x\n1;1\nX;2\n", "domain-file", 3),
        ("zip;x\n", "domain-empty", None),
        ("", "domain-empty", None),
    ],
)
def test_wrong_domain_files(tmp_path, content, code, line):
    (tmp_path / "t.csv").write_text(content)
    column = "x" if content.startswith("zip;x\n1\n") else "zip"
    with pytest.raises(PolicyError) as caught:
        coded(f"{{type: integer, domain: {{file: t.csv, column: {column}}}}}", tmp_path)
    assert (caught.value.code, caught.value.details.get("line")) == (code, line)


# --------------------------------------------------------------------------------------------------------- Amnesia

DISTINCT = """distinct
name country
type string
height 3

Europe has Norway Sweden\x20
Asia has Japan NaN\x20

World has Europe Asia Atlantis\x20

"""

RANGES = """range
name age
type int
height 3

0.0,10.0 has 0.0,5.0 5.0,10.0\x20
10.0,20.0 has 10.0,15.0 15.0,20.0 NaN,NaN\x20

0.0,20.0 has 0.0,10.0 10.0,20.0\x20
"""

DATES = """range
name birth
type date
height 3

2019,2020 has 1/2019,12/2019 1/2020,12/2020
2021,2021 has 1/1/2021,30/6/2021 1/7/2021,31/12/2021 null,null

2019,2021 has 2019,2020 2021,2021
"""


def test_amnesia_trees(tmp_path):
    (tmp_path / "t.txt").write_text(DISTINCT)
    assert table("{hierarchy: {file: t.txt}}", tmp_path) == [
        ["Norway", "Sweden", "Japan", "Atlantis"],
        ["Europe", "Europe", "Asia", "Atlantis"],
        ["World"] * 4,
    ]


def test_amnesia_numbers(tmp_path):
    (tmp_path / "t.txt").write_text("distinct\r\nname x\r\ntype int\r\nheight 2\r\n\r\n0.0 has 1.0 2.0\r\n")
    assert table("{type: integer, hierarchy: {file: t.txt}}", tmp_path) == [["1", "2"], ["0.0", "0.0"]]


def test_amnesia_ranges(tmp_path):
    (tmp_path / "t.txt").write_text(RANGES)
    levels = table("{type: integer, domain: {from: 1, to: 12}, hierarchy: {file: t.txt}}", tmp_path)
    assert levels[1] == ["1 to 4"] * 4 + ["5 to 9"] * 5 + ["10 to 12"] * 3
    assert levels[2] == ["1 to 9"] * 9 + ["10 to 12"] * 3
    assert levels[3] == ["*"] * 12
    levels = table("{type: number, domain: {from: 0, to: 20, step: 2.5}, hierarchy: {file: t.txt}}", tmp_path)
    assert list(dict.fromkeys(levels[1])) == ["[0, 5)", "[5, 10)", "[10, 15)", "[15, 20]"]


def test_amnesia_dates(tmp_path):
    (tmp_path / "t.txt").write_text(DATES)
    levels = table("{type: date, domain: {from: 2019-01-01, to: 2021-12-31}, hierarchy: {file: t.txt}}", tmp_path)
    assert [len(set(level)) for level in levels] == [365 + 366 + 365, 4, 2, 1]
    assert levels[1][365 + 366 + 180 : 365 + 366 + 182] == ["2021-01-01 to 2021-06-30", "2021-07-01 to 2021-12-31"]


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (DISTINCT.replace("height 3", "height x"), "hierarchy-file", 1),
        (DISTINCT.replace("height 3", "height 2"), "hierarchy-file", 9),
        (DISTINCT.replace("height 3", "height 4"), "hierarchy-root", None),
        (DISTINCT.replace("Asia has Japan", "Asia Japan"), "hierarchy-file", 7),
        (DISTINCT.replace("Asia has Japan", "Europe has Japan"), "hierarchy-duplicate", 7),
        (DISTINCT.replace("has Japan", "has Norway"), "hierarchy-duplicate", 7),
        (DISTINCT.replace("Europe Asia", "Europe"), "hierarchy-root", 7),
        (DISTINCT.replace("Atlantis", "Norway"), "hierarchy-duplicate", 9),
        ("distinct\nname x\nheight 2\n", "hierarchy-file", 3),
        (RANGES.replace("15.0,20.0", "15.0-20.0"), "hierarchy-file", 7),
        (RANGES.replace("15.0,20.0", "20.0,15.0"), "hierarchy-file", 7),
        (RANGES.replace("15.0,20.0", "17.0,20.0"), "hierarchy-nesting", None),
        (RANGES.replace("15.0,20.0", "15.0,19.0"), "hierarchy-uncovered", None),
        (RANGES.replace("type int", "type date").replace(".0", ""), "hierarchy-file", 9),
    ],
)
def test_wrong_amnesia_files(tmp_path, content, code, line):
    (tmp_path / "t.txt").write_text(content)
    kind = "" if content.startswith("distinct") else "type: integer, domain: {from: 0, to: 20}, "
    with pytest.raises(HierarchyError) as caught:
        coded(f"{{{kind}hierarchy: {{file: t.txt}}}}", tmp_path)
    assert (caught.value.code, caught.value.details.get("line")) == (code, line)


def test_ranges_declare_no_domain(tmp_path):
    (tmp_path / "t.txt").write_text(RANGES)
    with pytest.raises(PolicyError, match="declare the domain"):
        coded("{type: integer, hierarchy: {file: t.txt}}", tmp_path)
    with pytest.raises(HierarchyError, match="ranges of numbers need"):
        coded("{domain: [a], hierarchy: {file: t.txt}}", tmp_path)


# -------------------------------------------------------------------------------------------------- a whole policy


def test_codings_of_a_policy_are_in_its_order_and_leave_out_what_is_dropped():
    text = """
    incrowd: 1
    attributes:
      b: {domain: [x, y], missing: keep, other: rest, level: 1}
      name: drop
      a: {type: date, domain: {from: 2020-01-01, to: 2020-12-31}, hierarchy: {dates: [month]}, missing: drop}
    """
    b, a = codings(Policy.from_text(text))
    assert (b.name, b.coding) == ("b", Coding("b", Categories(("x", "y")), "keep", "rest"))
    assert (a.name, a.coding) == ("a", Coding("a", DateRange(dt.date(2020, 1, 1), dt.date(2020, 12, 31)), "drop"))
    assert (b.hierarchy.height, a.hierarchy.height) == (1, 2)


def test_build_works_without_a_policy():
    coding = Coding("x", Bins((0.0, 1.0, 2.0)), "keep")
    assert names(build(None, coding), 0) == ["[0, 1)", "[1, 2]", None]


# ------------------------------------------------------------------------------------------------- benchmark tables

HEIGHTS = {
    "adult": {"sex": 1, "age": 4, "race": 1, "marital-status": 2, "education": 3, "native-country": 2}
    | {"workclass": 2, "occupation": 2, "salary-class": 1},
    "fars10": {"iage": 5, "irace": 2, "ideathmon": 3, "ideathday": 3, "isex": 1, "ihispanic": 2}
    | {"istatenum": 3, "iinjury": 2},
    "creditcard": {"LIMIT_BAL": 3, "SEX": 1, "EDUCATION": 2, "MARRIAGE": 2, "AGE": 4, "default-payment-next-month": 1}
    | {f"PAY_{i}": 3 for i in (0, 2, 3, 4, 5, 6)}
    | {f"{column}{i}": 3 for column in ("BILL_AMT", "PAY_AMT") for i in range(1, 7)},
    "ihis_syn": {"YEAR": 5, "QUARTER": 2, "REGION": 2, "PERNUM": 3, "AGE": 4, "MARSTAT": 2}
    | {"SEX": 1, "RACEA": 1, "EDUC": 1},
}
LATTICE = {"adult": 12_960, "fars10": 20_736, "creditcard": 4.95e13, "ihis_syn": 25_920}


@pytest.mark.parametrize("folder", HEIGHTS)
def test_the_benchmark_hierarchies_load(benchmark_data, folder):
    files = {path.stem.split("_hierarchy_")[1]: path for path in (benchmark_data / folder).glob("*_hierarchy_*.csv")}
    attributes = {name: {"hierarchy": {"file": path.name}} for name, path in files.items()}
    found = codings(Policy.from_dict({"incrowd": 1, "attributes": attributes}, benchmark_data / folder))
    assert {name: hierarchy.height for name, _, hierarchy in found} == HEIGHTS[folder]
    assert math.prod(h.height + 1 for _, _, h in found) == pytest.approx(LATTICE[folder], rel=0.01)
    for name, coding, hierarchy in found:
        with files[name].open(newline="") as file:
            rows = list(csv.reader(file, delimiter=";"))
        assert list(coding.domain.labels) == [row[0] for row in rows]
        for level in range(hierarchy.height + 1):
            assert names(hierarchy, level) == [row[level] for row in rows]
        assert hierarchy.covered(hierarchy.height).tolist() == [len(rows)]


def test_errors_are_ours(tmp_path):
    """Whatever a hierarchy file holds, the error is one of incrowd's."""
    for content in (
        b"\xff\xfe\x00",
        b"\x1f\x8b\x08\x00",
        b"PAR1\x00",
        b"a;b\n" * 3,
        b"distinct\nname\n",
        b"range\nname x\n\n",
    ):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(IncrowdError):
            coded("{hierarchy: {file: t.csv}}", tmp_path)
