"""The mechanism itself: one short method for each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from incrowd.core.errors import InternalError
from incrowd.core.numbers import number
from incrowd.mechanisms.base import (
    Check,
    ComparedAs,
    ComparedSection,
    Concern,
    FormField,
    Made,
    Mechanism,
    Publication,
    Tell,
    all_columns,
)
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimateOptions, Estimates
from incrowd.mechanisms.sampled_crowd.certificate import (
    CrowdCertificate,
    CrowdStatedMechanism,
    CrowdStatedPromise,
    CrowdStatement,
)
from incrowd.mechanisms.sampled_crowd.described import DESCRIBED
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.marginals import Counted, Crowds
    from incrowd.mechanisms.promises import Promise
    from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
    from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
    from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome
    from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told
    from incrowd.sources.at_least import CrowdsAsked
    from incrowd.sources.kept import KeptTable

    AnyTable: TypeAlias = Histogram | Crowds | KeptTable
    AnySettled: TypeAlias = CrowdSettled | TreeSettled
    AnyOutcome: TypeAlias = CrowdOutcome | TreeOutcome
    AnyMade: TypeAlias = Made[AnyOutcome, CrowdStatement]


class SampledCrowdMechanism(
    Mechanism[SampledCrowd, "AnySettled", "AnyTable", "AnyOutcome", CrowdStatedPromise, CrowdStatedMechanism]
):
    """Sample, recode, and publish only crowds (Li, Qardaji, Su).

    The mapping has one level per column, or is a tree of boxes: what is particular to trees is in the folder `tree`.
    """

    title = "Sampled crowds"
    summary = "(ε,δ)-differential privacy: sample, make coarser, publish crowds of k."
    form = (
        FormField("epsilon", "ε"),
        FormField("delta", "δ"),
        FormField("selection_epsilon", "ε₁ of it, for choosing levels"),
        FormField(
            "recoding",
            "How coarse records become",
            choices={"lattice": "one level per column", "tree": "each box of a tree its own"},
        ),
        FormField("beta", "β, the share sampled (empty: chosen)", more=True),
        FormField("k", "k, the least crowd (empty: chosen)", more=True),
        FormField("totals.epsilon", "ε₃ of it, for noisy counts of each column", more=True),
        FormField(
            "minimise",
            "Levels are chosen to keep low",
            choices={
                "loss": "what is lost of each value",
                "entropy": "what is lost, in bits",
                "discernibility": "pairs who look alike",
                "class_size": "the size of groups",
                "workload": "errors of listed tables",
                "misclassified": "errors of predicting a column",
            },
            more=True,
        ),
        FormField(
            "splits",
            "A tree is split",
            choices={"hierarchy": "into children of the hierarchy", "binary": "in two, at any cut"},
            more=True,
        ),
        FormField(
            "score",
            "A split of a tree is worth",
            choices={"information": "what it tells", "queries": "what one-way tables do not tell"},
            more=True,
        ),
        FormField(
            "flat",
            "A tree shows each column",
            choices={"false": "as finely as each box allows", "true": "by one set of labels"},
            more=True,
        ),
    )
    start: ClassVar = {"epsilon": "1", "delta": "1e-6", "selection_epsilon": "0.1"}
    several_rows = True
    compared_as: ClassVar = ComparedAs(
        "sampled crowd",
        lambda epsilon, delta: f"({number(epsilon)}, {number(delta)})-differential privacy, add/remove",
        "The sampled crowd is (ε, δ)-differentially private for adding or removing one record, on any table.",
    )
    described = DESCRIBED
    weights = False
    section = SampledCrowd
    certificate = CrowdCertificate
    claimed = (
        "that the table published was drawn from the publisher's data as described",
        "that each record was sampled independently with probability beta, from unpredictable bits",
        "that chosen levels cost no more than selection_epsilon, a chosen policy policy_epsilon, and a tree its rho",
        "that noisy one-way tables, where there are some, are of the full table, with the noise stated",
    )
    in_use = (
        "A row stands for 1/β people of groups that were large enough to be shown. `incrowd estimate` counts them, and "
        "says what may be missing."
    )
    policy_note = """\
