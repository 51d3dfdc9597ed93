"""The report on an audit: one HTML file, as confidential as the table that it is about."""

from __future__ import annotations

import math

import numpy as np

from incrowd.auditing.audit import Audit
from incrowd.auditing.disclosure import AuditFigure, Belief, Disclosure
from incrowd.auditing.reidentification import SMALL, Risk
from incrowd.core.numbers import as_given, count, number, percent
from incrowd.reports.bars import Row, bars, crowd_sizes
from incrowd.reports.frame import MARKING
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    Page,
    PageSection,
    code,
    figure,
    heading,
    label,
    markup,
    paragraph,
    points,
    table,
    tag,
)
from incrowd.reports.svg import Axis, Line, line_chart
from incrowd.sources.crowds import PeopleInGroups

_MOST_BARS = 12
_CURVE_GROUPS = 10


def audit_report(audit: Audit) -> bytes:
    """The report on an audit."""
    uniques = audit.risks.sample_uniques
    facts = [
        Fact("records", number(audit.records), count(audit.groups, "group", "groups")),
        Fact("k", number(audit.k), "the smallest group"),
        Fact("alone", percent(uniques / audit.records), count(uniques, "record", "records")),
        Fact("mean risk", _risk(audit.risks.prosecutor.mean), "of being found, by a prosecutor"),
    ]
    if audit.people is not None:
        facts.insert(2, Fact("people", number(audit.people.k), "in the smallest group"))
    if audit.l_diversity is not None and audit.t_closeness is not None:
        facts.append(Fact("ℓ", number(audit.l_diversity), "different values in every group"))
        facts.append(Fact("t", number(audit.t_closeness, 3), "largest distance from the table"))
    sections = [
        *(() if audit.people is None else (PageSection("people", "People, not rows", tuple(_people(audit.people))),)),
        PageSection("found", "How easily people are found", tuple(_risks(audit))),
        PageSection("columns", "Which columns make people stand out", tuple(_columns(audit))),
        *(
            PageSection(f"learned-{i}", f"What can be learned: {d.name}", tuple(_disclosure(d)))
            for i, d in enumerate(audit.sensitive)
        ),
        PageSection("mind", "To keep in mind", (points(audit.notes), _how_to_read())),
    ]
    if not audit.sensitive:
        sections.insert(2, PageSection("groups", "The smallest groups", (_smallest(audit),)))
    return Page(
        kind="Audit",
        title="What a table gives away",
        lead=markup(
            [
                "Records that agree in ",
                *(markup([", " if i else None, label(name)]) for i, name in enumerate(audit.quasi)),
                " look alike to whoever knows these of a person. ",
                "The numbers on this page are read off the table, and promise nothing about any other.",
            ]
        ),
        facts=facts,
        sections=sections,
        closing=f"{MARKING}. This page is as confidential as the table that it is about.",
        marking=MARKING,
    ).render()


def _people(people: PeopleInGroups) -> list[Content]:
    parts: list[Content] = [
        paragraph(
            f"{count(people.people, 'person has', 'people have')} the records, up to {number(people.most_rows)} each. "
            f"The smallest group has {count(people.k, 'person', 'people')}: a group of many records may be one "
            "person's. All other figures on this page count records."
        ),
        paragraph(
            f"{count(people.one_person_groups, 'group is', 'groups are')} of one person each, with "
            f"{count(people.one_person_records, 'record', 'records')}. Whoever knows that somebody is in such a group "
            "knows whose all its records are."
        ),
    ]
    if people.one_person:
        rows: list[list[Content]] = [
            [number(g.records), *([] if g.labels is None else [markup([label(v), " "]) for v in g.labels.values()])]
            for g in people.one_person
        ]
        head = ["records", *(people.one_person[0].labels or ())]
        parts.append(table("The largest groups of one person", head, rows, numbers=(0,)))
    if people.without_identifier:
        missing = count(people.without_identifier, "record does", "records do")
        parts.append(paragraph(f"{missing} not say whose: each was taken for a person."))
    return parts


# --- being found ----------------------------------------------------------------------------------------------------


