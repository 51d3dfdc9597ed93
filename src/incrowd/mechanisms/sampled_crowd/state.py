"""A sampled crowd as a release: what it promises, how that is checked, and what can be estimated from it.

A cell of n people shows X·1(X ≥ k) records, X ~ Bin(n, β). A published count x therefore stands for about x/β people,
the value of n under which it is likeliest. Its standard error is the standard deviation of X·1(X ≥ k)/β at that n: far
above the threshold it is the binomial √(x(1−β))/β; near it the chance of not being published at all is part of it.

Cells that were not published may be empty or merely too small. Estimates speak of the published cells; how many were
not published, and how large they could be, stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from incrowd.core.numbers import grown
from incrowd.histogram import Labels
from incrowd.mechanisms.already_sampled import came_by_chance
from incrowd.mechanisms.base import (
    Check,
    Publication,
    published_attributes,
    section_of,
)
from incrowd.mechanisms.certificate import Statement
from incrowd.mechanisms.declared import UNREADABLE, are_levels, check_labels, held_columns, says_together
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sampled_crowd.certificate import (
    CrowdCertificate,
    CrowdStatedChoice,
    CrowdStatedMechanism,
    CrowdStatedPromise,
    CrowdStatedTotals,
    CrowdStatement,
    CrowdTogether,
)
from incrowd.mechanisms.sampled_crowd.levels import NoisyTables, noise_of, weights_of
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, VALUES, OneWay, read_one_way
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled, LevelChoice, parts_of_one
from incrowd.policy import Attribute
from incrowd.theory._groups import float_above

# --- what it says ---------------------------------------------------------------------------------------------------


def state(
    settings: CrowdSettings,
    levels: Mapping[str, int],
    chosen: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> CrowdStatement:
    """The whole statement; all of it follows from the settings, the levels, and what columns counted in the choice."""
    promise = CrowdStatedPromise(
        notion="(epsilon, delta)-differential privacy",
        epsilon=settings.epsilon,
        delta=settings.delta,
        relation=relation(settings),
        in_words=in_words(settings),
        grounds=grounds(
            chosen=bool(chosen),
            several=settings.persons.several,
            totals=bool(settings.totals_epsilon),
            policy=bool(settings.policy_epsilon),
        ),
    )
    mechanism = CrowdStatedMechanism(
        k=settings.k,
        beta=settings.beta,
        selection_epsilon=settings.selection_epsilon,
        policy_epsilon=settings.policy_epsilon or None,
        exact_delta=settings.exact_delta,
        already_sampled=settings.already_sampled,
        levels=dict(levels),
        levels_chosen=tuple(chosen),
        totals=_totals(settings, len(levels)),
        choice=_choice(settings, weights, len(levels)) if chosen else None,
    )
    return Statement(promise, mechanism, assumptions(settings))


def _totals(settings: CrowdSettings, columns: int) -> CrowdStatedTotals | None:
    if not settings.totals_epsilon:
        return None
    return CrowdStatedTotals(epsilon=settings.totals_epsilon, decay=settings.totals_noise(columns).decay)


def _choice(settings: CrowdSettings, weights: Mapping[str, float] | None, columns: int) -> CrowdStatedChoice:
    return CrowdStatedChoice(
        minimise=settings.choice.minimise,
        tables_epsilon=settings.tables_epsilon,
        tables_scale=settings.tables_scale(columns) if settings.tables_epsilon else None,
        weights=None if weights is None else dict(weights),
    )


def together_of(settings: CrowdSettings, copies: int) -> CrowdTogether | None:
    """Promises about fresh samples add up; the policy was chosen once for all of them."""
    if copies == 1:
        return None
    return CrowdTogether(
        copies=copies,
        epsilon=float_above(copies * Fraction(settings.epsilon) - (copies - 1) * Fraction(settings.policy_epsilon)),
        delta=min(1.0, float_above(copies * Fraction(settings.delta))),
        in_words=(
            f"This is one of {copies} independent releases of the same table. Who has all of them has this "
            "promise with the epsilon and delta given here."
        ),
    )


def relation(settings: CrowdSettings) -> str:
    """Which tables are neighbours."""
    return f"add/remove {settings.persons.one}" if settings.persons.several else "add/remove"


def exact_delta_grounds(*, several: bool) -> str:
    """What the δ of a crowd under any mapping rests on."""
    return (
        "Exact delta of a sampled crowd"
        + (", for all rows of a person wherever they lie" if several else "")
        + " (incrowd, docs/proofs.md), sharpening Theorem 5 of Li, Qardaji and Su, "
        "'On sampling, anonymization, and differential privacy'"
    )


def grounds(*, chosen: bool, several: bool = False, totals: bool = False, policy: bool = False) -> str:
    """What the promise rests on."""
    return (
        exact_delta_grounds(several=several)
        + "; levels "
        + (
            "chosen with selection_epsilon on the full table, before and independently of the sampling: adaptive "
            "composition."
            if chosen
            else "fixed in the policy."
        )
        + (" One-way tables of the full table with discrete Laplace noise, whose epsilon adds up." if totals else "")
        + (
            " The policy itself was chosen with policy_epsilon on the full table, before: adaptive composition."
            if policy
            else ""
        )
    )


def assumptions(settings: CrowdSettings) -> list[str]:
    """The premises of the theorem that nobody can check from outside."""
    if settings.already_sampled:
        sampled = came_by_chance(settings.beta)
    else:
        sampled = "The sample was drawn for this release and was used for no other."
    return [
        settings.persons.premise,
        sampled,
        (
            "Domains, hierarchies, columns, and the levels, beta and k that the policy fixes were declared, not read "
            "off this table "
            + (
                f"(but for a private choice among policies, which cost policy_epsilon = {settings.policy_epsilon!r} of "
                "epsilon and no more; what an earlier release has chosen comes on top of epsilon)."
                if settings.policy_epsilon
                else "(but for what an earlier release has chosen: what that cost comes on top of epsilon)."
            )
        ),
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
        (
            "Neither the size of the sample nor the number of suppressed records is published anywhere: with either "
            f"of them delta would be at least beta = {settings.beta:g}."
        ),
        "The random bits were unpredictable, and have been forgotten.",
    ]


def in_words(settings: CrowdSettings) -> str:
    """The promise as a sentence."""
    factor = grown(settings.epsilon, 3)
    rows = f", who has {settings.persons.at_most:,} rows at most," if settings.persons.several else ""
    return (
        f"Whatever anyone might conclude from this table, the probability of that with any one person{rows} in the "
        f"data is at most e^ε = {factor} times the probability without that person, plus δ = {settings.delta!r}; and "
        "the other way round."
    )


# --- checking it ----------------------------------------------------------------------------------------------------


def check_promise(certificate: CrowdCertificate) -> Iterator[Check]:
    """The promise is the policy's, and follows from k and beta."""
    mechanism, release = certificate.mechanism, section_of(certificate, SampledCrowd)
    attributes = {
        name: Attribute.model_construct(hierarchy=a["hierarchy"], level=a["level"], role=a["role"])
        for name, a in published_attributes(certificate).items()
    }
    settings = settled_again(certificate).crowd
    given = release.k in (None, mechanism.k) and release.beta in (None, mechanism.beta)
    sound = not release.unfit(attributes) and not (release.already_sampled and settings.persons.declared)
    yield Check("the policy's parameters go together", given and sound, "they contradict each other")
    yield Check(
        "epsilon and delta follow from k and beta",
        settings.kept,
        f"they give delta = {settings.exact_delta:.3g}, more than the {settings.delta:g} promised",
    )
    chosen = [
        name
        for name, a in attributes.items()
        if a.level is None and release.selection_epsilon and name != release.target
    ]
    levels = mechanism.levels
    held = held_columns(certificate)
    sound = are_levels(levels, held)
    yield Check("every stated level exists", sound, "one is not a whole number, or its hierarchy has no such level")
    if sound:
        yield check_labels(certificate, held)
    same = set(levels) == set(attributes) and sorted(mechanism.levels_chosen) == sorted(chosen)
    for name, attribute in attributes.items():
        fixed = 0 if attribute.level is None else attribute.level
        same = same and (name in chosen or levels[name] == fixed)
    yield Check("the levels are the policy's, where it fixes them", same, "a level differs from the policy's")
    weights = mechanism.choice.weights if mechanism.choice is not None else None
    if mechanism.choice is not None:
        weighed = _weighed(settings.choice, weights, list(attributes))
        yield Check("what columns counted in the choice follows from the policy", weighed, "their weights are others")
    statement = state(settings, levels, mechanism.levels_chosen, weights)
    if mechanism.choice is None and settings.choice == LevelChoice():
        # Certificates of earlier versions, in which all columns counted the same, say nothing of it.
        statement = replace(statement, mechanism=statement.mechanism.model_copy(update={"choice": None}))
    elif (own := statement.mechanism.choice) and mechanism.choice and mechanism.choice.tables_scale is None:
        # Those of version 0.3.0 did not publish the tables that their choice has paid for.
        earlier = own.model_copy(update={"tables_scale": None})
        statement = replace(statement, mechanism=statement.mechanism.model_copy(update={"choice": earlier}))
    stated = statement.is_in(certificate)
    stated = stated and says_together(certificate, lambda copies: together_of(settings, copies))
    stated = stated and not (settings.already_sampled and certificate.promise.together)
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def _weighed(choice: LevelChoice, weights: Mapping[str, float] | None, names: Sequence[str]) -> bool:
    if choice.minimise not in ("loss", "entropy") or weights is None:
        return weights is None and choice.minimise not in ("loss", "entropy")
    if set(weights) != set(names):
        return False
    if choice.minimise == "loss" and choice.importance:
        return dict(weights) == parts_of_one({name: choice.importance.get(name, 1.0) for name in names})
    return all(0 <= weight <= 1 for weight in weights.values()) and sum(weights.values()) <= 1 + 1e-9


