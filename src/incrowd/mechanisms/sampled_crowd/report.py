"""The reports on a sampled crowd: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, the settings and the published table, and of nothing else: the raw table and the
sample are not even passed to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, number, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
from incrowd.mechanisms.sampled_crowd.estimate import hidden_at_most
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, VALUES, read_one_way
from incrowd.mechanisms.sampled_crowd.promise_page import crowd_facts, promise, why
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled
from incrowd.mechanisms.tables import read_code
from incrowd.policy import Policy
from incrowd.policy.texts import several
from incrowd.recoding.utility import Comparison
from incrowd.reports import comparison
from incrowd.reports.bars import distribution, largest
from incrowd.reports.frame import Use, cards, internal_page, level_in_words, looks, public_page, records_table
from incrowd.reports.page import Content, Fact, PageSection, code, heading, label, paragraph, points, table, tag

TITLE = "A table, published in crowds"
GIVES_AWAY = "with the size of the sample or the number of suppressed records alone, the promise would be broken."
_SUPPRESSED = 12


def public_report(
    policy: Policy, settled: CrowdSettled, publication: Publication, statement: CrowdStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the release."""
    settings, published = settled.crowd, publication.table
    if len(published) and int(published.counts.min()) < settings.k:
        raise InternalError("a report was asked for on a release with too small a crowd")
    output = policy.release.output if policy.release else "parquet"
    return public_page(
        policy,
        TITLE,
        _lead(settings),
        crowd_facts(settings, published, Fact("crowds", number(len(published)), "that share all values")),
        data=[
            PageSection("release", "What the release looks like", tuple(_looks(settled, published, statement))),
            *_totals(publication),
            *_values(publication),
        ],
        promise=promise(settings),
        use=_use(settings, published, output),
        why=why(settings),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        void=void,
    )


def _lead(settings: CrowdSettings) -> str:
    drawn = "came into the data by chance" if settings.already_sampled else "was drawn at random from the data"
    company = f" and shares all published values with at least {count(settings.k - 1, 'other', 'others')}"
    if settings.persons.several:
        return f"Every row of this table {drawn}{company}. A person has {settings.persons.at_most:,} rows at most."
    return f"Every row of this table is one person who {drawn}{company if settings.k > 1 else ''}."


def _looks(settled: CrowdSettled, published: Histogram, statement: CrowdStatement) -> list[Content]:
    if not len(published):
        return _empty(settled.crowd)

    def shown(name: str) -> str:
        level = statement.mechanism.levels[name]
        chosen = name in statement.mechanism.levels_chosen
        how = level_in_words(level, len(published[name].labels))
        return f"{how}, {'chosen privately' if chosen else 'fixed beforehand'}"

    note = "A value that is shown as never occurring may be absent from the data, or too rare to be published."
    return [*looks(published, shown, note), *_counted(statement)]


def _counted(statement: CrowdStatement) -> list[Content]:
    choice = statement.mechanism.choice
    if choice is None or choice.weights is None:
        return []
    paid = (
        "These weights were found from one-way tables with noise, which cost "
        f"{number(choice.tables_epsilon)} of ε₁: a column in which nearly all people have one value counts little."
        if choice.tables_epsilon
        else "These weights are the policy’s."
    )
    rows = [[label(name), percent(weight)] for name, weight in sorted(choice.weights.items())]
    return [
        heading("What each column counted when levels were chosen"),
        table("Weights of columns", ["column", "weight"], rows, numbers=(1,)),
        paragraph(paid),
    ]