# The policy as it was carried out, with every level fixed: to be reviewed, and to be used again on another table, such
# as next year's. Nothing is then left to choose, so all of epsilon goes to the crowd. (A tree is used again by adding
# 'mapping: mapping.json', the file beside the release.)
"""

    def comparable(
        self,
        epsilon: float,
        delta: float,
        sizes: Sequence[int],
        records: int,  # noqa: ARG002
    ) -> Iterator[ComparedSection]:
        promise = {"epsilon": epsilon, "delta": delta}
        yield ComparedSection(promise)
        if any(size > 1 for size in sizes):
            yield ComparedSection({**promise, "recoding": "tree"}, chooses=True)

    def variations(self, section: SampledCrowd) -> Iterator[dict[str, Any]]:
        if not section.already_sampled and section.recoding == "lattice":
            yield from ({"beta": beta, "k": None} for beta in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7) if beta != section.beta)
            yield from ({"k": k, "beta": None} for k in (15, 20, 30, 50) if k != section.k)

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> AnySettled:
        from incrowd.mechanisms.sampled_crowd.settle import settle
        from incrowd.mechanisms.sampled_crowd.tree.settle import settle_tree

        section = self.section_in(policy)
        return (settle_tree if section.recoding == "tree" else settle)(section, policy, attributes, copies)

    def prepare(self, settings: AnySettled, table: Histogram, tell: Tell) -> tuple[AnySettled, Histogram]:
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled, prepare
        from incrowd.recoding.quality import require_scorable

        if isinstance(settings, CrowdSettled):
            return prepare(settings, table, tell)
        require_scorable(table.total)
        return settings, table

    def crowds_asked(self, settings: AnySettled) -> CrowdsAsked | None:
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled, crowds_asked
        from incrowd.sources.at_least import CrowdsAsked

        return crowds_asked(settings) if isinstance(settings, CrowdSettled) else CrowdsAsked({}, None)

    def prepare_crowds(self, settings: AnySettled, crowds: Crowds | KeptTable) -> Crowds | KeptTable:
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled, require_choosable
        from incrowd.recoding.quality import require_scorable

        if isinstance(settings, CrowdSettled):
            require_choosable(settings, crowds.total)
        else:
            require_scorable(crowds.total)
        return crowds

    def spending(self, settings: AnySettled) -> Promise:
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled, spending
        from incrowd.mechanisms.sampled_crowd.tree import settle as trees

        return spending(settings) if isinstance(settings, CrowdSettled) else trees.spending(settings)

    def concerns(self, settings: AnySettled, table: Counted) -> Iterable[Concern]:
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled, concerns
        from incrowd.mechanisms.sampled_crowd.tree import settle as trees

        return concerns(settings, table) if isinstance(settings, CrowdSettled) else trees.concerns(settings, table)

    def in_short(self, settings: AnySettled) -> str:
        return f"k = {number(settings.crowd.k)}, β = {number(settings.crowd.beta, 3)}"

    def together(self, settings: AnySettled, copies: int) -> Together | None:
        from incrowd.mechanisms.sampled_crowd.state import together_of

        return together_of(settings.crowd, copies)

    def draw(self, settings: AnySettled, prepared: AnyTable, source: RandomSource) -> AnyMade:
        from incrowd.marginals import Crowds
        from incrowd.mechanisms.sampled_crowd.draw import draw
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
        from incrowd.mechanisms.sampled_crowd.tree.draw import draw_tree

        if isinstance(settings, CrowdSettled):
            return draw(settings, prepared, source)
        if isinstance(prepared, Crowds):
            raise InternalError("a tree was to be grown on some of the cells")
        return draw_tree(settings, prepared, source)

    def check_promise(self, certificate: CrowdCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.sampled_crowd import state
        from incrowd.mechanisms.sampled_crowd.tree import state as trees

        return trees.check_promise(certificate) if _is_tree(certificate) else state.check_promise(certificate)

    def enclosed(self, certificate: CrowdCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.sampled_crowd.enclosed import enclosed

        return enclosed(certificate)

    def settled_again(self, certificate: CrowdCertificate) -> AnySettled:
        from incrowd.mechanisms.sampled_crowd import state
        from incrowd.mechanisms.sampled_crowd.tree import state as trees

        return trees.settled_again(certificate) if _is_tree(certificate) else state.settled_again(certificate)

    def labels_known(self, section: SampledCrowd) -> bool:
        return section.recoding == "lattice"

    def beside_names(self, certificate: CrowdCertificate) -> Sequence[str]:
        from incrowd.mechanisms.sampled_crowd import state
        from incrowd.mechanisms.sampled_crowd.tree import state as trees

        return trees.beside_names(certificate) if _is_tree(certificate) else state.beside_names(certificate)

    def check_table(self, certificate: CrowdCertificate, published: Publication) -> Iterator[Check]:
        from incrowd.mechanisms.sampled_crowd import state
        from incrowd.mechanisms.sampled_crowd.tree import state as trees

        if _is_tree(certificate):
            return trees.check_table(certificate, published)
        return state.check_table(certificate, published)

    def columns_needed(
        self, certificate: CrowdCertificate, by: Sequence[str] = (), options: EstimateOptions = NO_OPTIONS
    ) -> Iterable[str]:
        del by, options
        return all_columns(certificate)  # crowds are made of all of them

    def estimate(
        self,
        certificate: CrowdCertificate,
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        from incrowd.mechanisms.sampled_crowd.estimate import estimate
        from incrowd.mechanisms.sampled_crowd.tree.estimate import estimate_tree

        if _is_tree(certificate):
            return estimate_tree(certificate, published, by, options)
        return estimate(certificate, published, by, mean=options.mean, total=options.total)

    def told(self, settings: AnySettled, made: AnyMade) -> Told:
        from incrowd.mechanisms.sampled_crowd.told import told

        return told(settings, made)

    def public_report(
        self,
        policy: Policy,
        settings: AnySettled,
        published: Publication,
        statement: CrowdStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.sampled_crowd.report import public_report
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
        from incrowd.mechanisms.sampled_crowd.tree import report as trees

        if isinstance(settings, CrowdSettled):
            return public_report(policy, settings, published, statement, void=void)
        return trees.public_report(policy, settings, published, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: AnySettled,
        table: Histogram,
        made: AnyMade,
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
        from incrowd.mechanisms.sampled_crowd.report import internal_report
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
        from incrowd.mechanisms.sampled_crowd.tree import report as trees
        from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome

        if isinstance(settings, CrowdSettled):
            page = internal_report(policy, attributes, settings, table, made.having(CrowdOutcome), void=void)
        else:
            page = trees.internal_report(policy, attributes, settings, table, made.having(TreeOutcome), void=void)
        return {"report.html": page}

    def internal_crowds(
        self, policy: Policy, settings: AnySettled, crowds: Crowds | KeptTable, made: AnyMade, *, void: str | None
    ) -> dict[str, bytes]:
        del crowds  # the outcome has what is known of them
        from incrowd.mechanisms.sampled_crowd.crowds_page import internal_report
        from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
        from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
        from incrowd.mechanisms.sampled_crowd.tree import report as trees
        from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome

        if isinstance(settings, CrowdSettled):
            page = internal_report(policy, settings.crowd, made.having(CrowdOutcome), void=void)
        else:
            page = trees.internal_report(policy, (), settings, None, made.having(TreeOutcome), void=void)
        return {"report.html": page}


def _is_tree(certificate: CrowdCertificate) -> bool:
    return bool(certificate.policy["release"].get("recoding") == "tree")


MECHANISM = SampledCrowdMechanism()
