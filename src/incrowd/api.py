"""What incrowd does, in one place: the command line and the studio call these functions and nothing below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.errors import DataError, ParameterError, PolicyError
from incrowd.plans import (
    Amplification,
    CentralPromise,
    CrowdPlan,
    FrontierPoint,
    PramPlan,
    Relation,
    SamplePlan,
    SampleTheorem,
    frontier,
    plan_amplify,
    plan_crowd,
    plan_pram,
    plan_sample,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from incrowd.drafting import Draft as Draft  # noqa: PLC0414 - an explicit re-export
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.sampled_crowd import CrowdSettings, Outcome
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.releases.estimate import Estimates as Estimates  # noqa: PLC0414 - an explicit re-export
    from incrowd.releases.ledger import Ledger
    from incrowd.releases.release import Release
    from incrowd.releases.statements import Statement
    from incrowd.releases.verify import Verification as Verification  # noqa: PLC0414 - an explicit re-export

__all__ = [
    "Amplification",
    "CentralPromise",
    "CrowdPlan",
    "FrontierPoint",
    "PramPlan",
    "Relation",
    "SamplePlan",
    "SampleTheorem",
    "count_rows",
    "draft_policy",
    "estimate",
    "frontier",
    "internal_folder",
    "ledger_add",
    "ledger_budget",
    "ledger_datasets",
    "ledger_statement",
    "make_keys",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
    "policy_schema",
    "read_counts",
    "read_policy",
    "release",
    "release_folders",
    "releases",
    "save_chart",
    "verify",
    "write_example",
]


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


def count_rows(data: Any, columns: Sequence[str] | None = None) -> NDArray[np.int64]:
    """How often each distinct row of a table occurs, over all of its columns or some of them."""
    from incrowd.sources import open_source
    from incrowd.sources.distinct import distinct_counts
    from incrowd.sources.duckdb import DuckDBSource

    source = open_source(data)
    if not isinstance(source, DuckDBSource):
        raise DataError(
            "Distinct rows are counted in local files and tables only.",
            code="data-kind",
            remedy="Count them where the table is, and give the counts.",
        )
    return distinct_counts(source, columns)


def save_chart(plan: CrowdPlan | Amplification | PramPlan | SamplePlan, path: str | Path) -> Path:
    """Draw a plan's trade-off as an SVG file."""
    from incrowd.files import write_whole
    from incrowd.reports import plan_charts

    if Path(path).suffix.lower() != ".svg":
        raise ParameterError(
            f"Charts are written as SVG; {Path(path).name} does not end in .svg.",
            code="parameter-range",
            remedy="Name the file something.svg; every browser opens it.",
        )
    return write_whole(path, plan_charts.draw(plan).encode())


# --- releases -----------------------------------------------------------------------------------------------------

Progress = Callable[[str, float], None]


def release(
    data: Any = None,
    policy: Policy | str | Path | None = None,
    *,
    folder: str | Path | None = None,
    sign_with: str | Path | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
    _source: RandomSource | None = None,
) -> Release:
    """The main job: publish a table as its policy says.

    The budget is charged before anything is drawn, and only when all that can be wrong with the input has been
    found right.

    Args:
        data: a file name or pattern, a pandas, Polars or Arrow table, or a DuckDB relation; by default what the
            policy names.
        policy: a policy, or the name of its file.
        folder: where to write the release; without it, call `.save(folder)` on what is returned.
        sign_with: a PEM file with the secret Ed25519 key to sign the certificate with.
        show_values: let error messages show values from the data.
        progress: called with what is being done and the part of it that is done.
    """
    return releases(
        data,
        policy,
        copies=1,
        folder=folder,
        sign_with=sign_with,
        show_values=show_values,
        progress=progress,
        _source=_source,
    )[0]


