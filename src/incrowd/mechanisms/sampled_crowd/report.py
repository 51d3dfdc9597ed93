"""The reports on a sampled crowd: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, the settings and the published table, and of nothing else: the raw table and the
sample are not even passed to it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, number, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
from incrowd.mechanisms.sampled_crowd.estimate import hidden_at_most
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, read_one_way
from incrowd.mechanisms.sampled_crowd.promise_page import promise, trade_off
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled
from incrowd.mechanisms.sampled_crowd.stated import CrowdStatement
from incrowd.mechanisms.tables import table_name
from incrowd.policy import Policy
from incrowd.recoding.utility import Comparison
from incrowd.reports import comparison
from incrowd.reports.bars import distribution, largest
from incrowd.reports.frame import how_to_verify, internal_page, looks, premises, public_page
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    PageSection,
    code,
    heading,
    label,
    listing,
    paragraph,
    points,
    table,
    tag,
)

TITLE = "A table, published in crowds"
_SUPPRESSED = 12


def public_report(
    policy: Policy, settled: CrowdSettled, publication: Publication, statement: CrowdStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the release.

    Args:
        policy: what was asked for.
        settled: what is promised.
        publication: the release.
        statement: what it says of itself.
        void: why nothing is promised, if so.
    """
    settings, published = settled.crowd, publication.table
    if len(published) and int(published.counts.min()) < settings.k:
        raise InternalError("a report was asked for on a release with too small a crowd")
    output = policy.release.output if policy.release else "parquet"
    grounds = statement.promise.grounds
    sections = [
        PageSection("promise", "What is promised", tuple(promise(settings, grounds))),
        PageSection("trade-off", "The trade-off", tuple(trade_off(settings))),
        PageSection("release", "What the release looks like", tuple(_looks(settled, published, statement))),
        *_totals(publication),
        PageSection("use", "How to use it", tuple(_use(settings, published, output))),
        PageSection("assumptions", "What it rests on", tuple(premises(statement.assumptions))),
    ]
    facts = [
        Fact(
            "ε",
            number(settings.epsilon),
            "how much one person can matter" if settings.persons.several else "how much one record can matter",
        ),
        Fact("δ", number(settings.delta), "a probability on top of that"),
        Fact("k", number(settings.k), "the smallest crowd"),
        Fact("β", number(settings.beta), "the sampling rate"),
        Fact("records", number(published.total), "published"),
        Fact("crowds", number(len(published)), "that share all values"),
    ]
    return public_page(policy, TITLE, _lead(settings), facts, sections, void=void)


def _lead(settings: CrowdSettings) -> str:
    drawn = "came into the data by chance" if settings.already_sampled else "was drawn at random from the data"
    company = f" and shares all published values with at least {count(settings.k - 1, 'other', 'others')}"
    if settings.persons.several:
        return (
            f"Every row of this table {drawn}{company}. A person has {settings.persons.at_most:,} rows at most. This "
            "page says what that promises to the people in it, and how to work with it."
        )
    return (
        f"Every row of this table is one person who {drawn}{company if settings.k > 1 else ''}. This page says what "
        "that promises to the people in it, and how to work with it."
    )


def _looks(settled: CrowdSettled, published: Histogram, statement: CrowdStatement) -> list[Content]:
    if not len(published):
        return _empty(settled.crowd)

    def shown(name: str) -> str:
        level = statement.mechanism.levels[name]
        chosen = name in statement.mechanism.levels_chosen
        return _shown(level, len(published[name].labels), chosen=chosen)

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
    return [PageSection("totals", "How many there are", (said, tag("div", tables, class_="cards")))]


def _shown(level: int, labels: int, *, chosen: bool) -> str:
    how = "as it is" if level == 0 else "all alike" if labels == 1 else f"coarser (level {level})"
    return f"{how}, {'chosen privately' if chosen else 'fixed beforehand'}"


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


def _use(settings: CrowdSettings, published: Histogram, output: str) -> list[Content]:
    beta = repr(settings.beta)
    likely = hidden_at_most(settings.k, settings.beta)
    if not len(published):
        return [
            paragraph("There is nothing to be used. That it is what it claims to be can be checked:"),
            _how_to_verify(),
        ]
    of = settings.persons.estimated
    whole = "population" if settings.already_sampled else "original table"
    # The command takes names apart at commas.
    names = sorted(published.names, key=lambda name: "," in name)[:2]
    by = shlex.quote(",".join(names))
    read = (
        f'pd.read_csv("{table_name(output)}", dtype=str, keep_default_na=False, na_values=[""], skip_blank_lines=False)'
        if output == "csv"
        else f'pd.read_parquet("{table_name(output)}")'
    )
    return [
        points(
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
                (
                    tag("b", "Rows have no order and no identity."),
                    " They are sorted by their values; nothing links them to the rows of the original table.",
                ),
            ]
        ),
        heading("Estimates with standard errors"),
        listing(f"incrowd estimate FOLDER --by {by}"),
        heading("In Python"),
        listing(
            "import pandas as pd\n\n"
            f"release = {read}\n"
            f"{of} = release.groupby({names!r}, dropna=False).size() / {beta}\n"
            f"print({of}.round())"
        ),
        heading("Check it"),
        _how_to_verify(),
    ]


def _how_to_verify() -> Html:
    return how_to_verify(
        "It recounts every crowd, derives ε and δ once more from k and β, and compares every file, this page included, "
        "with the certificate. It cannot see how the sample was drawn: that is taken on the publisher’s word."
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
    """The report that only the publisher may see.

    Args:
        policy: what was asked for.
        attributes: the columns of the table, in its order.
        settled: what is promised.
        table: the full table, base codes.
        made: what came out, the sample included.
        void: why nothing is promised, if so.
    """
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
        PageSection("rules", "What this page is for", tuple(rules())),
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
    lead = (
        "What the release has lost of the table. The numbers on this page are read off the raw data, and no promise "
        "covers them."
    )
    return internal_page(policy, TITLE, lead, facts, sections, void=void)


def rules() -> list[Content]:
    """What the publisher's own report is for."""
    return [
        points(
            [
                (
                    "Nothing on this page may be published, quoted or shown to people who may not see the table. With "
                    "the size of the sample or the number of suppressed records alone, the promise would be broken."
                ),
                (
                    "It helps to judge whether the release is worth publishing. A release that is not published has "
                    "been paid for all the same: the ledger counts it."
                ),
                (
                    "A policy that is changed because of what stands here has been made by looking at the table, and "
                    "no theorem covers that. Let the levels be chosen privately, or learn from last year’s table."
                ),
            ]
        )
    ]


def _numbers(c: Comparison, settings: CrowdSettings) -> list[Content]:
    raw, steps = c.before.total, []
    steps.append(("records in the table", c.before.total, len(c.recoded)))
    steps.append(("sampled", c.sample.total, len(c.sample)))
    steps.append(("published", c.published.total, len(c.published)))
    steps.append(("suppressed after sampling", c.suppressed, len(c.sample) - len(c.published)))
    rows = [[name, number(records), percent(records / raw), number(crowds)] for name, records, crowds in steps]
    expected = "" if settings.already_sampled else f" On average {number(round(settings.beta * raw))} would be sampled."
    return [
        table("Records and crowds", ["", "records", "of the table", "crowds"], rows, numbers=(1, 2, 3)),
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
