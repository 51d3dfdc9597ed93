"""What incrowd does, in one place: the command line and the studio call these functions and nothing below them.

Scripts rely on the names of `incrowd` itself, most of which are defined here; the others here may change.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.api.pages import (
    confirm,
    draw_column,
    draw_frontier,
    draw_lattice,
    draw_plan,
    edit_policy,
    find_files,
    mechanism_forms,
    plan_chart,
    policy_from_text,
    policy_levels,
    policy_outline,
    policy_paths,
    print_number,
    print_percent,
    read_certificate,
    save_policy,
    style_sheet,
    survival,
    table_columns,
    unconfirmed,
)
from incrowd.auditing.tables import audit
from incrowd.core.errors import DataError, ParameterError
from incrowd.core.files import named
from incrowd.core.machine import require_address_space
from incrowd.core.server import HEADERS as SERVICE_HEADERS
from incrowd.releases.pipeline import (
    Progress,
    count_table,
    internal_folder,
    release,
    release_copies,
    release_folders,
)
from incrowd.survey.publish import collect, is_loopback, make_questionnaire, publish_collected, serve_application
from incrowd.theory.crowd import CrowdPlan, FrontierPoint, frontier
from incrowd.theory.crowd import plan as plan_crowd
from incrowd.theory.profile import Relation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from incrowd.auditing.audit import Audit as Audit
    from incrowd.comparison import Compared as Compared
    from incrowd.comparison.tables import Looked as Looked
    from incrowd.drafting import Draft as Draft
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.base import Estimates as Estimates
    from incrowd.mechanisms.certificate import AnyCertificate as AnyCertificate
    from incrowd.mechanisms.pram.plan import PramPlan, plan_pram
    from incrowd.mechanisms.sample.advice import Advice as Advice
    from incrowd.mechanisms.sample.plan import SamplePlan, plan_sample
    from incrowd.mechanisms.sampled_crowd.plan import Amplification, plan_amplify
    from incrowd.papers.attacks.stories import Attack as Attack
    from incrowd.papers.gallery import Figure as Figure
    from incrowd.policy import Policy
    from incrowd.releases.statements import AccountStatement
    from incrowd.releases.verify import Verification as Verification
    from incrowd.survey import Questionnaire as Questionnaire

__all__ = [
    "SERVICE_HEADERS",
    "Amplification",
    "CrowdPlan",
    "FrontierPoint",
    "PramPlan",
    "Relation",
    "SamplePlan",
    "advise_sample",
    "audit",
    "certificate_schema",
    "collect",
    "compare",
    "confirm",
    "count_rows",
    "draft_policy",
    "draw_column",
    "draw_frontier",
    "draw_lattice",
    "draw_plan",
    "edit_policy",
    "estimate",
    "find_files",
    "frontier",
    "internal_folder",
    "is_loopback",
    "ledger_accept_loss",
    "ledger_add",
    "ledger_budget",
    "ledger_datasets",
    "ledger_statement",
    "look_at",
    "make_keys",
    "make_questionnaire",
    "mechanism_forms",
    "minimised_measures",
    "named",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
    "policy_from_text",
    "policy_levels",
    "policy_outline",
    "policy_paths",
    "policy_schema",
    "print_number",
    "print_percent",
    "publish_collected",
    "read_certificate",
    "read_counts",
    "release",
    "release_copies",
    "release_folders",
    "require_address_space",
    "save_audit",
    "save_chart",
    "save_policy",
    "serve_application",
    "style_sheet",
    "survival",
    "table_columns",
    "unconfirmed",
    "verify",
    "write_example",
    "write_survey",
]

_PLANS = {
    "PramPlan": "pram",
    "plan_pram": "pram",
    "SamplePlan": "sample",
    "plan_sample": "sample",
    "Amplification": "sampled_crowd",
    "plan_amplify": "sampled_crowd",
}


def __getattr__(name: str) -> Any:
    """Planners are imported when they are first used, so that the command line starts fast."""
    if name not in _PLANS:
        raise AttributeError(f"module 'incrowd.api' has no attribute {name!r}")
    return getattr(importlib.import_module(f"incrowd.mechanisms.{_PLANS[name]}.plan"), name)


def read_counts(path: str | Path) -> NDArray[np.int64]:
    """The column `count` of a CSV file that has one line for each distinct row of a table."""
    import pyarrow as pa
    from pyarrow import csv

    def wrong(what: str) -> DataError:
        return DataError(
            f"{Path(path).name}: {what}",
            code="counts-file",
            remedy="Give a CSV file with a column `count`: how often each distinct row occurs, one line for each.",
        )

    if not Path(path).is_file():
        raise wrong("there is no such file.")
    options = csv.ConvertOptions(include_columns=["count"], column_types={"count": pa.int64()}, null_values=[])
    try:
        column = csv.read_csv(path, convert_options=options)["count"]
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError):
        # Arrow's message may quote the offending cell; ours says only what was expected.
        raise wrong("it has no column `count` of whole numbers.") from None
    if len(column) == 0:
        raise wrong("it has no rows.")
    counts: NDArray[np.int64] = column.to_numpy()
    if counts.min() < 1:
        raise wrong(f"{int((counts < 1).sum())} of its counts are below 1.")
    return counts


def count_rows(data: Any, columns: Sequence[str] | None = None, **reading: Any) -> NDArray[np.int64]:
    """How often each distinct row of a table occurs, over all of its columns or some of them.

    `reading` says how to read it: `table`, `engine`, `delimiter` and so on; see `incrowd.sources.options.Options`.
    """
    from incrowd.sources import open_source
    from incrowd.sources.distinct import distinct_counts

    return distinct_counts(open_source(data, **reading), columns)


def save_chart(plan: CrowdPlan | Amplification | PramPlan | SamplePlan | Compared, path: str | Path) -> Path:
    """Draw a plan's trade-off, or a comparison, as an SVG file."""
    from incrowd.comparison import Compared
    from incrowd.comparison.chart import draw
    from incrowd.core.files import write_whole

    if Path(path).suffix.lower() != ".svg":
        raise ParameterError(
            f"Charts are written as SVG; {Path(path).name} does not end in .svg.",
            code="parameter-range",
            remedy="Name the file something.svg; every browser opens it.",
        )
    return write_whole(path, (draw(plan) if isinstance(plan, Compared) else plan_chart(plan)).encode())


