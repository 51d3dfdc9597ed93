"""How many people each group of a generalized table has, as it is published beside the table.

Where a person may have several rows, the table alone does not tell how many people a group is made of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from incrowd.core.signing import canonical
from incrowd.histogram import Column, Histogram, Labels
from incrowd.sources.people import WHOSE

FORMAT = "incrowd-people/1"
FILE = "people.json"


def people_in(table: Histogram, quasi: Sequence[str]) -> Histogram:
    """The groups of a table, each counting the people in it; the table says whose each row is."""
    once = table.project([*quasi, WHOSE])
    return once.with_counts(np.ones(len(once), dtype=np.int64)).project(quasi)


def to_bytes(people: Histogram) -> bytes:
    """As it is published."""
    groups = [
        [*(column.labels[int(code)] for column, code in zip(people.columns, codes, strict=True)), int(number)]
        for *codes, number in zip(*(column.codes for column in people.columns), people.counts, strict=True)
    ]
    return canonical({"format": FORMAT, "columns": list(people.names), "groups": groups})


def read_people(content: bytes, labels: Sequence[tuple[str, Labels]]) -> Histogram:
    """What a file holds of a table that has these quasi-identifiers.

    Raises:
        ValueError: it holds something else.
    """
    document = json.loads(content)
    places = [{label: code for code, label in enumerate(of)} for _, of in labels]
    columns = [
        Column(name, of, np.array([place[group[i]] for group in document["groups"]], dtype=np.int64))
        for i, ((name, of), place) in enumerate(zip(labels, places, strict=True))
    ]
    counts = np.array([group[-1] for group in document["groups"]], dtype=np.int64)
    people = Histogram.of(columns, counts)
    if to_bytes(people) != content:
        raise ValueError("this is not how many people the groups have")
    return people