def releases(
    data: Any = None,
    policy: Policy | str | Path | None = None,
    *,
    copies: int,
    folder: str | Path | None = None,
    sign_with: str | Path | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
    _source: RandomSource | None = None,
) -> list[Release]:
    """Several independent releases at once, each from a sample of its own, written to `<folder>-1`, `<folder>-2`, ...

    What they promise together is more than each alone does; the ledger adds it up.
    """
    from incrowd.hierarchy import codings
    from incrowd.mechanisms import sampled_crowd
    from incrowd.randomness import RandomSource
    from incrowd.releases.certificate import load_secret_key, sha256, sign
    from incrowd.releases.release import require_free

    def tell(what: str, part: float) -> None:
        if progress is not None:
            progress(what, part)

    plan = read_policy(policy)
    if plan.release is None:
        raise PolicyError(
            "The policy does not say how to release.",
            code="policy-invalid",
            remedy="Give it a section 'release'.",
        )
    if copies < 1:
        raise ParameterError("At least one release must be asked for.", code="parameter-range")
    if plan.release.already_sampled and (copies > 1 or plan.ledger is None):
        raise PolicyError(
            "A table that is itself a sample may serve one release only.",
            code="sample-reused",
            remedy="Make one release, and name a ledger in the policy, which sees to it that there is no second.",
        )
    key = None if sign_with is None else load_secret_key(sign_with)
    folders = [] if folder is None else release_folders(folder, copies)
    for place in folders:
        require_free(place)
    settings = sampled_crowd.settle(plan.release)
    attributes = codings(plan, show_values=show_values)
    fixed = _fixed_levels(plan, attributes)
    table = _count(data, plan, attributes, show_values=show_values, progress=lambda part: tell("reading", part))
    charged = _charge(plan, settings, copies)
    source = RandomSource() if _source is None else _source
    made = []
    for number in range(copies):
        tell("choosing and sampling", number / copies)
        outcome = sampled_crowd.run(table, attributes, fixed, settings, source)
        one = _make(plan, attributes, settings, table, outcome, source, copies)
        made.append(one if key is None else replace(one, certificate=sign(one.certificate, key)))
    if charged is not None:
        ledger, entry = charged
        digests = [one.certificate["digest"] for one in made]
        digest = digests[0] if copies == 1 else sha256(" ".join(digests).encode())
        made = [replace(one, settle=lambda: ledger.settle(entry, digest)) for one in made]
    for number, place in enumerate(folders):
        tell("writing", number / copies)
        made[number].save(place)
    tell("done", 1.0)
    return made


def read_policy(policy: Policy | str | Path | None) -> Policy:
    """A policy, or the file of one."""
    from incrowd.policy import Policy

    if isinstance(policy, Policy):
        return policy
    if policy is None:
        raise ParameterError("A release needs a policy.", code="parameter-combination")
    return Policy.from_file(policy)


def release_folders(folder: str | Path, copies: int = 1) -> list[Path]:
    """Where releases are written: one to the folder itself, several to `<folder>-1`, `<folder>-2`, ..."""
    place = Path(folder)
    return [place] if copies == 1 else [place.with_name(f"{place.name}-{i + 1}") for i in range(copies)]


def internal_folder(folder: str | Path) -> Path:
    """Where a release's files for the publisher alone are, beside its folder."""
    from incrowd.releases.release import internal_folder

    return internal_folder(Path(folder))


def _fixed_levels(policy: Policy, attributes: Sequence[CodedAttribute]) -> dict[str, int]:
    """The levels that nobody has to choose: those in the policy, and the raw level where no choice is paid for."""
    chosen = policy.release is not None and policy.release.selection_epsilon > 0
    levels: dict[str, int] = {}
    for attribute in attributes:
        level = policy.attributes[attribute.name].level
        if level is not None:
            attribute.hierarchy.recode(level)  # refuses a level that is not there
            levels[attribute.name] = level
        elif not chosen:
            levels[attribute.name] = 0
    return levels


def _count(
    data: Any,
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    *,
    show_values: bool,
    progress: Callable[[float], None],
) -> Histogram:
    """The full table as a histogram of raw codes, in one scan."""
    source = _open(data, policy, show_values=show_values)
    if policy.unlisted == "refuse":
        extra = [c.name for c in source.columns() if c.name not in policy.attributes]
        if extra:
            raise DataError(
                f"{len(extra)} columns of the table are not in the policy: {', '.join(map(repr, extra[:5]))}.",
                code="column-unlisted",
                remedy="Give each a role (drop, if it is not to be published), or set 'unlisted: drop'.",
            )
    return source.count_by([a.coding for a in attributes], progress=progress)  # type: ignore[no-any-return]


def _open(data: Any, policy: Policy, *, show_values: bool) -> Any:
    from incrowd.sources import open_source

    settings = policy.data
    if not settings.header:
        raise PolicyError(
            "A table without a line of column names cannot be read: columns are found by their names.",
            code="policy-invalid",
            remedy="Put a line with the names on top of the file, and leave 'header' out of the policy.",
        )
    if data is None:
        if settings.path is None:
            raise PolicyError(
                "No table is given, and the policy names none.",
                code="data-missing",
                remedy="Name it in the policy (data: {path: ...}) or give it with --data.",
            )
        data = str(policy.resolve(settings.path))
    return open_source(
        data,
        delimiter=settings.delimiter,
        quote=settings.quote,
        decimal=settings.decimal,
        encoding=settings.encoding,
        missing_values=settings.missing_values,
        table=settings.table,
        show_values=show_values,
    )


