"""`incrowd plan`: find parameters that keep a promise, before touching any data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, progress_bar, safe
from incrowd.cli._tables import counts_a_table, require_data

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Advice, Amplification, CrowdPlan, FrontierPoint, PramPlan, SamplePlan, TreePlan, ViewsBudget

_STEPS = 14  # of advice that are shown
INTERNAL = "For the publisher's eyes only: every number here was found by looking at the table, and none is covered."

rows_option = click.option(
    "--rows-per-person", type=int, default=1, show_default=True, help="How many rows one person has at most."
)
plot_option = click.option("--plot", type=file_name, help="Draw the trade-off to this SVG file.")


@click.group()
def plan() -> None:
    """Find parameters that keep a promise, before touching any data."""


@plan.command()
@click.option("--epsilon", type=float, help="ε, the bound on what a release reveals about one person.")
@click.option("--delta", type=float, help="δ, the probability with which that bound may fail.")
@click.option("--k", type=int, help="The smallest crowd that is published.")
@click.option("--beta", type=float, help="The probability with which each record is sampled.")
@click.option(
    "--selection-epsilon",
    type=float,
    default=0.0,
    show_default=True,
    help="ε₁, the part of ε spent on choosing the mapping on the full table.",
)
@rows_option
@click.option("--tree", is_flag=True, help="The mapping is a tree of boxes, chosen on the full table.")
@click.option("--choice-rho", type=float, help="With --tree: what the choice costs, in zCDP; found if not given.")
@plot_option
@json_option
def crowd(
    epsilon: float | None,
    delta: float | None,
    k: int | None,
    beta: float | None,
    selection_epsilon: float,
    rows_per_person: int,
    tree: bool,
    choice_rho: float | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Sample, then publish only crowds of k: give three of --epsilon --delta --k --beta, get the fourth.

    With --epsilon and --delta alone, the largest β is taken whose k/β is within 15% of the least: about k/β people make
    a crowd that is published as often as not, so smaller groups show, and a larger β samples more of everyone.

    The promise is (ε,δ)-differential privacy for adding or removing one person (Li, Qardaji, Su). δ is exact if each
    person is one row; what Theorem 5 of the paper would say stands beside it. With --rows-per-person it covers people
    with so many rows, wherever they lie.

    With --tree, the mapping is chosen as a tree of boxes: give --epsilon and --delta, and see what that costs in k.

    \b
    incrowd plan crowd --epsilon 0.5 --delta 1e-6 --beta 0.2
    incrowd plan crowd --epsilon 1 --delta 1e-6 --k 50 --plot crowd.svg
    incrowd plan crowd --epsilon 1 --delta 1e-6 --beta 0.2 --rows-per-person 3
    incrowd plan crowd --epsilon 1 --delta 1e-6 --tree
    """
    from incrowd import api

    if tree or choice_rho is not None:
        if epsilon is None or delta is None or k is not None or selection_epsilon or rows_per_person != 1 or plot:
            raise click.UsageError(
                "--tree goes with --epsilon and --delta, and with --beta and --choice-rho, no other."
            )
        planned = api.plan_tree(epsilon=epsilon, delta=delta, beta=beta, rho=choice_rho)
        emit(asdict(planned), as_json=as_json, render=lambda console: _show_tree(console, planned))
        return
    answer = api.plan_crowd(
        epsilon=epsilon,
        delta=delta,
        k=k,
        beta=beta,
        selection_epsilon=selection_epsilon,
        rows_per_person=rows_per_person,
    )
    left = max(0.0, answer.epsilon - selection_epsilon)
    points = api.frontier(left, answer.delta, rows_per_person=rows_per_person)
    if plot:
        api.save_chart(answer, plot)
    payload: dict[str, Any] = asdict(answer) | {
        "relation": api.Relation.ADD_REMOVE.value,
        "frontier": [asdict(point) for point in points],
    }
    emit(payload, as_json=as_json, render=lambda console: _show_crowd(console, answer, points))


