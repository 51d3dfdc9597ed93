"""The main job: from a table and its policy to a release, its certificate and its reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.core.errors import DataError, ParameterError, PolicyError
from incrowd.core.files import named, require_absent
from incrowd.core.progress import Progress, drawing, teller

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.base import Concern
    from incrowd.mechanisms.promises import Promise
    from incrowd.policy import Policy
    from incrowd.policy import Release as PolicyRelease
    from incrowd.randomness import RandomSource
    from incrowd.releases.folders import Stage
    from incrowd.releases.release import Release
    from incrowd.sources import Source
    from incrowd.sources.people import BoundedRows


@drawing
def release(
    data: Any = None,
    policy: Policy | str | Path | None = None,
    *,
    folder: str | Path | None = None,
    sign_with: str | Path | None = None,
    show_values: bool = False,
    table: str | None = None,
    engine: str | None = None,
    most_cells: int | None = None,
    write_with: str = "driver",
    rehearse: bool = False,
    new_ledger: bool = False,
    output: str | None = None,
    progress: Progress | bool | None = None,
    _source: RandomSource | None = None,
) -> Release:
    """The main job: publish a table as its policy says.

    The budget is charged before anything is drawn, and only when all that can be wrong with the input has been
    found right.

    Args:
        data: a file name or pattern, a database's address or ADBC connection, a pandas, Polars, Arrow or Ibis table, a
            DuckDB relation or a Spark DataFrame; by default what the policy names.
        policy: a policy, or the name of its file.
        folder: where to write the release; without it, call `.save(folder)` on what is returned.
        sign_with: a PEM file with the secret Ed25519 key to sign the certificate with.
        show_values: let error messages show values from the data.
        table: the table that is meant, if not the one that the policy names, in a database or in Spark's catalogue.
        engine: the Spark cluster that counts the table: spark://host:port, local[2], yarn, …, or spark for the session
            that is running. A Spark DataFrame needs none.
        most_cells: how many different rows may be fetched at most from a cluster. Beyond, and from wherever the table
            is, a crowd with fixed levels fetches only the cells that can be published.
        write_with: "executors" to let those of the cluster redraw and write a randomised table (mechanism `pram`) that
            this machine could not hold. They must reach the folder; the table is a folder of parts then.
        rehearse: look at what would come out, of a draft that nobody has confirmed perhaps: nothing is charged, and the
            release is void, which its certificate, its report and the name of each of its files say.
        new_ledger: this is the first release of the dataset. Its budget is set in the policy's ledger, which is made if
            there is none. Otherwise a ledger that is missing, or does not know the dataset, is an error.
        output: the format, if not the one that the policy names: parquet, csv, arrow, sav, dta or xlsx.
        progress: True for a bar, in a terminal or a notebook; or a function, called with what is being done and the
            part of it that is done.
    """
    return release_copies(
        data,
        policy,
        copies=1,
        folder=folder,
        sign_with=sign_with,
        show_values=show_values,
        table=table,
        engine=engine,
        most_cells=most_cells,
        write_with=write_with,
        rehearse=rehearse,
        new_ledger=new_ledger,
        output=output,
        progress=progress,
        _source=_source,
    )[0]


@drawing
def release_copies(
    data: Any = None,
    policy: Policy | str | Path | None = None,
    *,
    copies: int,
    folder: str | Path | None = None,
    sign_with: str | Path | None = None,
    show_values: bool = False,
    table: str | None = None,
    engine: str | None = None,
    most_cells: int | None = None,
    write_with: str = "driver",
    rehearse: bool = False,
    new_ledger: bool = False,
    output: str | None = None,
    progress: Progress | bool | None = None,
    warn: Callable[[Concern], None] | None = None,
    _source: RandomSource | None = None,
) -> list[Release]:
    """Several independent releases at once, each from a sample of its own, written to `<folder>-1`, `<folder>-2`, ...

    They are one plan: the ledger counts what they spend together, and all of them appear or none. `warn` is called with
    what had better be changed, before anything is charged or drawn; each release has these `concerns`, too.
    """
    from incrowd.core.signing import load_secret_key
    from incrowd.hierarchy import codings
    from incrowd.mechanisms.registry import mechanism_named
    from incrowd.randomness import RandomSource
    from incrowd.releases.folders import require_free, staged, writing
    from incrowd.releases.purse import Purse
    from incrowd.releases.release import signed, write_around

    tell = teller(progress)
    plan = read_policy(policy).with_output(output)
    section = _require_possible(plan, folder, copies, write_with, rehearse=rehearse)
    key = None if sign_with is None else load_secret_key(sign_with)
    folders = [] if folder is None else release_folders(folder, copies)
    require_free(folders)
    mechanism = mechanism_named(section.mechanism)
    attributes = codings(plan, show_values=show_values)
    settings = mechanism.settle(plan, attributes, copies)
    purse = Purse(plan, new_ledger=new_ledger, rehearse=rehearse)
    reading = {"show_values": show_values, "table": table, "engine": engine, "most_cells": most_cells}
    source = RandomSource() if _source is None else _source
    opened = _open_listed(data, plan, **reading)
    work: Work
    if write_with == "executors":
        from incrowd.releases.executors import ExecutorsWork

        tell("reading", 0.0)
        work = ExecutorsWork(plan, mechanism.by_executors(settings, attributes, opened), source, tell)
        folders = [folder.absolute() for folder in folders]
    else:
        from incrowd.releases.driver import prepared

        work = prepared(mechanism, plan, attributes, settings, opened, source, copies, tell, rehearse=rehearse)
    if warn is not None:
        for concern in work.concerns:
            warn(concern)
    with ExitStack() as stack:
        # A folder that cannot be made is found out before the budget is spent.
        stage = stack.enter_context(staged(folders)) if folders else None
        charged = purse.charge(work.ready(stage), copies)
        stack.enter_context(charged.explained())

        def make(number: int) -> Release:
            tell("drawing", number / copies)
            place = None if stage is None else stage.releases[number]
            one = work.make(stage, number)
            one = replace(one, certified=signed(one.certified, key))
            if place is not None:
                with writing(place.folder):
                    write_around(one, place.public, place.internal, internal_folder(place.folder))
            return one

        made = [make(number) for number in range(copies)]
        digest = _digest(made)
        if stage is not None:
            tell("writing", 0.0)
            charged.publish(stage, digest)
    tell("done", 1.0)
    return [replace(one, charged=charged, digest=digest, people=work.people) for one in made]


class Work(Protocol):
    """Who draws and writes a table: this machine, or the executors of a cluster. They share all other steps."""

    @property
    def concerns(self) -> Sequence[Concern]:
        """What had better be changed before anything is charged or drawn."""

    @property
    def people(self) -> BoundedRows | None:
        """How many rows and people there were, if rows are not people."""

    def ready(self, stage: Stage | None) -> Promise:
        """Refuse what can be refused, and say what one release is charged with."""

    def make(self, stage: Stage | None, number: int) -> Release:
        """Draw one of the releases, and write its table to the stage, if there is one."""


def _digest(made: Sequence[Release]) -> str:
    """That of the certificate, or of all."""
    from incrowd.core.signing import sha256

    digests = [one.certified.digest for one in made]
    return digests[0] if len(digests) == 1 else sha256(" ".join(digests).encode())


def _require_possible(
    plan: Policy, folder: str | Path | None, copies: int, write_with: str, *, rehearse: bool
) -> PolicyRelease:
    """Refuse what can be refused at a glance; the policy's section about the release."""
    from incrowd.mechanisms.promises import require_copies
    from incrowd.mechanisms.registry import require_countable

    if plan.release is None:
        raise PolicyError(
            "The policy does not say how to release.",
            code="policy-invalid",
            remedy="Give it a section 'release'.",
        )
    if not rehearse:
        plan.require_confirmed()
    require_countable(plan)
    require_copies(copies)
    if write_with not in ("driver", "executors"):
        raise ParameterError("write_with must be 'driver' or 'executors'.", code="parameter-range")
    if write_with == "executors":
        from incrowd.releases.executors import require_possible

        require_possible(plan, folder, copies, rehearse=rehearse)
    return plan.release


