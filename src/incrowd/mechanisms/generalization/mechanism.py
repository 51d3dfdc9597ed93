"""The mechanism itself: one short method for each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.mechanisms.base import Check, FormField, Made, Mechanism, Publication, Tell, all_columns
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimateOptions, Estimates
from incrowd.mechanisms.generalization.certificate import (
    GeneralizationCertificate,
    GeneralizationStatedMechanism,
    GeneralizationStatedPromise,
    GeneralizationStatement,
)
from incrowd.mechanisms.generalization.described import DESCRIBED
from incrowd.mechanisms.generalization.section import Generalization

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.generalization.draw import GeneralizationOutcome
    from incrowd.mechanisms.generalization.settle import GeneralizationSettled
    from incrowd.mechanisms.promises import Promise
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told


class GeneralizationMechanism(
    Mechanism[
        Generalization,
        "GeneralizationSettled",
        "GeneralizationOutcome",
        "GeneralizationOutcome",
        GeneralizationStatedPromise,
        GeneralizationStatedMechanism,
    ]
):
    """Make columns coarser until the table withstands everyone named (Machanavajjhala, Gehrke, Götz)."""

    title = "Generalization"
    summary = "Make columns coarser until the table withstands everyone named. Not differential privacy."
    groups_by_all = False
    form = (
        FormField("suppression", "share that may be left out"),
        FormField(
            "recoding",
            "How coarse records become",
            choices={"full_domain": "one level per column", "local": "each group its own"},
        ),
        FormField(
            "splits",
            "Groups of their own are split",
            choices={"hierarchy": "into children of the hierarchy", "binary": "in two, at any cut"},
            more=True,
        ),
        FormField("time_limit", "seconds to look for the best", more=True),
    )
    start: ClassVar = {"require": [{"k": "5"}]}
    editor = "requirements"
    looked_at_first = "groups"
    several_rows = True
    described = DESCRIBED
    section = Generalization
    certificate = GeneralizationCertificate
    claimed = (
        "that the table published is the publisher's data, made coarser as described",
        "that adversaries know no more than the policy says",
        "that a prior taken from an earlier table is what that table holds",
        "that groups have as many people as is said, where a person may have several rows",
        "that distances of values are those of the policy's hierarchies, where these are in files",
    )
    in_use = (
        "Every row is true at the level shown and can be counted as it is; `incrowd estimate` says how many may be "
        "missing."
    )
    policy_note = """\
# The policy as it was carried out, with the levels that were chosen: for review. CAUTION: they were chosen by looking
# at this very table, and what that choice tells about it is covered by no promise. On another table, such as next
# year's, they are fixed beforehand and tell nothing about it; if it does not withstand them, it is refused.
"""

    def variations(self, section: Generalization) -> Iterator[dict[str, Any]]:
        yield from ({"require": other} for other in _required(section, 2, 1))
        if section.recoding == "local":
            yield {"recoding": None}
        else:
            yield {"recoding": "local", "suppression": None}
            yield from ({"suppression": part} for part in (0.01, 0.05, 0.1) if part != section.suppression)

    def weaker(self, section: Generalization) -> Iterator[dict[str, Any]]:
        yield from ({"require": other} for other in _required(section, 0.5, -1))

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> GeneralizationSettled:
        from incrowd.mechanisms.generalization.settle import settle

        return settle(self.section_in(policy), policy, attributes, copies)

    def counts_people(self, settings: GeneralizationSettled) -> bool:
        """Where a person may have several rows, k is a number of people."""
        return settings.counts_people

    def prepare(
        self, settings: GeneralizationSettled, table: Histogram, tell: Tell
    ) -> tuple[GeneralizationSettled, GeneralizationOutcome]:
        from incrowd.mechanisms.generalization.draw import prepare

        return prepare(settings, table, tell)

    def spending(self, settings: GeneralizationSettled) -> Promise:
        from incrowd.mechanisms.generalization.settle import spending

        return spending(settings)

    def remarks(
        self,
        settings: GeneralizationSettled,
        table: Histogram,
        made: Made[GeneralizationOutcome, GeneralizationStatement],
    ) -> Iterable[str]:
        from incrowd.mechanisms.generalization.draw import remarks

        return remarks(settings.generalization, table, made.outcome)

    def together(self, settings: GeneralizationSettled, copies: int) -> Together | None:  # noqa: ARG002
        return None  # there is never more than one

    def draw(
        self,
        settings: GeneralizationSettled,
        prepared: GeneralizationOutcome,
        source: RandomSource,  # noqa: ARG002
    ) -> Made[GeneralizationOutcome, GeneralizationStatement]:
        from incrowd.mechanisms.generalization.draw import draw

        return draw(settings, prepared)

    def check_promise(self, certificate: GeneralizationCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.generalization.state import check_promise

        return check_promise(certificate)

    def settled_again(self, certificate: GeneralizationCertificate) -> GeneralizationSettled:
        from incrowd.mechanisms.generalization.state import settled_again

        return settled_again(certificate)

    def check_table(self, certificate: GeneralizationCertificate, published: Publication) -> Iterator[Check]:
        from incrowd.mechanisms.generalization.state import check_table

        return check_table(certificate, published)

    def labels_known(self, section: Generalization) -> bool:
        return section.recoding == "full_domain"

    def beside_names(self, certificate: GeneralizationCertificate) -> Sequence[str]:
        from incrowd.mechanisms.generalization.state import beside_names

        return beside_names(certificate)

    def columns_needed(
        self, certificate: GeneralizationCertificate, by: Sequence[str] = (), options: EstimateOptions = NO_OPTIONS
    ) -> Iterable[str]:
        del by, options
        return all_columns(certificate)  # groups are made of all of them

    def estimate(
        self,
        certificate: GeneralizationCertificate,
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        from incrowd.mechanisms.generalization.estimate import estimate

        return estimate(certificate, published, by, mean=options.mean, total=options.total)

    def told(self, settings: GeneralizationSettled, made: Made[GeneralizationOutcome, GeneralizationStatement]) -> Told:
        from incrowd.mechanisms.generalization.told import told

        return told(settings, made)

    def public_report(
        self,
        policy: Policy,
        settings: GeneralizationSettled,
        published: Publication,
        statement: GeneralizationStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.generalization.report import public_report

        return public_report(policy, settings, published, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: GeneralizationSettled,
        table: Histogram,
        made: Made[GeneralizationOutcome, GeneralizationStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.generalization.report import internal_files, internal_report

        report = internal_report(policy, attributes, settings, table, made, void=void)
        return {"report.html": report, **internal_files(settings, table, made)}


def _required(section: Generalization, times: float, more: int) -> Iterator[list[dict[str, Any]]]:
    """What is required with another k, so many times this one, or with another ℓ, so much more; one at a time."""
    said = [spec.model_dump(by_alias=True, exclude_unset=True) for spec in section.require]
    for place, spec in enumerate(said):
        other = {"k": int(times * spec["k"])} if "k" in spec else {"l": spec["l"] + more} if "l" in spec else {}
        if other and min(other.values()) >= 2:
            yield [*said[:place], spec | other, *said[place + 1 :]]


MECHANISM = GeneralizationMechanism()