def _totals(publication: Publication) -> list[PageSection]:
    """The noisy counts of each column, if there are some."""
    if ONE_WAY not in publication.beside:
        return []
    one_way = read_one_way(publication.beside[ONE_WAY])
    reach = one_way.margin()
    tables = [
        distribution(label(name), "noisy counts", labels, np.maximum(one_way.counts[name], 0))
        for name, labels in one_way.labels.items()
    ]
    said = paragraph(
        "Beside the crowds stand noisy counts of all records, one column at a time (",
        code(ONE_WAY),
        f"). Each is within {number(reach)} of the true number with a probability of 95%; a count below 0 is "
        "shown as 0 here. ",
        code("incrowd estimate"),
        " fits its estimates to them.",
    )
    return [PageSection("totals", "How many there are", (said, cards(tables)))]


def _values(publication: Publication) -> list[PageSection]:
    """What the noisy counts that a choice has paid for say of the columns that crowds hide."""
    if VALUES not in publication.beside:
        return []
    values = read_one_way(publication.beside[VALUES])
    hidden = [name for name, labels in values.labels.items() if len(publication.table[name].labels) == 1 < len(labels)]
    tables = [
        distribution(label(name), "likely counts", values.labels[name], np.rint(values.likely(name)).astype(np.int64))
        for name in hidden
    ]
    said = [
        paragraph(
            "Beside the crowds stand the noisy counts by which columns were weighed (",
            code(VALUES),
            "): how many records have each value of each column, and what it is shown as. Each is within "
            f"{number(values.margin())} of the true number with a probability of 95%. ",
            code("incrowd estimate"),
            " uses them for its intervals and for columns of which the crowds show nothing.",
        )
    ]
    if hidden:
        said.append(
            paragraph(
                f"Of {several(hidden)} the crowds show nothing. The counts below are what the noisy ones make "
                "likely: none is below 0, and where noise may be all of a difference, values are taken to be equally "
                "frequent."
            )
        )
    return [PageSection("values", "How many have each value", (*said, *([cards(tables)] if tables else [])))]


def _empty(settings: CrowdSettings) -> list[Content]:
    likely, of = hidden_at_most(settings.k, settings.beta), settings.persons.estimated
    choose = (
        "Let the levels be chosen privately instead of fixing them: set ",
        code("selection_epsilon"),
        " and leave out the levels.",
    )
    return [
        tag(
            "div",
            paragraph(
                tag("b", "The release is empty."),
                f" No combination of values was shared by {number(settings.k)} sampled records, so there was no crowd "
                "in which anybody could have been hidden. The promise holds all the same, and nothing went wrong: the "
                "table was shown too finely for its size.",
            ),
            class_="aside",
        ),
        paragraph("What a publisher can do about it:"),
        points(
            [
                (
                    "Show fewer columns, or show them more coarsely: crowds grow quickly. With "
                    f"these settings a crowd is likely to appear (95%) if {likely:,} {of} share its values."
                ),
                *([] if settings.selection_epsilon else [choose]),
                "Allow a larger ε or δ, with which smaller crowds are enough.",
                (
                    "Every further release of the same data spends from its budget again. Do not look for a policy "
                    "that works by trying many on the real table: plan with "
                    "what is known about it anyway."
                ),
            ]
        ),
    ]


def _use(settings: CrowdSettings, published: Histogram, output: str) -> Use:
    verifying = (
        "It recounts every crowd, derives ε and δ once more from k and β, and compares every file, this page included, "
        "with the certificate. It cannot see how the sample was drawn: that is taken on the publisher’s word."
    )
    if not len(published):
        return Use((), (), verifying)
    likely, of = hidden_at_most(settings.k, settings.beta), settings.persons.estimated
    whole = "population" if settings.already_sampled else "original table"
    names = sorted(published.names, key=lambda name: "," in name)[:2]
    return Use(
        [
            (
                tag("b", "Give every row the weight 1/β."),
                (
                    f" A row stands for 1/{number(settings.beta, 6)} ≈ {number(1 / settings.beta)} {of} of the "
                    f"{whole}, a crowd of n rows for about n/β, with a standard error of about √(n(1−β))/β."
                ),
            ),
            (
                tag("b", "Expect small crowds to be missing."),
                (
                    f" What was not published was shared by fewer than about {likely:,} {of} (with a probability "
                    "of 95%). Totals over many small crowds come out too small, rare values rarer than they are."
                ),
            ),
        ],
        names,
        verifying,
        python="import pandas as pd\n\n"
        f"release = {read_code(output)}\n"
        f"{of} = release.groupby({names!r}, dropna=False).size() / {settings.beta!r}\n"
        f"print({of}.round())",
    )


