"""A rehearsal says what the ledger would be charged with; publishing does exactly that, and the rehearsal nothing."""

import pandas as pd
import pytest

from incrowd import Policy, api
from incrowd.core.errors import IncrowdError

TEXT = """\
incrowd: 1
attributes: {{size: {{domain: [small, large]}}}}
release: {release}
ledger: {{path: budget.sqlite, dataset: people, epsilon: {epsilon}, delta: 1e-2{more}}}
"""
CROWD = "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-5}"
TABLE = pd.DataFrame({"size": ["small", "large"] * 300})


def policy(folder, release=CROWD, epsilon=5, more=""):
    return Policy.from_text(TEXT.format(release=release, epsilon=epsilon, more=more), folder)


def rehearse(policy, copies=1):
    return api.release_copies(TABLE, policy, copies=copies, rehearse=True)[0].foreseen


@pytest.mark.parametrize("more", ["", ", rule: order"])
def test_what_is_foreseen_is_what_publishing_does(tmp_path, more):
    asked = policy(tmp_path, more=more)
    seen = rehearse(asked)
    assert (seen.first, seen.before[0], seen.refused) == (True, 0.0, None)
    assert not (tmp_path / "budget.sqlite").exists()
    for first, copies in ((True, 1), (False, 2)):
        seen = rehearse(asked, copies)
        assert seen.first is first
        api.release_copies(TABLE, asked, copies=copies, folder=tmp_path / f"out{copies}", new_ledger=first)
        statement = api.ledger_statement(tmp_path / "budget.sqlite", "people")
        assert seen.after == (statement.spent.epsilon, statement.spent.delta)
        assert seen.left == statement.remaining
        assert seen.before[0] < seen.after[0] <= seen.before[0] + seen.cost[0] + 1e-9
    assert rehearse(asked).before == seen.after
    statement = api.ledger_statement(tmp_path / "budget.sqlite", "people")
    assert len(statement.releases) == 2  # rehearsals are none


def test_what_the_ledger_would_refuse_is_said_in_its_words(tmp_path):
    seen = rehearse(policy(tmp_path, epsilon=0.5))
    assert "too much" in seen.refused
    assert seen.after[0] > seen.budget[0]
    with pytest.raises(IncrowdError) as refused:
        api.release(TABLE, policy(tmp_path, epsilon=0.5), folder=tmp_path / "out", new_ledger=True)
    assert refused.value.message in seen.refused
    api.ledger_budget(tmp_path / "budget.sqlite", "people", epsilon=3, delta=1e-2)
    other = rehearse(policy(tmp_path))
    assert "not the one in the ledger" in other.refused


def test_a_promise_that_does_not_compose_costs_nothing_and_no_ledger_foresees_nothing(tmp_path):
    seen = rehearse(policy(tmp_path, release="{mechanism: generalization, require: [{k: 5}]}"))
    assert (seen.cost, seen.after, seen.refused) == (None, None, None)
    text = TEXT.format(release=CROWD, epsilon=1, more="")
    assert rehearse(Policy.from_text(text[: text.index("ledger:")], tmp_path)) is None