def _risks(audit: Audit) -> list[Content]:
    risks = audit.risks
    attackers: list[tuple[str, Risk | None, str]] = [
        ("prosecutor", risks.prosecutor, "knows that the person is in the table"),
        ("journalist", risks.journalist, "does not know it, and wants to find anybody"),
        ("individual risk", risks.individual, "the journalist, by a model of the population"),
    ]
    rows: list[list[Content]] = [
        [
            name,
            _risk(risk.highest),
            _risk(risk.mean),
            percent(risk.above),
            number(risk.expected),
            markup([who, ": ", risk.estimator]),
        ]
        for name, risk, who in attackers
        if risk is not None
    ]
    rows.append(
        [
            "marketer",
            "",
            _risk(risks.marketer),
            "",
            number(risks.marketer * audit.records),
            f"matches all records at once: {risks.marketer_estimator}",
        ]
    )
    parts: list[Content] = [
        table(
            "Risks of being found",
            [
                "attacker",
                "highest",
                "mean",
                f"above {as_given(risks.threshold)}",
                "found",
                "who, and how it is found out",
            ],
            rows,
            numbers=(1, 2, 3, 4),
        ),
        paragraph(
            "Mean: over all records. Above: the share of records with a risk above the threshold. Found: how many "
            "records would be matched rightly on average, the sum of all risks."
        ),
    ]
    parts += [
        paragraph(f"Every group has at least {number(audit.k)} records.")
        if audit.k >= SMALL[-1]
        else bars(
            "Records in small groups",
            "",
            ("records", "of all"),
            [
                Row(
                    f"fewer than {s.below}" if s.below > 2 else "alone",
                    [s.share],
                    [number(s.records), percent(s.share)],
                )
                for s in risks.small_groups
            ],
        ),
        crowd_sizes("Groups by their size", _median(audit), audit.sizes, called="groups")
        if audit.groups >= _CURVE_GROUPS
        else None,
        _share_chart(audit),
    ]
    if risks.population_uniques:
        parts.append(
            table(
                "People like nobody else",
                ["records about them", "in the population", "to be believed", "how it was found out"],
                [
                    [
                        number(round(u.in_table, 1)),
                        "" if u.in_population is None else number(round(u.in_population, 1)),
                        "this one" if u.believed else "too low, as a rule",
                        u.estimator,
                    ]
                    for u in risks.population_uniques
                ],
                numbers=(0, 1),
            )
        )
    return parts


def _risk(probability: float) -> str:
    return percent(probability) if probability == 0 or probability >= 0.001 else number(probability, 2)


def _median(audit: Audit) -> str:
    ordered = np.sort(audit.sizes)
    middle = int(ordered[np.searchsorted(np.cumsum(ordered), audit.records / 2)])
    return f"Half of the records are in groups of {number(middle)} or fewer."


def _share_chart(audit: Audit) -> Html | None:
    """The share of records in groups below each size, on a grid."""
    largest = int(audit.sizes.max())
    if audit.groups < _CURVE_GROUPS or largest < 3:
        return None
    ordered = np.sort(audit.sizes)
    reached = np.concatenate([[0], np.cumsum(ordered)]) / audit.records
    grid = np.unique(np.geomspace(1, largest + 1, 80).round().astype(np.int64))
    below = reached[np.searchsorted(ordered, grid, side="left")]
    chart = line_chart(
        "Records in groups smaller than k",
        Axis("k", log=True, low=1.0),
        Axis("share of records", low=0.0, high=1.0),
        [Line("in smaller groups", [float(k) for k in grid], [float(share) for share in below])],
    )
    return figure(chart, "What would have to be left out for groups of at least k, if nothing else were changed.")


# --- columns --------------------------------------------------------------------------------------------------------


def _columns(audit: Audit) -> list[Content]:
    uniques, mean = audit.minimal_uniques, audit.risks.prosecutor.mean
    rows: list[list[Content]] = [
        [
            label(c.name),
            number(c.distinct),
            f"{number(c.entropy)}",
            number(c.uniques),
            number(c.k_without),
            _risk(c.mean_risk_without),
            number(c.uniques_without),
            number(uniques.by_column[c.name]),
            number(audit.missing[c.name]),
        ]
        for c in audit.contributions
    ]
    shown = audit.contributions[:_MOST_BARS]
    parts: list[Content] = [
        bars(
            "Mean risk if the column were not there",
            f"With all columns it is {_risk(mean)}. The shorter the bar, the more the column contributes.",
            ("mean risk",),
            [Row(label(c.name), [c.mean_risk_without / mean], [_risk(c.mean_risk_without)]) for c in shown],
        ),
        table(
            "Each column, the most contributing first",
            [
                "column",
                "values",
                "bits",
                "alone by it",
                "k without",
                "mean risk without",
                "alone without",
                "in smallest sets",
                "missing",
            ],
            rows,
            numbers=range(1, 9),
        ),
        paragraph(
            "Bits: the entropy, how much a value tells on average. Alone by it: records whose value nobody else has. "
            "Without: what the whole table would be like if the column were left out. Missing values are counted as a "
            "value of their own."
        ),
    ]
    sets = ", ".join(
        f"{number(found)} of {count(size, 'column', 'columns')}" for size, found in uniques.by_size.items() if found
    )
    largest = count(uniques.columns_searched, "column", "columns")
    if uniques.records:
        parts.append(
            paragraph(
                f"{count(uniques.records, 'record is', 'records are')} singled out by {largest} or fewer. The smallest "
                f"sets of columns that single a record out: {sets}. In smallest sets: how many of them a column is in. "
                "Such people are easily found, and stay unique while other columns are recoded."
            )
        )
    else:
        parts.append(paragraph(f"No record is singled out by {largest} or fewer."))
    return parts


# --- being learned about --------------------------------------------------------------------------------------------


