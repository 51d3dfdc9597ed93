"""How long commands take to start, against a Python that does nothing.

Target: 0.15 s of the processor for a plan, which waits for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.measuring import Row, command, in_turns, main

NOTHING, PLAN_SECONDS = "python -c pass", 0.15
COMMANDS = {
    "import": ("python", "-c", "import incrowd"),
    "help": ("incrowd", "--help"),
    "plan": ("incrowd", "plan", "crowd", "--epsilon", "0.5", "--delta", "1e-6", "--beta", "0.2"),
}


def run(quick: bool = False) -> Iterator[Row]:
    """Three commands."""
    works = {NOTHING: ("python", "-c", "pass"), **COMMANDS}
    in_turns({name: lambda a=arguments: command(*a) for name, arguments in works.items()}, 1)  # to warm up
    took = in_turns({n: lambda a=arguments: command(*a) for n, arguments in works.items()}, 2 if quick else 7)
    for key, arguments in COMMANDS.items():
        target = PLAN_SECONDS if key == "plan" else None
        yield Row(key, " ".join(arguments), took[key], NOTHING, took[NOTHING], target=target, target_for="cpu")


if __name__ == "__main__":
    main(run)
