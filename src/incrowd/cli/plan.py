"""`incrowd plan`: find parameters that keep a promise, before touching any data. Mechanisms say what can be planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, progress_bar, safe
from incrowd.cli._tables import counts_a_table, require_data

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Looked, Planned, Planner, PlanOption

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Planners(click.Group):
    """A command for each planner of the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Their names."""
        from incrowd import api

        return sorted(api.planners())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        from incrowd import api

        planner = api.planners().get(cmd_name)
        return None if planner is None else _command(planner)


@click.group(cls=Planners)
def plan() -> None:
    """Find parameters that keep a promise, before touching any data."""


def _command(planner: Planner) -> click.Command:
    def run(plot: str | None = None, as_json: bool = False, **given: Any) -> None:
        answers = [planner.solve(**_given(given))]
        _tell(answers, plot, as_json=as_json)

    def run_on_a_table(plot: str | None = None, as_json: bool = False, **given: Any) -> None:
        _tell(_of_table(planner, curve=plot is not None, **given), plot, as_json=as_json)

    verb: Callable[..., Any] = json_option(run_on_a_table if planner.of_table else run)
    if planner.draws:
        verb = click.option("--plot", type=file_name, help="Draw the trade-off to this SVG file.")(verb)
    if planner.of_table:
        verb = counts_a_table(verb)
        if planner.advise is not None:
            verb = click.option(
                "--advice", is_flag=True, help="Say what makes the rate small, and what would raise it."
            )(verb)
    for option in reversed(planner.options):
        verb = _option(option)(verb)
    for decorate in reversed(_NAMING_A_TABLE) if planner.of_table else ():
        verb = decorate(verb)
    examples = "\n".join(planner.examples)
    return click.command(planner.name, help=f"{planner.help}\n\n\b\n{examples}")(verb)


_NAMING_A_TABLE: tuple[Decorator, ...] = (
    click.argument("data", required=False),
    click.option("--data", "other", help="The table of a policy, if not the one that it names."),
    click.option("--columns", help="Which columns of DATA make up a row, separated by commas; all if not given."),
    click.option(
        "--counts",
        type=file_name,
        help="Instead of DATA: a CSV file with a column `count`, one line for each distinct row.",
    ),
)


def _option(option: PlanOption) -> Decorator:
    name = f"--{option.name.replace('_', '-')}"
    if option.kind == "flag":
        return click.option(name, is_flag=True, help=option.help)
    if option.kind == "sizes":
        return click.option(name, callback=_sizes, multiple=True, required=option.required, help=option.help)
    kinds: dict[str, Any] = {"number": float, "count": int, "choice": click.Choice(option.choices)}
    kind = kinds[option.kind] if option.least is None else click.IntRange(option.least)
    if option.default is None:
        return click.option(name, type=kind, required=option.required, help=option.help)
    return click.option(name, type=kind, default=option.default, show_default=True, help=option.help)


def _sizes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[int, ...]:
    """Whole numbers, separated by commas or given one option at a time."""
    try:
        return tuple(int(part) for value in given for part in value.split(","))
    except ValueError:
        raise click.BadParameter("give whole numbers, separated by commas, such as 2,5,10", ctx, param) from None


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _of_table(
    planner: Planner,
    *,
    data: str | None,
    other: str | None,
    columns: str | None,
    counts: str | None,
    reading: dict[str, Any],
    curve: bool,
    advice: bool = False,
    **options: Any,
) -> list[Planned]:
    """The answer about a table, a policy's table or a file of counts, and advice if that is asked for."""
    from incrowd import api

    if (data is None and not reading) == (counts is None):
        raise click.UsageError("Give either DATA or --counts.")
    looked: Looked | None = None
    if counts is not None:
        if advice:
            raise click.UsageError("A file of counts has no columns to advise about: give DATA or a policy.")
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
    given = _given(options)
    if looked is not None and looked.asked is not None and planner.filled is not None:
        given = planner.filled(given, looked.asked.model_dump())
    answer = planner.solve(counts=rows, curve_points=40 if curve else 0, **given)
    if not advice or looked is None or planner.advise is None:
        return [answer]
    return [answer, planner.advise(looked.table, looked.scales, answer)]


def _tell(answers: list[Planned], plot: str | None, *, as_json: bool) -> None:
    from incrowd import api

    if plot:
        api.save_chart(answers[0], plot)
    payload = {key: value for answer in answers for key, value in answer.payload.items()}
    emit(payload, as_json=as_json, render=lambda console: _show(console, answers))


def _show(console: Console, answers: list[Planned]) -> None:
    from rich.table import Table

    for number, answer in enumerate(answers):
        if answer.internal:
            console.print(f"[bold red]INTERNAL[/] {answer.internal}", soft_wrap=True)
        if number:
            console.print()
        console.print(f"[bold]{safe(answer.title)}[/]", soft_wrap=True)
        for line in answer.lines:
            console.print(f"  {safe(line)}", soft_wrap=True)
        for one in answer.tables:
            table = Table(title=one.title or None, title_justify="left", box=None, pad_edge=False)
            for place, heading in enumerate(one.headings):
                table.add_column(heading, justify="left" if place < one.words else "right")
            for row in one.rows:
                table.add_row(*map(safe, row))
            console.print()
            console.print(table)
        if answer.closing:
            console.print(safe(answer.closing), soft_wrap=True)
