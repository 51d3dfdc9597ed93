"""`incrowd example`: data to try things on."""

from __future__ import annotations

import click

from incrowd.cli._shell import emit, file_name, json_option, progress_bar, safe


@click.group()
def example() -> None:
    """Data to try things on; nobody in it is real."""


@example.command()
@click.option("-o", "--output", type=file_name, required=True, help="FILE.csv, .csv.gz or .parquet.")
@click.option("--rows", type=click.IntRange(1), default=100_000, show_default=True, help="How many people.")
@click.option("--overwrite", is_flag=True, help="Replace files of these names.")
@json_option
def census(output: str, rows: int, overwrite: bool, as_json: bool) -> None:
    """The census of an imaginary country, and beside it the policy to publish it with."""
    from incrowd import api

    with progress_bar() as tell:
        table, policy = api.write_example(
            output, rows, overwrite=overwrite, progress=lambda done: tell("writing", done / rows)
        )
    emit(
        {"data": str(table), "policy": str(policy), "rows": rows},
        as_json=as_json,
        render=lambda console: console.print(
            f"{safe(table)} has {rows:,} people; {safe(policy)} says how to publish them."
        ),
    )


@example.command()
@click.option("-o", "--output", type=file_name, required=True, help="FILE.yaml.")
@click.option("--overwrite", is_flag=True, help="Replace files of these names.")
@json_option
def survey(output: str, overwrite: bool, as_json: bool) -> None:
    """A survey whose respondents randomise their own answers: its policy, and beside it the wording."""
    from incrowd import api

    policy, texts = api.write_survey(output, overwrite=overwrite)
    emit(
        {"policy": str(policy), "texts": str(texts)},
        as_json=as_json,
        render=lambda console: console.print(f"{safe(policy)} says what is asked, and {safe(texts)} in which words."),
    )


@example.command()
@click.option("-o", "--output", type=file_name, required=True, help="FILE.csv.")
@click.option("--patients", type=click.IntRange(1), default=6_000, show_default=True, help="How many patients.")
@click.option("--overwrite", is_flag=True, help="Replace files of these names.")
@json_option
def visits(output: str, patients: int, overwrite: bool, as_json: bool) -> None:
    """Visits to a hospital, several of most patients, and beside them the policy to publish them with."""
    from incrowd import api

    table, policy = api.write_visits(output, patients, overwrite=overwrite)
    emit(
        {"data": str(table), "policy": str(policy), "patients": patients},
        as_json=as_json,
        render=lambda console: console.print(
            f"{safe(table)} has the visits of {patients:,} patients; {safe(policy)} says how to publish them."
        ),
    )