def look_at(
    thing: Any,
    *,
    data: Any = None,
    columns: Sequence[str] | None = None,
    levels: Mapping[str, int] | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
    **reading: Any,
) -> Looked:
    """A table as a policy would show it, or as it is: what `advise_sample` and `compare` look at.

    Args:
        thing: a policy, the name of its file (.yaml), or a table as in `release`.
        data: the table of a policy; by default what the policy names.
        columns: which columns of a table without a policy to look at; all if not given.
        levels: levels of columns, instead of those that the policy fixes.
        show_values: let error messages show values from the data.
        progress: called with what is being done and the part of it that is done.
        reading: how to read a table without a policy: `table`, `engine`, `delimiter` and so on, see
            `incrowd.sources.options.Options`. With a policy only `table`, `engine` and `most_cells`.
    """
    from incrowd.comparison.tables import look_at

    def count(policy: Policy, attributes: Sequence[CodedAttribute]) -> Histogram:
        def tell(part: float) -> None:
            if progress is not None:
                progress("reading", part)

        return count_table(data, policy, attributes, show_values=show_values, progress=tell, **reading)

    return look_at(thing, columns, levels or {}, count, reading)


def advise_sample(looked: Looked, *, epsilon: float, delta: float, rows_unknown: int = 1) -> Advice:
    """What makes the rate of a plain sample small, and what would raise it. For the publisher's eyes only."""
    from incrowd.mechanisms.sample.advice import advise

    return advise(looked.table, looked.scales, epsilon=epsilon, delta=delta, rows_unknown=rows_unknown)