def read_policy(policy: Any) -> Policy:
    """A policy, or the file of one."""
    from incrowd.policy import Policy

    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | Path):
        raise ParameterError(
            "A release needs a policy." if policy is None else f"A {type(policy).__name__} is not a policy.",
            code="parameter-combination",
            remedy="Give the name of its file, or make one: Policy.from_text, Policy.from_dict.",
        )
    return Policy.from_file(policy)


def release_folders(folder: str | Path, copies: int = 1) -> list[Path]:
    """Where releases are written: one to the folder itself, several to `<folder>-1`, `<folder>-2`, ..."""
    place = named(folder)
    if not place.name:
        require_absent(place)  # . and / are always there
    return [place] if copies == 1 else [place.with_name(f"{place.name}-{i + 1}") for i in range(copies)]


def internal_folder(folder: str | Path) -> Path:
    """Where a release's files for the publisher alone are, beside its folder."""
    from incrowd.releases.folders import internal_folder

    return internal_folder(Path(folder))


def count_table(
    data: Any,
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    *,
    progress: Callable[[float], None],
    **reading: Any,
) -> Histogram:
    """The full table as a histogram of raw codes, in one scan; `reading` is as for `_open`.

    Of people with several rows those are there that count.
    """
    source = _open_listed(data, policy, **reading)
    return count_people_or_rows(source, policy, attributes, progress)[0]


