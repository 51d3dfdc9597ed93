"""Files that claim to be a tree of boxes."""

import json

import pytest

from incrowd.core.signing import canonical
from incrowd.recoding.mapping import Box, Tree, TreeColumn, read_tree

COLUMN = TreeColumn("a", ("x", "y", None), ((0, 1, 2), (0, 1), (2,)), ("*", "x or y", None))
TREE = Tree((COLUMN,), (Box((0,), 9, 0, (1, 2)), Box((1,), 6), Box((2,), 3, None, (), (0,))))


def changed(change):
    document = json.loads(TREE.to_bytes())
    change(document)
    return canonical(document)


def test_a_tree_is_read_as_it_was_written():
    assert read_tree(TREE.to_bytes()).to_bytes() == TREE.to_bytes()
    assert read_tree(TREE.to_bytes()).leaves == [1, 2]


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
