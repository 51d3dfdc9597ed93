"""How many bytes a cell takes on the driver when Spark has counted: as it arrives, while it is sorted, and kept.

What `sources.spark` does with the words that executors hand over, on words that are made here; memory is traced, so
the figures do not depend on the machine. The Java process holds what arrives once more.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np

from bench.measuring import Row, main
from bench.tables import FIELDS, MORE_FIELDS, Field, scattered
from incrowd.sources.tally import conclude, share_words

WIDE = (*MORE_FIELDS, Field("village", 400), Field("school", 100))


def run(quick: bool = False) -> Iterator[Row]:
    """Eight and twelve columns, which fit one word, and fourteen, which take two."""
    cells = 100_000 if quick else 2_000_000
    for fields, needed in ((FIELDS, 1), (MORE_FIELDS, 1), (WIDE, 2)):
        codings = [field.coding for field in fields]
        words = share_words([len(coding.labels) + 2 for coding in codings])
        assert len(words) == needed, "the columns must take as many words as is said"
        arrived = []
        for word in words:
            values = np.zeros(cells, dtype=np.int64)
            for place in word:
                codes = scattered(np.arange(cells, dtype=np.uint64), place.column, fields[place.column].size)
                values |= codes.astype(np.int64) << place.shift
            arrived.append(values)
        counts = np.full(cells, 5)
        tracemalloc.start()
        table = conclude(codings, [p.keys(w) for w, word in zip(arrived, words, strict=True) for p in word], counts)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert table.total == 5 * cells
        came = 8 * (len(words) + 1)
        figures = {
            "words": len(words),
            "bytes a cell as it arrives": came,
            "at most": came + round(most / cells),
            "kept": round(kept / cells),
        }
        yield Row(f"{len(fields)} columns", f"memory of {cells:,} cells of {len(fields)} columns", figures=figures)


if __name__ == "__main__":
    main(run)