def count_people_or_rows(
    source: Source,
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    progress: Callable[[float], None],
    *,
    whose: bool = False,
) -> tuple[Histogram, BoundedRows | None]:
    """The table, and what of it counts if rows are not people."""
    from incrowd.mechanisms.registry import require_countable
    from incrowd.sources.people import bound_of, count_people
    from incrowd.sources.tally import require_as_asked

    require_countable(policy)
    bound, codings = bound_of(policy), [a.coding for a in attributes]
    if bound is None:
        return require_as_asked(source.count_by(codings, progress=progress), codings), None
    found = count_people(source, codings, bound, whose=whose, progress=progress)
    return require_as_asked(found.table, codings), found


def one_row_each(people: BoundedRows | None, policy: Policy) -> tuple[Concern, ...]:
    """What to say where several rows of a person may count and nobody has several."""
    from incrowd.mechanisms.base import Concern

    if people is None or policy.people is None or policy.rows_per_person == 1 or people.people < people.rows:
        return ()
    text = (
        f"Nobody has several rows: {policy.people.column[0]!r} has one row for each value. 'at_most: 1' would count "
        "the same rows at a smaller price: more cost larger crowds or more noise, whether or not anybody has them."
    )
    return (Concern("one-row-each", policy.people.column[0], text),)


def rows_not_people(source: Source, policy: Policy) -> tuple[Concern, ...]:
    """What to say where rows are taken for people and an identifier repeats, as far as the first rows of a table show.

    There is nothing to say if the policy has a section `people` or confirms
    that rows are people.
    """
    from incrowd.mechanisms.base import Concern
    from incrowd.sources.repeats import seem_not_people

    if policy.people is not None or policy.rows_are_people:
        return ()
    return tuple(
        Concern(
            "rows-not-people",
            found.column,
            f"Each row is taken for a person, but {found.column!r} repeats: what is promised is promised to a "
            "row, not to whoever has several. If it says whose a row is, give the policy a section 'people'; if rows "
            "are people nevertheless, confirm it: 'rows_are_people: true'.",
        )
        for found in seem_not_people(source, list(policy.published))[:1]
    )


def _open_listed(data: Any, policy: Policy, **reading: Any) -> Source:
    """The table, whose columns are all in the policy if that refuses others."""
    source = _open(data, policy, **reading)
    if policy.unlisted == "refuse":
        known = {*policy.attributes, *(() if policy.people is None else policy.people.columns)}
        extra = [c.name for c in source.columns() if c.name not in known]
        if extra:
            raise DataError(
                f"{len(extra)} columns of the table are not in the policy: {', '.join(map(repr, extra[:5]))}.",
                code="column-unlisted",
                remedy="Give each a role (drop, if it is not to be published), or set 'unlisted: drop'.",
            )
    return source


def _open(
    data: Any,
    policy: Policy,
    *,
    show_values: bool,
    table: str | None = None,
    engine: str | None = None,
    most_cells: int | None = None,
) -> Source:
    from incrowd.sources import holds_tables, open_source

    settings = policy.data
    if table is None and settings.table is not None and (data is None or holds_tables(data, engine)):
        table = settings.table
    if data is None and not (settings.path is None and table is not None and engine is not None):
        if settings.path is None:
            raise PolicyError(
                "No table is given, and the policy names none.",
                code="data-missing",
                remedy="Name it in the policy (data: {path: ...}) or give it with --data.",
            )
        data = settings.path if "://" in settings.path else str(policy.resolve(settings.path))
    return open_source(
        data,
        columns=settings.columns,
        delimiter=settings.delimiter,
        quote=settings.quote,
        decimal=settings.decimal,
        encoding=settings.encoding,
        missing_values=settings.missing_values,
        table=table,
        show_values=show_values,
        engine=engine,
        **({} if most_cells is None else {"most_cells": most_cells}),
    )
