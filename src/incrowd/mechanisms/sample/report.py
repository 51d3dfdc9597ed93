"""The reports on a plain sample: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, what is promised and the sample, and of nothing else. Counts of the table, classes
of its values and the curve of δ are read off the raw table: they are on the publisher's own page only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import as_given, count, number, percent
from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sample.advice import Advice, Blame, Step, advise, scales
from incrowd.mechanisms.sample.certificate import SampleStatement
from incrowd.mechanisms.sample.draw import SampleOutcome
from incrowd.mechanisms.sample.plan import draw_sample, plan_sample
from incrowd.mechanisms.sample.settle import SampleSettled, Terms
from incrowd.mechanisms.sample.state import factor
from incrowd.mechanisms.tables import read_code
from incrowd.policy import Policy
from incrowd.recoding.utility import Comparison
from incrowd.reports import comparison
from incrowd.reports.frame import Use, internal_page, level_in_words, looks, public_page
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    PageSection,
    figure,
    formula,
    heading,
    label,
    markup,
    paragraph,
    points,
    table,
    tag,
)
from incrowd.theory import sampling
from incrowd.theory.intervals import SURPRISE, absent_at_most

_TITLE = "A random sample of a table"
_BELIEFS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_CURVE = 40
_GIVES_AWAY = (
    "not how many values are rare, not the curve of δ, not the exact rate (the published one has fewer digits)."
)
_DO_NOT_DRAW_AGAIN = (
    tag("b", "Do not draw again because of what stands here."),
    (
        " A sample that is kept only if it looks harmless is another method, and the promise is not about it. Two "
        "records of a kind, one sampled, ε = 1: the sample is private (the ratio is 2) and would be kept. Had one of "
        "the two another value, the same sample would be telling, and would be drawn again. So whoever sees it kept "
        "knows that there are two: the ratio is infinite."
    ),
)
_STEPS = 14


def public_report(
    policy: Policy, settled: SampleSettled, published: Histogram, statement: SampleStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the sample."""
    terms = _terms(statement)
    output, of = policy.release.output if policy.release else "parquet", Persons.in_policy(policy).estimated
    facts = [
        Fact("records", number(published.total), "in the sample"),
        Fact("distinct", number(len(published)), "combinations of values"),
        Fact("p", f"{number(100 * terms.rate, 3)}%", "of the records are sampled"),
        Fact("ε", repr(terms.epsilon), "how much records can matter"),
        Fact("δ", repr(terms.delta), "the probability of a telling sample"),
        Fact("c", number(terms.rows_unknown), "records changed together"),
    ]
    return public_page(
        policy,
        _TITLE,
        "Every row of this table is one person who was drawn at random from the data, each with the same probability.",
        facts,
        data=[PageSection("release", "What the release looks like", tuple(_looks(settled, published, statement)))],
        promise=_promise(terms, statement),
        use=_use(terms, statement, published, output, of),
        why=_why(terms, statement),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        void=void,
    )


def _terms(statement: SampleStatement) -> Terms:
    promise = statement.promise
    return Terms(promise.epsilon, promise.delta, statement.mechanism.rate, promise.rows_unknown)


def _promise(terms: Terms, statement: SampleStatement) -> list[Content]:
    # As they are promised, digit by digit: to the nearest of a few digits could be less.
    d, c = repr(terms.delta), terms.rows_unknown
    times = 1 + Fraction(repr(terms.epsilon))
    rows = [
        [
            f"{as_given(float(q) * 100)}%",
            f"{_down(q / (q + (1 - q) * times))} to {_up(q * times / (1 - q + q * times))}",
        ]
        for q in _BELIEFS
    ]
    whose = "any record" if c == 1 else f"any {c} records together"
    rounded = bool(statement.mechanism.rounded)
    others = "all other records as they were rounded" if rounded else "all other records"
    found = statement.promise.found_by_looking_at_this_table
    looked = {
        "rate": "The rate was chosen by looking at this table: it is the largest that keeps the promise, rounded down.",
        None: "That the promise holds at the planned rate was found by looking at this table.",
    }.get(found, "What the planned rate promises was found by looking at this table.")
    return [
        paragraph(
            f"Take {whose} of the table{' as it was rounded' if rounded else ''}, and think of other values in "
            f"{'its' if c == 1 else 'their'} place. But for a probability of δ = {d}, the sample that was drawn is one "
            f"that was at most {factor(terms)} times as likely with one choice of values as with any other. Someone "
            f"who sees it, and knows {others}, can therefore hardly tell what "
            f"{'this one says' if c == 1 else 'these say'}."
        ),
        paragraph(
            f"Someone knows {others}, and believes something about yours with the probability on the left. "
            "Having seen the sample, they believe it with a probability within these bounds, unless the sample is one "
            f"of the few (δ = {d}) of which that is not so:"
        ),
        table("How much the sample can change a belief", ["before", "after"], rows, numbers=(0, 1)),
        heading("What is not promised"),
        points(
            [
                (
                    tag("b", "Differential privacy."),
                    (
                        " That is a promise about a method, for all tables that it may ever be used on. This is a "
                        f"weaker statement about this table alone. {looked} What the rate itself tells is not covered."
                    ),
                ),
                (
                    tag("b", "That no sample is telling."),
                    (
                        f" With a probability of up to δ = {d} the one drawn tells more. It was not drawn again for "
                        "that."
                    ),
                ),
                (
                    tag("b", "That nobody is recognised."),
                    (
                        " Whoever finds a combination of values in the sample knows that somebody has it. But in a "
                        "sample that is not telling, at most a share of ε/(1+ε) = "
                        f"{_up(1 - 1 / times)} of those who have it were drawn."
                    ),
                ),
                (
                    tag("b", "Anything about other releases"),
                    " of the same records. Two samples of one table tell more than one.",
                ),
            ]
        ),
    ]