def settled_again(certificate: CrowdCertificate) -> CrowdSettled:
    """The settings, from the policy and what was found for it."""
    mechanism, release = certificate.mechanism, section_of(certificate, SampledCrowd)
    return CrowdSettled(
        CrowdSettings(
            release.epsilon,
            release.delta,
            release.selection_epsilon,
            mechanism.k,
            mechanism.beta,
            release.already_sampled,
            Persons.in_certificate(certificate),
            0.0 if release.totals is None else release.totals.epsilon,
            LevelChoice.of(release),
            release.policy_epsilon,
        ),
        (),
        {},
    )


def beside_names(certificate: CrowdCertificate) -> tuple[str, ...]:
    """The one-way tables, if the policy asks for them, and those by which a choice has weighed the columns."""
    choice = certificate.mechanism.choice
    asked = () if section_of(certificate, SampledCrowd).totals is None else (ONE_WAY,)
    return asked if choice is None or choice.tables_scale is None else (*asked, VALUES)


def check_table(certificate: CrowdCertificate, published: Publication) -> Iterator[Check]:
    """Only crowds of k, and one-way tables of the columns as they are shown, with the noise that was paid for."""
    k, table = certificate.mechanism.k, published.table
    small = int((table.counts < k).sum())
    yield Check(f"every crowd has k = {k} records or more", small == 0, f"{small} crowds are smaller")
    names, settings = beside_names(certificate), settled_again(certificate).crowd
    if ONE_WAY in names:
        one_way = _tables(published, ONE_WAY)
        sound = one_way is not None and dict(one_way.labels) == certificate.labels
        sound = sound and one_way is not None and one_way.noise == settings.totals_noise(len(certificate.labels))
        yield Check("the one-way tables are of the columns as shown, with the noise stated", sound, "they are others")
    if VALUES in names:
        values = _tables(published, VALUES)
        sound = values is not None and _are_values(values, certificate)
        yield Check("the noisy counts are of the columns' own values, with the noise stated", sound, "they are others")
        if values is not None and sound:
            same = _weighed_by(values, certificate)
            yield Check("the weights of columns follow from the noisy counts", same, "they are others")


