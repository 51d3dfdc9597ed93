"""The reports on a generalized table: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, the settings and the published table, and of nothing else: the raw table and the
rest of the lattice are not even passed to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, exactly, number, number_up, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.generalization.beliefs_page import (
    adversary,
    group_sizes,
    ratios_by_group,
    requirements,
    worst_groups,
)
from incrowd.mechanisms.generalization.certificate import GeneralizationStatement
from incrowd.mechanisms.generalization.draw import GeneralizationOutcome
from incrowd.mechanisms.generalization.lattice_page import tables_there_were
from incrowd.mechanisms.generalization.lattice_view import lattice_json
from incrowd.mechanisms.generalization.settle import GeneralizationSettings, GeneralizationSettled
from incrowd.mechanisms.generalization.state import people_beside
from incrowd.mechanisms.tables import read_code
from incrowd.policy import Policy
from incrowd.recoding.demands import Groups, groups_of
from incrowd.recoding.utility import Comparison
from incrowd.reports import comparison
from incrowd.reports.frame import Use, column_cards, internal_page, level_in_words, public_page, records_table
from incrowd.reports.page import Content, Fact, PageSection, heading, paragraph, tag

_TITLE = "A table, made coarser"
_KIND = "The promise is a property of this table, which anyone can find out again."


def public_report(
    policy: Policy,
    settled: GeneralizationSettled,
    publication: Publication,
    statement: GeneralizationStatement,
    *,
    void: str | None,
) -> bytes:
    """The report that is published beside the release."""
    settings, published = settled.generalization, publication.table
    groups = groups_of(published, settings.quasi, settings.sensitive, people_beside(publication, settings.quasi))
    if any(groups.failing(demand) for demand in settled.demands):
        raise InternalError("a report was asked for on a table that does not withstand what it must")
    feared = [demand for demand in settled.demands if demand.belief is not None]
    sizes = groups.shown.counts
    least = sizes if groups.people is None else groups.people
    facts = [
        Fact("records", number(published.total), "published"),
        Fact("groups", number(len(sizes)), "of people who look alike"),
        Fact("smallest group", number(int(least.min())), "records" if groups.people is None else "people"),
        *(
            Fact(
                "belief ratio",
                f"≤ {exactly(entry.belief_ratio)}",
                f"against {entry.name}; {number_up(entry.belief_ratio_reached)} reached",
            )
            for entry in statement.promise.adversaries[:3]
        ),
    ]
    row = "a record of a person" if settled.persons.several else "one person"
    who = "everyone whom its publisher fears" if feared else "what its publisher asks of it"
    return public_page(
        policy,
        _TITLE,
        f"Every row of this table is {row}, made coarser until the table withstood {who}.",
        facts,
        data=[
            PageSection("release", "What the release looks like", tuple(_looks(settings, published, statement))),
            PageSection("groups", "The groups", tuple(_groups(settled, groups))),
        ],
        promise=_promise(settled, groups, published),
        use=_use(settled, published, policy),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        kind=_KIND,
        void=void,
    )


def _promise(settled: GeneralizationSettled, groups: Groups, published: Histogram) -> list[Content]:
    parts: list[Content] = [
        tag(
            "div",
            paragraph(tag("b", "This is not differential privacy.")),
            paragraph(
                "It is a promise against the adversaries named here, who know what is described here and nothing "
                "else. How coarse the table is was chosen by looking at the data, and whoever reasons about that "
                "choice may learn more."
            ),
            paragraph(
                "Recoding is local: records are shown at different levels, each as finely as the records around it "
                "allowed. A value that is shown in a wide range had few others near it. Extreme values are not "
                "protected by that."
            )
            if settled.generalization.local
            else None,
            class_="aside",
        )
    ]
    if any(demand.belief for demand in settled.demands):
        parts.append(
            paragraph(
                "Take any person in this table, and a statement about that person. Had the person been left out, an "
                "adversary would believe it with some probability, from what she knew and from people who look alike. "
                "The ",
                tag("b", "belief ratio"),
                " is how many times as much she believes it with the person in, or how many times less she doubts it, "
                "whichever is more.",
            )
        )
    number_of = 0
    for demand in settled.demands:
        if (belief := demand.belief) is not None and demand.sensitive is not None:
            labels, seen = _values(settled, published)[demand.sensitive], groups.seen_by(demand)
            parts += (
                adversary(belief, demand.sensitive, labels, seen, read=number_of in settled.seen)
                if seen.shown.total
                else [paragraph(f"Of the people whom {belief.against} is feared for, none can be in this table.")]
            )
            number_of += 1
    others = [demand for demand in settled.demands if demand.belief is None]
    if others:
        parts += [
            heading("What every group has"),
            requirements(others, groups),
            paragraph("These are facts that can be counted. They say nothing about what anyone believes."),
        ]
    return parts


def _values(settled: GeneralizationSettled, published: Histogram) -> Mapping[str, Sequence[str | None]]:
    """The values of sensitive columns, and of combinations that something is demanded about."""
    return settled.release.values({name: published[name].labels for name in settled.generalization.sensitive})


def _groups(settled: GeneralizationSettled, groups: Groups) -> list[Content]:
    parts: list[Content] = [
        paragraph(
            "A group is made of all people who look alike in the columns that others may know of them. Someone who "
            "looks for a person in this table finds a group, and what the table says about the person is what it says "
            "about the group."
        ),
        group_sizes(groups),
    ]
    parts += [
        ratios_by_group(belief, demand.sensitive, groups.seen_by(demand))
        for demand in settled.demands
        if (belief := demand.belief) is not None and demand.sensitive is not None and groups.seen_by(demand).shown.total
    ]
    return parts


def _looks(settings: GeneralizationSettings, published: Histogram, statement: GeneralizationStatement) -> list[Content]:
    levels = statement.mechanism.levels

    def shown(name: str) -> str:
        if name not in levels:
            return "each record as finely as its group allows"
        how = level_in_words(levels[name], len(published[name].labels))
        if name in settings.sensitive:
            return f"{how}, sensitive"
        return f"{how}, {'fixed beforehand' if name in settings.fixed else 'chosen on the data'}"

    return [
        paragraph(f"{count(published.total, 'record', 'records')}. Every one of them is true, at the level shown."),
        column_cards(published, shown),
    ]


def _use(settled: GeneralizationSettled, published: Histogram, policy: Policy) -> Use:
    output = policy.release.output if policy.release else "parquet"
    return Use(
        [
            (
                tag("b", "Count."),
                f" Rows are {settled.persons.called}, with weight 1; counts have no sampling error.",
            ),
            (
                tag("b", "A label stands for all values that it covers."),
                " Which of them a person has is not in the table. Spreading people evenly over them is a guess.",
            ),
            _who_is_missing(settled),
            (
                tag("b", "Do not take it together with other releases"),
                " about the same people and expect the promise to hold: belief ratios do not add up.",
            ),
        ],
        published.names,
        "It derives every belief ratio and every requirement once more from the table itself, with the priors that "
        "the certificate states, and compares every file, this page included, with the certificate.",
        python=f"import pandas as pd\n\ntable = {read_code(output)}\ntable.value_counts()",
    )


def _who_is_missing(settled: GeneralizationSettled) -> tuple[Content, ...]:
    share, said = settled.generalization.suppression, ""
    if share:
        said += (
            f" Up to {percent(share)} of the table may have been left out, in whole groups: rare combinations are "
            "missing more often than others."
        )
    if settled.dropping:
        said += f" Records without a value of {', '.join(settled.dropping)} were left out beforehand."
    if said:
        return tag("b", "People may be missing."), said
    rows = f"rows of people that count, {settled.persons.at_most:,} of each at most"
    return (
        tag("b", "Nobody was left out."),
        f" The table has as many rows as the publisher has {rows if settled.persons.several else 'people'}.",
    )


# --- the publisher's own ----------------------------------------------------------------------------------------------


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: GeneralizationSettled,
    table: Histogram,
    made: Made[GeneralizationOutcome, GeneralizationStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see."""
    settings, outcome = settled.generalization, made.outcome
    if not isinstance(outcome, GeneralizationOutcome):
        raise InternalError("a report was asked for on another mechanism's outcome")
    groups = groups_of(made.published, settings.quasi, settings.sensitive, outcome.people)
    left_out = table.total - made.published.total
    sections = [
        PageSection("numbers", "What became of the records", tuple(_numbers(settings, table, made, groups))),
    ]
    facts = [
        Fact("in the table", number(table.total), "records"),
        Fact("published", number(made.published.total), "records"),
        Fact("left out", number(left_out), percent(left_out / table.total)),
    ]
    if outcome.found is not None:
        sections.append(
            PageSection(
                "lattice",
                "The tables there were to choose from",
                tuple(tables_there_were(settings, table, outcome, outcome.found)),
            )
        )
        facts.append(Fact("tables", number(settings.size), "to choose from"))
    else:
        facts.append(Fact("information kept", percent(1 - outcome.loss), "of the quasi-identifiers"))
    sections.append(PageSection("worst", "The groups most at risk", tuple(_worst(settled, groups, made.published))))
    if not settings.local:
        recodes = {a.name: a.hierarchy.recode(made.levels[a.name]) for a in attributes}
        recoded = table.recode(recodes)
        c = Comparison(table, recodes, recoded, made.published, whole=recoded)
        sections += [
            PageSection("loss", "How much information is left", tuple(comparison.measures(c))),
            PageSection(
                "columns", "Each column, before and after", tuple(comparison.columns(c, attributes, made.levels))
            ),
            PageSection("queries", "How wrong counts are", tuple(comparison.queries(c))),
        ]
    return internal_page(
        policy,
        _TITLE,
        facts,
        sections,
        gives_away="what other tables would have had, and how many records were left out, tells about people.",
        more=["Limits and adversaries are decided before looking, not by what would let a finer table through."],
        void=void,
    )