def compare(
    looked: Looked, *, epsilons: Sequence[float], delta: float, runs: int = 5, progress: Progress | None = None
) -> Compared:
    """The errors of four ways to publish a table, at comparable promises. For the publisher's eyes only."""
    from incrowd import comparison as comparing

    return comparing.compare(
        looked.table, epsilons=epsilons, delta=delta, runs=runs, observed=looked.observed, progress=progress
    )


# --- after the release --------------------------------------------------------------------------------------------


def verify(folder: str | Path, public_key: str | Path | None = None, *, rigorous: bool = False) -> Verification:
    """Check a published folder against its certificate, without the original data.

    Args:
        folder: the published one.
        public_key: a PEM file with the public key of the publisher; if given, the certificate must be signed by it.
        rigorous: compare the numbers of the promise with enclosures by ball arithmetic, too.
    """
    from incrowd.releases import verify as verifying
    from incrowd.releases.again import report_again

    return verifying.verify(folder, public_key, remake=report_again, rigorous=rigorous)


def estimate(
    folder: str | Path, by: str | Sequence[str], *, method: str | None = None, mean: str | None = None
) -> Estimates:
    """A cross-tabulation of the population from a published folder, with standard errors.

    Args:
        folder: the published one.
        by: the columns, or the only one.
        method: for randomised releases: "inverse" for the unbiased numbers alone, "em" for the likeliest ones too.
        mean: for randomised releases: a column whose mean is wanted in each group.
    """
    from incrowd.releases import estimate as estimating

    return estimating.estimate(folder, [by] if isinstance(by, str) else by, method=method, mean=mean)


def make_keys(secret: str | Path, public: str | Path) -> str:
    """Write a new pair of Ed25519 keys: the secret one for signing, the public one to be passed on.

    What is returned is the public key's fingerprint.
    """
    from incrowd.core.files import require_absent, write_whole
    from incrowd.releases.certificate import key_fingerprint, make_keys

    for path in (secret, public):
        require_absent(path, remedy="Choose another name.")
    secret_pem, public_pem = make_keys()
    write_whole(secret, secret_pem).chmod(0o600)
    return key_fingerprint(write_whole(public, public_pem))


# --- any table ----------------------------------------------------------------------------------------------------


def save_audit(audit: Audit, path: str | Path) -> Path:
    """Write an audit as a report, one HTML file, for its owner alone: it is as confidential as the table is."""
    from incrowd.auditing.report import audit_report
    from incrowd.core.files import write_whole

    if Path(path).suffix.lower() not in {".html", ".htm"}:
        raise ParameterError(
            f"Reports are written as HTML; {Path(path).name} does not end in .html.",
            code="output-format",
            remedy="Name the file something.html.",
        )
    return write_whole(path, audit_report(audit), private=True)


# --- the ledger ---------------------------------------------------------------------------------------------------


def ledger_statement(path: str | Path, dataset: str) -> AccountStatement:
    """What has been spent on a dataset, and what is left."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).statement(dataset)


def ledger_datasets(path: str | Path) -> tuple[str, ...]:
    """The datasets that a ledger knows."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).datasets()


def ledger_budget(
    path: str | Path,
    dataset: str,
    *,
    epsilon: float,
    delta: float,
    relation: str = Relation.ADD_REMOVE,
    rule: str = "sum",
    unit: str | None = None,
) -> AccountStatement:
    """Set what may be spent on a dataset, in a ledger that is made if there is none.

    Args:
        path: the ledger's file.
        dataset: its name in the ledger.
        epsilon: all that may ever be spent.
        delta: all that may ever be spent.
        relation: which tables count as neighbours.
        rule: how releases are counted, "sum", "order" or "unit"; fixed with the first release.
        unit: for the rule "unit": "k=17,beta=0.3", or "epsilon=0.1,delta=0".
    """
    from incrowd.mechanisms.promises import Budget, as_unit
    from incrowd.releases.ledger import Ledger

    measured_in = None if unit is None else as_unit(unit, relation)
    Budget(epsilon, delta, Relation(relation), rule, measured_in)  # type: ignore[arg-type] # before a file is made
    ledger = Ledger(path)
    ledger.set_budget(dataset, epsilon, delta, relation, rule, measured_in)
    return ledger.statement(dataset)


