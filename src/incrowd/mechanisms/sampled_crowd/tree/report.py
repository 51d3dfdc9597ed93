"""The reports on a crowd under a tree: the public one and the publisher's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, number, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.crowds_page import RAISE_THE_LIMIT
from incrowd.mechanisms.sampled_crowd.promise_page import crowd_facts, promise, why
from incrowd.mechanisms.sampled_crowd.report import GIVES_AWAY, TITLE
from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
from incrowd.mechanisms.sampled_crowd.tree.state import tree_of
from incrowd.policy import Policy
from incrowd.recoding.mapping import Tree
from incrowd.reports.frame import Use, internal_page, looks, public_page, records_table
from incrowd.reports.icicle import Hanging, icicle
from incrowd.reports.page import Content, Fact, PageSection, code, figure, label, paragraph, table, tag

_DEEPEST = 14
_MOST_VALUES = 12


def public_report(
    policy: Policy, settled: TreeSettled, published: Publication, statement: CrowdStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the release."""
    crowd, shown = settled.crowd, published.table
    if len(shown) and int(shown.counts.min()) < crowd.k:
        raise InternalError("a report was asked for on a release with too small a crowd")
    tree, _ = tree_of(published.beside)
    lead = (
        "Every row of this table is one person who was drawn at random from the data, in a box that at least "
        f"{number(crowd.k)} of those drawn share: the values that the row shows."
    )
    boxes = Fact("boxes", number(len(tree.leaves)), f"of which {number(len(shown))} are shown")
    return public_page(
        policy,
        TITLE,
        lead,
        crowd_facts(crowd, shown, boxes),
        data=[
            PageSection(
                "release",
                "What the release looks like",
                tuple(_looks(shown, settled, overlapping=tree.cuts is None)),
            ),
            PageSection("tree", "The boxes", tuple(_tree(tree, shown, settled))),
        ],
        promise=promise(crowd),
        use=_use(shown, settled),
        why=why(crowd),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        void=void,
    )


def _tree(tree: Tree, shown: Histogram, settled: TreeSettled) -> list[Content]:
    sizes = "" if settled.flat else "; its sizes are noisy and paid for, too"
    how = (
        f"It was chosen on the full table with ρ = {number(settled.crowd.rho)} (zero-concentrated differential "
        f"privacy), a part of which paid for the one-way tables beside it{sizes}."
        if settled.chosen
        else "It was given with the policy."
    )
    if len(tree.boxes) == 1:
        return [paragraph(f"There is one box: nothing could be told apart. {how}")]
    if tree.cuts is not None:
        return _grid(tree, shown, how)
    weights = np.zeros(len(tree.boxes))
    weights[tree.places(shown)] = shown.counts
    for n in reversed(range(1, len(tree.boxes))):
        weights[tree.above[n]] += weights[n]
    columns = [c.name for c in tree.columns]
    depths = {c.name: 0 for c in tree.columns}
    for box in tree.boxes:
        if box.column is not None:
            depths[columns[box.column]] += 1
    return [
        paragraph(
            "The mapping is a tree. It begins with one box, everything; a box is split along one column, and different "
            f"boxes along different ones. Its {number(len(tree.leaves))} leaves are disjoint and cover everything. "
            f"{how}"
        ),
        figure(
            icicle("The tree of boxes", _blocks(tree, weights), columns),
            "Each bar is a box, as wide as its published records, and coloured by the column along which the box above "
            "it was split. Its parts hang below it. The narrowest are left out; mapping.json has all of them.",
        ),
        table(
            "Along which columns",
            ["column", "splits", "sets of values"],
            [[label(c.name), number(depths[c.name]), number(len(c.sets))] for c in tree.columns],
            numbers=(1, 2),
        ),
    ]


