"""Respondents who randomise their own answers: the questionnaire, the collecting service, and publishing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.releases.pipeline import read_policy

if TYPE_CHECKING:
    from incrowd.policy import Policy
    from incrowd.releases.release import Release
    from incrowd.survey import Questionnaire


def make_questionnaire(
    policy: Policy | str | Path,
    output: str | Path | None = None,
    *,
    records: int,
    texts: Mapping[str, Any] | str | Path | None = None,
    sign_with: str | Path | None = None,
    overwrite: bool = False,
) -> Questionnaire:
    """The public file by which respondents randomise their own answers. No data is read.

    Args:
        policy: a policy, or the name of its file; its release is `mechanism: pram`.
        output: where to write the questionnaire.
        records: how many people are expected to answer.
        texts: the wording, by attribute: ``{name: {question: ..., labels: {value: ...}}}``, or a YAML file with it.
        sign_with: a PEM file with the secret Ed25519 key to sign with.
        overwrite: replace a file that is there.
    """
    from incrowd.core.files import require_absent, write_whole
    from incrowd.core.signing import load_secret_key
    from incrowd.survey.collector.questions import questionnaire_of, read_texts

    if output is not None and not overwrite:
        require_absent(output)
    said = read_texts(texts) if isinstance(texts, str | Path) else texts
    plan = read_policy(policy)
    plan.require_confirmed()
    made = questionnaire_of(plan, records=records, texts=said)
    if sign_with is not None:
        made = made.signed(load_secret_key(sign_with))
    if output is not None:
        write_whole(output, made.to_bytes())
    return made


def collect(questionnaire: str | Path, store: str, **listening: Any) -> None:
    """Serve a questionnaire and take in randomised records until told to stop.

    Args:
        questionnaire: its file.
        store: an SQLite file or a PostgreSQL address, new or of this questionnaire.
        listening: `host`, `port`, `certfile`, `keyfile`, and `ready`, which is called with the address.
    """
    from incrowd.survey import Questionnaire
    from incrowd.survey.collector.collection import rehearse
    from incrowd.survey.collector.service import serve
    from incrowd.survey.collector.store import Store

    asked = Questionnaire.from_file(questionnaire)
    rehearse(asked)
    serve(Store(store, asked), **listening)


def publish_collected(
    store: str, folder: str | Path, *, fewer: bool = False, sign_with: str | Path | None = None
) -> Release:
    """Close a collection and publish its records, as a release that respondents have randomised.

    Args:
        store: what `collect` was given.
        folder: where to write the release.
        fewer: publish although fewer records came than the questionnaire expects. It promises less then.
        sign_with: a PEM file with the secret Ed25519 key to sign the certificate with.
    """
    from incrowd.core.files import named
    from incrowd.core.signing import load_secret_key
    from incrowd.releases.folders import require_free
    from incrowd.releases.release import signed
    from incrowd.survey.collector.collection import close_and_count, release_of
    from incrowd.survey.collector.store import Store

    key = None if sign_with is None else load_secret_key(sign_with)
    require_free([named(folder)])
    opened = Store(store)
    try:
        made = release_of(close_and_count(opened, fewer=fewer), opened.questionnaire)
    finally:
        opened.close()
    made = replace(made, certified=signed(made.certified, key))
    made.save(folder)
    return made


def serve_application(
    make: Callable[[str], Any], *, host: str, port: int, ready: Callable[[str], None] = lambda _: None
) -> None:
    """Serve a web application until told to stop.

    Args:
        make: called with the address, gives the application.
        host: where to listen.
        port: where to listen; 0 takes a free one.
        ready: called with the address as soon as it answers.
    """
    from incrowd.core.server import address_of, listen, run

    listening = listen(host, port)
    run(make(address_of(listening)), listening, ready=ready)
