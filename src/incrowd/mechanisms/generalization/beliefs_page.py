"""What an adversary believed, and what she can believe after seeing a table: parts of reports.

Everything here is a function of the table that is shown, so it is as public or as internal as that table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import count, exactly, number, number_down, number_up, percent
from incrowd.mechanisms.generalization.claims import about_everything
from incrowd.recoding.demands import Demand, Groups
from incrowd.reports.bars import Row, bars, crowd_sizes
from incrowd.reports.page import Content, Html, heading, label, markup, paragraph, table, tag
from incrowd.theory._groups import as_written
from incrowd.theory.adversaries import AdversaryClass
from incrowd.theory.beliefs import BeliefAudit, Predicate, Statements, belief_ratio
from incrowd.theory.requirements import BeliefRatio
from incrowd.theory.syntactic import Measure

Labels = Sequence[str | None]

_STATEMENTS = 12
_NAMED = 8
_BINS = 10


def adversary(belief: BeliefRatio, column: str, labels: Labels, groups: Groups, *, read: bool) -> list[Content]:
    """Who she is, what is promised against her, and what she can learn at most of each statement.

    Args:
        belief: whom the table withstands, and how far.
        column: what she wants to know.
        labels: its values.
        groups: of the table.
        read: whether her prior comes from an earlier table.
    """
    return [
        heading(markup(["Against ", tag("bdi", belief.against)])),
        paragraph(*_who(belief, column, labels, read=read)),
        paragraph(
            "Her belief ratio is at most ",
            tag("b", exactly(float(belief.epsilon))),
            f", whoever it is about, {_about(belief, labels)}.",
        ),
        _statements(belief, column, labels, groups),
    ]


def _about(belief: BeliefRatio, labels: Labels) -> str:
    """Which statements the promise is about."""
    if about_everything(belief, len(labels)):
        return "whatever the statement"
    family = {
        "values": "for each statement that somebody has a certain value",
        "negations": "for each statement that somebody does not have a certain value",
    }
    chosen = family[belief.predicates] if isinstance(belief.predicates, str) else "for each statement below"
    return f"{chosen}, and for no other"


def _who(belief: BeliefRatio, column: str, labels: Labels, *, read: bool) -> list[Content]:
    adversary = belief.adversary
    said: list[Content] = []
    if adversary.kind is AdversaryClass.KNOWN_STUBBORNNESS:
        seen = max(0.0, (adversary.stubbornness or 0.0) - len(labels))
        said.append(
            f"She may believe anything about {column}, as firmly as someone who has seen {number(round(seen))} people. "
            "The more people a group has, the more she lets the table convince her."
        )
    else:
        shares = _shares(belief, labels)
        if adversary.kind is AdversaryClass.KNOWN_SHAPE:
            said += ["She is certain of these shares, whatever the table shows: ", *shares, "."]
        else:
            seen = (adversary.stubbornness or 0.0) - len(labels)
            source = "an earlier table of " if read else ""
            said += [f"She has seen {source}{number(round(max(0.0, seen)))} people, and believes: ", *shares]
            said.append(". The more people a group has, the more she lets the table convince her.")
        if adversary.or_less_stubborn:
            said.append(" She may also believe so less firmly.")
    if adversary.known_records:
        said.append(f" She knows {count(adversary.known_records, 'record', 'records')} of the table beforehand.")
    return said


def _shares(belief: BeliefRatio, labels: Labels) -> list[Content]:
    weights = [as_written(weight) for weight in belief.adversary.weights or ()]
    total = sum(weights, Fraction(0))
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    parts: list[Content] = []
    for i in order[:_NAMED]:
        parts += [", " if parts else None, label(labels[i]), f" {percent(float(weights[i] / total))}"]
    if len(order) > _NAMED:
        parts.append(f" and {len(order) - _NAMED} more")
    return parts


def _statements(belief: BeliefRatio, column: str, labels: Labels, groups: Groups) -> Html:
    """For each statement the group that gives most away."""
    cells = groups.cells[column]
    chosen = Statements.of(belief.predicates, len(labels)).predicates
    audits = [(p, belief_ratio(cells, belief.adversary, [p])) for p in chosen] if len(chosen) <= 200 else []
    audits.sort(key=lambda pair: -pair[1].ratio)
    rows = [
        [
            statement(predicate, labels),
            _before(belief, predicate),
            _probability(audit.p_out),
            _probability(audit.p_in),
            number_up(audit.ratio),
        ]
        for predicate, audit in audits[:_STATEMENTS]
    ]
    caption = f"What {belief.against} can learn at most about {column}"
    if len(chosen) > _STATEMENTS:
        caption += f" (the worst {len(rows)} of {len(chosen)} statements)"
    head: list[Content] = ["statement", "believed beforehand", "without the person", "with the person", "belief ratio"]
    return table(caption, head, rows, numbers=(1, 2, 3, 4))


def _before(belief: BeliefRatio, predicate: Predicate) -> str:
    if belief.adversary.weights is None:
        return "anything"
    weights = [as_written(weight) for weight in belief.adversary.weights]
    return _probability(float(sum((weights[i] for i in predicate.values), Fraction(0)) / sum(weights, Fraction(0))))


def _probability(share: float) -> str:
    return f"{number(share)}" if 0.001 <= share <= 0.999 or share in (0, 1) else number(share)


def statement(predicate: Predicate, labels: Labels) -> Html:
    """A statement in words."""
    inside = predicate.values
    if predicate.name:
        return label(predicate.name)
    if len(inside) == 1:
        return label(labels[inside[0]])
    (outside, *more) = [i for i in range(len(labels)) if i not in inside]
    if not more:
        return markup(["not ", label(labels[outside])])
    return markup([f"one of {len(inside)} values"])


def worst_groups(belief: BeliefRatio, column: str, labels: Labels, groups: Groups, *, most: int) -> Html:
    """The groups with the largest belief ratios."""
    cells = groups.cells[column]
    by_group = _by_group(belief, cells)
    order = np.lexsort((np.arange(len(by_group)), -by_group))[:most]
    rows: list[list[Content]] = []
    for i in order:
        audit: BeliefAudit = belief_ratio(cells[[i]], belief.adversary, belief.predicates)
        rows.append(
            [
                number_up(audit.ratio),
                statement(audit.predicate, labels),
                _probability(audit.p_out),
                _probability(audit.p_in),
                number(int(groups.shown.counts[i])),
                *(label(c.labels[int(c.codes[i])]) for c in groups.shown.columns),
            ]
        )
    head: list[Content] = ["belief ratio", "statement", "p_out", "p_in", "records", *map(label, groups.shown.names)]
    caption = f"Against {belief.against}, at most {exactly(float(belief.epsilon))} ({column})"
    return table(caption, head, rows, numbers=(0, 2, 3, 4))


def _by_group(belief: BeliefRatio, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    found = belief.measure(cells, per_group=True).by_group
    return np.zeros(len(cells)) if found is None else found


def ratios_by_group(belief: BeliefRatio, column: str, groups: Groups) -> Html:
    """How many groups come how near to the limit."""
    by_group, sizes = _by_group(belief, groups.cells[column]), groups.shown.counts
    limit = float(belief.epsilon)
    edges = np.geomspace(1.0, limit, _BINS + 1) if limit > 1 else np.array([1.0, 1.0])
    place = np.clip(np.searchsorted(edges, by_group, side="right") - 1, 0, len(edges) - 2)
    found = np.bincount(place, minlength=len(edges) - 1)
    records = np.bincount(place, weights=sizes, minlength=len(edges) - 1)
    rows = [
        Row(
            f"{number(float(edges[i]), 3)} to {number(float(edges[i + 1]), 3)}",
            [found[i] / found.max()],
            [f"{found[i]:,}", percent(records[i] / sizes.sum())],
        )
        for i in range(len(found))
    ]
    return bars(
        markup(["Belief ratios of the groups, against ", tag("bdi", belief.against)]),
        f"1: the table says no more about people in it than about others. At most {exactly(limit)} is allowed.",
        ("groups", "of records"),
        rows,
    )


def group_sizes(groups: Groups) -> Html:
    """How many groups have which size."""
    sizes = groups.shown.counts
    note = (
        f"Half of the groups have {number(int(np.median(sizes)))} records or fewer; the largest has "
        f"{number(int(sizes.max()))}."
    )
    return crowd_sizes("Sizes of groups", note, sizes, called="groups")


def requirements(demands: Sequence[Demand], groups: Groups) -> Html:
    """What was asked of every group, and what the table has."""
    rows: list[list[Content]] = []
    for demand in demands:
        found = demand.requirement.measure(groups.of(demand))
        group = found.group
        shown = groups.seen_by(demand).shown.columns
        cells = ", ".join("missing" if (text := c.labels[int(c.codes[group])]) is None else text for c in shown)
        rows.append([demand.name, exactly(float(demand.requirement.limit)), _reached(found), label(cells)])
    return table("Requirements", ["requirement", "limit", "reached", "by the group"], rows, numbers=(1, 2))


def _reached(found: Measure | BeliefAudit) -> str:
    """What the table has, rounded towards the limit."""
    if isinstance(found, BeliefAudit):
        return number_up(found.ratio)
    if math.isfinite(found.value) and found.value == int(found.value):
        return number(int(found.value))
    return number_down(found.value) if found.rule == "at least" else number_up(found.value)