def _grid(tree: Tree, shown: Histogram, how: str) -> list[Content]:
    """Of a mapping with one set of labels per column: each column's, with what is published under it."""
    blocks, rows = [], []
    for place, column in enumerate(tree.columns):
        counts, sets = shown.tallies[column.name], tree.shown_sets[place].tolist()
        left = 0.0
        for i in sorted(range(len(sets)), key=lambda i: column.sets[sets[i]]):
            width = float(counts[i]) / max(shown.total, 1)
            blocks.append(Hanging(left, width, place, place, f"{column.name}: {column.labels[sets[i]] or 'missing'}"))
            left += width
        rows.append([label(column.name), number(len(sets)), number(len(column.base))])
    cuts = count(len(tree.cuts or ()), "cut", "cuts")
    apart = "apart in two" if all(len(cut.parts) == 2 for cut in tree.cuts or ()) else "apart"
    return [
        paragraph(
            f"Each column has one set of labels: the mapping is made of {cuts}, each of which takes a set of one "
            f"column {apart}, in all records. That gives {number(len(tree.leaves))} boxes. {how}"
        ),
        figure(
            icicle("The labels of each column", blocks, [c.name for c in tree.columns]),
            "Each row is a column, and each bar one of its labels, as wide as its published records.",
        ),
        table("How many labels", ["column", "labels", "values"], rows, numbers=(1, 2)),
    ]


def _blocks(tree: Tree, weights: np.ndarray) -> list[Hanging]:
    total = float(weights[0]) or 1.0
    blocks: list[Hanging] = []
    waiting: list[tuple[int, float, int]] = [(0, 0.0, 0)]
    while waiting:
        n, left, depth = waiting.pop()
        width = float(weights[n]) / total
        above = tree.above[n]
        place = None if above < 0 else tree.boxes[above].column
        text = "everything"
        if place is not None:
            column = tree.columns[place]
            text = f"{column.name}: {column.labels[tree.boxes[n].sets[place]] or 'missing'}"
        blocks.append(Hanging(left, width, depth, place, text))
        if depth < _DEEPEST:
            for part in tree.boxes[n].parts:
                waiting.append((part, left, depth + 1))
                left += float(weights[part]) / total
    return blocks


def _looks(shown: Histogram, settled: TreeSettled, *, overlapping: bool) -> list[Content]:
    if not len(shown):
        return [
            paragraph(
                tag("b", "The release is empty."),
                f" No box was shared by {number(settled.crowd.k)} sampled records. The promise holds all the same.",
            )
        ]
    rare = "A label that never occurs may be absent from the data, or too rare to be published."
    if not overlapping:
        return looks(shown, lambda _: "the same in all records", rare)
    note = (
        "Boxes may overlap in a column: where one shows 18 to 39 and another 30 to 39, a person of 35 may be in "
        f"either. {rare}"
    )
    return looks(shown, lambda _: "box by box", note)


def _use(shown: Histogram, settled: TreeSettled) -> Use:
    charged = "the cuts cost no more than their share" if settled.flat else "no path cost more than its share"
    verifying = (
        "It checks that the boxes are disjoint and cover everything, that every crowd is one of them and has k "
        f"records, that {charged}, and that ε and δ follow. How the noise was drawn is taken on the publisher’s word."
    )
    if not len(shown):
        return Use((), (), verifying)
    beta, of = settled.crowd.beta, settled.crowd.persons.estimated
    return Use(
        [
            (tag("b", "Give every row the weight 1/β."), f" A row stands for about {number(1 / beta)} {of}."),
            (
                tag("b", "A label covers several values."),
                " Its column and mapping.json say which. Estimates spread each box over its values",
                " by the one-way tables, and fit the whole to these."
                if settled.chosen
                else " by the weights in the mapping, which are of the release that it comes from.",
            ),
            (
                tag("b", "Use the same boxes again."),
                " Next year’s release may take them as they are: with ",
                code("mapping: mapping.json"),
                " nothing has to be chosen, and all of ε goes to the crowd.",
            ),
        ],
        shown.names,
        verifying,
    )


