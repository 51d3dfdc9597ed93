"""`incrowd studio`: plan, release and inspect in a browser."""

from __future__ import annotations

import json
import sys

import click

from incrowd.cli._shell import folder_name, json_option


@click.command()
@click.argument("folders", nargs=-1, type=folder_name)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; a free port if not given.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; others can then reach it.")
@click.option("--largest-upload", type=click.IntRange(1), default=1024, show_default=True, help="In megabytes.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@json_option
def studio(
    folders: tuple[str, ...], port: int, host: str, largest_upload: int, no_browser: bool, as_json: bool
) -> None:
    """Plan, release and inspect in a browser, on this machine only.

    Only the FOLDERS named here can be read and written; without any, the current one. The address that is printed
    opens the studio once, for one browser. It runs until it is stopped.

    \b
    incrowd studio
    incrowd studio ~/census ~/releases
    """
    from incrowd.core.server import is_loopback
    from incrowd.studio.service import serve

    def ready(address: str) -> None:
        if as_json:
            click.echo(json.dumps({"address": address}))
            sys.stdout.flush()
            return
        click.echo(f"The studio is at {address}")
        click.echo("The address opens it once. Ctrl-C ends it.")
        if not no_browser and sys.stdout.isatty():
            click.launch(address)

    if not is_loopback(host):
        click.echo(
            f"Others can reach {host}. What you see in the studio goes over the network as it is; the address that "
            "is printed lets in whoever opens it first.",
            err=True,
        )
    serve(folders or (".",), host=host, port=port, largest_upload=largest_upload << 20, ready=ready)
