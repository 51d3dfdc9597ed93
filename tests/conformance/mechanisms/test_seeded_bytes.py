"""Under a seeded source every mechanism gives the same bytes as when they were recorded.

Whoever moves code without meaning to change what it says sees here whether that succeeded. Whoever means to change it
records anew: `python tests/conformance/mechanisms/test_seeded_bytes.py`.
"""

import hashlib
import json
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).with_name("seeded_bytes.json")


def digests(name, people):
    """The digests of table, reports and certificate, without what differs from machine to machine."""
    from conformance_mechanisms import CASES

    from incrowd import __version__, api
    from incrowd.core.signing import canonical
    from incrowd.randomness import RandomSource
    from incrowd.releases.certificate import digest_without

    made = api.release(people, CASES[name].policy, _source=RandomSource.seeded(2026))
    table = [*(column.labels for column in made.histogram.columns), made.histogram.counts.tolist()]
    table += [column.codes.tolist() for column in made.histogram.columns]
    apart = ("software", "created", "digest", "files")
    stated = {key: value for key, value in made.certificate.items() if key not in apart}
    parts = {"table": canonical(table), "certificate": canonical(stated), "report": made.report, **made.internal}
    digest = digest_without("report.html", made.certificate).encode()
    return {
        part: hashlib.sha256(
            content.replace(__version__.encode(), b"(version)").replace(digest, b"(digest)")
        ).hexdigest()[:16]
        for part, content in sorted(parts.items())
    }


@pytest.mark.parametrize("name", json.loads(RECORDED.read_text()) if RECORDED.exists() else [])
def test_the_bytes_are_those_recorded(name, people):
    assert digests(name, people) == json.loads(RECORDED.read_text())[name]


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    import conftest

    people = conftest.make_people()
    RECORDED.write_text(json.dumps({name: digests(name, people) for name in conftest.CASES}, indent=1) + "\n")


if __name__ == "__main__":
    main()