def _why(terms: Terms, statement: SampleStatement) -> list[Content]:
    c, rounded = terms.rows_unknown, bool(statement.mechanism.rounded)
    return [
        formula(
            "P[ S | T→V ] ≤ (1 + ε) · P[ S | T→V′ ] with probability 1 − δ over S",
            tag("br"),
            f"ε = {terms.epsilon!r},  δ = {terms.delta!r},  c = {number(c)}",
        ),
        paragraph(
            f"S is the sample, T the table{' as it was rounded' if rounded else ''}, and V and V′ are any values of "
            f"{'one record' if c == 1 else f'{c} records'} of "
            "it; the number of records is the same in both (“"
            f"{statement.promise.relation}”). This is the (c, ε, δ)-privacy of Chaudhuri and Mishra."
        ),
    ]


def _looks(settled: SampleSettled, published: Histogram, statement: SampleStatement) -> list[Content]:
    if not len(published):
        return [
            tag(
                "div",
                paragraph(
                    tag("b", "The sample is empty."),
                    " At the rate that the promise allows, nobody was drawn. That is a result like any other, and the "
                    "promise holds: with the values shown this finely, too many records are the only ones of their "
                    "kind.",
                ),
                class_="aside",
            ),
            paragraph("What would help stands in the publisher’s own report, since it is read off the table."),
        ]

    def shown(name: str) -> str:
        if name in settled.sample.rounding:
            return f"rounded at random to multiples of {number(settled.sample.rounding[name].base)}"
        return level_in_words(statement.mechanism.levels[name], len(published[name].labels))

    note = "A value that is shown as never occurring may be absent from the data, or was not drawn."
    return looks(published, shown, note, ("combination", "combinations"))


def _use(terms: Terms, statement: SampleStatement, published: Histogram, output: str, of: str) -> Use:
    """`of` says what is counted: people, or rows."""
    verifying = (
        "It compares every file, this page included, with the certificate, and the certificate with its policy. That ε "
        "and δ hold at this rate depends on the whole table, and is taken on the publisher’s word."
    )
    if not len(published):
        return Use((), (), verifying)
    names = sorted(published.names, key=lambda name: "," in name)[:2]
    items: list[Sequence[Content]] = [
        (
            tag("b", "Give every row the weight 1/p."),
            (
                f" A row stands for 1/{number(terms.rate, 6)} ≈ {number(1 / terms.rate)} {of} of the table. A count "
                f"of x rows stands for about x/p {of}, with a standard error of √(x(1−p))/p."
            ),
        ),
        (
            tag("b", "What is rare may be missing."),
            (
                f" What more than {number(absent_at_most(terms.rate))} {of} have would be missing here with a "
                f"probability of {percent(SURPRISE)} at most. Nothing was left out on purpose: counts have no bias."
            ),
        ),
    ]
    if statement.mechanism.rounded:
        items.append(
            (
                tag("b", "Rounded numbers are right on average."),
                (
                    " Each became one of the two multiples around it, at random, so that its mean is the number "
                    "itself: sums and means have no bias, but their errors grow by up to half the distance of "
                    "multiples per row."
                ),
            )
        )
    return Use(
        items,
        names,
        verifying,
        python="import pandas as pd\n\n"
        f"sample = {read_code(output)}\n"
        f"{of} = sample.groupby({names!r}, dropna=False).size() / {terms.rate!r}\n"
        f"print({of}.round())",
    )