def ledger_add(
    path: str | Path, dataset: str, *, epsilon: float, delta: float, relation: str, description: str
) -> AccountStatement:
    """Record a release that was made elsewhere, in a ledger that is there."""
    from incrowd.mechanisms.promises import Entry, Point
    from incrowd.releases.ledger import Ledger

    entry = Entry("external", Point(epsilon, delta, Relation(relation)), description)
    ledger = Ledger(path, create=False)
    ledger.charge(dataset, entry)
    return ledger.statement(dataset)


def ledger_accept_loss(path: str | Path) -> tuple[str, ...]:
    """Give up what is remembered of a ledger that is lost, or of which an older copy has to do.

    What it spent stays spent. Returned is what was last seen, so that it can be recorded again with `ledger_add`.
    """
    from incrowd.releases.ledger import accept_loss

    return tuple(str(seen) for seen in accept_loss(path))


# --- policies and examples ----------------------------------------------------------------------------------------


def draft_policy(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str | None = None,
    table: str | None = None,
    engine: str | None = None,
    progress: Progress | None = None,
) -> Draft:
    """Look at a table and draft a policy for it, saying what a person must decide.

    What is read off the data is marked in the draft: no guarantee covers it until a person has confirmed it.

    Args:
        data: a table as in `release`; None for one of Spark's catalogue, which `engine` and `table` name.
        output: where to write the policy, ``-`` for nowhere; by default beside the file, if there is one, or under the
            table's name in the current folder.
        overwrite: replace a file that is there.
        delimiter: what separates the fields of a text file; found out if not given.
        quote: what surrounds fields of a text file.
        encoding: of a text file; UTF-8 if not given.
        table: the table that is meant, in a database that holds several, or in Spark's catalogue.
        engine: the Spark cluster that reads the table. Of a large one, only a part is looked at.
        progress: called with what is being done and the part of it that is done.
    """
    from incrowd.drafting import draft

    return draft(
        data,
        output,
        overwrite=overwrite,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
        table=table,
        engine=engine,
        progress=None if progress is None else lambda part: progress("reading", part),
    )


def minimised_measures() -> dict[str, str]:
    """By what a generalization can be chosen: the names in a policy, and what each is in words."""
    from incrowd.mechanisms.generalization.measures import MINIMISED

    return dict(MINIMISED)


def certificate_schema() -> dict[str, Any]:
    """The JSON Schema of a certificate."""
    from incrowd.mechanisms.registry import certificate_schema

    return certificate_schema()


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of a policy file, for editors."""
    from incrowd.policy import Policy

    return Policy.json_schema()


def write_example(
    path: str | Path, rows: int, *, overwrite: bool = False, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Write the example census and, beside it, its policy."""
    from incrowd.papers.examples.census import write_census

    return write_census(path, rows, progress, overwrite=overwrite)


def attacks() -> tuple[str, ...]:
    """The unsafe methods that can be shown being broken."""
    from incrowd.papers.attacks.stories import ATTACKS

    return tuple(ATTACKS)


def attack(name: str) -> Attack:
    """Break one unsafe method, with numbers that are computed on the spot."""
    from incrowd.papers.attacks.stories import run

    return run(name)


def gallery(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    data: Mapping[str, str | Path] | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> list[Figure]:
    """Redraw the papers' tables and figures, as one page in a folder.

    Args:
        folder: where `index.html` goes.
        only: the names of figures; all of them if none is named.
        data: files to draw from, by what they are (``{"adult": "adult.csv"}``), in place of examples.
        quick: fewer records and runs, for a first look.
        progress: called with what is being done and the part of it that is done.
    """
    from incrowd.papers.gallery import Material, draw

    material = Material({kind: Path(file) for kind, file in (data or {}).items()}, quick)
    return draw(folder, only, material, progress)


def write_survey(path: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write the policy of the example survey and, beside it, the wording of its questions."""
    from incrowd.papers.examples.survey import write_survey

    return write_survey(path, overwrite=overwrite)
