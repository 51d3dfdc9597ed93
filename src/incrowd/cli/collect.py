"""`incrowd collect` and `incrowd collected`: take in randomised records, and publish them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from incrowd.cli._shell import emit, file_name, folder_name, json_option, sign_option

_STORE = "An SQLite file, or a PostgreSQL address (postgresql://...)."


@click.command()
@click.argument("questionnaire", type=file_name)
@click.option("--store", required=True, help=_STORE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--certfile", type=file_name, help="A TLS certificate (PEM), to serve https.")
@click.option("--keyfile", type=file_name, help="Its secret key (PEM).")
@json_option
def collect(
    questionnaire: str, store: str, host: str, port: int, certfile: str | None, keyfile: str | None, as_json: bool
) -> None:
    """Serve a questionnaire as a web page, and take in the records that browsers have randomised.

    Nothing about a sender is kept: no address, no time, no log. A record is on disk before it is acknowledged. The
    service runs until it is stopped; started again with the same store, it continues.

    \b
    incrowd collect survey.json --store survey.sqlite
    """
    from incrowd import api
    from incrowd.core.server import is_loopback

    def ready(address: str) -> None:
        if as_json:
            click.echo(json.dumps({"address": address, "store": _without_password(store)}))
        else:
            click.echo(f"Collecting at {address} (Ctrl-C stops).")

    if certfile is None and not is_loopback(host):
        click.echo(
            "Without TLS others on the way can change the page that randomises. Give --certfile and --keyfile, or put "
            "a server in front that has them.",
            err=True,
        )
    api.collect(questionnaire, store, host=host, port=port, certfile=certfile, keyfile=keyfile, ready=ready)


@click.command()
@click.argument("store")
@click.option("-o", "--output", "folder", type=folder_name, required=True, help="A new folder.")
@click.option("--fewer", is_flag=True, help="Publish although fewer people answered than were expected.")
@sign_option
@json_option
def collected(store: str, folder: str, fewer: bool, sign_with: str | None, as_json: bool) -> None:
    """Close a collection and publish its records, with the certificate of a randomised release.

    STORE is what `incrowd collect` was given. The number of records that came decides what is promised about the
    table. One collection gives one table: once it is closed, no record is taken any more.

    \b
    incrowd collected survey.sqlite -o survey-2026
    """
    from incrowd import api
    from incrowd.cli.release import payload_of, show

    made = api.publish_collected(store, folder, fewer=fewer, sign_with=sign_with)
    payload = payload_of(made, Path(folder), api.internal_folder(folder))
    emit(payload, as_json=as_json, render=lambda console: show(console, [payload], empty=False))


def _without_password(store: str) -> str:
    """A file's name as it is; of an address neither who, nor by which word, nor options, which may hold both."""
    scheme, mark, rest = store.partition("://")
    if not mark:
        return store
    place, _, path = rest.partition("/")
    host, options, _ = place.rpartition("@")[2].partition("?")
    return f"{scheme}://{host}" if options else f"{scheme}://{host}/{path.partition('?')[0]}"
