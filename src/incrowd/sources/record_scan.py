"""A second count of the records in a text, which does not go through the engine's parser.

It looks at line ends and quotes and at nothing else, block by block, for a small part of what parsing costs, and runs
beside the engine. A table whose two counts differ is refused. Records that are too long are found here, too: the engine
loses those that are longer than its buffers without a word.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from incrowd.core.errors import DataError

LONGEST_RECORD = 2_000_000  # bytes; the engine's own limit, which it does not always keep
_LINE_FEED, _RETURN = b"\n\r"
_BLANK = ord(" ")  # and what comes before it


@dataclass
class RecordScan:
    """Counts the records of a text in UTF-8.

    A record starts behind a line end, with a byte that is none. Line ends in a quoted field do not count. A quote opens
    one where a field starts, perhaps behind a space; elsewhere it is a character like others.

    Attributes:
        path: the file, for messages.
        quote: what surrounds fields, one byte; None where nothing does.
        delimiter: what separates fields.
        longest: how many bytes a record may have.
        empty_lines: whether an empty line is a record, as in a table of one column.
        blank_lines: whether a line of blanks is one.
    """

    path: Path
    quote: str | None = None
    delimiter: str = ","
    longest: int = LONGEST_RECORD
    empty_lines: bool = False
    blank_lines: bool = True
    _records: int = field(default=0, init=False)
    _lines: int = field(default=0, init=False)
    _open: int = field(default=0, init=False)  # bytes so far of a record that has not ended
    _quoted: bool = field(default=False, init=False)  # whether they end within a quoted field
    _returned: bool = field(default=False, init=False)  # whether the last byte was a carriage return

    def count(self, blocks: Iterable[bytes]) -> int:
        """How many records there are in these blocks, which together are the text.

        Raises:
            DataError: a record is too long.
        """
        line: list[bytes] = []  # as far as it has come
        for block in _unmarked(blocks):
            cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
            if cut:
                self._add(b"".join([*line, block[:cut]]))
                line = []
            line.append(block[cut:])
            if self._open + sum(map(len, line)) > self.longest:
                raise self._too_long(self._lines + 1)
        if any(line):
            self._add(b"".join(line))
            self._records += self.empty_lines and self._open > 0
        return self._records

    def _add(self, piece: bytes) -> None:
        """Counts whole lines, or the last one, which need not end."""
        data = np.frombuffer(piece, dtype=np.uint8)
        feeds, returns = data == _LINE_FEED, data == _RETURN
        ends = feeds | returns
        if self._quoted or (self.quote is not None and self.quote.encode() in piece):
            ends &= ~self._inside(piece, data, ends)
        lines = feeds if b"\n" in piece else returns
        still_open = self._measured(ends, lines)
        self._records += self._ended(ends, feeds, returns) if self.empty_lines else self._started(ends, data, piece)
        self._lines += int(np.count_nonzero(lines))
        self._open, self._returned = still_open, bool(returns[-1])

    def _started(self, ends: np.ndarray, data: np.ndarray, piece: bytes) -> int:
        starts = ~ends
        starts[0] &= not self._open
        starts[1:] &= ends[:-1]
        if not self.blank_lines and (starts & (data <= _BLANK)).any():
            return sum(1 for line in re.split(rb"[\r\n]", piece) if line.strip())
        return int(np.count_nonzero(starts))

    def _ended(self, ends: np.ndarray, feeds: np.ndarray, returns: np.ndarray) -> int:
        second = feeds.copy()  # of the two bytes that end one line on Windows
        second[0] &= self._returned
        second[1:] &= returns[:-1]
        return int(np.count_nonzero(ends & ~second))

    def _measured(self, ends: np.ndarray, lines: np.ndarray) -> int:
        """How many bytes follow the last end of a record; refuses records that are too long."""
        if ends[-1] and self._open + len(ends) <= self.longest:
            return 0
        at = np.flatnonzero(ends)
        lengths = np.diff(at, prepend=-1 - self._open, append=len(ends)) - 1
        if lengths.max() > self.longest:
            before = at[: np.argmax(lengths > self.longest)]
            above = np.count_nonzero(lines[: before[-1] + 1]) if before.size else 0
            raise self._too_long(self._lines + int(above) + 1)
        return int(lengths[-1])

    def _inside(self, piece: bytes, data: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Which bytes stand in quoted fields, among them opening quotes."""
        assert self.quote is not None  # noqa: S101 - or else nothing is quoted
        marks = data == ord(self.quote)
        inside = _odd(marks, self._quoted)
        # As most texts are written, every other quote opens a field, or again one in which a doubled quote stands.
        opening, fitting = marks & inside, ends | marks | (data == self.delimiter.encode()[-1])
        if (opening[1:] & ~fitting[:-1]).any():
            inside = _odd(self._found(piece), self._quoted)
        self._quoted = bool(inside[-1])
        return inside

    def _found(self, piece: bytes) -> np.ndarray:
        """The quotes that open and close fields, where others are mere characters."""
        quote, delimiter = (re.escape(sign.encode()) for sign in (self.quote or "", self.delimiter))
        rest = rb"[^%b]*(?:%b%b[^%b]*)*" % (quote, quote, quote, quote)
        pattern = re.compile(rb"(?:(?<=[\r\n])|(?<=%b)|\A) ?(%b)%b(%b|\Z)" % (delimiter, quote, rest, quote))
        marks = np.zeros(len(piece) + 1, dtype=bool)
        begin = 0
        if self._quoted and (first := re.compile(rest).match(piece)):
            marks[first.end()] = True
            begin = first.end() + 1
        for found in pattern.finditer(piece, begin):
            marks[[found.start(1), found.start(2)]] = True
        return marks[:-1]

    def _too_long(self, line: int) -> DataError:
        return DataError(
            f"A line of {self.path} is too long to be a record (line {line}).",
            code="data-line-too-long",
            remedy="Look for a quote that is not closed, or for line ends that are lacking.",
            details={"line": line},
        )


def _odd(marks: np.ndarray, start: bool) -> np.ndarray:
    """Whether the number of marks up to each place, this one among them, is odd; `start` is one more.

    By words of 64 places, which is several times as fast as adding up place by place.
    """
    packed = np.packbits(marks, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), dtype="<u8")
    words.view(np.uint8)[: len(packed)] = packed
    for distance in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(distance)
    ends = words >> np.uint64(63)
    before = np.bitwise_xor.accumulate(np.concatenate([[np.uint64(start)], ends[:-1]]))
    words ^= np.uint64(0) - before
    return np.unpackbits(words.view(np.uint8), count=len(marks), bitorder="little").view(np.bool_)


def _unmarked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text without a byte-order mark."""
    start = True
    for block in blocks:
        yield block.removeprefix(codecs.BOM_UTF8) if start else block
        start = False
