"""What a set of views says of itself, and checking that from the certificate and the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from incrowd.core.numbers import grown, number_up
from incrowd.domain import Recode
from incrowd.mechanisms.already_sampled import came_by_chance
from incrowd.mechanisms.base import Check, Publication, all_columns, published_attributes, section_of
from incrowd.mechanisms.certificate import Statement
from incrowd.mechanisms.declared import Held, are_levels, check_labels, held_columns, says_together
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.views.certificate import (
    AnyViewsMechanism,
    SampledViewsMechanism,
    StatedLevel,
    StatedStep,
    StatedView,
    ViewsCertificate,
    ViewsStatedMechanism,
    ViewsStatedPromise,
    ViewsStatement,
    ViewsTogether,
)
from incrowd.mechanisms.views.section import Views
from incrowd.mechanisms.views.settle import ViewsSettled, rounds_of, single_columns
from incrowd.mechanisms.views.view import View, field_names, file_names
from incrowd.policy import Attribute
from incrowd.theory._groups import float_above
from incrowd.theory.views import CrowdStep, LaplaceStep, NoiseStep, Step, ViewsPlan

SYNTHETIC = "This table is synthetic: it was made from the views alone, and its rows are nobody's records."

# --- what it says ---------------------------------------------------------------------------------------------------


def state(settings: ViewsSettled, views: Sequence[View]) -> ViewsStatement:
    """The whole statement; all of it follows from the settings and the shape of the views."""
    names = file_names([view.columns for view in views])
    coarser = {
        (name, level): StatedLevel(
            column=name, level=level, labels=recode.labels, groups=tuple(int(code) for code in recode.to)
        )
        for view in views
        for name, level, recode in zip(view.columns, view.levels, view.recodes, strict=True)
        if level != settings.base[name]
    }
    shown = [
        StatedView(columns=view.columns, levels=view.levels, file=name) for view, name in zip(views, names, strict=True)
    ]
    return _statement(settings, tuple(shown), tuple(coarser[key] for key in sorted(coarser)))


def _statement(
    settings: ViewsSettled, views: tuple[StatedView, ...], coarser: tuple[StatedLevel, ...]
) -> ViewsStatement:
    plan = settings.plan
    promise = ViewsStatedPromise(
        notion="(epsilon, delta)-differential privacy",
        epsilon=plan.epsilon,
        delta=plan.delta,
        relation=f"add/remove {settings.persons.one}" if settings.persons.several else "add/remove",
        in_words=in_words(plan, combined=settings.combine),
        grounds=grounds(plan),
    )
    mechanism: AnyViewsMechanism = ViewsStatedMechanism(
        levels=dict(settings.base),
        singles=plan.singles,
        single=_stated_step(plan.single),
        views=views,
        view=_stated_step(plan.view),
        choices=plan.choices,
        exponent=plan.exponent,
        exact_delta=plan.exact_delta,
        coarser=coarser,
        synthetic=SYNTHETIC if settings.combine else None,
    )
    if plan.rate != 1:
        mechanism = SampledViewsMechanism(**dict(mechanism), beta=plan.rate, already_sampled=True)
    return Statement(promise, mechanism, assumptions(settings))


def _stated_step(step: Step) -> StatedStep:
    if isinstance(step, CrowdStep):
        return StatedStep(kind="crowd", k=step.k, beta=step.beta)
    if isinstance(step, NoiseStep):
        return StatedStep(kind="gaussian", variance=step.variance)
    return StatedStep(kind="laplace", decay=step.decay)


def step_of(stated: StatedStep) -> Step:
    """How views were drawn.

    Raises:
        ValueError: what is stated fits no kind.
    """
    given = {name for name in ("k", "beta", "variance", "decay") if getattr(stated, name) is not None}
    if stated.kind == "crowd" and given == {"k", "beta"} and stated.k is not None and stated.beta is not None:
        return CrowdStep(stated.k, stated.beta)
    if stated.kind == "gaussian" and given == {"variance"} and stated.variance is not None and stated.variance > 0:
        return NoiseStep(stated.variance)
    if stated.kind == "laplace" and given == {"decay"} and stated.decay is not None and stated.decay > 0:
        return LaplaceStep(stated.decay)
    raise ValueError("a step is of no kind")


def together(settings: ViewsSettled, copies: int) -> ViewsTogether | None:
    """Promises about independent draws add up."""
    if copies == 1:
        return None
    plan = settings.plan
    return ViewsTogether(
        copies=copies,
        epsilon=float_above(copies * Fraction(plan.epsilon)),
        delta=min(1.0, float_above(copies * Fraction(plan.delta))),
        in_words=(
            f"This is one of {copies} independent releases of the same table. Who has all of them has this "
            "promise with the epsilon and delta given here."
        ),
    )


def grounds(plan: ViewsPlan) -> str:
    """What the promise rests on."""
    if isinstance(plan.view, CrowdStep):
        views = (
            "Exact profiles of sampled crowds (incrowd, docs/proofs.md, sharpening Theorem 5 of Li, Qardaji and Su), "
            "one fresh sample for each view, " + _noise_beside(plan.single) + "composed numerically"
        )
    elif isinstance(plan.view, NoiseStep):
        views = (
            "Discrete Gaussian noise and its zero-concentrated differential privacy (Canonne, Kamath, Steinke), added "
            "up over all views and converted to epsilon and delta"
        )
    else:
        views = "Discrete Laplace noise, whose epsilon adds up over all views"
    if plan.rows > 1:
        views += f", of a person with {plan.rows:,} rows (docs/proofs.md, A person with several rows)"
    chosen = "; choices by the exponential mechanism on the full table, each charged by its bounded range"
    sampled = (
        ""
        if plan.rate == 1
        else (
            " The table is itself a random sample, so they promise more to all who could have been in it (Li, Qardaji "
            "and Su, Theorem 1; docs/proofs.md, A table that is itself a sample)."
        )
    )
    listed = "; the views are listed in the policy"
    return f"{views}{chosen if plan.choices else listed} (docs/proofs.md, Views).{sampled}"


def _noise_beside(single: Step) -> str:
    """What one-way tables beside crowds have."""
    if isinstance(single, CrowdStep):
        return ""
    law = "Laplace" if isinstance(single, LaplaceStep) else "Gaussian"
    return f"and discrete {law} noise in the one-way tables, "


def assumptions(settings: ViewsSettled) -> list[str]:
    """The premises of the theorem that nobody can check from outside."""
    crowds, rate = isinstance(settings.plan.view, CrowdStep), settings.plan.rate
    return [
        settings.persons.premise,
        *([came_by_chance(rate)] if rate != 1 else []),
        *(["Each view's sample was drawn for it alone, and was used for nothing else."] if crowds else []),
        "Domains, hierarchies and the levels that the policy fixes were declared, not read off this table.",
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
        *(
            ["Neither the size of a sample nor the number of records in cells withheld is published anywhere."]
            if crowds
            else []
        ),
        "The random bits were unpredictable, and have been forgotten.",
    ]


def in_words(plan: ViewsPlan, *, combined: bool) -> str:
    """The promise as a sentence."""
    and_table = ", and from the synthetic table that was made of them" if combined else ""
    rows = f", who has {plan.rows:,} rows at most," if plan.rows > 1 else ""
    known = (
        ""
        if plan.rate == 1
        else (
            f" Of somebody who is known to be in the table, the same holds with e^ε = {grown(plan.inside, 3)} and "
            f"δ = {number_up(plan.delta / plan.rate, 3)}."
        )
    )
    return (
        f"Whatever anyone might conclude from all views together{and_table}, the probability of that with any one "
        f"person{rows} in the {'data' if plan.rate == 1 else 'population'} is at most e^ε = {grown(plan.epsilon, 3)} "
        f"times the probability without that person, plus δ = {plan.delta!r}; and the other way round.{known}"
    )


# --- checking it ----------------------------------------------------------------------------------------------------


def settled_again(certificate: ViewsCertificate) -> ViewsSettled:
    """The settings, from the policy and what was found for it.

    Raises:
        ValueError: the certificate says something that no settings mean.
    """
    section, mechanism = section_of(certificate, Views), certificate.mechanism
    names, persons = all_columns(certificate), Persons.in_certificate(certificate)
    plan = ViewsPlan(
        section.epsilon,
        section.delta,
        mechanism.singles,
        step_of(mechanism.single),
        len(mechanism.views) - mechanism.singles,
        step_of(mechanism.view),
        mechanism.choices,
        mechanism.exponent,
        persons.at_most,
        section.rate,
    )
    return ViewsSettled(
        plan,
        section.by,
        section.chosen if plan.views else None,
        tuple(single_columns(section, names)),
        tuple(section.listed(names)),
        (),
        mechanism.levels,
        section.combine == "table",
        section.rows,
        persons,
    )


def check_promise(certificate: ViewsCertificate) -> Iterator[Check]:
    """The promise is the policy's, and follows from the stated steps."""
    section, mechanism = section_of(certificate, Views), certificate.mechanism
    attributes = {
        name: Attribute.model_construct(hierarchy=a["hierarchy"], level=a["level"], role=a["role"])
        for name, a in published_attributes(certificate).items()
    }
    settings = settled_again(certificate)
    sound = not section.unfit(attributes) and not (section.already_sampled and settings.persons.declared)
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    plan = settings.plan
    yield Check("the views are those that the policy asks for", _as_asked(certificate, settings), "they are others")
    yield Check(
        "epsilon and delta follow from all steps together",
        plan.kept,
        f"they give delta = {plan.exact_delta:.3g}, more than the {plan.delta:g} promised",
    )
    held, levels = held_columns(certificate), mechanism.levels
    fixed = {name: 0 if a.level is None else a.level for name, a in attributes.items()}
    sound = are_levels(levels, held) and levels == fixed
    yield Check("the levels of the synthetic table are the policy's", sound, "a level differs from the policy's")
    if sound:
        yield check_labels(certificate, held)
        yield Check(
            "coarser levels are the policy's, where it has them", _are_coarser(certificate, held), "they differ"
        )
    stated = _statement(settings, mechanism.views, mechanism.coarser).is_in(certificate)
    stated = stated and not (section.already_sampled and certificate.promise.together)
    stated = stated and says_together(certificate, partial(together, settings))
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def _as_asked(certificate: ViewsCertificate, settings: ViewsSettled) -> bool:
    """Whether one-way tables come first, then the listed views or as many of the right size as are chosen."""
    names, plan, crowds = all_columns(certificate), settings.plan, settings.by == "crowd"
    views = [tuple(view.columns) for view in certificate.mechanism.views]
    singles, others = views[: plan.singles], views[plan.singles :]
    if singles != [(name,) for name in settings.singles] or len(set(views)) < len(views):
        return False
    if any(len(view.columns) != len(view.levels) for view in certificate.mechanism.views):
        return False
    if [view.file for view in certificate.mechanism.views] != file_names(views):
        return False
    if plan.views < 0 or plan.singles != len(settings.singles) or isinstance(plan.view, CrowdStep) != crowds:
        return False
    if isinstance(plan.single, CrowdStep) and not crowds:
        return False
    if (plan.exponent > 0) != (plan.choices > 0):
        return False
    if plan.choices and not crowds and any(isinstance(step, LaplaceStep) for step in (plan.single, plan.view)):
        return False  # such a set is never planned
    choice = section_of(certificate, Views).chosen
    if choice is None:
        return others == list(settings.listed) and plan.choices == 0
    sizes = {choice.columns} if choice.how == "tree" else set(range(2, choice.columns + 1))
    ordered = all(list(view) == sorted(view, key=names.index) and len(view) in sizes for view in others)
    return ordered and len(others) == plan.choices == rounds_of(choice, len(names))