def internal_files(
    settled: GeneralizationSettled, table: Histogram, made: Made[GeneralizationOutcome, GeneralizationStatement]
) -> dict[str, bytes]:
    """What else only the publisher may see: the lattice as data, where there is one."""
    outcome = made.outcome
    if outcome.found is None:
        return {}
    return {"lattice.json": lattice_json(settled.generalization, table, outcome, outcome.found)}


def _numbers(
    settings: GeneralizationSettings,
    whole: Histogram,
    made: Made[GeneralizationOutcome, GeneralizationStatement],
    groups: Groups,
) -> list[Content]:
    published = made.published.total
    steps = [
        ("in the table", whole.total, None),
        ("published", published, len(groups.shown)),
        ("left out", whole.total - published, None),
    ]
    allowed = f"Up to {percent(settings.suppression)}" if settings.suppression else "No record"
    return [
        records_table("Records and groups", steps, "groups"),
        paragraph(f"{allowed} may be left out."),
    ]


def _worst(settled: GeneralizationSettled, groups: Groups, published: Histogram) -> list[Content]:
    parts: list[Content] = [paragraph("Groups of the published table, worst first.")]
    for demand in settled.demands:
        if (belief := demand.belief) is not None and demand.sensitive is not None:
            labels, seen = _values(settled, published)[demand.sensitive], groups.seen_by(demand)
            if seen.shown.total:
                parts.append(worst_groups(belief, demand.sensitive, labels, seen, most=12))
    others = [demand for demand in settled.demands if demand.belief is None]
    if others:
        parts.append(requirements(others, groups))
    return parts
