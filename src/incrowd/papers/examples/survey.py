"""An example survey: the policy by which respondents randomise their own answers, and the wording of its questions."""

from __future__ import annotations

from pathlib import Path

from incrowd.core.files import named, require_absent, write_whole

POLICY = """\
# A survey whose respondents randomise their own answers. The values are declared here; nobody's data is read.
incrowd: 1
title: How the town moves
attributes:
  age: {type: integer, domain: {from: 0, to: 100, step: 20}}
  district: {domain: [north, east, south, west, centre]}
  commute: {domain: [car, bus, bicycle, foot, none]}
  fare_dodged: {type: boolean, missing: keep, role: sensitive}
release:
  mechanism: pram
  epsilon: 4                    # what one record may say about its owner
  importance: {commute: 2}      # the question that matters most may keep more of it
"""

TEXTS = """\
# How the survey asks, and how it shows the possible answers.
age:
  question: How old are you?
  labels:
    "[0, 20)": under 20
    "[20, 40)": 20 to 39
    "[40, 60)": 40 to 59
    "[60, 80)": 60 to 79
    "[80, 100]": 80 or older
district:
  question: Where do you live?
  labels: {north: In the north, east: In the east, south: In the south, west: In the west, centre: In the centre}
commute:
  question: How do you go to work or to school on most days?
  labels: {car: By car, bus: By bus, bicycle: By bicycle, foot: On foot, none: I stay at home}
fare_dodged:
  question: Have you ridden a bus without a ticket this year?
  labels: {true: "Yes", false: "No", null: I do not remember}
"""


def write_survey(path: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write the policy of the survey and, beside it, under the same name with .texts.yaml, the wording.

    Raises:
        InputError: a file is in the way, or the folder cannot be written to.
    """
    policy = named(path)
    texts = policy.parent / f"{policy.stem}.texts.yaml"
    for target in () if overwrite else (policy, texts):
        require_absent(target)
    return [write_whole(policy, POLICY.encode()), write_whole(texts, TEXTS.encode())]
