"""`incrowd advise`: what a policy gives, and what others would."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, policy_file, progress_bar, safe
from incrowd.cli._tables import counts_by_policy
from incrowd.core.numbers import as_given, number, per_mille

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Advised, Alternative, PrivateChoice

INTERNAL = "For the publisher's eyes only: every number was read off the raw table, and no budget pays for that."
_SHOWN = 15


@click.command()
@click.argument("policy", type=policy_file)
@click.option("--data", help="The table, if not the one that the policy names.")
@click.option("--plot", type=file_name, help="Draw promise against error to this SVG file.")
@click.option(
    "--privately",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Choose one alternative within the promise, with this share of ε; no scores are shown.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="For how long alternatives are tried, 180 if not given. The policy itself is tried in any case.",
)
@click.option("--all", "everything", is_flag=True, help="Show every alternative, also those that cannot be done.")
@counts_by_policy
@json_option
def advise(
    policy: str,
    data: str | None,
    plot: str | None,
    privately: float | None,
    time_limit: float | None,
    everything: bool,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """What other columns, levels, ε or mechanisms would give, and the changes that gain most.

    The policy and each alternative are carried out on the true table; nothing is written and nothing charged. A score
    of 1000 means that every count of one, two and three columns can be read off the release as it is, in shares.
    Beside it stands what one-way tables alone would give.

    Choosing by these numbers looks at the table: no promise covers that choice. With --privately one alternative is
    chosen at random instead, the better the likelier, and that costs the share of ε named, charged to the policy's
    ledger; no number is shown. It is for sampled crowds with fixed levels: fewer columns, other levels, β or k.

    \b
    incrowd advise census.yaml --plot advice.svg
    incrowd advise census.yaml --privately 0.1
    """
    from incrowd import api

    if privately is not None:
        if plot or everything:
            raise click.UsageError("--privately shows no numbers: leave out --plot and --all.")
        chosen = api.choose_privately(policy, data, share=privately, **reading)
        emit(asdict(chosen), as_json=as_json, render=lambda console: _show_chosen(console, chosen))
        return
    with progress_bar() as tell:
        found = api.advise(policy, data, time_limit=time_limit, progress=tell, **reading)
    if plot:
        api.save_chart(found, plot)
    emit(
        asdict(found) | {"internal": INTERNAL},
        as_json=as_json,
        render=lambda console: _show(console, found, everything=everything),
    )


def _show_chosen(console: Console, chosen: PrivateChoice) -> None:
    console.print(
        f"Chosen privately among {len(chosen.candidates)}: [bold]{safe(chosen.change)}[/]. That has cost ε = "
        f"{as_given(chosen.epsilon)}, and ε = {as_given(chosen.left)} is left for the release, which promises both "
        "together. In the policy:",
        soft_wrap=True,
    )
    for line in chosen.lines.splitlines():
        console.print(f"     {safe(line)}", soft_wrap=True, highlight=False)


def _show(console: Console, found: Advised, *, everything: bool) -> None:
    from rich.table import Table

    console.print(f"[bold red]INTERNAL[/] {INTERNAL}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("ε", justify="right")
    for name in ("1 column", "2 columns", "3 columns")[: len(found.control)]:
        table.add_column(name, justify="right")
    _row(table, found.current, name="now")
    table.add_row("one-way tables alone", "", *(f"{per_mille(score)}" for score in found.control))
    done = [one for one in found.alternatives if everything or one.refused is None]
    for one in done if everything else done[:_SHOWN]:
        _row(table, one)
    console.print(table)
    if not everything and len(done) > _SHOWN:
        console.print(f"{len(found.alternatives) - _SHOWN} more with --all.")
    console.print()
    if not found.best:
        console.print("No single change at the same ε gains anything.")
    for place, one in enumerate(found.best, start=1):
        gain = 1000 * (one.score - max(found.current.score, 0.0))
        console.print(
            f"[bold]{place}. {safe(one.change)}[/] gains {number(round(gain))} of 1000. In the policy:", soft_wrap=True
        )
        for line in one.lines.splitlines():
            console.print(f"     {safe(line)}", soft_wrap=True, highlight=False)
    console.print()
    for note in found.notes:
        console.print(f"· {note}", soft_wrap=True)


def _row(table: Any, one: Alternative, name: str | None = None) -> None:
    epsilon = "—" if one.epsilon is None else f"{as_given(one.epsilon)}"
    if one.refused is not None:
        table.add_row(safe(name or one.change), epsilon, safe(one.refused))
    else:
        table.add_row(safe(name or one.change), epsilon, *(f"{per_mille(score)}" for score in one.scores))
