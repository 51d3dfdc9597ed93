"""`incrowd schema`: the policy's shape, for editors."""

from __future__ import annotations

import json

import click

from incrowd.cli._shell import json_option


@click.command()
@json_option
def schema(as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """Print the JSON Schema of a policy file, with which editors complete and check it."""
    from incrowd import api

    click.echo(json.dumps(api.policy_schema(), ensure_ascii=False, indent=2))