def _charge(policy: Policy, settings: CrowdSettings, copies: int) -> tuple[Ledger, int] | None:
    """Spend the budget, on disk, before anything is drawn."""
    if policy.ledger is None:
        return None
    from incrowd.releases.entries import Entry, SampledCrowd
    from incrowd.releases.ledger import Ledger

    wanted = policy.ledger
    ledger = Ledger(policy.resolve(wanted.path))
    known = ledger.budget(wanted.dataset)
    if known is None:
        known = ledger.set_budget(wanted.dataset, wanted.epsilon, wanted.delta, Relation.ADD_REMOVE)
    if (known.epsilon, known.delta) != (wanted.epsilon, wanted.delta):
        raise PolicyError(
            f"The policy's budget for {wanted.dataset!r} is not the one in the ledger, {known}.",
            code="ledger-budget-differs",
            remedy="Write the ledger's budget into the policy, or change the ledger's with `incrowd ledger budget`.",
        )
    entry = Entry(
        mechanism="sampled_crowd",
        promise=SampledCrowd(settings.k, settings.beta, settings.selection_epsilon),
        description=policy.title or "release",
        policy_digest=policy.digest(),
        already_a_sample=settings.already_sampled,
        copies=copies,
    )
    return ledger, ledger.charge(wanted.dataset, entry).entry_id


def _make(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settings: CrowdSettings,
    table: Histogram,
    outcome: Outcome,
    source: RandomSource,
    copies: int,
) -> Release:
    """Certificate and reports around what the mechanism gave."""
    from incrowd.releases.release import Release, certify
    from incrowd.reports.release_report import internal_report, public_report

    report = public_report(policy, settings, outcome.published, outcome.levels, void=not source.secure)
    return Release(
        histogram=outcome.published,
        certificate=certify(policy, attributes, settings, outcome, source, report, copies),
        policy=policy.with_levels(outcome.levels),
        report=report,
        internal={"report.html": internal_report(policy, attributes, settings, table, outcome, void=not source.secure)},
    )


# --- after the release --------------------------------------------------------------------------------------------


def verify(folder: str | Path, public_key: str | Path | None = None) -> Verification:
    """Check a published folder against its certificate, without the original data."""
    from incrowd.releases import verify as verifying

    return verifying.verify(folder, public_key)


def estimate(folder: str | Path, by: Sequence[str]) -> Estimates:
    """A cross-tabulation of the population from a published folder, with standard errors."""
    from incrowd.releases import estimate as estimating

    return estimating.estimate(folder, by)


def make_keys(secret: str | Path, public: str | Path) -> None:
    """Write a new pair of Ed25519 keys: the secret one for signing, the public one to be passed on."""
    from incrowd.files import write_whole
    from incrowd.releases.certificate import make_keys

    for path in (secret, public):
        if Path(path).exists():
            raise ParameterError(f"{path} exists already.", code="output-exists", remedy="Choose another name.")
    secret_pem, public_pem = make_keys()
    write_whole(secret, secret_pem).chmod(0o600)
    write_whole(public, public_pem)


# --- the ledger ---------------------------------------------------------------------------------------------------


def ledger_statement(path: str | Path, dataset: str) -> Statement:
    """What has been spent on a dataset, and what is left."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).statement(dataset)


def ledger_datasets(path: str | Path) -> tuple[str, ...]:
    """The datasets that a ledger knows."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).datasets()


def ledger_budget(
    path: str | Path, dataset: str, *, epsilon: float, delta: float, relation: str = Relation.ADD_REMOVE
) -> Statement:
    """Set what may be spent on a dataset."""
    from incrowd.releases.ledger import Ledger

    ledger = Ledger(path)
    ledger.set_budget(dataset, epsilon, delta, relation)
    return ledger.statement(dataset)


def ledger_add(
    path: str | Path, dataset: str, *, epsilon: float, delta: float, relation: str, description: str
) -> Statement:
    """Record a release that was made elsewhere."""
    from incrowd.releases.entries import Entry, Point
    from incrowd.releases.ledger import Ledger

    ledger = Ledger(path)
    ledger.charge(dataset, Entry("external", Point(epsilon, delta, Relation(relation)), description))
    return ledger.statement(dataset)


# --- policies and examples ----------------------------------------------------------------------------------------


def draft_policy(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str | None = None,
    progress: Progress | None = None,
) -> Draft:
    """Look at a table and draft a policy for it, saying what a person must decide.

    What is read off the data is marked in the draft: no guarantee covers it until a person has confirmed it.

    Args:
        data: a file name or pattern, a pandas, Polars or Arrow table, or a DuckDB relation.
        output: where to write the policy, ``-`` for nowhere; by default beside the file, if there is one.
        overwrite: replace a file that is there.
        delimiter: what separates the fields of a text file; found out if not given.
        quote: what surrounds fields of a text file.
        encoding: of a text file; UTF-8 if not given.
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
        progress=None if progress is None else lambda part: progress("reading", part),
    )


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of a policy file, for editors."""
    from incrowd.policy import Policy

    return Policy.json_schema()


def write_example(
    path: str | Path, rows: int, *, overwrite: bool = False, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Write the example census and, beside it, its policy."""
    from incrowd.examples.census import write_census

    return write_census(path, rows, progress, overwrite=overwrite)