def _are_coarser(certificate: ViewsCertificate, held: dict[str, Held]) -> bool:
    """Whether each level that a view uses is stated once, groups the column's labels, and is the policy's."""
    mechanism = certificate.mechanism
    base, labels = mechanism.levels, certificate.labels
    used = {
        (name, level)
        for view in mechanism.views
        for name, level in zip(view.columns, view.levels, strict=True)
        if level != base[name]
    }
    if [(one.column, one.level) for one in mechanism.coarser] != sorted(used):
        return False
    for one in mechanism.coarser:
        groups = list(one.groups)
        if len(groups) != len(labels[one.column]) or set(groups) != set(range(len(one.labels))):
            return False
        if one.level <= base[one.column] or len(set(one.labels)) < len(one.labels):
            return False
        if one.column in held and held[one.column].whole:
            hierarchy = held[one.column].hierarchy
            if not base[one.column] < one.level <= hierarchy.height:
                return False
            place = {label: code for code, label in enumerate(labels[one.column])}
            own = hierarchy.coarsen(base[one.column], one.level)
            below = hierarchy.recode(base[one.column]).labels
            named = {place[label]: own.labels[int(own.to[code])] for code, label in enumerate(below)}
            if [one.labels[group] for group in groups] != [named[code] for code in range(len(groups))]:
                return False
    return True


