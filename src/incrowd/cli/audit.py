"""`incrowd audit`: what a table gives away, whoever published it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import DONE, FAILED, emit, file_name, json_option, progress_bar, safe
from incrowd.cli._tables import counts_a_table, require_data
from incrowd.core.numbers import as_given, number, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from incrowd.api import Audit, PeopleInGroups, RuleOutcome


@click.command()
@click.argument("data", required=False)
@click.option(
    "--quasi",
    multiple=True,
    required=True,
    help="Columns that others may know of a person, separated by commas; may be repeated.",
)
@click.option("--sensitive", multiple=True, help="Columns that nobody should learn about a person, in the same way.")
@click.option("--adversary", "adversaries", multiple=True, help="Who is feared, as above; may be repeated.")
@click.option("--domain", "domains", multiple=True, help="All values of a sensitive column, in order: COLUMN=a,b,c.")
@click.option("--ordered", multiple=True, help="Sensitive columns whose values are in order; numbers and dates are.")
@click.option("--others-as-quasi", is_flag=True, help="For one sensitive column, count the others as known.")
@click.option("--weights", help="A column that says how many people each record stands for.")
@click.option("--sampling-rate", type=float, help="The part of the population that is in the table.")
@click.option("--population", help="A table of the whole population, with the same quasi-identifiers.")
@click.option("--population-table", help="The table that is meant there, or where DATA is.")
@click.option("--people", multiple=True, help="The column that says whose a row is, if a person may have several.")
@click.option("--threshold", type=float, default=0.2, show_default=True, help="Count records with a higher risk.")
@click.option("--worst", type=click.IntRange(0), default=10, show_default=True, help="How many groups to list.")
@click.option(
    "--require", "rules", multiple=True, help="What the table must have, as in k=5,l=2; if not, the exit code is 3."
)
@click.option("--show-values", is_flag=True, help="Show values of the table; otherwise groups have numbers only.")
@click.option("--html", type=file_name, help="Also write a report to this file.")
@counts_a_table
@json_option
def audit(
    data: str | None,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    adversaries: tuple[str, ...],
    domains: tuple[str, ...],
    ordered: tuple[str, ...],
    others_as_quasi: bool,
    weights: str | None,
    sampling_rate: float | None,
    population: str | None,
    population_table: str | None,
    people: tuple[str, ...],
    threshold: float,
    worst: int,
    rules: tuple[str, ...],
    show_values: bool,
    html: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> int:
    """What a table gives away, whoever published it: no policy is needed.

    k, ℓ-diversity, t-closeness, β-likeness, δ-disclosure and belief ratios for each sensitive column, re-identification
    risks, and which columns cause them. Every value counts as it is written; a missing value is a value of its own.

    DATA is a CSV, Parquet, JSON-lines or SQLite file, a pattern like 'parts/*.parquet', or a database's address. With
    --engine it is Parquet that the cluster reaches; without DATA, a table of Spark's catalogue.

    \b
    An adversary is written as a class and what is known of her:
      "I prior=12000,18000"    her belief beforehand, one number per value, or flu:12000,cancer:18000
      "II sigma=1000"          any belief, no firmer than after 1000 records
      "I earlier=FILE"         what another table shows, in a column of the same name
      "III shape=table"        the shares of the whole table, never revised; also uniform, or 2,3
    each also with b=2 (records she knows), about=COLUMN, and what she must not learn: predicates=values, negations,
    subsets, or groups of values such as lungs:flu+asthma or high:50000..; not=flu+asthma (what she knows a person does
    not have); knowing=COLUMN+COLUMN (sensitive columns that she knows of people); for=sex:f,age:20..29 (the people whom
    it is about). I and III also with or-less-stubborn.
    Without any: "III shape=table" and "II sigma=1000".

    What can be required: k, l, entropy_l (at least), t, alpha, beta, delta, risk, mean_risk, alone (at most).

    \b
    incrowd audit hospital.csv --quasi age,sex,zip --sensitive disease
    incrowd audit hospital.csv --quasi age,sex,zip --sensitive disease --require k=5,l=2
    incrowd audit hospital.csv --quasi age,sex,zip --sensitive disease --adversary "II sigma=30000" --html audit.html
    incrowd audit visits.csv --quasi age,sex,zip --people patient_id
    incrowd audit sqlite:///people.db --table visits --quasi age,sex,zip --population-table everybody
    """
    from incrowd import api

    require_data(data, reading)
    with progress_bar() as tell:
        result = api.audit(
            data,
            quasi,
            sensitive,
            adversaries,
            domains=domains,
            ordered=ordered,
            others_as_quasi=others_as_quasi,
            weights=weights,
            sampling_rate=sampling_rate,
            population=population,
            population_table=population_table,
            people=people,
            threshold=threshold,
            worst=worst,
            show_values=show_values,
            progress=tell,
            **reading,
        )
    payload = result.to_dict()
    if html is not None:
        payload["report"] = str(api.save_audit(result, html))
    outcomes = result.require(*rules) if rules else ()
    passed = all(outcome.holds for outcome in outcomes)
    if rules:
        payload |= {"passed": passed, "required": [asdict(outcome) for outcome in outcomes]}

    def render(console: Console) -> None:
        _show(console, result, html)
        _show_required(console, outcomes)

    emit(payload, as_json=as_json, render=render, failed=[_told(one) for one in outcomes if not one.holds])
    return DONE if passed else FAILED


# --- what a person sees -----------------------------------------------------------------------------------------


def _show(console: Console, audit: Audit, html: str | None) -> None:
    alone = audit.risks.sample_uniques
    console.print(
        f"[bold]{audit.records:,} records in {audit.groups:,} groups that look alike in "
        f"{safe(', '.join(audit.quasi))}: k = {audit.k:,}[/]",
        soft_wrap=True,
    )
    who = "1 record is alone in its group" if alone == 1 else f"{alone:,} records are alone in their group"
    console.print(f"  {who}, {percent(alone / audit.records)} of all")
    if audit.people is not None:
        _show_people(console, audit.people)
    _show_risks(console, audit)
    _show_columns(console, audit)
    if audit.sensitive:
        _show_sensitive(console, audit)
        _show_beliefs(console, audit)
    _show_worst(console, audit)
    if audit.notes:
        console.print("\n[bold]To keep in mind[/]")
    for note in audit.notes:
        console.print(f"  {safe(note)}", soft_wrap=True)
    if html is not None:
        console.print(f"\nThe report is in {safe(html)}. It is as confidential as the table is.", soft_wrap=True)


def _show_people(console: Console, people: PeopleInGroups) -> None:
    console.print(
        f"[bold]These are {people.people:,} people, with up to {people.most_rows:,} records each: the smallest group "
        f"has {people.k:,} {'person' if people.k == 1 else 'people'}[/]",
        soft_wrap=True,
    )
    console.print(
        f"  {people.one_person_groups:,} groups are of one person each, with {people.one_person_records:,} records; "
        "all other figures count records",
        soft_wrap=True,
    )
    for group in people.one_person:
        who = "".join(f", {text}" for text in _who(group.labels))
        console.print(f"  one person's: {group.records:,} records{who}", soft_wrap=True)
    if people.without_identifier:
        console.print(f"  {people.without_identifier:,} records do not say whose: each was taken for a person")


def _show_required(console: Console, outcomes: Sequence[RuleOutcome]) -> None:
    if not outcomes:
        return
    console.print("\n[bold]What is required[/]")
    for outcome in outcomes:
        mark = "[green]✓[/]" if outcome.holds else "[bold red]✗[/]"
        console.print(f"{mark} {safe(_told(outcome))}")
    passed = all(outcome.holds for outcome in outcomes)
    console.print("[bold green]Passed[/]" if passed else "[bold red]NOT passed[/]")


def _told(outcome: RuleOutcome) -> str:
    about = "" if outcome.column is None else f" of {outcome.column}"
    return f"{outcome.rule} = {number(outcome.limit)}{about}: the table has {number(outcome.found)}"


def _show_risks(console: Console, audit: Audit) -> None:
    risks = audit.risks
    shown = _table(("attacker", "highest", "mean", f"above {as_given(risks.threshold)}", "found"))
    for name, risk in (
        ("prosecutor", risks.prosecutor),
        ("journalist", risks.journalist),
        ("  individual risk", risks.individual),
    ):
        if risk is not None:
            numbers = (number(risk.highest), number(risk.mean), f"{percent(risk.above)}", f"{number(risk.expected)}")
            shown.add_row(name, *numbers)
    shown.add_row("marketer", "", number(risks.marketer), "", f"{number(risks.marketer * audit.records)}")
    _print(console, "Being found", shown)
    if risks.journalist is not None:
        console.print(f"  journalist: {risks.journalist.estimator}", soft_wrap=True)
    sizes = ", ".join(f"{s.records:,} ({percent(s.share)}) in groups below {s.below}" for s in risks.small_groups)
    console.print(f"  records: {sizes}", soft_wrap=True)
    for uniques in sorted(risks.population_uniques, key=lambda found: not found.believed):
        whole = "" if uniques.in_population is None else f", {number(uniques.in_population)} in the population"
        believe = "believe this" if uniques.believed else "too low, as a rule"
        console.print(
            f"  {number(uniques.in_table)} records are about people like nobody else{whole} ({believe}): "
            f"{uniques.estimator}",
            soft_wrap=True,
        )


def _show_columns(console: Console, audit: Audit) -> None:
    searched = audit.minimal_uniques.columns_searched
    shown = _table(
        ("column", "values", "bits", "alone", "k without", "mean risk without", "alone without", "in smallest sets"),
    )
    for c in audit.contributions:
        shown.add_row(
            safe(c.name),
            f"{c.distinct:,}",
            f"{number(c.entropy)}",
            f"{c.uniques:,}",
            f"{c.k_without:,}",
            number(c.mean_risk_without),
            f"{c.uniques_without:,}",
            f"{audit.minimal_uniques.by_column[c.name]:,}",
        )
    _print(console, "What each column does", shown)
    console.print(
        f"  {audit.minimal_uniques.records:,} records are singled out by "
        f"{'one column' if searched == 1 else f'at most {searched} columns'}",
        soft_wrap=True,
    )


def _show_sensitive(console: Console, audit: Audit) -> None:
    shown = _table(("", *(safe(d.name) for d in audit.sensitive)))
    rows = {
        "values of the domain": [f"{d.values:,}{'' if d.declared else ' that occur'}" for d in audit.sensitive],
        "records whose group has one value": [f"{d.homogeneous_records:,}" for d in audit.sensitive],
        "k": [f"{d.k:,}" for d in audit.sensitive],
        "distinct ℓ": [number(d.distinct_l.value) for d in audit.sensitive],
        "entropy ℓ": [number(d.entropy_l.value) for d in audit.sensitive],
        "recursive (c,2): c above": [number(d.recursive_c[2].value) for d in audit.sensitive],
        "recursive (c,3): c above": [number(d.recursive_c[3].value) for d in audit.sensitive],
        "t, equal distance": [number(d.t.value) for d in audit.sensitive],
        "t, ordered distance": ["—" if d.t_ordered is None else number(d.t_ordered.value) for d in audit.sensitive],
        "α, the largest share": [number(d.largest_share.value) for d in audit.sensitive],
        "β-likeness, basic": [number(d.beta.value) for d in audit.sensitive],
        "β-likeness, enhanced": [number(d.beta_enhanced.value) for d in audit.sensitive],
        "δ-disclosure: δ above": [number(d.delta.value) for d in audit.sensitive],
    }
    for name, cells in rows.items():
        shown.add_row(name, *cells)
    _print(console, "What can be learned", shown)


def _show_beliefs(console: Console, audit: Audit) -> None:
    shown = _table(("adversary", "about", "ratio", "p_in", "p_out", "worst group", "of records"))
    for d in audit.sensitive:
        for b in d.beliefs:
            about = d.name if b.statement is None else f"{d.name}: {'not ' if b.negated else ''}{b.statement}"
            shown.add_row(
                safe(b.adversary),
                safe(about),
                b.shown,
                number(b.p_in),
                number(b.p_out),
                f"{b.group:,}",
                f"{b.size:,}",
            )
    if shown.row_count:
        _print(console, "Belief ratios", shown)


def _show_worst(console: Console, audit: Audit) -> None:
    if not audit.sensitive and audit.smallest:
        shown = _table(("group", "records", *(("who",) if audit.smallest[0].labels else ())))
        for g, more in audit.smallest_alike:
            shown.add_row(_group(g.group, more), f"{g.size:,}", *_who(g.labels))
        _print(console, "The smallest groups", shown)
    for d in audit.sensitive:
        if d.worst:
            head = (
                "group",
                "records",
                "values",
                "largest share",
                "t",
                *(f"ratio {i + 1}" for i in range(len(d.beliefs))),
            )
            who = ("who", "mostly") if d.worst[0].labels else ()
            shown = _table((*head, *who))
            for w, more in d.worst_alike:
                shown.add_row(
                    _group(w.group, more),
                    f"{w.size:,}",
                    f"{w.distinct:,}",
                    f"{percent(w.largest_share)}",
                    number(w.t),
                    *w.shown,
                    *_who(w.labels),
                    *(() if w.commonest is None else (safe(w.commonest),)),
                )
            _print(console, f"The worst groups for {safe(d.name)}", shown)


def _group(first: int, groups: int) -> str:
    """A group, or the first of several that look alike."""
    return f"{first:,}" if groups == 1 else f"{first:,} and {groups - 1:,} alike"


def _print(console: Console, title: str, table: Table) -> None:
    console.print(f"\n[bold]{title}[/]", soft_wrap=True)
    console.print(table)


def _table(columns: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i == 0 or name in {"who", "mostly", "about"} else "right")
    return table


def _who(labels: dict[str, str | None] | None) -> tuple[str, ...]:
    if labels is None:
        return ()
    return (safe(", ".join("(missing)" if label is None else label for label in labels.values())),)