@plan.command()
@click.option("--epsilon", type=float, required=True, help="ε at the rate you start from.")
@click.option("--delta", type=float, required=True, help="δ at the rate you start from.")
@click.option("--from-beta", type=float, required=True, help="The sampling rate you start from (1: no sampling).")
@click.option("--to-beta", type=float, required=True, help="The lower sampling rate.")
@plot_option
@json_option
def amplify(
    epsilon: float,
    delta: float,
    from_beta: float,
    to_beta: float,
    plot: str | None,
    as_json: bool,
) -> None:
    """What a promise becomes when the data are sampled at a lower rate first (Theorem 1).

    \b
    incrowd plan amplify --epsilon 1 --delta 1e-5 --from-beta 1 --to-beta 0.1
    """
    from incrowd import api

    answer = api.plan_amplify(epsilon=epsilon, delta=delta, from_beta=from_beta, to_beta=to_beta)
    if plot:
        api.save_chart(answer, plot)
    emit(answer, as_json=as_json, render=lambda console: _show_amplification(console, answer))


def _sizes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[int, ...]:
    """Whole numbers, separated by commas or given one option at a time."""
    try:
        return tuple(int(part) for value in given for part in value.split(","))
    except ValueError:
        raise click.BadParameter("give whole numbers, separated by commas, such as 2,5,10", ctx, param) from None


