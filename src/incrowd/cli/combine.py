"""`incrowd combine`: more synthetic tables from published views."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from incrowd.cli._shell import emit, file_name, folder_name, json_option, safe


@click.command()
@click.argument("folder", type=folder_name)
@click.option(
    "--rows", type=click.IntRange(1, 100_000_000), help="How many rows; about as many as people if not given."
)
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same table; by chance if not given.")
@click.option(
    "-o",
    "--output",
    type=file_name,
    help="FILE.parquet, .csv, .arrow, .sav, .dta or .xlsx, which must not exist; - prints CSV. If not given, "
    "FOLDER.combined.parquet, beside FOLDER.",
)
@json_option
def combine(folder: str, rows: int | None, seed: int | None, output: str | None, as_json: bool) -> None:
    """Another synthetic table from the views of a release; its rows are nobody's records.

    It is made from published views alone, so it costs nothing, however often it is done.

    \b
    incrowd combine survey-2026
    incrowd combine survey-2026 --rows 100000 --seed 1 -o more.parquet
    incrowd combine survey-2026 -o - | head
    """
    from incrowd import api
    from incrowd.core.files import require_absent

    if output == "-":
        if as_json:
            raise click.UsageError("With --json nothing else is printed: name a file.")
        with TemporaryDirectory(prefix="incrowd-") as temporary:
            drawn = Path(temporary, "combined.csv")
            api.combine(folder, rows=rows, seed=seed, output=drawn)
            with drawn.open(encoding="utf-8", newline="") as file:
                for lines in iter(lambda: file.read(1 << 20), ""):
                    click.echo(lines, nl=False)
        return
    if output is None:
        place = Path(folder) if Path(folder).name not in ("", "..") else Path(folder).resolve()
        output = str(place.with_name(f"{place.name}.combined.parquet"))
    require_absent(output, remedy="Choose another name.")
    table = api.combine(folder, rows=rows, seed=seed, output=output)
    said = {"output": output, "rows": table.total, "seed": seed, "synthetic": True}
    emit(
        said,
        as_json=as_json,
        render=lambda console: console.print(
            f"{safe(output)} has {table.total:,} synthetic rows; they are nobody's records.", soft_wrap=True
        ),
    )
