"""`incrowd keys`: a pair of keys for signing certificates."""

from __future__ import annotations

import click

from incrowd.cli._shell import emit, json_option, safe


@click.command()
@click.option("-o", "--output", "name", required=True, help="Writes NAME.secret.pem and NAME.public.pem.")
@json_option
def keys(name: str, as_json: bool) -> None:
    """Make a pair of Ed25519 keys: one to sign certificates with, one to pass on."""
    from incrowd import api

    secret, public = f"{name}.secret.pem", f"{name}.public.pem"
    fingerprint = api.make_keys(secret, public)
    emit(
        {"secret": secret, "public": public, "fingerprint": fingerprint},
        as_json=as_json,
        render=lambda console: console.print(
            f"Keep {safe(secret)} to yourself; pass {safe(public)} on.\nIts fingerprint is {fingerprint}.",
            soft_wrap=True,
        ),
    )