def _weighed_by(values: OneWay, certificate: CrowdCertificate) -> bool:
    """Whether the stated weights are those that the tables give."""
    settings, choice = settled_again(certificate).crowd, certificate.mechanism.choice
    tables = NoisyTables.published(values, settings.tables_scale(len(certificate.labels)))
    found = weights_of(settings.choice, list(certificate.labels), tables)
    if choice is None or choice.weights is None or found is None or set(found) != set(choice.weights):
        return False
    # They are rounded down to four places, before which another machine's logarithms may differ.
    return all(abs(found[name] - weight) < 1.5e-4 for name, weight in choice.weights.items())


def _tables(published: Publication, name: str) -> OneWay | None:
    try:
        return read_one_way(published.beside[name])
    except UNREADABLE:
        return None


def _are_values(values: OneWay, certificate: CrowdCertificate) -> bool:
    """Whether tables count each column as finely as the choice may have shown it."""
    scale = settled_again(certificate).crowd.tables_scale(len(certificate.labels))
    held, mechanism = held_columns(certificate), certificate.mechanism

    def has(name: str, labels: Labels) -> bool:
        level, shown = mechanism.levels[name], values.shown.get(name)
        if name not in mechanism.levels_chosen or not level:
            return shown is None and labels == tuple(certificate.labels[name])
        if shown is None or len(set(labels)) != len(labels) or set(shown) != set(certificate.labels[name]):
            return False
        if name not in held or not held[name].has(labels, 0):
            return name not in held
        if not held[name].whole:
            return True
        own, recode = held[name].hierarchy.recode(0).labels, held[name].hierarchy.recode(level)
        return dict(zip(labels, shown, strict=True)) == {
            label: recode.labels[code] for label, code in zip(own, recode.to, strict=True)
        }

    return (
        values.noise == noise_of(scale)
        and set(values.labels) == set(certificate.labels)
        and all(has(name, labels) for name, labels in values.labels.items())
    )


# --- estimates ------------------------------------------------------------------------------------------------------
