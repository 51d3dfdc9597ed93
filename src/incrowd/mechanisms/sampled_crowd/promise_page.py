"""What a sampled crowd promises, in words, in a formula, in numbers for one person, and as pictures.

Everything here follows from the settings, which are found without looking at any data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.core.numbers import as_given, grown_float, number, percent_down, percent_up
from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd.estimate import hidden_at_most
from incrowd.mechanisms.sampled_crowd.plan import draw_crowd
from incrowd.mechanisms.sampled_crowd.section import Minimised
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeCrowd
from incrowd.reports.page import Content, Fact, figure, formula, heading, paragraph, points, table, tag
from incrowd.reports.svg import Axis, Line, Mark, line_chart
from incrowd.theory import crowd
from incrowd.theory._binomial import tail
from incrowd.theory._numbers import round_up

Curve = Sequence[tuple[float, float]]

LEARNT = "What is true of most people like you can be concluded of you, with your record or without it."
_FEARED = (0.001, 0.01, 0.1, 0.5, 0.9)
_POINTS = 24
_LOOKED_FOR: Mapping[Minimised, str] = {
    "loss": "It looked for as much detail as possible in what would be published.",
    "entropy": "It looked for as many bits as possible in what would be published, rare values telling more.",
    "discernibility": "It looked for published people who can be told from as many others as possible.",
    "class_size": "It looked for as many published crowds as possible.",
    "workload": "It looked for the best counts of some sets of columns.",
    "misclassified": "It looked for columns from which another one, the target, can be predicted.",
}


def curve(settings: CrowdSettings) -> Curve:
    """Pairs (ε, δ) that are all promised at once: the one of the policy, and others on the exact curve."""
    steps = (settings.crowd_epsilon * i / _POINTS for i in range(_POINTS + 1))
    exact = [(round_up(settings.beside_epsilon + e), settings.delta_at(e)) for e in steps]
    return [(settings.epsilon, settings.delta), *exact]


def at_most(probability: float, promises: Curve) -> float:
    """How probable an event can be with a person's record that has this probability without it.

    Each promise gives p' ≤ e^ε p + δ and, for the opposite event, 1 − p ≤ e^ε (1 − p') + δ.
    """
    return min(
        1.0,
        *(min(grown_float(e) * probability + d, 1 - math.exp(-e) * max(0.0, 1 - probability - d)) for e, d in promises),
    )


def at_least(probability: float, promises: Curve) -> float:
    """How improbable it can be: the opposite event is at most so probable."""
    return 1 - at_most(1 - probability, promises)


def guess(promises: Curve) -> float:
    """How often anyone can guess right, at most, whether a record is in the data if a fair coin decided that.

    Guessing right has probability ½ + (P(S) − Q(S))/2 for the set S of outputs at which the guess is "in", and
    P(S) − Q(S) is largest, under (ε,δ), at P(S) = (e^ε + δ)/(1 + e^ε), Q(S) = (1 − δ)/(1 + e^ε).
    """
    return min(1.0, *((1 + d * math.exp(-e)) / (1 + math.exp(-e)) for e, d in promises))


def crowd_facts(settings: CrowdSettings, published: Histogram, shown: Fact) -> list[Fact]:
    """The numbers to see first; `shown` says what the records are in."""
    one = "person" if settings.persons.several else "record"
    return [
        Fact("records", number(published.total), "published"),
        shown,
        Fact("k", number(settings.k), "records in the smallest crowd"),
        Fact("ε", number(settings.epsilon), f"how much one {one} matters"),
        Fact("δ", number(settings.delta), "a probability on top of that"),
        Fact("β", number(settings.beta), "the sampling rate"),
    ]


def promise(settings: CrowdSettings) -> list[Content]:
    """The section on what is promised."""
    e, d = settings.epsilon, settings.delta
    factor = _up(grown_float(e), 3)
    data = "the population's data" if settings.already_sampled else "the data"
    whole, stated, several = curve(settings), [(e, d)], settings.persons.several
    record, yours = ("rows", "yours are") if several else ("record", "yours is")
    rows = [
        [
            share(p),
            f"{percent_down(at_least(p, stated))} to {percent_up(at_most(p, stated))}",
            f"{percent_down(at_least(p, whole))} to {percent_up(at_most(p, whole))}",
        ]
        for p in _FEARED
    ]
    return [
        paragraph(
            "Take any one person. Whatever is done with this release, by anyone, now or later: the probability of any "
            f"consequence is at most {factor} times what it would be without that person’s {record} in {data}, plus "
            f"{number(d)}. The same holds the other way round."
        ),
        paragraph(
            "Think of something that you would not like to happen because of this release: an offer refused, a secret "
            f"guessed. Its probability without your {record} is on the left; with your {record} it stays within:"
        ),
        table(
            f"How much your {record} can change what happens",
            [f"without your {record}", f"promised: (ε, δ) = ({number(e)}, {number(d)})", "by the whole exact curve"],
            rows,
            numbers=(0, 1, 2),
        ),
        paragraph(
            f"Someone who knows all other {'rows' if several else 'records'}, and for whom a fair coin has decided "
            f"whether {yours} among the data, guesses right with probability "
            f"{percent_up(guess(whole))} at most; without the release it is 50%."
        ),
        heading("What is not promised"),
        points(
            [
                LEARNT,
                f"Of a family of g {'people' if several else 'records'} it is weaker: g · ε and a larger δ.",
                *_limited(settings),
                "Other releases about the same people add up; the publisher’s ledger keeps account of them.",
                "Rare combinations are missing on purpose.",
            ]
        ),
    ]


def why(settings: CrowdSettings) -> list[Content]:
    """The section on why it holds: the definition, what was done, and the curves behind it."""
    several = settings.persons.several
    more = f"the rows of one more person, {settings.persons.at_most:,} at most" if several else "one record more"
    others = "everyone else’s rows" if several else "every other record"
    return [
        formula(
            "P[M(D) ∈ S] ≤ e",
            tag("sup", "ε"),
            " · P[M(D′) ∈ S] + δ",
            tag("br"),
            f"ε = {number(settings.epsilon)},  δ = {number(settings.delta)}",
        ),
        paragraph(
            "M makes the release, S is any set of releases, and D and D′ are any two tables of which one is "
            f"the other with {more} (“add/remove”). This is (ε, δ)-differential privacy, and holds against "
            f"whoever knows {others} and exactly how the release was made."
        ),
        points(
            [
                (
                    "The table is itself a random sample: each person came into it with probability "
                    if settings.already_sampled
                    else "Each record was taken with probability ",
                    (
                        f"β = {number(settings.beta, 6)}, independently of all others: nobody can be sure that "
                        "somebody is in it."
                    ),
                ),
                _levels_point(settings),
                *_totals_point(settings),
                (
                    f"A combination of values was published only if at least k = {number(settings.k)} sampled records "
                    "share it. How many others there were is published nowhere."
                ),
                _delta_point(settings),
            ]
        ),
        *_trade_off(settings),
    ]


def _limited(settings: CrowdSettings) -> list[Content]:
    if not settings.persons.several:
        return []
    most = f"{settings.persons.at_most:,}"
    return [
        f"That all rows are there. Of each person {most} at most were used, chosen by that person’s rows alone.",
        (
            f"That k is a number of people. In a crowd of {settings.k:,} rows, up to {most} may be one person’s; the "
            "promise has taken that into account."
        ),
    ]


def _levels_point(settings: CrowdSettings) -> str:
    if isinstance(settings, TreeCrowd) and settings.rho:
        return (
            "The boxes were chosen on the full table by a randomised procedure, noisy one-way tables first, that is "
            f"ρ-zCDP with ρ = {number(settings.rho)}; the sampling came after it and independently of it."
        )
    if isinstance(settings, TreeCrowd):
        return "The boxes were given beforehand, without looking at the table."
    if settings.selection_epsilon:
        return (
            "How coarsely each column is shown was chosen on the full table by a randomised procedure that spent "
            f"ε₁ = {number(settings.selection_epsilon)} of ε; the sampling came after it and independently of it. "
            f"{_LOOKED_FOR[settings.choice.minimise]}"
        )
    if settings.policy_epsilon:
        return (
            "Columns, levels, β and k were chosen among several by a randomised procedure on the full table that spent "
            f"{number(settings.policy_epsilon)} of ε; the sampling came after it and independently of it."
        )
    return "How coarsely each column is shown was fixed beforehand, without looking at the table."


def _totals_point(settings: CrowdSettings) -> list[str]:
    if not settings.totals_epsilon:
        return []
    spent = f"ε₃ = {number(settings.totals_epsilon)}"
    return [f"The one-way tables beside the crowds count the full table, with discrete Laplace noise: {spent} of ε."]


def _delta_point(settings: CrowdSettings) -> str:
    if isinstance(settings, TreeCrowd) and settings.rho:
        return (
            f"With these β, k and ρ, δ is at most {number(round_up(settings.exact_delta), 3)} at "
            f"ε = {number(settings.epsilon)}, no more than the {number(settings.delta)} promised. The crowd’s part is "
            "exact, its join with the choice a bound whose every inequality was checked."
        )
    left = settings.crowd_epsilon
    said = (
        f"With these β and k, δ is in fact {number(round_up(settings.exact_delta), 3)} at "
        f"ε{'₂' if settings.beside_epsilon else ''} = {number(left)}, no more than the {number(settings.delta)} "
        "promised. "
    )
    if settings.persons.several:
        return (
            f"{said}That covers a person with {settings.persons.at_most:,} rows, wherever they are, and is the "
            "smallest number proved."
        )
    said += "That is exact: no smaller number would be true."
    paper = crowd.paper_bound(left, settings.delta, settings.k, settings.beta)
    if paper is None:
        return said
    needed = "" if paper.k is None or paper.k <= settings.k else f" and would ask for crowds of {paper.k:,}"
    return f"{said} Theorem 5 of Li, Qardaji and Su bounds it by {number(paper.delta, 3)}{needed}."


def _trade_off(settings: CrowdSettings) -> list[Content]:
    """The curves behind the promise."""
    plan = crowd.CrowdPlan(
        settings.epsilon,
        settings.delta,
        settings.k,
        settings.beta,
        settings.beside_epsilon,
        None,
        settings.persons.at_most,
    )
    likely = hidden_at_most(settings.k, settings.beta)
    return [
        heading("The trade-off"),
        paragraph(
            "ε and δ are one point of a curve. A smaller sampling rate or larger crowds move the whole curve down, and "
            "cost information."
        ),
        figure(
            draw_crowd(plan, settings.delta_at),
            "The curve of this release and the point that was promised, which lies on it or above it."
            if settings.persons.several
            else "The exact curve of this release, Theorem 5 of Li, Qardaji and Su for comparison where it applies, "
            "and the point that was promised, which lies on the exact curve or above it.",
        ),
        figure(
            survival_chart(settings, likely),
            f"A combination shared by {likely:,} {settings.persons.estimated} or more is published with a probability "
            f"of at least 95%; one shared by fewer than {settings.k:,} never is.",
        ),
    ]


def survival_chart(settings: CrowdSettings, likely: int) -> str:
    """With which probability a crowd of a given size is published."""
    k, beta = settings.k, settings.beta
    sizes = np.unique(np.linspace(k, max(k / beta + 5 * math.sqrt(k) / beta, likely + 1), 80).round())
    shown = [tail(k, int(size), beta) for size in sizes]
    return line_chart(
        "How large must a crowd be to appear?",
        Axis(f"{'rows that' if settings.persons.several else 'people who'} share a combination of values", low=0.0),
        Axis("probability that it is published", low=0.0, high=1.0),
        [Line(f"k = {k:,}, β = {number(beta)}", [0.0, max(k - 1.0, 0.0), *sizes.tolist()], [0.0, 0.0, *shown])],
        [Mark(float(likely), tail(k, likely, beta), f"{likely:,} {settings.persons.estimated}")],
    )


# --- numbers, rounded to the safe side ------------------------------------------------------------------------------


def _up(value: float, digits: int) -> str:
    """Rounded up to some digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return number(math.ceil(round_up(value, 1e-12) / unit) * unit, digits)


def share(value: float) -> str:
    """In percent, as it is."""
    return f"{as_given(value * 100)}%"