Labels = Mapping[str, tuple[str | None, ...]]
"""All that each column could show, in the table's order."""


def recodes_of(mechanism: ViewsStatedMechanism, labels: Labels, view: StatedView) -> list[Recode]:
    """From the labels of the columns to those of a view.

    Raises:
        KeyError: a level is not stated.
    """
    coarser = {(one.column, one.level): one for one in mechanism.coarser}
    found = []
    for name, level in zip(view.columns, view.levels, strict=True):
        recode = Recode(np.arange(len(labels[name])), labels[name])
        if level != mechanism.levels[name]:
            one = coarser[name, level]
            recode = Recode(np.array(one.groups), one.labels)
        found.append(recode)
    return found


def read_views(mechanism: ViewsStatedMechanism, labels: Labels, beside: Mapping[str, bytes]) -> list[View]:
    """The views that were published.

    Raises:
        ValueError: a file is not that of its view.
        KeyError: a file has other labels, or is not there.
    """
    names = list(labels)
    single, step = step_of(mechanism.single), step_of(mechanism.view)
    return [
        View.from_bytes(
            beside[view.file],
            view.columns,
            [names.index(name) for name in view.columns],
            view.levels,
            recodes_of(mechanism, labels, view),
            single if number < mechanism.singles else step,
        )
        for number, view in enumerate(mechanism.views)
    ]


