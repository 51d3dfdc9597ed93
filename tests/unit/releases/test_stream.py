"""Samples of a stream, epoch by epoch; and why neither a reservoir nor samples of everything so far would do."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from incrowd import api
from incrowd.core.errors import DataError, GuaranteeError, InputError, PolicyError
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.purse import Charged
from incrowd.releases.release import Release
from incrowd.releases.stream import StreamSampler
from incrowd.theory import sampling

TEXT = """
incrowd: 1
attributes:
  age: {{type: integer, domain: {{from: 0, to: 9}}}}
  sex: {{domain: [f, m], missing: keep}}
release: {{mechanism: sample, {release}}}
"""


def policy(release="epsilon: 0.5, delta: 0.05"):
    return Policy.from_text(TEXT.format(release=release))


def arrivals(number, seed):
    rng = random.Random(seed)
    return [(rng.randrange(10), rng.choice(["f", "m", None])) for _ in range(number)]


def test_an_epoch_is_a_table_of_its_own(tmp_path):
    stream = StreamSampler(policy())
    for epoch in (1, 2):
        records = [arrivals(2000, 10 * epoch + i) for i in range(3)]
        for batch in records:
            stream.add(batch)
        assert stream.epoch == epoch
        made = stream.release(tmp_path / f"epoch-{epoch}", _source=RandomSource.seeded(epoch))
        whole = pd.DataFrame(itertools.chain(*records), columns=["age", "sex"])
        alone = api.release(
            whole, policy(f"epsilon: 0.5, delta: 0.05, epoch: {epoch}"), _source=RandomSource.seeded(epoch)
        )
        assert made.histogram == alone.histogram  # nothing of another epoch is in it
        assert made.certificate["digest"] == alone.certificate["digest"]
        assert made.certificate["mechanism"]["epoch"] == epoch
        assert any(f"epoch {epoch}" in text for text in made.certificate["assumptions"])
        checks = api.verify(tmp_path / f"epoch-{epoch}").checks
        assert [c.name for c in checks if not c.holds] == ["the promise is not void"]
    assert repr(stream) == "<StreamSampler: epoch 3>"


def test_batches_of_every_kind():
    records = arrivals(300, 1)
    frame = pd.DataFrame(records, columns=["age", "sex"])
    batches = [records, tuple(records), iter(records), (r for r in records), frame, pa.Table.from_pandas(frame)]
    made = []
    for batch in batches:
        stream = StreamSampler(policy())
        stream.add(batch)
        stream.add([])
        made.append(stream.release(_source=RandomSource.seeded(1)).histogram)
    assert all(h == made[0] for h in made)


def test_a_policy_that_refuses_other_columns():
    strict = Policy.from_text("unlisted: refuse\n" + TEXT.format(release="epsilon: 0.5, delta: 0.05").lstrip())
    stream = StreamSampler(strict)
    with pytest.raises(DataError):
        stream.add(pa.table({"age": [1], "sex": ["f"], "name": ["x"]}))
    stream.add([(1, "f")])
    assert stream.release().certificate["policy"]["unlisted"] == "refuse"


def test_only_counts_are_kept():
    stream = StreamSampler(policy())
    for i in range(5):
        stream.add(arrivals(1000, i))
    assert len(stream._table) <= 10 * 3
    assert stream._table.total == 5000
    stream.release()
    assert stream._table is None


def test_what_does_not_fit_is_refused_whole():
    stream = StreamSampler(policy())
    stream.add(arrivals(100, 1))
    for bad in ([(1, "f"), (11, "f")], [(1, "x")], [(1,)], [(1, "f"), ("one", "f")], [(None, "f")]):
        with pytest.raises(DataError):
            stream.add(bad)
    assert stream._table.total == 100


def test_an_epoch_without_records_has_nothing_to_release():
    stream = StreamSampler(policy())
    with pytest.raises(DataError) as empty:
        stream.release()
    assert empty.value.code == "data-empty"
    assert stream.epoch == 1


def test_a_refused_release_leaves_the_epoch_open():
    stream = StreamSampler(policy("epsilon: 0.5, delta: 0.05, rate: 0.2"))
    stream.add([(1, "f")])
    with pytest.raises(GuaranteeError):
        stream.release()
    assert stream.epoch == 1
    stream.add([(1, "f")] * 5000)
    assert stream.release().certificate["mechanism"]["epoch"] == 1


class BrokenOffError(Exception):
    pass


def failing_once(monkeypatch, *, published):
    """Saving fails the first time: before, or after, the public folder has appeared."""
    save = Release.save
    failed = []

    def interrupted(self, folder):
        if failed:
            return save(self, folder)
        failed.append(folder)
        if published:
            save(self, folder)
        raise BrokenOffError

    monkeypatch.setattr(Release, "save", interrupted)


@pytest.mark.parametrize("published", [True, False])
def test_no_record_is_ever_sampled_twice(tmp_path, monkeypatch, published):
    stream = StreamSampler(policy())
    stream.add(arrivals(5000, 1))
    draws = []
    release = api.release
    monkeypatch.setattr("incrowd.releases.stream.release", lambda *a, **k: draws.append(release(*a, **k)) or draws[-1])
    failing_once(monkeypatch, published=published)
    with pytest.raises(BrokenOffError):
        stream.release(tmp_path / "first")
    assert (tmp_path / "first").exists() == published
    assert stream._table is None  # the records are forgotten whatever happens to the sample
    assert stream.epoch == 2
    stream.add(arrivals(3000, 2))
    again = stream.release(tmp_path / "second")
    assert again is draws[0]
    assert len(draws) == 1
    assert again.certificate["mechanism"]["epoch"] == 1
    if published:
        both = [(tmp_path / name / "certificate.json").read_bytes() for name in ("first", "second")]
        assert both[0] == both[1]
    after = stream.release(tmp_path / "third")
    assert (after.certificate["mechanism"]["epoch"], stream.epoch) == (2, 3)
    assert after.histogram.total < 3000


def test_a_ledger_that_fails_last_leads_to_no_second_sample(monkeypatch, tmp_path):
    stream = StreamSampler(policy())
    stream.add(arrivals(5000, 1))
    release = api.release

    def publish(stage, _digest):
        stage.appear()
        raise BrokenOffError

    charged = Charged()
    monkeypatch.setattr(charged, "publish", publish)
    monkeypatch.setattr("incrowd.releases.stream.release", lambda *a, **k: replace(release(*a, **k), charged=charged))
    with pytest.raises(BrokenOffError):
        stream.release(tmp_path / "out")
    drawn = stream._drawn
    assert stream.release() is drawn
    with pytest.raises(DataError, match="Nothing has arrived"):
        stream.release()


def test_a_folder_that_is_taken_costs_no_draw(tmp_path):
    (tmp_path / "taken").mkdir()
    stream = StreamSampler(policy())
    stream.add(arrivals(100, 1))
    with pytest.raises(InputError, match="exists already"):
        stream.release(tmp_path / "taken")
    assert (stream.epoch, stream._table.total) == (1, 100)


@pytest.mark.parametrize(
    "batch",
    [
        [None, (1, "f")],
        [(1, "f"), None],
        iter([None, (1, "f")]),
        [(1, "f"), "1f"],
        [(1, "\udc80secret")],
        [(1, "f"), (b"1", "f")],
        (1, "f"),
        ("f", "secret"),
        [{"age": 1, "sex": "f"}],
        iter(["secret"]),
        [object()],
    ],
)
def test_what_are_no_records_is_one_clear_error_and_nothing_is_lost(batch):
    stream = StreamSampler(policy())
    with pytest.raises(DataError) as refused:
        stream.add(batch)
    assert "secret" not in str(refused.value)
    assert stream._table is None


def test_files_are_batches_too(tmp_path):
    names = [str(tmp_path / f"{i}.csv") for i in range(2)]
    for i, name in enumerate(names):
        pd.DataFrame(arrivals(50, i), columns=["age", "sex"]).to_csv(name, index=False)
    stream = StreamSampler(policy())
    stream.add(names)
    assert stream._table.total == 100


def test_only_policies_for_samples():
    with pytest.raises(PolicyError):
        StreamSampler(policy("epsilon: 0.5, delta: 0.05, epoch: 2"))
    other = TEXT.format(release="x").replace(
        "mechanism: sample, x", "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6"
    )
    with pytest.raises(PolicyError):
        StreamSampler(Policy.from_text(other))


# --- why not otherwise ----------------------------------------------------------------------------------------------


def reservoirs(values, size):
    """All that a reservoir may show after each arrival, with probabilities (Vitter's algorithm R)."""
    states = {((),): Fraction(1)}
    for arrived, value in enumerate(values, 1):
        after = {}
        for shown, chance in states.items():
            kept = shown[-1]
            if arrived <= size:
                steps = [((*kept, value), Fraction(1))]
            else:
                steps = [(kept, 1 - Fraction(size, arrived))]
                steps += [((*kept[:i], value, *kept[i + 1 :]), Fraction(1, arrived)) for i in range(size)]
            for now, step in steps:
                key = (*shown, tuple(sorted(now, key=str)))
                after[key] = after.get(key, 0) + chance * step
        states = after
    return states


def test_a_reservoir_tells_what_the_newcomer_has():
    """Section 6: the sample changes to include somebody's value only when they arrive."""
    before = ("a", "a", "b", "b", "a")
    with_x, with_y = (reservoirs((*before, value), 2) for value in ("x", "y"))
    telling = {shown: chance for shown, chance in with_x.items() if shown not in with_y}
    # Whenever the reservoir takes the newcomer in, what it shows is impossible with any other value.
    assert sum(telling.values()) == Fraction(2, 6)
    assert all("x" in shown[-1] and "x" not in shown[-2] for shown in telling)


def test_an_epoch_with_one_newcomer_tells_almost_never():
    stream = StreamSampler(policy())
    stream.add(arrivals(6000, 1))
    stream.release()
    stream.add([(9, "f")])
    rate = stream.release().certificate["mechanism"]["rate"]
    assert rate <= 0.05  # the newcomer is shown with probability δ at most
    assert sampling.sample_delta([1], rate, 0.5).delta <= 0.05


def test_samples_of_everything_so_far_multiply():
    """Each is private, but the ratio of all of them together is not bounded by 1 + ε."""
    epsilon, counts = 0.5, np.array([300, 1000])
    drawn = np.array([90, 200])
    alone = sampling.sample_ratio(counts, drawn)
    assert alone <= epsilon
    likelihood = Fraction(300, 300 - 90)  # P[S | 300 rows of the value] / P[S | 299 rows]
    assert float(likelihood) == pytest.approx(1 + alone)
    assert float(likelihood) ** 2 > 1 + epsilon
