"""`incrowd questionnaire`: a public file by which respondents randomise their own answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, policy_file, safe, sign_option
from incrowd.core.numbers import number

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Questionnaire


@click.command()
@click.argument("policy", type=policy_file)
@click.option("-o", "--output", type=file_name, required=True, help="The file to write: FILE.json.")
@click.option("--records", type=click.IntRange(2), required=True, help="How many people are expected to answer.")
@click.option("--texts", type=file_name, help="A YAML file with the wording of questions and answers.")
@sign_option
@click.option("--overwrite", is_flag=True, help="Replace a file of that name.")
@json_option
def questionnaire(
    policy: str,
    output: str,
    records: int,
    texts: str | None,
    sign_with: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make the public file by which respondents randomise their own answers.

    The policy's release is `mechanism: pram` with rho, epsilon or k. No data is read: the file holds the declared
    values, how often an answer is kept, and what that promises if so many people answer.

    \b
    incrowd questionnaire survey.yaml -o survey.json --records 10000
    incrowd collect survey.json --store survey.sqlite
    """
    from incrowd import api

    made = api.make_questionnaire(
        policy, output, records=records, texts=texts, sign_with=sign_with, overwrite=overwrite
    )
    payload = {
        "questionnaire": output,
        "digest": made.digest,
        "records": made.records,
        "retentions": {question.name: float(question.retention) for question in made.questions},
        "promise": dict(made.promise),
        "signed": "signature" in made.document,
    }
    emit(payload, as_json=as_json, render=lambda console: _show(console, made, payload))


def _show(console: Console, made: Questionnaire, payload: dict[str, Any]) -> None:
    console.print(f"[bold]{safe(payload['questionnaire'])}[/] asks {len(made.questions)} questions.")
    for question in made.questions:
        kept = f"kept with probability {number(float(question.retention))}"
        console.print(f"  {safe(question.name)}: {len(question.values)} possible answers, {kept}")
    console.print("It promises every respondent:")
    for sentence in payload["promise"]["in_words"]:
        console.print(f"  {safe(sentence)}", soft_wrap=True)