def _up(value: Fraction) -> str:
    return f"{as_given(math.ceil(value * 10_000) / 100)}%"


def _down(value: Fraction) -> str:
    return f"{as_given(math.floor(value * 10_000) / 100)}%"


# --- the publisher's own ----------------------------------------------------------------------------------------------


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: SampleSettled,
    table: Histogram,  # noqa: ARG001 - the outcome holds it, rounded where that was asked for
    made: Made[SampleOutcome, SampleStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see."""
    outcome: SampleOutcome = made.outcome
    terms, rounding = outcome.terms, settled.sample.rounding
    recodes = {
        a.name: Recode(np.arange(len(outcome.before[a.name].labels)), outcome.before[a.name].labels)
        if a.name in rounding
        else a.hierarchy.recode(made.levels[a.name])
        for a in attributes
    }
    c = Comparison(outcome.before, recodes, made.published, made.published, terms.rate, outcome.table)
    ways = {name: scale for name, scale in scales(attributes, made.levels).items() if name not in rounding}
    advice = advise(outcome.table, ways, epsilon=terms.epsilon, delta=terms.delta, rows_unknown=terms.rows_unknown)
    sections = [
        PageSection("drawn", "Is the sample that was drawn private?", tuple(_drawn(outcome))),
        PageSection("rate", "The rate", tuple(_rate(outcome))),
        PageSection("blame", "What makes the rate small", tuple(_blame(advice))),
        PageSection("advice", "What would raise it", tuple(_advice(advice))),
        PageSection("columns", "Each column, before and after", tuple(comparison.columns(c, attributes, made.levels))),
        PageSection("queries", "How wrong counts are", (comparison.by_size(c), *comparison.queries(c))),
    ]
    facts = [
        Fact("in the table", number(outcome.table.total), "records"),
        Fact("distinct", number(len(outcome.table)), "combinations of values"),
        Fact("p", f"{number(100 * terms.rate, 3)}%", "the rate of sampling"),
        Fact("sampled", number(made.published.total), "records"),
        Fact("expected", number(round(terms.rate * outcome.table.total)), "records"),
    ]
    return internal_page(policy, _TITLE, facts, sections, gives_away=_GIVES_AWAY, more=[_DO_NOT_DRAW_AGAIN], void=void)


def _drawn(outcome: SampleOutcome) -> list[Content]:
    terms, n, s = outcome.terms, outcome.table.counts, outcome.drawn
    realised = sampling.sample_ratio(n, s, terms.rows_unknown)
    kept = sampling.is_private(n, s, terms.epsilon, terms.rows_unknown)
    verdict = tag(
        "div",
        paragraph(
            tag("b", "Yes." if kept else "No."),
            (
                f" Changing {_rows(terms)} changes its likelihood at most {_fold(realised)}, and {factor(terms)}-fold "
                "was promised."
                if kept
                else f" Changing {_rows(terms)} can change its likelihood {_fold(realised)}, more than the "
                f"{factor(terms)}-fold promised. This happens with a probability of up to δ = "
                f"{terms.delta!r}, and that was part of the promise. Do not draw again: see above. "
                "To withhold it for this reason would be a choice of the same kind. If you cannot live with it, ask "
                "for a smaller δ next time, on other data."
            ),
        ),
        class_="aside",
    )
    try:
        inner = sampling.theorem_rate(n, terms.epsilon, terms.delta, terms.rows_unknown).inner_epsilon
    except UnreachableError:
        return [verdict]
    good = sampling.good_sample(n, s, terms.rate, inner, terms.delta, terms.rows_unknown)
    blamed = [
        f"{count(size, f'{kind} combination', f'{kind} combinations')} {fault}"
        for kind, size, fault in (
            ("rare", good.rare, "which it should not have at all"),
            ("infrequent", good.infrequent, "too often"),
            ("common", good.common, "too often"),
        )
        if size
    ]
    return [
        verdict,
        paragraph(
            "In the paper’s sense it is "
            + (
                "good: no rare value is in it, and no other more often than expected by more than chance allows."
                if good.good
                else f"not good: it has {', '.join(blamed)}. A good sample is private, but a sample need not be good "
                "to be: the line above is what counts."
            )
        ),
    ]


def _fold(ratio: float) -> str:
    return "without bound" if math.isinf(ratio) else f"{number(1 + ratio)}-fold"


def _rows(terms: Terms) -> str:
    return "one record" if terms.rows_unknown == 1 else f"{terms.rows_unknown} records"


def _rate(outcome: SampleOutcome) -> list[Content]:
    terms, n = outcome.terms, outcome.table.counts
    plan = plan_sample(
        n, epsilon=terms.epsilon, delta=terms.delta, rows_unknown=terms.rows_unknown, curve_points=_CURVE
    )
    reached = sampling.sample_delta(n, terms.rate, terms.epsilon, terms.rows_unknown).delta
    total = outcome.table.total
    rows = [["used, and published", number(terms.rate), number(round(terms.rate * total)), number(reached, 3)]]
    exact = "the largest that is safe" if plan.exact else "the largest that is known to be safe"
    rows.append([exact, number(plan.rate, 6), number(round(plan.rate * total)), number(terms.delta)])
    if plan.theorem is not None:
        theorem = 3 if terms.rows_unknown == 1 else 7
        by = sampling.sample_delta(n, plan.theorem.rate, terms.epsilon, terms.rows_unknown).delta
        expected = plan.theorem.rate * total
        rows.append(
            [
                f"by Theorem {theorem} of the paper",
                number(plan.theorem.rate, 3),
                number(expected, 2) if expected < 10 else number(round(expected)),
                number(by, 2),
            ]
        )
    classes = plan.classes
    return [
        table(
            f"Rates for ε = {number(terms.epsilon)}, δ = {number(terms.delta)}",
            ["rate", "p", "records expected", "δ in truth"],
            rows,
            numbers=(1, 2, 3),
        ),
        figure(
            draw_sample(plan),
            "The probability of a telling sample, computed from this table, and the rate of the paper’s theorem for "
            "the same promise.",
        ),
        paragraph(
            f"In the classes of the paper, {count(classes.rare, 'combination is', 'combinations are')} rare, "
            f"{number(classes.infrequent)} infrequent and {number(classes.common)} common at the largest rate."
        ),
    ]


def _blame(advice: Advice) -> list[Content]:
    parts: list[Content] = [
        paragraph(
            "A sample is telling if it holds too many records of one kind; that is likeliest for kinds that few "
            "records are of. How much of the probability of a telling sample, at the largest safe rate, comes from "
            "where:"
        ),
        table(
            "By how many records share all their values",
            ["records alike", "combinations", "records", "part of the risk"],
            [
                [
                    number(b.low) if b.low == b.high else f"{b.low:,} to {b.high:,}",
                    number(b.rows),
                    number(b.records),
                    percent(b.share),
                ]
                for b in advice.by_size
            ],
            numbers=(1, 2, 3),
        ),
    ]
    if advice.by_value:
        parts.append(
            table(
                "Single values with more than their part of it",
                ["value", "column", "records", "combinations with it", "part of the risk"],
                [[*_value(b), number(b.records), number(b.rows), percent(b.share)] for b in advice.by_value],
                numbers=(2, 3, 4),
            )
        )
    names = list(advice.rarest[0].values)
    parts.append(
        table(
            "The combinations most to blame",
            ["records", "part of the risk", *map(label, names)],
            [[number(b.records), percent(b.share), *(label(b.values[name]) for name in names)] for b in advice.rarest],
            numbers=(0, 1),
        )
    )
    return parts


def _value(blame: Blame) -> tuple[Html, Html]:
    ((column, value),) = blame.values.items()
    return label(value), label(column)


def _advice(advice: Advice) -> list[Content]:
    if not advice.steps:
        return [paragraph("Nothing that was tried would raise it.")]
    parts: list[Content] = [
        paragraph(f"As things are, the largest safe rate is {number(advice.rate, 3)}. If you do this, it becomes:"),
        _steps("One thing alone", advice.steps[:_STEPS], advice.rate),
    ]
    if len(advice.path) > 1:
        parts.append(_steps("One after the other, dropping no column", advice.path, advice.rate))
    untried = [] if not advice.left_out else [f" {number(advice.left_out)} more were not tried, for want of time."]
    parts.append(
        paragraph(
            "Each line was computed by recoding the table and finding its rate.",
            *untried,
            " Beforehand, without a release: ",
            markup(tag("code", "incrowd plan sample POLICY --advice")),
            ".",
        )
    )
    return parts


def _steps(caption: str, steps: Sequence[Step], now: float) -> Html:
    rows = [
        [
            label(step.column),
            step.what,
            markup(tag("code", step.how)),
            number(step.distinct),
            number(step.rate, 3),
            f"× {number(step.rate / now, 3)}",
        ]
        for step in steps
    ]
    head = ["column", "do this", "in the policy", "combinations left", "rate", "gain"]
    return table(caption, head, rows, numbers=(3, 4, 5))
