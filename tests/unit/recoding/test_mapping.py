"""Files that claim to be a tree of boxes."""

import json

import pytest

from incrowd.core.signing import canonical
from incrowd.recoding import mapping
from incrowd.recoding.mapping import Box, Cut, Tree, TreeColumn, grid, read_tree

COLUMN = TreeColumn("a", ("x", "y", None), ((0, 1, 2), (0, 1), (2,)), ("*", "x or y", None))
TREE = Tree((COLUMN,), (Box((0,), 9, 0, (1, 2)), Box((1,), 6), Box((2,), 3, None, (), (0,))))


def changed(change):
    document = json.loads(TREE.to_bytes())
    change(document)
    return canonical(document)


def test_a_tree_is_read_as_it_was_written():
    assert read_tree(TREE.to_bytes()).to_bytes() == TREE.to_bytes()
    assert read_tree(TREE.to_bytes()).leaves == [1, 2]


def wide(size):
    """A column of so many values, each of which is a set, and their tree."""
    values = tuple(f"v{n}" for n in range(size))
    sets = (tuple(range(size)), *((n,) for n in range(size)))
    column = TreeColumn("a", values, sets, ("*", *values))
    return Tree((column,), (Box((0,), size, 0, tuple(range(1, size + 1))), *(Box((n + 1,), 1) for n in range(size))))


def test_what_a_mapping_holds_is_limited_and_not_what_it_could_hold(monkeypatch):
    """A tree that splits a column of thousands into its values is no file of millions of values."""
    content = wide(20_000).to_bytes()
    assert len(read_tree(content).leaves) == 20_000
    monkeypatch.setattr(mapping, "_MOST_VALUES", 39_999)
    with pytest.raises(ValueError, match="not a tree"):
        read_tree(content)


def put(where, value):
    def change(document):
        *path, last = where
        for step in path:
            document = document[step]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("format",), "incrowd-mapping/2"),
        (("more",), 1),
        (("columns",), []),
        (("columns", 0, "name"), 3),
        (("columns", 0, "values"), ["x", "x", None]),
        (("columns", 0, "sets", 1, "label"), "*"),
        (("columns", 0, "sets", 1, "values"), [[0, 2]]),
        (("columns", 0, "sets", 1, "values"), [[0, 0], [1, 1]]),
        (("columns", 0, "sets", 1, "values"), [[0, 10**9]]),
        (("columns", 0, "sets", 1, "values"), [[1, 1], [0, 0]]),
        (("columns", 0, "sets", 0, "values"), [[0, 1]]),
        (("boxes",), []),
        (("boxes", 0, "sets"), [1]),
        (("boxes", 0, "parts"), [1]),
        (("boxes", 0, "parts"), [1, 1]),
        (("boxes", 0, "parts"), [2, 3]),
        (("boxes", 1, "sets"), [2]),
        (("boxes", 1, "sets"), [7]),
        (("boxes", 1, "size"), None),
        (("boxes", 1, "size"), -1),
        (("boxes", 1, "size"), True),
        (("boxes", 1, "parts"), [0]),
        (("boxes", 2, "failed"), ["b"]),
    ],
)
def test_what_is_no_tree_is_refused(where, value):
    with pytest.raises((ValueError, KeyError, TypeError, LookupError)):
        read_tree(changed(put(where, value)))


def test_other_spellings_are_refused():
    with pytest.raises(ValueError, match="not a tree"):
        read_tree(json.dumps(json.loads(TREE.to_bytes()), indent=1).encode())


CUT = canonical(
    {
        "format": "incrowd-cuts/1",
        "columns": json.loads(TREE.to_bytes())["columns"],
        "cuts": [{"column": "a", "set": 0, "parts": [1, 2]}],
    }
)


def test_a_grid_is_read_as_it_was_written_and_has_one_label_for_each_value():
    tree = read_tree(CUT)
    assert tree.to_bytes() == CUT
    assert tree.leaves == [1, 2]
    assert tree.labels(0) == ("x or y", None)
    assert tree.without_sizes().to_bytes() == CUT


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("cuts", 0, "set"), 1),
        (("cuts", 0, "set"), True),
        (("cuts", 0, "parts"), [1, 1]),
        (("cuts", 0, "parts"), [1]),
        (("cuts", 0, "parts"), [1, 7]),
        (("cuts", 0, "column"), "b"),
        (("cuts", 0, "more"), 1),
        (("cuts", 0), {"column": "a", "set": 0, "parts": [0, 2]}),
        (("boxes",), []),
        (("format",), "incrowd-mapping/1"),
    ],
)
def test_a_file_that_is_no_grid_is_refused(where, value):
    document = json.loads(CUT)
    put(where, value)(document)
    with pytest.raises((ValueError, LookupError, TypeError)):
        read_tree(canonical(document))


def test_a_short_file_cannot_hold_very_many_cells():
    names = [f"c{i}" for i in range(17)]
    columns = [TreeColumn(name, ("x", "y"), ((0, 1), (0,), (1,)), ("*", "x", "y")) for name in names]
    cuts = tuple(Cut(place, 0, (1, 2)) for place in range(17))
    assert len(grid(tuple(columns), cuts[:8]).leaves) == 256
    with pytest.raises(ValueError, match="not a tree"):
        grid(tuple(columns), cuts)
