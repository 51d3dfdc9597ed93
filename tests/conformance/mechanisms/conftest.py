"""A policy for each registered mechanism, and a table that all of them can publish."""

import sys
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from incrowd.policy import Policy

# Tests are no package; the suite finds what stands here by this name.
sys.modules["conformance_mechanisms"] = sys.modules[__name__]

ATTRIBUTES = """
incrowd: 1
attributes:
  age:
    role: quasi
    type: integer
    domain: {from: 0, to: 79}
    hierarchy: {widths: [20, 40]}
    level: 1
  sex: {role: quasi, domain: [f, m]}
  job: {role: sensitive, domain: [none, office, shop]}
"""


@dataclass(frozen=True)
class Case:
    """How the suite uses a mechanism.

    Attributes:
        release: the policy's section.
        copies: whether several releases at once are allowed.
        random: whether two releases of one table differ.
        draws: how many of neighbouring tables are compared; fewer where one takes long.
        several: the policy's section where a person has two rows, if that needs another one.
    """

    release: str
    copies: bool = True
    random: bool = True
    draws: int = 3000
    several: str | None = None
    policy: Policy = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "policy", Policy.from_text(f"{ATTRIBUTES}release: {self.release}\n"))

    def with_people(self, at_most):
        """The same policy, or what it needs instead, where so many rows of a person count, the earliest ones."""
        people = f"people: {{column: who, at_most: {at_most}, keep: earliest by visit}}"
        return Policy.from_text(f"{ATTRIBUTES}{people}\nrelease: {self.several or self.release}\n")

    def with_ledger(self, folder, epsilon=1.0):
        """The same policy, with a ledger in a folder."""
        text = f"{ATTRIBUTES}release: {self.release}\n"
        text += f"ledger: {{path: {folder / 'ledger.sqlite'}, dataset: people, epsilon: {epsilon}, delta: 0.001, "
        return Policy.from_text(f"{text}relation: replace-one}}\n")


CASES = {
    "sampled_crowd": Case("{mechanism: sampled_crowd, epsilon: 0.4, delta: 1e-4, beta: 0.3}"),
    "generalization": Case(
        "{mechanism: generalization, require: [{k: 5}, {l: 2}]}",
        copies=False,
        random=False,
        several="{mechanism: generalization, require: {k: 5}}",
    ),
    "sample": Case("{mechanism: sample, epsilon: 0.9, delta: 0.05}", copies=False),
    "views": Case("{mechanism: views, epsilon: 0.5, delta: 1e-4, by: noise}", draws=150),
    "pram": Case("{mechanism: pram, epsilon: 3, delta: 1e-4}"),
}


@pytest.fixture(scope="session")
def people():
    return make_people()


def make_people():
    """3,000 people, each combination common enough to be published by every mechanism."""
    rng = np.random.default_rng(7)
    rows = 3000
    return pd.DataFrame(
        {
            "age": rng.integers(0, 80, rows),
            "sex": rng.choice(["f", "m"], rows, p=[0.6, 0.4]),
            "job": rng.choice(["none", "office", "shop"], rows, p=[0.5, 0.3, 0.2]),
        }
    )