# --- the publisher's own ----------------------------------------------------------------------------------------------


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: TreeSettled,
    full: Histogram | None,
    made: Made[TreeOutcome, CrowdStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see; the full table is None if its cells stayed in the engine."""
    outcome, k = made.outcome, settled.crowd.k
    total = int(outcome.records.sum())
    kept = np.where(outcome.sampled >= k, outcome.sampled, 0)
    drawn, shown = int(outcome.sampled.sum()), int(kept.sum())
    information = float(outcome.tree.kept @ kept) / max(drawn, 1)
    sections = [
        PageSection("numbers", "What became of the records", tuple(_numbers(outcome, kept, information))),
        PageSection(
            "lost", "Who is lost", tuple(_lost(attributes, full, outcome, kept) if full is not None else _stayed())
        ),
    ]
    facts = [
        Fact("in the table", number(total), "records"),
        Fact("sampled", number(drawn), percent(drawn / max(total, 1))),
        Fact("published", number(shown), f"{percent(shown / max(drawn, 1))} of the sample"),
        Fact("information kept", percent(information), "of the sample"),
    ]
    return internal_page(policy, TITLE, facts, sections, gives_away=GIVES_AWAY, void=void)


def _numbers(outcome: TreeOutcome, kept: np.ndarray, information: float) -> list[Content]:
    tree, leaves = outcome.tree, outcome.tree.leaves
    drawn = int(outcome.sampled.sum())
    steps = [
        ("records in the table", int(outcome.records.sum()), int(np.count_nonzero(outcome.records[leaves]))),
        ("sampled", drawn, int(np.count_nonzero(outcome.sampled[leaves]))),
        ("published", int(kept.sum()), int(np.count_nonzero(kept))),
        ("suppressed after sampling", drawn - int(kept.sum()), None),
    ]
    by_column = []
    for place, column in enumerate(tree.columns):
        widths = column.widths[[box.sets[place] for box in tree.boxes]]
        by_column.append([label(column.name), percent(float((1 - widths) @ kept) / max(drawn, 1))])
    return [
        records_table("Records and boxes", steps, "boxes that hold some"),
        table(
            f"Information kept, {percent(information)} in all: 1 − (values covered − 1)/(values − 1)",
            ["column", "kept"],
            by_column,
            numbers=(1,),
        ),
    ]


def _stayed() -> list[Content]:
    return [
        paragraph(
            "The table has too many different rows to be fetched, so they stayed where the table is: the tree was "
            "grown by counts alone, and which values lost most is not known here. To have that, raise the limit (",
            *RAISE_THE_LIMIT,
        )
    ]


def _lost(
    attributes: Sequence[CodedAttribute], full: Histogram, outcome: TreeOutcome, kept: np.ndarray
) -> list[Content]:
    """The values whose records are published least often, given the boxes that they are in."""
    leaf = outcome.tree.leaf_of(full)
    published = (kept > 0)[leaf]
    found = []
    for attribute in attributes:
        codes = full[attribute.name].codes
        labels = attribute.coding.base_labels
        all_of = np.bincount(codes, weights=full.counts, minlength=len(labels))
        shown = np.bincount(codes, weights=full.counts * published, minlength=len(labels))
        found += [
            (float(shown[i] / all_of[i]), -float(all_of[i]), attribute.name, labels[i])
            for i in np.flatnonzero(all_of).tolist()
        ]
    found.sort(key=lambda item: item[:2])
    rows = [
        [label(name), label(text), number(int(-size)), percent(float(share))]
        for share, size, name, text in found[:_MOST_VALUES]
        if share < 1
    ]
    if not rows:
        return [paragraph("Every record is in a box that is published.")]
    return [
        paragraph(
            f"{count(len(rows), 'value', 'values')} whose records are in published boxes least often. Rare groups are "
            "lost first."
        ),
        table("The groups that lost most", ["column", "value", "records", "in published boxes"], rows, numbers=(2, 3)),
    ]
