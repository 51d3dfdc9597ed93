"""A crowd under a tree as a release: what it says of itself, and how that is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from incrowd.mechanisms.base import Check, Publication, published_attributes, section_of
from incrowd.mechanisms.certificate import Statement
from incrowd.mechanisms.declared import UNREADABLE, check_mapping, says_together
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sampled_crowd.certificate import (
    CrowdCertificate,
    CrowdStatedMechanism,
    CrowdStatedPromise,
    CrowdStatedTree,
    CrowdStatement,
)
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, OneWay, read_one_way
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.state import assumptions, exact_delta_grounds, in_words, relation, together_of
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeCrowd, TreeSettled, solve_tree
from incrowd.policy import Attribute
from incrowd.recoding.growth import cost
from incrowd.recoding.mapping import MAPPING, Tree, read_tree
from incrowd.theory.views import NoiseStep


def state(settled: TreeSettled) -> CrowdStatement:
    """The whole statement; all of it follows from the settings."""
    crowd = settled.crowd
    promise = CrowdStatedPromise(
        notion="(epsilon, delta)-differential privacy",
        epsilon=crowd.epsilon,
        delta=crowd.delta,
        relation=relation(crowd),
        in_words=in_words(crowd),
        grounds=grounds(chosen=settled.chosen, several=crowd.persons.several),
    )
    mechanism = CrowdStatedMechanism(
        k=crowd.k,
        beta=crowd.beta,
        selection_epsilon=0.0,
        exact_delta=crowd.exact_delta,
        already_sampled=crowd.already_sampled,
        levels={},
        levels_chosen=(),
        tree=CrowdStatedTree(
            rho=crowd.rho,
            one_way_variance=settled.one_way_variance if settled.chosen else None,
            path_budget=settled.budget if settled.chosen else None,
            threshold=settled.threshold,
            splits=settled.release.splits,
            score=settled.release.score,
            cuts=settled.cuts if settled.flat else None,
            noise="by budget" if settled.chosen and settled.by_budget and not settled.flat else None,
        ),
    )
    return Statement(promise, mechanism, _assumptions(settled))


def grounds(*, chosen: bool, several: bool) -> str:
    """What the promise rests on."""
    crowd = f"{exact_delta_grounds(several=several)}; the mapping is a tree of boxes "
    if not chosen:
        return f"{crowd}that the policy gives."
    return (
        f"{crowd}chosen on the full table, before and independently of the sampling, with rho in zero-concentrated "
        "differential privacy, the noisy one-way tables included: both together by a certified bound (incrowd, "
        "docs/proofs.md)."
    )


def _assumptions(settled: TreeSettled) -> list[str]:
    found = assumptions(settled.crowd)
    if not settled.chosen:
        found.append("The mapping was taken from an earlier release, charged for it, or made without this table.")
    return found


def settled_again(certificate: CrowdCertificate) -> TreeSettled:
    """The settings, from the policy and what was found for it."""
    mechanism, release = certificate.mechanism, section_of(certificate, SampledCrowd)
    stated = mechanism.tree
    crowd = TreeCrowd(
        release.epsilon,
        release.delta,
        0.0,
        mechanism.k,
        mechanism.beta,
        release.already_sampled,
        Persons.in_certificate(certificate),
        rho=0.0 if release.mapping is not None or stated is None else stated.rho,
    )
    by_budget = stated is not None and stated.noise is not None
    return TreeSettled(crowd, release, (), frozenset(), len(published_attributes(certificate)), by_budget=by_budget)


def check_promise(certificate: CrowdCertificate) -> Iterator[Check]:
    """The promise is the policy's, and follows from k, beta and rho."""
    mechanism, release = certificate.mechanism, section_of(certificate, SampledCrowd)
    attributes = {
        name: Attribute.model_construct(hierarchy=a["hierarchy"], level=a["level"], role=a["role"])
        for name, a in published_attributes(certificate).items()
    }
    settled = settled_again(certificate)
    crowd = settled.crowd
    given = release.k in (None, mechanism.k) and release.beta in (None, mechanism.beta)
    if release.mapping is None:
        found = solve_tree(release.model_copy(update={"k": mechanism.k, "beta": mechanism.beta}), crowd.persons)
        given = given and crowd.rho == found.rho > 0
    sound = given and not release.unfit(attributes)
    sound = sound and not (release.already_sampled and crowd.persons.declared)
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    yield Check(
        "epsilon and delta follow from k, beta and rho",
        crowd.kept,
        f"they give delta = {crowd.exact_delta:.3g}, more than the {crowd.delta:g} promised",
    )
    stated = state(settled).is_in(certificate)
    stated = stated and says_together(certificate, lambda copies: together_of(crowd, copies))
    stated = stated and not (crowd.already_sampled and certificate.promise.together)
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def beside_names(certificate: CrowdCertificate) -> tuple[str, ...]:
    """The mapping and, if it was chosen, the one-way tables."""
    chosen = section_of(certificate, SampledCrowd).mapping is None
    return (MAPPING, ONE_WAY) if chosen else (MAPPING,)


def tree_of(beside: Mapping[str, bytes]) -> tuple[Tree, OneWay | None]:
    """What stands beside the table.

    Raises:
        ValueError: it is something else.
    """
    return read_tree(beside[MAPPING]), read_one_way(beside[ONE_WAY]) if ONE_WAY in beside else None


def check_table(certificate: CrowdCertificate, published: Publication) -> Iterator[Check]:
    """Only crowds of k, in boxes of a tree that was paid for."""
    k, table = certificate.mechanism.k, published.table
    small = int((table.counts < k).sum())
    yield Check(f"every crowd has k = {k} records or more", small == 0, f"{small} crowds are smaller")
    checks = list(check_mapping(certificate, published, list(certificate.labels)))
    yield from checks
    if not checks[0].holds:
        return
    try:
        paid = _paid(certificate, *tree_of(published.beside))
    except UNREADABLE:
        paid = False
    yield Check("the choice cost no more than it may", paid, "a path cost more")


def _paid(certificate: CrowdCertificate, tree: Tree, one_way: OneWay | None) -> bool:
    """Sizes and failures tell what each path has cost; a mapping that was given has neither."""
    settled = settled_again(certificate)
    if not settled.chosen:
        return one_way is None and tree.boxes[0].size is None and not any(box.failed for box in tree.boxes)
    if one_way is None or settled.flat != (tree.cuts is not None) or settled.flat != (tree.boxes[0].size is None):
        return False
    labels = {c.name: c.base for c in tree.columns}
    same = dict(one_way.labels) == labels and one_way.noise == NoiseStep(settled.one_way_variance)
    as_counted = {name: counts.tolist() for name, counts in one_way.counts.items()}  # so in releases of 0.3
    same = same and any(tree.columns == tree.weighted(w).columns for w in (one_way.weights(), as_counted))
    if settled.flat:
        cutting = settled.cutting([c.name for c in tree.columns])
        return same and len(tree.cuts or ()) <= cutting.times and cutting.cost <= cutting.budget
    growth = settled.growth([c.name for c in tree.columns])
    return same and tree.boxes[0].size == one_way.total and cost(tree, growth) <= growth.budget
