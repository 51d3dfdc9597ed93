"""Histograms: canonical whatever the input's order, exact at any size, decoded only on the way out."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from incrowd import histogram
from incrowd.core.errors import DataError, InternalError, ParameterError
from incrowd.domain import Recode
from incrowd.histogram import Column, Histogram

SEX = ("female", "male", None)
AGE = tuple(str(age) for age in range(100))


def of(rows, counts=None, labels=(SEX, AGE), names=("sex", "age")):
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(names)).T
    columns = [Column(name, label, code) for name, label, code in zip(names, labels, codes, strict=True)]
    return Histogram.of(columns, None if counts is None else np.array(counts))


def cells(h):
    return dict(zip(zip(*(c.codes.tolist() for c in h.columns), strict=True), h.counts.tolist(), strict=True))


def test_rows_are_counted_sorted_and_unique():
    h = of([(1, 30), (0, 99), (1, 30), (0, 5), (2, 0)])
    assert list(cells(h).items()) == [((0, 5), 1), ((0, 99), 1), ((1, 30), 2), ((2, 0), 1)]
    assert h.total == 5
    assert len(h) == 4
    assert h.domain_size == 300
    assert h.names == ("sex", "age")


def test_codes_are_stored_in_the_smallest_type_and_cannot_be_changed():
    wide = tuple(map(str, range(257)))
    h = of([(0, 256)], labels=(SEX, wide))
    assert h["sex"].codes.dtype == np.uint8
    assert h["age"].codes.dtype == np.uint16
    assert h.counts.dtype == np.int64
    for array in (h.counts, h["sex"].codes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        h.counts = np.array([1])


def test_given_counts_are_added_up_and_empty_cells_vanish():
    h = of([(1, 1), (0, 0), (1, 1), (2, 2)], [2**40, 3, 1, 0])
    assert cells(h) == {(0, 0): 3, (1, 1): 2**40 + 1}


def test_counts_beyond_the_exact_range_of_floats_stay_exact():
    h = of([(0, 0), (0, 0), (0, 1)] * 40, [2**53, 1, 7] * 40)
    assert cells(h) == {(0, 0): 40 * 2**53 + 40, (0, 1): 280}


def test_key_spaces_beyond_64_bits_are_ranked_not_wrapped():
    # 70,000^8 is about 2^129; products of sizes in 64 bits would wrap around and merge different cells.
    labels = tuple(map(str, range(70_000)))
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 70_000, (500, 8))
    rows[:, 1:4] = rows[0, 1:4]
    rows = np.concatenate([rows, rows[:100]])
    h = of(rows, labels=(labels,) * 8, names=tuple("abcdefgh"))
    assert list(cells(h).items()) == sorted(Counter(map(tuple, rows.tolist())).items())


def test_dense_and_sorting_kernels_agree(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.integers(0, (3, 100), (5000, 2))
    counts = rng.integers(0, 5, 5000)
    dense = of(rows, counts)
    monkeypatch.setattr(histogram, "_DENSE_CELLS", 0)
    assert of(rows, counts) == dense


def test_recoding_merges_cells():
    h = of([(0, 5), (0, 9), (1, 5), (2, 50)], [1, 2, 3, 4])
    decades = Recode(np.arange(100) // 10, tuple(f"{d}0s" for d in range(10)))
    anyone = Recode(np.zeros(3, dtype=int), ("*",))
    assert cells(h.recode({"age": decades})) == {(0, 0): 3, (1, 0): 3, (2, 5): 4}
    both = h.recode({"age": decades, "sex": anyone})
    assert cells(both) == {(0, 0): 6, (0, 5): 4}
    assert both["age"].labels[5] == "50s"


def test_projecting_and_marginalising():
    h = of([(0, 5), (0, 9), (1, 5)], [1, 2, 3])
    assert cells(h.project(["age", "sex"])) == {(5, 0): 1, (5, 1): 3, (9, 0): 2}
    assert cells(h.project(["sex"])) == {(0,): 3, (1,): 3}
    assert h.marginalise(["age"]) == h.project(["sex"])
    assert h.project([]).counts.tolist() == [6]
    assert h.project([]).total == 6


def test_merging_needs_the_same_columns():
    h = of([(0, 5), (1, 5)])
    assert cells(h.merge(of([(1, 5), (2, 9)]))) == {(0, 5): 1, (1, 5): 2, (2, 9): 1}
    with pytest.raises(ParameterError, match="same columns"):
        h.merge(h.project(["sex"]))
    with pytest.raises(ParameterError, match="same columns"):
        h.merge(of([(0, 5)], labels=(("f", "m", None), AGE)))


def test_thinning_and_suppressing_keep_the_order():
    h = of([(0, 5), (0, 9), (1, 5)], [4, 2, 3])
    assert cells(h.with_counts(np.array([0, 1, 3]))) == {(0, 9): 1, (1, 5): 3}
    assert cells(h.where(h.counts >= 3)) == {(0, 5): 4, (1, 5): 3}
    assert len(h.where(h.counts > 99)) == 0


def test_a_choice_and_counts_must_fit_the_cells():
    h = of([(0, 5), (1, 30)])
    for wrong in (lambda: h.where(np.array([True])), lambda: h.with_counts(np.array([1, 1, 1]))):
        with pytest.raises(ParameterError):
            wrong()


def test_recoding_to_a_group_without_a_label_is_refused():
    with pytest.raises(ParameterError):
        of([(0, 5)]).recode({"sex": Recode(np.array([0, 1, 2]), ("a", "b"))})


@pytest.mark.parametrize("largest", [1, 2**54])
def test_how_many_records_have_each_label(largest):
    h = of([(0, 5), (2, 5), (2, 99)], [3, largest, 7])
    assert h.tallies["sex"].tolist() == [3, 0, largest + 7]
    assert {age: n for age, n in enumerate(h.tallies["age"].tolist()) if n} == {5: largest + 3, 99: 7}


@pytest.mark.parametrize("counts", [[1, 3, 1, 2, 3], [1, 10**12, 1, 2, 10**12], []])
def test_how_many_cells_have_each_size(counts):
    sizes, cells = of([(0, age) for age in range(len(counts))], counts or None).sizes
    assert dict(zip(sizes.tolist(), cells.tolist(), strict=True)) == Counter(counts)
    assert sizes.tolist() == sorted(set(counts))


@pytest.mark.parametrize("wide", [AGE, tuple(map(str, range(2**16)))])
def test_where_the_cells_of_another_histogram_are(wide):
    names = ("a", "b", "c", "d", "e")  # with wide labels, more combinations than 64 bits can tell apart
    rng = np.random.default_rng(4)
    rows = np.unique(rng.integers(0, 3, (40, 5)), axis=0)
    some, rest = rows[::2], rows[1::2]
    h = of(some, labels=(wide,) * 5, names=names)
    sought = of(np.concatenate([some[3:9], rest[:5]]), labels=(wide,) * 5, names=names)
    expected = [list(cells(h)).index(cell) if cell in cells(h) else -1 for cell in cells(sought)]
    assert h.places(sought).tolist() == expected
    assert -1 in expected
    assert of([], labels=(wide,) * 5, names=names).places(sought).tolist() == [-1] * len(sought)
    with pytest.raises(ParameterError):
        h.places(sought.project(names[:4]))


def test_equality_is_of_content():
    h = of([(0, 5), (1, 9)])
    assert h == of([(1, 9), (0, 5)])
    assert h != of([(0, 5), (1, 9), (1, 9)])
    assert h != of([(0, 5), (1, 8)])
    assert h != of([(0, 5), (1, 9)], names=("sex", "years"))
    assert h != "histogram"
    with pytest.raises(TypeError):
        hash(h)


def test_decoding_gives_nulls_for_missing():
    h = of([(2, 5), (0, 9), (0, 9)])
    table = h.decode()
    assert table.to_pydict() == {"sex": ["female", None], "age": ["9", "5"], "count": [2, 1]}
    assert pa.types.is_dictionary(table.schema.field("sex").type)
    plain = h.decode(None, plain=True)
    assert plain.schema.field("sex").type == pa.string()
    assert plain.column_names == ["sex", "age"]
    assert plain.column("sex").null_count == 1


@pytest.mark.parametrize("plain", [True, False])
def test_only_columns_with_a_label_for_it_may_be_null(plain):
    h = of([(2, 5), (0, 9)])
    for schema in (h.schema(plain=plain), h.expand(plain=plain).schema, next(h.batches(plain=plain)).schema):
        assert [field.nullable for field in schema] == [None in column.labels for column in h.columns] == [True, False]


def test_the_missing_label_may_stand_anywhere():
    h = of([(0, 0), (1, 1), (2, 2)], labels=((None, "a", "b"), ("x", None, "y")), names=("p", "q"))
    assert h.decode(None).to_pydict() == {"p": [None, "a", "b"], "q": ["x", None, "y"]}


def test_wide_dictionaries_decode():
    labels = tuple(f"é{i}" for i in range(300))
    h = of([(i,) for i in range(300)], labels=(labels,), names=("p",))
    assert h.decode(None).column("p").to_pylist() == list(labels)


def test_a_column_called_count_needs_another_name_for_the_counts():
    h = of([(0, 5)], names=("sex", "count"))
    with pytest.raises(ParameterError, match="already called") as caught:
        h.decode()
    assert caught.value.code == "data-columns"
    assert h.decode("n").column_names == ["sex", "count", "n"]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
def test_expanding_gives_one_row_per_record_in_the_order_of_cells(rows):
    h = of([(0, 5), (2, 7), (1, 9)], [3, 1, 4])
    expected = [("female", "5")] * 3 + [("male", "9")] * 4 + [(None, "7")]
    batches = list(h.batches(rows, plain=True))
    assert max(batch.num_rows for batch in batches) <= rows
    got = list(itertools.chain.from_iterable(zip(*batch.to_pydict().values(), strict=True) for batch in batches))
    assert got == expected
    assert h.expand().to_pydict() == {"sex": [r[0] for r in expected], "age": [r[1] for r in expected]}


def test_a_code_without_a_label_is_never_written():
    h = of([(0, 5), (1, 30)])
    broken = Histogram((histogram._with_codes(h["sex"], np.array([0, 3])), h["age"]), h.counts)
    with pytest.raises(InternalError):
        broken.expand()


def test_nothing_expands_to_an_empty_table():
    empty = of([(0, 5)]).where(np.array([False]))
    assert empty.expand().num_rows == 0
    assert empty.expand().column_names == ["sex", "age"]
    assert empty.decode().num_rows == 0


def test_arrow_round_trip():
    h = of([(2, 5), (0, 9), (0, 9)])
    labels = {"sex": SEX, "age": AGE}
    assert Histogram.from_arrow(h.decode(), count="count", labels=labels) == h
    assert Histogram.from_arrow(h.expand(), labels=labels) == h
    assert Histogram.from_arrow(h.decode("n", plain=True), count="n", labels=labels) == h


def test_pandas_round_trip_whatever_the_index():
    h = of([(2, 5), (0, 9), (0, 9), (1, 1)])
    frame = h.to_pandas()
    assert str(frame["sex"].dtype) == "category"
    frame.index = [7] * len(frame)
    labels = {"sex": SEX, "age": AGE}
    assert Histogram.from_pandas(frame, count="count", labels=labels) == h


def test_labels_are_found_in_order_where_none_are_given():
    table = pa.table({"n": [10, 9, None, 9], "d": pa.array([0, 1, 0, 1], pa.date32())})
    h = Histogram.from_arrow(table)
    assert h["n"].labels == ("10", "9", None)
    assert h["d"].labels == ("1970-01-01", "1970-01-02")
    assert cells(h) == {(0, 0): 1, (1, 1): 2, (2, 0): 1}


@pytest.mark.parametrize(
    ("table", "arguments", "code"),
    [
        ({"a": ["x", "SECRET"]}, {"labels": {"a": ["x"]}}, "values-outside-domain"),
        ({"a": ["x", None]}, {"labels": {"a": ["x"]}}, "values-outside-domain"),
        ({"a": ["x"], "n": [-1]}, {"count": "n"}, "counts-invalid"),
        ({"a": ["x"], "n": [1.5]}, {"count": "n"}, "counts-invalid"),
        ({"a": ["x"], "n": pa.array([None], pa.int64())}, {"count": "n"}, "counts-invalid"),
        ({"a": ["x"], "n": ["SECRET"]}, {"count": "n"}, "counts-invalid"),
        ({"a": ["x"]}, {"count": "n"}, "column-unknown"),
        ({"a": [["x"]]}, {}, "column-type"),
        ({"a": [b"\xff"]}, {}, "column-type"),
    ],
)
def test_tables_that_are_no_histograms(table, arguments, code):
    with pytest.raises(DataError) as caught:
        Histogram.from_arrow(pa.table(table), **arguments)
    assert caught.value.code == code
    assert "SECRET" not in str(caught.value.to_dict())


@pytest.mark.parametrize(
    "build",
    [
        lambda: Column("a", ("x", "x"), np.array([0])),
        lambda: Column("a", (None, None), np.array([0])),
        lambda: Column("a", ("x",), np.array([1])),
        lambda: Column("a", ("x",), np.array([-1])),
        lambda: Column("a", ("x",), np.array([0.0])),
        lambda: Column("a", ("x",), np.array([[0]])),
        lambda: of([(0, 5)], [-1]),
        lambda: of([(0, 5), (1, 5)], [3, -1]),  # one among others
        lambda: of([(0, 5)], [1.5]),
        lambda: of([(0, 5), (0, 6)], [2**61, 2**61]),
        lambda: of([(0, 5)], [1, 2]),
        lambda: of([(0, 5)], names=("a", "a")),
        lambda: Histogram.of([]),
        lambda: of([(0, 5)]).recode({"sex": Recode(np.zeros(2, dtype=int), ("*",))}),
        lambda: of([(0, 5)]).recode({"height": Recode(np.zeros(2, dtype=int), ("*",))}),
        lambda: of([(0, 5)]).project(["height"]),
        lambda: of([(0, 5)]).marginalise(["height"]),
        lambda: of([(0, 5)])["height"],
        lambda: next(of([(0, 5)]).project([]).batches()),
    ],
)
def test_what_is_no_histogram_is_refused(build):
    with pytest.raises(ParameterError):
        build()


def test_the_representation_shows_sizes_and_no_values():
    assert repr(of([(0, 5), (1, 6)])) == "<Histogram sex[3] × age[100]: 2 records in 2 cells>"
