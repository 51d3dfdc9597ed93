"""Plain samples of a stream: records arrive, and now and then a sample of them is published.

**Why not a reservoir.** A reservoir keeps a sample of all that has arrived so far by replacing old records with new
ones. If it is published again and again, a record that is new in it is that of somebody who arrived in between. Whoever
knows who did, knows whose it is (Chaudhuri and Mishra, section 6). The likelihood ratio is infinite.

**Why not a fresh sample of everything so far.** Each such sample is private on its own, but a record takes part in all
that come after it. Likelihoods multiply: after m epochs the ratio may be (1+ε)^m, with a probability of failure up to
mδ. A stream that goes on promises nothing in the end.

**What is done here.** The records of an epoch are a table of their own, sampled once and then forgotten: no record
takes part in two samples. What is published of other epochs does not depend on it, so that for each record the promise
of its own epoch is the promise of the whole stream. (For c > 1, of c records of one epoch.) The rate is found anew in
each epoch, on its own table.

Only counts are kept in memory, of the distinct tuples of the epoch that is under way. They are lost if the program
ends. An epoch ends when its sample is drawn: if the sample cannot be written, it is that very sample which is written
later. A second one of the same records is never drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from incrowd.core.errors import DataError, PolicyError
from incrowd.core.files import named
from incrowd.domain import Coding
from incrowd.hierarchy import codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.sample.section import Sample
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.folders import require_free
from incrowd.releases.pipeline import count_table, read_policy, release
from incrowd.releases.release import Release
from incrowd.sources import Progress, SourceColumn

_CHUNK = 100_000


class StreamSampler:
    """Publishes an append-only stream epoch by epoch.

    Args:
        policy: a policy with the mechanism `sample`, or the name of its file.
        first_epoch: the number of the first epoch.
        show_values: let error messages show values from the data.
    """

    def __init__(self, policy: Policy | str | Path, *, first_epoch: int = 1, show_values: bool = False) -> None:
        plan = read_policy(policy)
        if not isinstance(plan.release, Sample) or plan.release.epoch is not None:
            raise PolicyError(
                "A stream is published by the mechanism 'sample', without an 'epoch' of its own.",
                code="policy-invalid",
                remedy="Give the policy a section release: {mechanism: sample, ...}; epochs are numbered as they come.",
            )
        if plan.people is not None:
            raise PolicyError(
                "A stream forgets whose records it has seen, and cannot bound how many of a person's count.",
                code="policy-invalid",
                remedy="Publish each epoch as a table (incrowd release), or let one record of a person arrive in each.",
            )
        self._policy, self._section = plan, plan.release
        self._attributes = codings(plan, show_values=show_values)
        self._show_values = show_values
        self._table: Histogram | None = None
        self._drawn: Release | None = None  # and not yet handed over
        self._epoch = first_epoch

    @property
    def epoch(self) -> int:
        """The number of the epoch that is under way."""
        return self._epoch

    def __repr__(self) -> str:
        return f"<StreamSampler: epoch {self._epoch}>"  # nothing about what has arrived

    def add(self, batch: Any) -> None:
        """Take in records.

        Args:
            batch: a table of any kind that `incrowd.release` takes, or records one by one: tuples with a value for each
                column that the policy publishes, in its order.

        Raises:
            DataError: records do not fit the policy. None of the batch is taken in then.
        """
        table = self._table
        for part in self._tables(batch):
            counted = count_table(
                part, self._policy, self._attributes, show_values=self._show_values, progress=lambda _: None
            )
            table = counted if table is None else table.merge(counted)
        self._table = table

    def release(
        self,
        folder: str | Path | None = None,
        *,
        sign_with: str | Path | None = None,
        _source: RandomSource | None = None,
    ) -> Release:
        """End the epoch: publish a sample of what arrived in it, forget it, and begin the next one.

        If the release is refused, the epoch goes on. If the sample was drawn but writing it failed, the epoch is over:
        the next call writes the same sample (or returns it, without a folder), and leaves what arrived since for the
        call after it.

        Args:
            folder: where to write the release; without it, call `.save(folder)` on what is returned.
            sign_with: a PEM file with the secret Ed25519 key to sign the certificate with.
        """
        if folder is not None:
            require_free([named(folder)])
        made = self._drawn or self._draw(sign_with, _source)
        if folder is not None:
            made.save(folder)
        self._drawn = None
        return made

    def _draw(self, sign_with: str | Path | None, source: RandomSource | None) -> Release:
        """The sample of what arrived, which is forgotten before anyone can see the sample."""
        if self._table is None:
            raise DataError(
                "Nothing has arrived in this epoch.",
                code="data-empty",
                remedy="Wait for records; an epoch without any needs no release.",
            )
        section = self._section.model_copy(update={"epoch": self._epoch})
        policy = self._policy.model_copy(update={"release": section})
        made = release(_Counted(self._table), policy, sign_with=sign_with, _source=source)
        # In this order: interrupted in between, the sample is lost, and the records are not there to be drawn again.
        self._table = None
        self._epoch += 1
        self._drawn = made
        return made

    def _tables(self, batch: Any) -> Iterator[Any]:
        """The batch as tables; records one by one become tables of bounded size."""
        records = _records(batch)
        if records is None:
            yield batch
            return
        import pyarrow as pa

        names = [a.name for a in self._attributes]
        while chunk := list(islice(records, _CHUNK)):
            if not all(isinstance(record, tuple | list) and len(record) == len(names) for record in chunk):
                raise DataError(
                    f"A record is not a tuple of {len(names)} values.",
                    code="data-malformed",
                    remedy="Give tuples with one value for each column that the policy publishes, in its order.",
                )
            try:
                columns = [pa.array(values) for values in zip(*chunk, strict=True)]
            except (pa.ArrowException, ValueError, TypeError, OverflowError):  # invalid Unicode included
                raise DataError(
                    "A column of the records holds values of several types, or of a type that cannot be read.",
                    code="column-type",
                    remedy="Give every column one type: texts, numbers, dates or booleans.",
                ) from None
            yield pa.Table.from_arrays(columns, names=names)


class _Counted:
    """A table that has been counted already, as a source."""

    def __init__(self, table: Histogram) -> None:
        self._table = table

    def columns(self) -> list[SourceColumn]:
        return [SourceColumn(name, "other") for name in self._table.names]

    def count_by(self, codings: Sequence[Coding], *, progress: Progress | None = None) -> Histogram:  # noqa: ARG002
        return self._table


def _records(batch: Any) -> Iterator[Sequence[Any]] | None:
    """Records one by one, if that is what a batch is."""
    if not isinstance(batch, list | tuple | Iterator) or hasattr(batch, "__arrow_c_stream__"):
        return None
    files = isinstance(batch, list) and bool(batch) and all(isinstance(name, str | Path) for name in batch)
    return None if files else iter(batch)