@plan.command()
@click.option("--records", type=int, required=True, help="How many records the table has, at least.")
@click.option(
    "--domain",
    callback=_sizes,
    multiple=True,
    required=True,
    help="How many values each attribute may have: 2,5,10, or the option once for each.",
)
@click.option("--k", type=float, help="Nobody may be linked to a record with probability above 1/k.")
@click.option("--epsilon", type=float, help="The largest ε of a single randomised record.")
@click.option("--rho", type=float, help="The probability of keeping a value, to see what it promises.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="δ of the promise after shuffling.")
@click.option("--beta", type=float, help="Redraw a random sample only: each record with this probability.")
@rows_option
@plot_option
@json_option
def pram(
    records: int,
    domain: tuple[int, ...],
    k: float | None,
    epsilon: float | None,
    rho: float | None,
    delta: float,
    beta: float | None,
    rows_per_person: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Randomise every record: how much may be kept, and what that promises (Ikarashi et al., Algorithms 1-3).

    Give --k and/or --epsilon to find ρ, or --rho to see what it promises. Three promises come out: the local ε of
    one record, Pk-anonymity, and the much smaller (ε,δ) of the shuffled table, all for replacing one record. With
    --rows-per-person, both ε are for replacing all records of a person, and k is about each of them.

    \b
    incrowd plan pram --records 100000 --domain 2,5,10 --k 100
    """
    from incrowd import api

    answer = api.plan_pram(
        records=records,
        domain=domain,
        k=k,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        rows_per_person=rows_per_person,
        beta=beta,
    )
    if plot:
        api.save_chart(answer, plot)
    emit(answer, as_json=as_json, render=lambda console: _show_pram(console, answer))


@plan.command()
@click.argument("data", required=False)
@click.option("--data", "other", help="The table of a policy, if not the one that it names.")
@click.option("--columns", help="Which columns of DATA make up a row, separated by commas; all if not given.")
@click.option(
    "--counts",
    type=file_name,
    help="Instead of DATA: a CSV file with a column `count`, one line for each distinct row.",
)
@click.option("--epsilon", type=float, help="How much changing rows may change the sample's likelihood.")
@click.option("--delta", type=float, help="The probability of a sample that does not keep to it.")
@click.option("--rate", type=float, help="A planned rate: with one of the two above, what it promises.")
@click.option("--rows-unknown", type=int, help="How many rows may be changed (c); 1 if not given.")
@click.option("--advice", is_flag=True, help="Say what makes the rate small, and what would raise it.")
@counts_a_table
@plot_option
@json_option
def sample(
    data: str | None,
    other: str | None,
    columns: str | None,
    counts: str | None,
    epsilon: float | None,
    delta: float | None,
    rate: float | None,
    rows_unknown: int | None,
    advice: bool,
    reading: dict[str, Any],
    plot: str | None,
    as_json: bool,
) -> None:
    """A plain random sample: the largest rate at which it is still private (Chaudhuri, Mishra).

    DATA is a table (a file, a pattern, a database's address; with --engine, Parquet that the cluster reaches, or
    --table alone), or a policy (.yaml), which is then carried out up to the sampling. Give two of --epsilon, --delta
    and --rate; the third follows. Of a policy they need not be repeated: a single option takes the place of the
    policy's value, and the others are the policy's. If that makes three, the answer says whether the rate keeps the
    promise, or the release will be refused.

    This is a statement about this very table; the rate is found by looking at it. It is weaker than differential
    privacy. The rate is exact; what Theorem 3 (or 7) of the paper would allow stands beside it. All that is printed is
    read off the table: it is for the publisher's eyes only.

    \b
    incrowd plan sample survey.csv --columns age,sex,region --epsilon 0.5 --delta 0.05
    incrowd plan sample survey.yaml --advice
    incrowd plan sample --counts counts.csv --rate 0.01 --delta 0.05
    """
    from incrowd import api

    if (data is None and not reading) == (counts is None):
        raise click.UsageError("Give either DATA or --counts.")
    looked = None
    if counts is not None:
        if advice:
            raise click.UsageError("Advice is about columns, which a file of counts has not: give DATA or a policy.")
        rows = api.read_counts(counts)
    else:
        require_data(data, reading)
        names = columns.split(",") if columns else None
        if advice or other or str(data).endswith((".yaml", ".yml")):
            with progress_bar() as tell:
                looked = api.look_at(data, data=other, columns=names, progress=tell, **reading)
            rows = looked.table.counts
        else:
            rows = api.count_rows(data, names, **reading)
    asked = None if looked is None else looked.asked
    wanted: float | None = None  # a rate beside a whole promise, which it keeps or not
    if asked is not None:
        rows_unknown = asked.rows_unknown if rows_unknown is None else rows_unknown
        if sum(given is not None for given in (epsilon, delta, rate)) < 2:
            epsilon = asked.epsilon if epsilon is None else epsilon
            delta = asked.delta if delta is None else delta
            rate = asked.rate if rate is None else rate
            if epsilon is not None and delta is not None:
                wanted, rate = rate, None
    answer = api.plan_sample(
        rows,
        epsilon=epsilon,
        delta=delta,
        rate=rate,
        rows_unknown=1 if rows_unknown is None else rows_unknown,
        curve_points=40 if plot else 0,
    )
    if plot:
        api.save_chart(answer, plot)
    payload = asdict(answer) | {"relation": answer.relation, "internal": INTERNAL}
    if wanted is not None:
        payload["planned"] = {"rate": wanted, "kept": wanted <= answer.rate}
    said = None
    if advice and looked is not None:
        said = api.advise_sample(looked, epsilon=answer.epsilon, delta=answer.delta, rows_unknown=answer.rows_unknown)
        payload["advice"] = asdict(said)
    planned = rate is not None

    def show(console: Console) -> None:
        _show_sample(console, answer, planned=planned)
        if wanted is not None:
            verdict = "keeps the promise" if wanted <= answer.rate else "does not keep it: the release will be refused"
            console.print(f"  the planned rate, {wanted:g}, {verdict}")
        if said is not None:
            _show_advice(console, said)

    emit(payload, as_json=as_json, render=show)


# --- what a person sees -----------------------------------------------------------------------------------------


@plan.command()
@click.option("--columns", type=click.IntRange(2, 1000), required=True, help="How many columns the table has.")
@click.option("--rows", type=click.IntRange(1), required=True, help="About how many people it has.")
@click.option("--epsilon", type=float, required=True, help="ε of all views together.")
@click.option("--delta", type=float, required=True, help="δ of all views together.")
@click.option("--by", type=click.Choice(["crowd", "noise"]), default="crowd", show_default=True, help="Kind of view.")
@click.option("--share", type=float, default=0.1, show_default=True, help="The part that pays for choosing views.")
@json_option
def views(columns: int, rows: int, epsilon: float, delta: float, by: str, share: float, as_json: bool) -> None:
    """Many columns: how many views of what size a promise carries, and their k and β or their noise.

    \b
    incrowd plan views --columns 10 --rows 27000 --epsilon 1 --delta 1e-6
    incrowd plan views --columns 20 --rows 27000 --epsilon 1 --delta 1e-6 --by noise
    """
    from incrowd import api

    answer = api.plan_views(
        columns=columns,
        rows=rows,
        epsilon=epsilon,
        delta=delta,
        by="noise" if by == "noise" else "crowd",
        share=share,
    )
    payload = asdict(answer)
    for option, found in zip(payload["options"], answer.options, strict=True):
        option["choose"] = found.choose.model_dump()
    emit(payload, as_json=as_json, render=lambda console: _show_views(console, answer))


def _show_crowd(console: Console, answer: CrowdPlan, points: list[FrontierPoint]) -> None:
    from rich.table import Table

    console.print(
        f"[bold]Sample each record with probability {answer.beta:.6g}, publish crowds of {answer.k:,} or more[/]"
    )
    rows = answer.rows_per_person
    whom = "one record" if rows == 1 else f"a person with at most {rows:,} rows"
    console.print(f"  promises ε = {answer.epsilon:.6g}, δ = {answer.delta:.3g} for adding or removing {whom}")
    if answer.selection_epsilon:
        console.print(f"  of which ε₁ = {answer.selection_epsilon:g} pays for choosing the mapping on the full table")
    if rows > 1:
        console.print("  Theorem 5 of the paper speaks of people with one row")
    elif answer.paper is None:
        console.print("  Theorem 5 of the paper does not cover this rate: it needs ε ≥ −ln(1−β)")
    else:
        needed = "no k up to the limit" if answer.paper.k is None else f"k = {answer.paper.k:,}"
        console.print(f"  by Theorem 5 of the paper: δ = {answer.paper.delta:.3g} at this k, or {needed} for this δ")
    table = Table(title="the same promise at other rates", title_justify="left", box=None, pad_edge=False)
    for name in ("β", "k", "k/β", "k by Theorem 5"):
        table.add_column(name, justify="right")
    for point in points:
        table.add_row(f"{point.beta:g}", _count(point.k), _people(point), _count(point.paper_k))
    console.print()
    console.print(table)
    console.print(
        f"About k/β {'people' if rows == 1 else 'rows'} make a crowd that is published as often as not: the least k/β "
        "shows the smallest groups, a larger β more of everyone in them.",
        soft_wrap=True,
    )


def _show_tree(console: Console, answer: TreePlan) -> None:
    console.print(
        f"[bold]Choose a tree with ρ = {answer.rho:g}, sample each record with probability {answer.beta:.6g}, publish "
        f"crowds of {answer.k:,} or more[/]",
        soft_wrap=True,
    )
    console.print(f"  promises ε = {answer.epsilon:.6g}, δ = {answer.delta:.3g} for adding or removing one record")
    console.print(f"  without a choice, crowds of {answer.k_without:,} would be enough at this rate")
    console.print(
        f"About {round(answer.k / answer.beta):,} people make a box that is published as often as not; the tree aims "
        f"at {answer.box:,} or more.",
        soft_wrap=True,
    )
    if answer.least_records is None:
        console.print("No table of a usual size has enough records for a single split: raise ε, δ or ρ.")
    else:
        console.print(f"The first split needs about {answer.least_records:,} records.")


def _people(point: FrontierPoint) -> str:
    return _count(None if point.k is None else round(point.k / point.beta))


def _show_amplification(console: Console, answer: Amplification) -> None:
    console.print(f"[bold]At sampling rate {answer.to_beta:g}: ε = {answer.epsilon:.6g}, δ = {answer.delta:.3g}[/]")
    console.print(
        f"  from ε = {answer.from_epsilon:g}, δ = {answer.from_delta:g} at rate {answer.from_beta:g}, "
        "for adding or removing one record (Theorem 1)"
    )


def _show_pram(console: Console, answer: PramPlan) -> None:
    console.print(f"[bold]Keep each value with probability ρ = {answer.rho:.6g}, else draw one of its domain[/]")
    if answer.beta < 1:
        console.print(f"  of a random sample: each record with probability β = {answer.beta:.6g}")
    rows = answer.rows_per_person
    whose = "one record, randomised by its owner: " if rows == 1 else f"all records of a person, up to {rows:,}:"
    console.print(f"  {whose}  ε = {answer.epsilon_local:.4g}")
    console.print(f"  linking a person to a record:         at most 1 in k = {answer.k:,.4g}")
    console.print(
        f"  the shuffled table of {answer.records:,}:  ε = {answer.central.epsilon:.4g}, δ = {answer.central.delta:g}"
        f"  ({answer.central.bound})"
    )
    whom = "one record by another" if rows == 1 else f"all records of a person, up to {rows:,}; k is about each record"
    console.print(f"  all for replacing {whom}")


def _show_sample(console: Console, answer: SamplePlan, *, planned: bool) -> None:
    console.print(f"[bold red]INTERNAL[/] {INTERNAL}", soft_wrap=True)
    console.print(f"[bold]Sample each row with probability {answer.rate:.4g}[/]")
    rows = "one row" if answer.rows_unknown == 1 else f"any {answer.rows_unknown} rows"
    console.print(
        f"  then, but for a probability of δ = {answer.delta:.4g}, changing {rows} changes the sample's likelihood "
        f"at most {1 + answer.epsilon:.4g}-fold"
    )
    if not answer.exact and not planned:
        console.print(f"  the largest rate lies between this and {answer.rate_at_most:.4g}")
    if answer.theorem is None:
        console.print("  by the paper's theorem: no rate")
    else:
        console.print(f"  by the paper's theorem: {answer.theorem.rate:.3g}, with {answer.theorem.rare:,} rare rows")
    console.print(
        f"  of {answer.distinct:,} distinct rows {answer.classes.rare:,} are rare, {answer.classes.infrequent:,} "
        f"infrequent, {answer.classes.common:,} common"
    )
    console.print("  a statement about this table alone, for replacing rows; weaker than differential privacy")


def _show_advice(console: Console, advice: Advice) -> None:
    from rich.table import Table

    console.print("\n[bold]For your eyes only: what makes the rate small[/]")
    for blame in advice.by_size:
        if blame.share >= 0.001:
            alike = f"{blame.low:,}" if blame.low == blame.high else f"{blame.low:,} to {blame.high:,}"
            which = "one record has alone" if blame.high == 1 else f"{alike} records share"
            console.print(f"  {blame.rows:,} distinct rows that {which}: {blame.share:.1%} of the risk")
    for blame in advice.by_value:
        ((column, value),) = blame.values.items()
        what = "missing" if value is None else f"'{safe(value)}'"
        console.print(f"  {safe(column)} {what} ({blame.records:,} records): {blame.share:.1%} of the risk")
    if not advice.steps:
        console.print("Nothing that was tried would raise it.")
        return
    for title, steps in (
        ("do this, and the rate becomes", advice.steps[:_STEPS]),
        ("one after the other, dropping no column", advice.path if len(advice.path) > 1 else ()),
    ):
        if not steps:
            continue
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name in ("column", "do this", "in the policy"):
            table.add_column(name)
        for name in ("distinct rows", "rate", "gain"):
            table.add_column(name, justify="right")
        for step in steps:
            gain = f"× {step.rate / advice.rate:.3g}"
            texts = (safe(step.column), safe(step.what), safe(step.how))
            table.add_row(*texts, f"{step.distinct:,}", f"{step.rate:.3g}", gain)
        console.print()
        console.print(table)
    if advice.left_out:
        console.print(f"{advice.left_out} more were not tried, for want of time.")


def _count(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _show_views(console: Console, answer: ViewsBudget) -> None:
    from rich.table import Table

    console.print(
        f"[bold]{answer.columns} one-way tables and {answer.views} pairs along a tree keep ε = {answer.epsilon:g}, "
        f"δ = {answer.delta:g}[/]"
    )
    table = Table(box=None, pad_edge=False)
    crowds = answer.by == "crowd"
    table.add_column("views")
    for name in ("how many", *(("β", "k", "k/β") if crowds else ("standard deviation",)), "cells of a view"):
        table.add_column(name, justify="right")
    for number, option in enumerate(answer.options):
        what = f"{'pairs' if option.choose.columns == 2 else 'triples'}, {option.choose.how}"
        lines = [(what, option.views, option.view)]
        if number == 0:
            lines.insert(0, ("one-way tables", answer.columns, option.single))
        for text, times, step in lines:
            drawn = (
                [f"{step.beta:g}", f"{step.k:,}", f"{step.people:,.0f}"]
                if crowds
                else [f"{step.standard_deviation:.3g}"]
            )
            table.add_row(text, f"{times:,}", *drawn, f"{step.cells:,}")
    console.print(table)
    groups = "cells" if crowds else "counts, by two standard deviations,"
    console.print(
        f"Up to {answer.carried:,} pairs are carried, in which {groups} of one in 100 of {answer.rows:,} people show. "
        "A view with more cells than the last column says shows its larger ones.",
        soft_wrap=True,
    )