def _disclosure(d: Disclosure) -> list[Content]:
    domain = "the declared domain" if d.declared else "the values that occur"
    parts: list[Content] = [
        paragraph(
            f"{count(d.values, 'value', 'values')} ({domain}) in {count(d.groups, 'group', 'groups')}. "
            + (
                f"In {count(d.homogeneous_groups, 'group', 'groups')} with "
                f"{count(d.homogeneous_records, 'record', 'records')} everybody has the same value: whoever finds the "
                "group has learned it."
                if d.homogeneous_groups
                else "In no group has everybody the same value."
            )
        ),
        _figures(d),
    ]
    if d.beliefs:
        parts += [heading("Against an adversary"), _beliefs(d)]
    if d.stubbornness:
        parts.append(_stubbornness_chart(d))
    if d.worst:
        parts += [heading("The worst groups"), _worst(d)]
    return parts


def _figures(d: Disclosure) -> Html:
    rows: list[tuple[str, AuditFigure | None, str]] = [
        ("distinct ℓ", d.distinct_l, "the smallest number of different values in a group"),
        ("entropy ℓ", d.entropy_l, "as many equally frequent values would be as uncertain"),
        ("recursive (c,2)", d.recursive_c[2], "c must exceed: the most frequent value against all the others"),
        ("recursive (c,3)", d.recursive_c[3], "c must exceed: against all but the two most frequent"),
        ("t, equal distance", d.t, "the largest distance of a group from the whole table"),
        ("t, ordered distance", d.t_ordered, "the same, values farther apart being farther away"),
        ("α", d.largest_share, "the largest share of one value in a group"),
        ("β, basic", d.beta, "the largest relative gain of a value’s share over the table’s"),
        ("β, enhanced", d.beta_enhanced, "the same, infinite where a frequent value becomes too likely"),
        ("δ", d.delta, "must be exceeded: the largest |ln| of a group’s share over the table’s"),
    ]
    return table(
        "Measures",
        ["measure", "value", "worst group", "of records", "what it is"],
        [[name, number(f.value), number(f.group), number(f.size), what] for name, f, what in rows if f is not None],
        numbers=(1, 2, 3),
    )


def _beliefs(d: Disclosure) -> Html:
    rows = [
        [
            markup([code(b.adversary), _statement(b)]),
            b.shown,
            number(b.p_in),
            number(b.p_out),
            number(b.group),
            number(b.size),
        ]
        for b in d.beliefs
    ]
    whole = table(
        "Belief ratios",
        ["adversary", "ratio", "belief with", "without", "worst group", "of records"],
        rows,
        numbers=range(1, 6),
    )
    note = paragraph(
        "The belief of the adversary in the statement that is given away most, about a member of the worst group, with "
        "that person’s record in the table and without it. The ratio bounds how far any such belief, or the doubt "
        "in it, is moved; 1 is best. It is no ε of differential privacy."
    )
    return markup([whole, note])


def _statement(belief: Belief) -> Html | None:
    if belief.statement is None:
        return None
    return markup([" ", tag("small", "not " if belief.negated else None, label(belief.statement))])


def _stubbornness_chart(d: Disclosure) -> Html:
    sigmas = [point.sigma for point in d.stubbornness]
    lines = [Line("any belief (class II)", sigmas, [point.any_shape for point in d.stubbornness])]
    if d.stubbornness[0].table_shape is not None:
        lines.append(Line("the table’s shares (class I)", sigmas, [point.table_shape for point in d.stubbornness]))
    spread = max(y for line in lines for y in line.y if y is not None and math.isfinite(y))
    chart = line_chart(
        "Belief ratio by stubbornness",
        Axis("stubbornness σ", log=True),
        Axis("belief ratio", log=spread > 20, low=1.0 if spread > 20 else 0.0),
        lines,
    )
    return figure(
        chart, "The firmer a belief, the less a small group should move it: a large ratio shows that it does."
    )


def _worst(d: Disclosure) -> Html:
    shown = d.worst[0].labels
    names = [*map(label, shown), "mostly"] if shown is not None else []
    head = ["group", "records", "values", "largest share", "t", *(f"ratio {i + 1}" for i in range(len(d.beliefs)))]
    rows: list[list[Content]] = []
    for w, groups in d.worst_alike:
        row: list[Content] = [
            _group(w.group, groups),
            number(w.size),
            number(w.distinct),
            percent(w.largest_share),
            number(w.t),
        ]
        row += w.shown
        if w.labels is not None:
            row += [*map(label, w.labels.values()), label(w.commonest)]
        rows.append(row)
    numbers = range(len(head))
    return table(f"The worst {len(d.worst)} of {number(d.groups)} groups", [*head, *names], rows, numbers=numbers)


def _group(first: int, groups: int) -> str:
    return number(first) if groups == 1 else f"{number(first)} and {number(groups - 1)} alike"


def _smallest(audit: Audit) -> Html:
    shown = audit.smallest[0].labels if audit.smallest else None
    rows: list[list[Content]] = [
        [_group(g.group, groups), number(g.size), *(map(label, g.labels.values()) if g.labels is not None else ())]
        for g, groups in audit.smallest_alike
    ]
    names = [] if shown is None else [*map(label, shown)]
    return table("The smallest groups", ["group", "records", *names], rows, numbers=(0, 1))


def _how_to_read() -> Html:
    return paragraph(
        "Groups are numbered in the order of their values. Which values these are is shown only on request: on this "
        "page they would be data about people."
    )
