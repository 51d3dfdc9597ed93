"""The tables that there were to choose from, as data: for a picture that answers when it is pointed at.

For the publisher's eyes only, as everything that is read off the raw table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from incrowd.core.errors import DataError
from incrowd.histogram import Histogram
from incrowd.mechanisms.generalization.draw import GeneralizationOutcome, LatticeTable, look_around
from incrowd.mechanisms.generalization.settle import GeneralizationSettings, Node
from incrowd.recoding.search import Found
from incrowd.reports.lattice_chart import LatticeNode, around, lattice_chart

CELLS = 10_000_000
"""Cells that may be regrouped for the sake of a picture or a table."""


def tables_near(
    settings: GeneralizationSettings, table: Histogram, outcome: GeneralizationOutcome, found: Found
) -> dict[Node, LatticeTable]:
    """The tables around the one taken, looked at once."""
    if not outcome.near:
        near = sorted(around(found.node, settings.heights), key=lambda node: _steps(node, found.node))
        outcome.near.update(
            look_around(table if outcome.linked is None else outcome.linked, settings, near, cells=CELLS)
        )
    return dict(outcome.near)


def lattice_json(
    settings: GeneralizationSettings, table: Histogram, outcome: GeneralizationOutcome, found: Found
) -> bytes:
    """What each table around the one taken keeps, and what it is worth.

    Args:
        settings: what must hold.
        table: the full table, base codes.
        outcome: what came out.
        found: what the search saw.
    """
    minimal = set(found.minimal or ())
    nodes = [
        {
            "node": list(node),
            "groups": looked.groups,
            "kept": looked.left_out is not None,
            "keeps": list(looked.keeps),
            "measures": [value if math.isfinite(value) else None for value in map(float, looked.measures)],
            "left_out": looked.left_out,
            "information": looked.information,
            "minimal": node in minimal,
            "chosen": node == found.node,
        }
        for node, looked in tables_near(settings, table, outcome, found).items()
    ]
    content = {
        "columns": list(settings.hierarchies),
        "demands": [demand.name for demand in settings.demands],
        "records": table.total,
        "size": settings.size,
        "nodes": sorted(nodes, key=lambda entry: entry["node"]),  # type: ignore[arg-type, return-value]
    }
    return json.dumps(content, ensure_ascii=False).encode()


def lattice_picture(content: Mapping[str, Any]) -> str:
    """The picture of what `lattice_json` wrote; its boxes carry the levels as `data-node`."""
    try:
        nodes = [
            LatticeNode(
                tuple(int(level) for level in entry["node"]),
                tuple(bool(keeps) for keeps in entry["keeps"]),
                bool(entry["kept"]),
                bool(entry["minimal"]),
                bool(entry["chosen"]),
            )
            for entry in content["nodes"]
        ]
        columns, demands = list(map(str, content["columns"])), list(map(str, content["demands"]))
        return lattice_chart("The lattice of generalizations", columns, demands, nodes)
    except (KeyError, TypeError, ValueError):
        raise DataError(
            "The description of the lattice cannot be read.",
            code="release-unreadable",
            remedy="Make the release again.",
        ) from None


def _steps(node: tuple[int, ...], centre: tuple[int, ...]) -> int:
    return sum(abs(a - b) for a, b in zip(node, centre, strict=True))
