"""The command line: one module per verb, each loaded only when it is called, so that help is instant."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

import click

from incrowd._version import __version__
from incrowd.cli._shell import open_streams, run, stop_on_signals

# Verb → (module and attribute, one line of help). The help stands here so that listing verbs imports none of them.
VERBS = {
    "init": ("incrowd.cli.init:init", "Draft a policy from a file, saying what a person must decide."),
    "plan": ("incrowd.cli.plan:plan", "Find parameters that keep a promise, before touching any data."),
    "advise": ("incrowd.cli.advise:advise", "What other columns, levels, ε or mechanisms would give."),
    "compare": ("incrowd.cli.compare:compare", "The errors of five ways to publish a table, side by side."),
    "release": ("incrowd.cli.release:release", "Publish a table as its policy says."),
    "verify": ("incrowd.cli.verify:verify", "Check a release against its certificate."),
    "estimate": ("incrowd.cli.estimate:estimate", "Tabulate the population from a release."),
    "combine": ("incrowd.cli.combine:combine", "Draw another synthetic table from published views."),
    "audit": ("incrowd.cli.audit:audit", "What a table gives away, whoever published it."),
    "ledger": ("incrowd.cli.ledger:ledger", "What has been spent on a dataset, and what is left."),
    "attack": ("incrowd.cli.attack:attack", "Show an unsafe method being broken."),
    "gallery": ("incrowd.cli.gallery:gallery", "Redraw the papers' tables and figures."),
    "studio": ("incrowd.cli.studio:studio", "Plan, release and inspect in a browser."),
    "questionnaire": (
        "incrowd.cli.questionnaire:questionnaire",
        "Make a file by which respondents randomise their own answers.",
    ),
    "collect": ("incrowd.cli.collect:collect", "Serve a questionnaire and take in randomised records."),
    "collected": ("incrowd.cli.collect:collected", "Close a collection and publish its records."),
    "keys": ("incrowd.cli.keys:keys", "Make keys for signing certificates."),
    "example": ("incrowd.cli.example:example", "Write example data with its policy."),
    "schema": ("incrowd.cli.schema:schema", "Print the JSON Schema of a policy or a certificate."),
}


class Verbs(click.Group):
    """A group whose commands are imported when they are first needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All verbs, in the order in which they are usually needed."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb, imported now."""
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb, or the nearest one as a suggestion."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of verbs, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in VERBS.items()])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="incrowd")
def incrowd() -> None:
    """Publish tables about people, with a proof of what is promised.

    Every command takes --json: one JSON object on standard output and nothing else there. Exit codes: 0 done;
    2 bad input; 3 a guarantee cannot be met or a budget would be overspent; 1 a bug.
    """


def main(arguments: list[str] | None = None) -> Any:
    """The entry point: runs one command and exits with its code."""
    open_streams()
    stop_on_signals()
    sys.exit(run(incrowd, sys.argv[1:] if arguments is None else arguments))
