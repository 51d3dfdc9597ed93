"""`incrowd schema`: the shape of a policy or a certificate, for editors and programs."""

from __future__ import annotations

import json

import click

from incrowd.cli._shell import json_option


@click.command()
@click.argument("what", type=click.Choice(["policy", "certificate"]), default="policy")
@json_option
def schema(what: str, as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """Print the JSON Schema of a policy file, with which editors complete and check it, or that of a certificate."""
    from incrowd import api

    found = api.policy_schema() if what == "policy" else api.certificate_schema()
    click.echo(json.dumps(found, ensure_ascii=False, indent=2))
