"""The report on a randomised table that is published with it, and the frame of the publisher's own.

The public one is made of the policy, the transition probabilities and the published table, and of nothing else. What
it says about the true shares is estimated from the release, as any reader could do.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.core.numbers import number, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.pram import comparison_page as pram_comparison
from incrowd.mechanisms.pram import promise_page as pram_promise
from incrowd.mechanisms.pram.blocks import Block
from incrowd.mechanisms.pram.certificate import PramStatement
from incrowd.mechanisms.pram.estimate import can_be_undone, own_variance, tabulate
from incrowd.mechanisms.pram.inversion import Floats, invert
from incrowd.mechanisms.pram.settle import PramSettled
from incrowd.mechanisms.tables import read_code
from incrowd.policy import Policy
from incrowd.reports.bars import MOST, Row, bars
from incrowd.reports.frame import ERRORS_GIVE_AWAY, THEOREM, Use, cards, internal_page, public_page
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    PageSection,
    figure,
    heading,
    label,
    markup,
    paragraph,
    table,
    tag,
)
from incrowd.theory.randomisation import RetentionReplacement

_TITLE = "A table, randomised record by record"
_RECORDS = "as many as in the data: that number is public"
_SAMPLED = "a random sample of the data"
_LARGEST_PICTURE = 40
_CELL, _EDGE = 9, 2


def public_report(
    policy: Policy, settled: PramSettled, published: Counted, statement: PramStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the release, of which counts by `comparison_page.looked_at` are enough."""
    settled = settled.published(published.total)
    promise = settled.promise
    output = policy.release.output if policy.release else "parquet"
    facts = [
        Fact("records", number(published.total), _RECORDS if settled.rate == 1 else _SAMPLED),
        *(
            [Fact("promises", "none", "the chances were computed from the data")]
            if promise is None
            else pram_promise.facts(promise)
        ),
    ]
    who = "its owner" if settled.by == "respondents" else "the publisher"
    lead = (
        f"Every row of this table is one person, but no value in it can be relied upon: {who} has let chance decide "
        "which values to keep and which to replace. What is true of many can be computed all the same."
    )
    return public_page(
        policy,
        _TITLE,
        lead,
        facts,
        data=[
            PageSection("release", "What the release says", tuple(_looks(settled, published))),
            PageSection("made", "How values were redrawn", tuple(_made(settled, published))),
        ],
        promise=pram_promise.nothing(statement) if promise is None else pram_promise.told(promise, statement),
        use=_use(settled, published, output),
        why=[] if promise is None else pram_promise.why(promise),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        kind="There is no promise to rest on anything." if promise is None else THEOREM,
        void=void,
    )


# --- how it was made --------------------------------------------------------------------------------------------------


def _made(settled: PramSettled, published: Counted) -> list[Content]:
    kept = [block for block in settled.blocks if isinstance(block.law, RetentionReplacement)]
    others = [block for block in settled.blocks if block not in kept]
    content: list[Content] = []
    if settled.rate < 1:
        drawn = "came into the data by chance" if settled.section.already_sampled else "was taken at random"
        content.append(
            paragraph(
                f"Each record {drawn}, with probability β = {number(settled.rate)}, and only those are here. "
                "Nobody can tell from the table who is in it."
            )
        )
    if kept:
        content += [
            paragraph(
                "Each value was kept with a probability ρ, independently of everything else; otherwise one was drawn "
                "from its declared domain, all values being equally likely (the true one among them)."
            ),
            bars(
                f"How often the {'released value' if settled.promise else 'result of this step'} is the true one",
                "ρ + (1 − ρ)/|V|, whatever the value is; each other value is as likely as the last column says",
                ("true", "ρ", "each other"),
                [_kept_row(block) for block in kept],
            ),
        ]
    for block in others:
        content.append(heading(markup(["The transition probabilities of ", _named(block)])))
        if block.size <= _LARGEST_PICTURE:
            content.append(
                figure(
                    picture(block.law.matrix()),
                    "A row for each true value, a column for each released one, in the order of the domain; the "
                    "darker, the likelier.",
                )
            )
        else:
            content.append(paragraph(f"It is a matrix of {block.size:,} rows, which the certificate holds."))
    if settled.promise is None:
        content.append(
            paragraph(
                "A second step then drew each value once more from what the first suggests, given the true shares of "
                "the values, so that these stay as they are on average."
            )
        )
    if any(None in published[name].labels for name in published.names):
        content.append(paragraph("A missing value is a value like any other here, and is redrawn as one."))
    return content


def _named(block: Block) -> Html:
    return markup([markup([" × " if i else None, label(name)]) for i, name in enumerate(block.names)])


def _kept_row(block: Block) -> Row:
    rho = block.law.retention if isinstance(block.law, RetentionReplacement) else 0.0
    elsewhere = (1 - rho) / block.size
    return Row(_named(block), [rho + elsewhere], [percent(rho + elsewhere), number(rho, 3), percent(elsewhere)])


