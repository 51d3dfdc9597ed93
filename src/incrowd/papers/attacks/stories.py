"""Unsafe methods being broken, with numbers that are computed on the spot.

Each attack is a function that returns an `Attack`: what people believe of a method, what is observed when somebody
looks for one person, and what is observed under the safe method. All are examples of Li, Qardaji and Su, or their
consequences. Each looks at a release that is drawn anew every time, and at a safe one in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import ParameterError
from incrowd.papers.attacks import pictures
from incrowd.randomness import RandomSource
from incrowd.theory.crowd import exact_delta, paper_delta
from incrowd.theory.syntactic import k_anonymity

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """A number and what it says."""

    value: float
    text: str


@dataclass(frozen=True)
class Attack:
    """One unsafe method, broken.

    Attributes:
        name: how it is asked for.
        title: the method.
        story: what happens, step by step.
        knows: what the attacker knows beforehand.
        sees: what she looks at.
        drawn: what came out this time.
        pictures: what she sees of the unsafe release, and of a safe one, as markup.
        claim: what the method is believed to give.
        observed: what was found instead.
        safe: what the safe method gives in its place.
        lesson: what follows from it.
    """

    name: str
    title: str
    story: tuple[str, ...]
    knows: str
    sees: str
    drawn: str
    pictures: tuple[str, str]
    claim: Finding
    observed: Finding
    safe: Finding
    lesson: str


def run(name: str) -> Attack:
    """Carry out one attack."""
    if name not in ATTACKS:
        raise ParameterError(
            f"There is no attack {name!r}.", code="parameter-range", remedy=f"There are: {', '.join(ATTACKS)}."
        )
    return ATTACKS[name]()


# --- extreme values ---------------------------------------------------------------------------------------------------


def extreme_values(k: int = 20, people: int = 2000) -> Attack:
    """Clustering with local recoding shows who stretches a group (§3.1)."""
    source = RandomSource()
    # Nobody but one owns more than 900,000.
    worth = 1_000 * (1 + source.integers(900, people))
    richest = 35_000_000
    with_her, without = (max(high for _, high in groups(np.append(worth, rest), k)) for rest in ([richest], []))
    shown = groups(np.append(worth, richest), k)
    smallest = min(len(members) for members in _split(np.sort(np.append(worth, richest)), k))
    # The same look at crowds of ranges that were declared: two tables, with her and without, each with its own sample.
    edges = np.array([0, 300_001, 600_001, 900_001, richest + 1])
    drawn = [
        np.histogram(rest[source.binomial(np.ones(len(rest), dtype=np.int64), 0.1) > 0], edges)[0]
        for rest in (np.append(worth, richest), worth)
    ]
    crowds = [np.where(counts >= k, counts, 0) for counts in drawn]
    return Attack(
        "extreme-values",
        "Groups of k, each shown as the range of its members (Mondrian)",
        (
            (
                f"{people:,} people own up to 900,000 each; one more owns 35 million. The table is cut at medians as "
                f"long as every part has {k} people, and each part is shown as the range of its members."
            ),
            f"The table is {smallest}-anonymous: nobody stands in a group of fewer than {k}.",
            f"With her in the table the last group ends at {with_her:,}; without her, at {without:,}.",
        ),
        "That nobody else owns more than 900,000.",
        "The range of the last group.",
        f"This time {len(shown)} groups came out; the last one ends at {with_her:,}. Of a tenth of the same people, "
        f"in ranges that were declared, {sum(int(c > 0) for c in crowds[0])} crowds came out; the highest range is not "
        "among them, whether she is in the table or not.",
        (pictures.ranges(shown[-8:]), pictures.beside_each_other(edges, *crowds)),
        Finding(1 / k, f"Among {k} people nobody should be pointed at with a probability above 1/{k}."),
        Finding(
            float(with_her == richest and without < richest),
            "Whether she is in the table, and what she owns, is read off the last group with certainty.",
        ),
        Finding(
            exact_delta(k, 0.1, 1.0),
            f"Sampling a tenth and publishing crowds of {k} of declared ranges: the probability of anything changes by "
            "a factor e at most, apart from this probability.",
        ),
        "Where the ranges come from the data, the most extreme person draws them. Ranges are declared beforehand here, "
        "or chosen privately; local recoding is refused where differential privacy is promised.",
    )


def groups(worth: Integers, k: int) -> list[tuple[int, int]]:
    """Mondrian on one column: the ranges of its groups."""
    return [(int(part[0]), int(part[-1])) for part in _split(np.sort(worth), k)]


def _split(ordered: Integers, k: int) -> list[Integers]:
    median = ordered[len(ordered) // 2]
    low, high = ordered[ordered < median], ordered[ordered >= median]
    if min(len(low), len(high)) < k:
        return [ordered]
    return _split(low, k) + _split(high, k)


# --- one sample, two answers ------------------------------------------------------------------------------------------


def one_sample(people: int = 30_000, fewest: int = 10_000, width: int = 20, epsilon: float = 1.0) -> Attack:
    """Two answers from the same sample, each harmless, tell together what neither tells alone (§2.6).

    Section 2.6 asks for more men than women. Its first answer is safe for balanced tables only; this one is for all.
    """
    least = width / 2 * math.sqrt(2 / (math.pi * fewest))  # no table moves the first answer further from a fair coin
    first = math.log((0.5 + least) / (0.5 - least))
    both = first + epsilon
    there, absent = (_two_answers(people, fewest, width, epsilon, present=present) for present in (True, False))
    apart, apart_absent = (law.sum(axis=1)[:, None] * law.sum(axis=0) for law in (there, absent))
    epsilons = sorted({both, *(i / 8 for i in range(65))})
    together, fresh = (
        [max(_divergence(a, b, e), _divergence(b, a, e)) for e in epsilons]
        for a, b in ((there, absent), (apart, apart_absent))
    )
    return Attack(
        "one-sample",
        "Two releases from one and the same sample",
        (
            (
                f"A random half of {people:,} people and perhaps of one more, her, is drawn once. The first answer "
                f"counts the sampled people but her in stripes of {width}, and says whether the stripe is odd; it is "
                f"turned around if she is in the sample, and a coin is thrown below {fewest:,}. Nobody knows the "
                f"stripe, so the answer is nearly a fair coin: ε = {first:.3f} and δ = 0, whatever the table."
            ),
            (
                f"The second answer is the size of the same sample with noise: ε = {epsilon:g} and δ = 0, even without "
                "sampling. But it tells the stripe."
            ),
            (
                f"Together: the first answer contradicts the second. At ε = {both:.3f}, the sum, δ is "
                f"{_divergence(there, absent, both):.3f}, and at ε = 5 it still is {_divergence(there, absent, 5):.3f}."
            ),
        ),
        "How both answers are made, and how many people there are besides her.",
        "Whether the two answers fit together.",
        _asked_twice(people, width, epsilon),
        (
            pictures.divergences("Both answers from one sample", epsilons, together, both),
            pictures.divergences("A fresh sample for the second", epsilons, fresh, both),
        ),
        Finding(0.0, "The δ at the sum of both ε, if promises about one sample added up."),
        Finding(
            _divergence(there, absent, both),
            "The δ that both answers together have there (an exact sum, no simulation): they contradict each other if "
            "she is in the sample, and hardly ever otherwise.",
        ),
        Finding(
            max(_divergence(apart, apart_absent, both), _divergence(apart_absent, apart, both)),
            "The same, with a fresh sample for the second answer.",
        ),
        "Uncertainty that protects one release is used up by it. Every release draws a sample of its own here, and the "
        "ledger refuses a second release from a table that is itself a sample.",
    )


def _asked_twice(people: int, width: int, epsilon: float) -> str:
    """Both answers, drawn once with her in the sample: what they are, and whether they fit together."""
    source = RandomSource()
    half = np.array([people])
    first, other = (int(source.binomial(half, 0.5)[0]) for _ in range(2))
    noise = 0
    while source.binomial(np.array([1]), math.exp(-epsilon))[0]:
        noise += 1
    noise *= 1 - 2 * int(source.integers(2, 1)[0])
    said = (first // width + 1) % 2  # turned around, as she is in the sample
    sizes = {"the same sample": first + 1 + noise, "a fresh one": other + noise}
    fits = {name: "fits" if (size // width) % 2 == said else "contradicts it" for name, size in sizes.items()}
    return (
        f"This time she was in the sample. The first answer says that the stripe is {'odd' if said else 'even'}. The "
        + "; ".join(f"size of {name} is told as {size:,}, which {fits[name]}" for name, size in sizes.items())
        + ". Of one sample a contradiction gives her away; of two it is as likely without her."
    )


def _two_answers(people: int, fewest: int, width: int, epsilon: float, *, present: bool) -> NDArray[np.float64]:
    """The law of both answers: the first down, the second across, cut off where less than 1e-15 is lost."""
    from scipy.stats import binom

    reach, far = math.ceil(6 * math.sqrt(people)), math.ceil(40 / epsilon)
    others = np.arange(max(0, people // 2 - reach), min(people, people // 2 + reach) + 1)
    noise = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(np.arange(-far, far + 1)))
    law = np.zeros((2, len(others) + 2 * far + 1))
    for hers in (0, 1) if present else (0,):
        share = binom.pmf(others, people, 0.5) * (0.5 if present else 1.0)
        odd = (others // width + hers) % 2
        for answer in (0, 1):
            said = np.where(others < fewest, 0.5, odd == answer)
            law[answer, hers : hers + len(others) + 2 * far] += np.convolve(share * said, noise)
    return law[:, 2 * far : -2 * far]  # towards the ends some of the noise is missing


def _divergence(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float) -> float:
    return float(np.maximum(0.0, first - math.exp(epsilon) * second).sum())


# --- duplicated rows --------------------------------------------------------------------------------------------------


def duplicated_rows(k: int = 20, people: int = 1000) -> Attack:
    """Publishing every row k times satisfies the letter of k-anonymity (§3.1)."""
    source = RandomSource()
    values = 1_000_000
    table = source.integers(values, people)
    published = np.repeat(table, k)
    _, counts = np.unique(published, return_counts=True)
    reached = int(k_anonymity(counts[:, None]).value)
    # Half of those asked about are in the table; the attacker looks whether their row is there.
    asked = np.concatenate([table[: people // 2], _absent(table, values, people // 2)])
    truth = np.repeat([True, False], people // 2)
    right = float(np.mean(np.isin(asked, published) == truth))
    # The same for a sampled crowd in which each of these people is alone with their values.
    sampled = source.binomial(np.ones(people, dtype=np.int64), 0.1)
    shown = table[sampled >= k]
    safe = float(np.mean(np.isin(asked, shown) == truth))
    looked = [
        (who, [int(np.isin(asked[truth == there], rows).sum()) for rows in (published, shown)])
        for who, there in (("in the table", True), ("not in it", False))
    ]
    return Attack(
        "duplicated-rows",
        f"Every row published {k} times",
        (
            f"{people:,} people, nearly all different. Each row is written {k} times.",
            f"The table is {reached}-anonymous by definition: every combination of values occurs {reached} times.",
            f"Somebody asks about {people:,} people, half of whom are in the table, and looks whether they are there.",
        ),
        "All values of each person that she asks about.",
        "Whether a row with these values is there.",
        f"This time she finds {looked[0][1][0]:,} of {people // 2:,} who are in the table, and {looked[1][1][0]:,} of "
        f"those who are not. In a sampled crowd she finds {looked[0][1][1]:,} and {looked[1][1][1]:,}.",
        (
            pictures.found("Every row published many times", [(w, n[0]) for w, n in looked], people // 2),
            pictures.found("A sampled crowd", [(w, n[1]) for w, n in looked], people // 2),
        ),
        Finding(1 / k, f"Among {k} equal rows nobody should be pointed at with a probability above 1/{k}."),
        Finding(right, "The share of people about whom the answer is right; guessing gives 0.5."),
        Finding(safe, "The same share for a sampled crowd, which publishes none of these lonely rows."),
        "k-anonymity speaks of the output, not of how it was made. A promise must be about the procedure.",
    )


def _absent(table: Integers, values: int, size: int) -> Integers:
    others = np.setdiff1d(np.arange(values), table)
    return others[:: max(1, len(others) // size)][:size]


# --- choosing on the sample -------------------------------------------------------------------------------------------


def choosing_on_the_sample(k: int = 20, beta: float = 0.1, epsilon: float = 1.0) -> Attack:
    """Theorem 6 as printed lets the mapping be chosen on the sample; then its δ is exceeded."""
    promised = paper_delta(k, beta, epsilon) or 1.0  # always there for these parameters
    sizes = range(k, 4 * k)
    gaps = [_gap(n, k, beta, epsilon) for n in sizes]
    worst, at = max(zip(gaps, sizes, strict=True))
    exact = exact_delta(k, beta, epsilon)
    sampled = int(RandomSource().binomial(np.array([at]), beta)[0])
    return Attack(
        "choosing-on-the-sample",
        "A private choice of the mapping, made on the sample",
        (
            (
                "How to recode is chosen by a differentially private procedure (ε₁ = 1) that looks at the sample; then "
                f"the sample is recoded and crowds of {k} are published (ε₂ = 1). Theorem 6 of the paper allows it."
            ),
            (
                "The choice leans towards one mapping exactly when one person was sampled and her group is about to be "
                "large enough. One record changes its odds by a factor e at most, as the theorem asks."
            ),
            (
                f"Outputs under that mapping, with and without her, for a group of {at}: their distance at ε₁ + ε₂ "
                f"is {worst:.3g}, where the theorem promises {promised:.3g}."
            ),
        ),
        "Everyone in the group but her.",
        "Which mapping was chosen, and how many of the group are published.",
        f"This time {sampled} of the {at} people of her group were sampled, where {k} are needed: what gives her away "
        "is rare. It is not as rare as was promised.",
        (
            pictures.distances("Chosen on the sample", sizes, gaps, promised),
            pictures.distances("Chosen on the full table", sizes, [exact] * len(sizes), promised),
        ),
        Finding(promised, "The δ that the theorem promises."),
        Finding(worst, "The δ that the outputs really have, at least (an exact sum, no simulation)."),
        Finding(
            exact,
            "The exact δ if the choice is made on the full table, before and independently of the sampling.",
        ),
        "The sample is no longer independent of a choice that has looked at it. Levels are chosen on the full table "
        "here, with a part of ε that is stated; a table that is itself a sample may only use fixed levels.",
    )


def _gap(n: int, k: int, beta: float, epsilon: float) -> float:
    """Σ max(0, P − e^{2ε} Q) over the sizes of the published group, given that the mapping is chosen."""

    def binomial(j: int, size: int) -> float:
        return math.comb(size, j) * beta**j * (1 - beta) ** (size - j) if 0 <= j <= size else 0.0

    def chosen(sampled: int, others: int) -> float:
        return 0.5 * math.exp(epsilon * (sampled - max(0, others - (k - 1)) - 1))

    total = 0.0
    for j in range(k, n + 1):
        absent = binomial(j, n - 1) * chosen(0, j)
        present = binomial(j - 1, n - 1) * chosen(1, j - 1)
        total += max(0.0, beta * present + (1 - beta) * absent - math.exp(2 * epsilon) * absent)
    return total


ATTACKS: dict[str, Callable[[], Attack]] = {
    "extreme-values": extreme_values,
    "one-sample": one_sample,
    "duplicated-rows": duplicated_rows,
    "choosing-on-the-sample": choosing_on_the_sample,
}