def beside_names(certificate: ViewsCertificate) -> list[str]:
    """The files of the views."""
    return file_names([view.columns for view in certificate.mechanism.views])


def tables_beside(certificate: ViewsCertificate) -> dict[str, dict[str, Sequence[str | None] | str]]:
    """The columns of each view with their labels, its count and, with noise, the count's standard deviation."""
    mechanism = certificate.mechanism
    labels: dict[tuple[str, int], Sequence[str | None]] = {
        (name, mechanism.levels[name]): of for name, of in certificate.labels.items()
    }
    labels |= {(one.column, one.level): one.labels for one in mechanism.coarser}
    found: dict[str, dict[str, Sequence[str | None] | str]] = {}
    for number, (view, file) in enumerate(zip(mechanism.views, beside_names(certificate), strict=True)):
        step = mechanism.single if number < mechanism.singles else mechanism.view
        count, deviation = field_names(view.columns)
        numbers = {count: "integer"} | ({} if step.kind == "crowd" else {deviation: "number"})
        found[file] = {
            name: labels[name, level] for name, level in zip(view.columns, view.levels, strict=True)
        } | numbers
    return found


def check_table(certificate: ViewsCertificate, published: Publication) -> Iterator[Check]:
    """Every view holds declared labels, crowds of k or all cells, and nothing else."""
    try:
        views = read_views(certificate.mechanism, certificate.labels, published.beside)
    except (ValueError, KeyError, TypeError, OSError, NotImplementedError):
        yield Check("every view holds declared labels and counts only", holds=False, detail="one does not")
        return
    yield Check("every view holds declared labels and counts only", holds=True)
    small = sum(
        int(((view.counts != 0) & (view.counts < view.step.k)).sum())
        for view in views
        if isinstance(view.step, CrowdStep)
    )
    yield Check("every crowd of every view has its k records or more", small == 0, f"{small} crowds are smaller")
    rows = section_of(certificate, Views).rows
    right = rows is None or published.table.total == rows
    yield Check("the synthetic table has the rows asked for", right, "it has more or fewer")