def picture(matrix: Floats) -> str:
    """A matrix of probabilities as squares."""
    size = len(matrix)
    side = max(_CELL, 120 // size)
    width = size * side + 2 * _EDGE
    squares = "".join(
        f'<rect x="{_EDGE + j * side}" y="{_EDGE + i * side}" width="{side - 1}" height="{side - 1}" '
        f'fill="#2563a8" fill-opacity="{math.sqrt(float(matrix[i, j])):.3f}"><title>{matrix[i, j]:.4g}</title></rect>'
        for i in range(size)
        for j in range(size)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {width}" role="img" '
        f'aria-label="transition probabilities" style="max-width:{min(2 * width, 360)}px">{squares}</svg>'
    )


# --- what it says -----------------------------------------------------------------------------------------------------


def _looks(settled: PramSettled, published: Counted) -> list[Content]:
    charts, rows = [], []
    for name in published.names:
        found = estimated(settled, published, name)
        if found is None:
            rows.append([label(name), number(len(published[name].labels)), "nothing is known", ""])
            continue
        estimate, errors, released = found
        charts.append(_card(published, name, estimate, released))
        worst = float(errors.max())
        rows.append(
            [
                label(name),
                number(len(published[name].labels)),
                f"± {number(1.96 * worst, 3)}",
                f"± {percent(1.96 * worst / published.total)}",
            ]
        )
    legend = tag(
        "p",
        tag("span", tag("i", class_="key was"), "share of the released rows"),
        tag("span", tag("i", class_="key"), f"estimated share of the {settled.persons.estimated}"),
        class_="legend",
    )
    said = (
        "Released counts are flatter than true ones, because so much in them is chance. Undoing that, which needs "
        "nothing but the transition probabilities, gives the shares in the data, up to errors that are known:"
    )
    if settled.promise is None:
        said = "Counts of one column are right on average as they are, up to errors that are known:"
    return [
        paragraph(said),
        table(
            "How precise counts of one column are",
            ["column", "values", "95% of counts are within", "of the records"],
            rows,
            numbers=(1, 2, 3),
        ),
        heading("Each column"),
        legend,
        cards(charts),
    ]


def estimated(settled: PramSettled, published: Counted, name: str) -> tuple[Floats, Floats, Floats] | None:
    """Of each value of a column: the estimated count, its standard error, and the released count.

    None if the column was redrawn without regard to its values.
    """
    if not can_be_undone(settled.blocks, published, name, invariant=settled.promise is None):
        return None
    whole = tabulate(settled.blocks, published, [name], invariant=settled.promise is None)
    estimate, variance = (whole.arranged(part) for part in invert(whole.axes, whole.released))
    if settled.promise is None:
        variance = whole.arranged(own_variance(whole))
    released = pram_comparison.counts_by(published, [name])
    return estimate, np.asarray(np.sqrt(variance), dtype=np.float64), released


def _card(published: Counted, name: str, estimate: Floats, released: Floats) -> Html:
    labels, total = published[name].labels, published.total
    shown = range(len(labels)) if len(labels) <= MOST else sorted(np.argsort(-estimate, kind="stable")[:MOST].tolist())
    top = max(float(estimate.max()), float(released.max()), 1.0)
    rows = [
        Row(
            label(labels[i]),
            [released[i] / top, min(max(0.0, estimate[i]) / top, 1.0)],
            [percent(released[i] / total), percent(max(0.0, estimate[i]) / total)],
        )
        for i in shown
    ]
    note = "" if len(labels) <= MOST else f"the most frequent of {len(labels):,} values"
    return bars(label(name), note, ("rows", "people"), rows)


def _use(settled: PramSettled, published: Counted, output: str) -> Use:
    names = published.names[:2]
    by = " ".join(f"--by {shlex.quote(name)}" for name in (names if len(names) > 1 else names * 2))
    if not any("," in name or name != name.strip() for name in names):  # a single option is taken apart at commas
        by = f"--by {shlex.quote(','.join(names))}"
    block = next((b for b in settled.blocks if isinstance(b.law, RetentionReplacement) and len(b.names) == 1), None)
    code = ""
    if block is not None and settled.promise is not None:
        name, size = block.names[0], block.size
        rho = block.law.retention if isinstance(block.law, RetentionReplacement) else 1.0
        code = (
            "import pandas as pd\n\n"
            f"rho, size = {rho!r}, {size}  # of one column; values that do not occur count as zero rows\n"
            f"rows = {read_code(output)}[{name!r}].value_counts(dropna=False)\n"
            f"{settled.persons.estimated} = (rows - (1 - rho) * rows.sum() / size) / rho\n"
            f"print({settled.persons.estimated}.round())"
        )
    counting: Content = " A count of rows is mostly chance. Undo the randomisation first, as the command below does."
    if settled.promise is None:
        counting = (
            " Only counts of one column can be taken from the rows. What columns have to do with each other is "
            "blurred; the command below undoes that, approximately."
        )
    again = (
        "computes k, ε₀, ε and δ once more from the transition probabilities and the number of records, and "
        if settled.promise is not None
        else ""
    )
    return Use(
        [
            (tag("b", "Never count rows." if settled.promise is not None else "Count one column only."), counting),
            (
                tag("b", "Ask few columns at a time."),
                (
                    " Each column more multiplies the errors by about 1/ρ. Counts of three or four columns are "
                    "noisy unless there are millions of records."
                ),
            ),
            (
                tag("b", "Estimates may be below zero."),
                (
                    " They are right on average, so sums of them are right, too. If a number must not be below "
                    "zero, use the likeliest numbers (em) instead."
                ),
            ),
        ],
        by,
        (
            f"It {again}compares every file, this page included, with the certificate. It cannot see how values were "
            "drawn: that is taken on the publisher’s word."
        ),
        code,
    )


# --- the publisher's own ----------------------------------------------------------------------------------------------


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: PramSettled,
    table: Histogram,  # noqa: ARG001
    made: Made[Histogram | None, PramStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see."""
    if not isinstance(made.outcome, Histogram):
        raise InternalError("there is no table to compare the release with")
    return compared(policy, attributes, settled, made.outcome, made.published, void=void)


def compared(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settled: PramSettled,
    truth: Counted,
    published: Counted,
    *,
    void: str | None,
) -> bytes:
    """The same, of tables that may be known only by their counts by what `pram_comparison.looked_at` names."""
    facts, sections = pram_comparison.content(settled, attributes, truth, published)
    return internal_page(policy, _TITLE, facts, sections, gives_away=ERRORS_GIVE_AWAY, void=void)