# --- the publisher's own ----------------------------------------------------------------------------------------------


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: CrowdSettled,
    table: Histogram,
    made: Made[CrowdOutcome, CrowdStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see."""
    settings = settled.crowd
    c = Comparison(
        table,
        {a.name: a.hierarchy.recode(made.levels[a.name]) for a in attributes},
        made.outcome.sample,
        made.published,
        1.0 if settings.already_sampled else settings.beta,
        made.outcome.recoded,
    )
    sections = [
        PageSection("numbers", "What became of the records", tuple(_numbers(c, settings))),
        PageSection("loss", "How much information is left", tuple(comparison.measures(c, settings.k))),
        PageSection("columns", "Each column, before and after", tuple(comparison.columns(c, attributes, made.levels))),
        PageSection("suppressed", "What was suppressed", tuple(_suppressed(c, settings))),
        PageSection("queries", "How wrong counts are", tuple(comparison.queries(c))),
    ]
    facts = [
        Fact("in the table", number(table.total), "records"),
        Fact("sampled", number(c.sample.total), _of(c.sample.total, table.total)),
        Fact("published", number(c.published.total), f"{_of(c.published.total, c.sample.total)} of the sample"),
        Fact("suppressed", number(c.suppressed), f"{_of(c.suppressed, c.sample.total)} of the sample"),
    ]
    return internal_page(policy, TITLE, facts, sections, gives_away=GIVES_AWAY, void=void)


def _numbers(c: Comparison, settings: CrowdSettings) -> list[Content]:
    steps = [
        ("records in the table", c.before.total, len(c.recoded)),
        ("sampled", c.sample.total, len(c.sample)),
        ("published", c.published.total, len(c.published)),
        ("suppressed after sampling", c.suppressed, len(c.sample) - len(c.published)),
    ]
    mean = number(round(settings.beta * c.before.total))
    expected = "" if settings.already_sampled else f" On average {mean} would be sampled."
    return [
        records_table("Records and crowds", steps, "crowds"),
        paragraph(
            "Crowds are combinations of values as the release shows them. "
            + (
                "The table was declared to be a sample already, so all of it is the sample."
                if settings.already_sampled
                else f"Each record was sampled with probability β = {number(settings.beta, 6)}.{expected}"
            )
        ),
    ]


def _suppressed(c: Comparison, settings: CrowdSettings) -> list[Content]:
    if not c.suppressed:
        return [paragraph("No sampled record was suppressed."), comparison.by_size(c)]
    gone = np.flatnonzero(c.sample.counts < settings.k)
    named = c.sample.at(np.sort(gone[largest(c.sample.counts[gone], _SUPPRESSED)]))
    sizes = c.recoded.counts[c.recoded.places(named)]
    rows = [
        [
            number(int(named.counts[i])),
            number(int(sizes[i])),
            *(label(column.labels[int(column.codes[i])]) for column in named.columns),
        ]
        for i in largest(named.counts, len(named))
    ]
    return [
        paragraph(
            f"{count(c.suppressed, 'sampled record', 'sampled records')} in {count(len(gone), 'crowd', 'crowds')} of "
            f"fewer than k = {number(settings.k)}."
        ),
        comparison.by_size(c),
        table(
            f"The largest of them ({number(len(rows))} of {number(len(gone))})",
            ["sampled", "in the table", *map(label, named.names)],
            rows,
            numbers=(0, 1),
        ),
    ]


def _of(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"
