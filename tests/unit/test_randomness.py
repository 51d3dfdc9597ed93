"""Exactness by enumeration: every string of bits is fed in, and the law that comes out is compared as fractions."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import randomness
from incrowd.core.errors import ParameterError
from incrowd.randomness import RandomSource, to_fraction64

ONES = 2**64 - 1


# Bits under the test's control


class OutOfScriptError(Exception):
    """The draw wants one more choice, among so many options."""

    def __init__(self, options: int) -> None:
        self.options = options


class Script:
    """Words of which only the lowest `width` bits are chosen; the others stay the same, and must not matter."""

    kind = "scripted"

    def __init__(self, choices: Sequence[int], width: int = 64, padding: int = 0) -> None:
        self.choices = iter(choices)
        self.width = width
        self.padding = padding

    def choose(self, options: int) -> int:
        try:
            return next(self.choices)
        except StopIteration:
            raise OutOfScriptError(options) from None

    def fill(self, words: np.ndarray) -> None:
        for i in range(len(words)):
            words[i] = self.choose(1 << self.width) | (self.padding << self.width) & ONES


class Constant:
    """The same word for ever."""

    kind = "constant"

    def __init__(self, word: int) -> None:
        self.word = word

    def fill(self, words: np.ndarray) -> None:
        words[:] = self.word


class Recorder:
    """Seeded words, kept for a second look."""

    kind = "recorded"

    def __init__(self) -> None:
        self.source = RandomSource.seeded(5)
        self.calls: list[list[int]] = []

    def fill(self, words: np.ndarray) -> None:
        words[:] = self.source.words(len(words))
        self.calls.append(words.tolist())


class Exhaustive:
    """For cells of n trials each: cell c is given, at digit number l, bits ln … ln+n−1 of the number c."""

    kind = "exhaustive"

    def __init__(self, n: int, digits: int) -> None:
        self.n = n
        self.digits = digits
        self.calls = 0

    def fill(self, words: np.ndarray) -> None:
        assert self.calls < self.digits
        cells = np.arange(1 << self.n * self.digits)
        bits = (cells[:, None] >> (self.calls * self.n + np.arange(self.n))) & 1
        stream = np.full(len(words) * 64, 1, dtype=np.uint8)
        stream[: bits.size] = bits.ravel()
        words[:] = np.packbits(stream, bitorder="little").view("<u8")
        self.calls += 1


def scripted(*choices: int) -> RandomSource:
    return RandomSource(_bits=Script(choices))


def law(
    draw: Callable[[RandomSource], Hashable],
    *,
    width: int,
    depth: int,
    padding: int = 0,
    source: type[RandomSource] = RandomSource,
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The exact law of a draw, by walking every path of choices; and the weight of the paths longer than `depth`."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    unfinished = Fraction(0)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        path, weight = paths.pop()
        try:
            found[draw(source(_bits=Script(path, width, padding)))] += weight
        except OutOfScriptError as more:
            if len(path) == depth:
                unfinished += weight
            else:
                paths += [((*path, choice), weight / more.options) for choice in range(more.options)]
    return dict(found), unfinished


def binomial_law(n: int, p: Fraction) -> dict[int, Fraction]:
    return {k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}


def brackets(found: dict, unfinished: Fraction, truth: dict) -> bool:
    """Whether the paths that ended leave the stated law possible; they fix it as `unfinished` goes to 0."""
    return set(found) <= set(truth) and all(0 <= truth[x] - found.get(x, 0) <= unfinished for x in truth)


def sliced(source: RandomSource, n: int, p: Fraction) -> int:
    return int(source.binomial([n], p)[0])


def counted(source: RandomSource, n: int, p: Fraction) -> int:
    """The way of large cells."""
    return source._successes(n, p)


# The source


def test_the_system_source_is_secure_and_the_seeded_one_says_that_it_is_not():
    assert RandomSource().secure
    assert RandomSource().kind == "AES-256-CTR keyed by the operating system"
    seeded = RandomSource.seeded(1)
    assert not seeded.secure
    assert "not safe to publish" in seeded.kind
    assert "not safe to publish" in repr(seeded)
    assert not scripted(1).secure
    with pytest.raises(AttributeError):
        seeded.secure = True


def test_a_subclass_of_the_system_bits_cannot_pass_for_them():
    class Loaded(type(RandomSource()._bits)):
        pass

    assert not RandomSource(_bits=Loaded()).secure


def test_a_seed_repeats_itself_and_means_the_same_everywhere():
    assert RandomSource.seeded(3).words(4).tolist() == RandomSource.seeded(3).words(4).tolist()
    assert RandomSource.seeded(3).words(4).tolist() != RandomSource.seeded(4).words(4).tolist()
    # Fixed for ever: the first block of AES-256 under SHA-256 of "incrowd test seed 3", as little-endian numbers.
    assert RandomSource.seeded(3).words(2).tolist() == [7565644449552411893, 7259576981277735304]


def test_the_stream_is_aes_256_in_counter_mode():
    import hashlib

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block = Cipher(algorithms.AES(hashlib.sha256(b"incrowd test seed 3").digest()), modes.ECB()).encryptor()
    counters = b"".join(i.to_bytes(16, "big") for i in range(50_000))
    words = RandomSource.seeded(3).words(100_000)  # more than one piece
    assert words.tobytes() == block.update(counters)


def test_pieces_of_the_stream_join_without_overlap():
    whole = RandomSource.seeded(1).words(70_000)
    source = RandomSource.seeded(1)
    parts = [source.words(n) for n in (1, 0, 3, 40_000, 29_996)]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_two_sources_never_share_output():
    # 4 × 20,000 words: a repeated word has probability below 2⁻³¹ if all are independent.
    sources = [RandomSource(), RandomSource()]
    words = np.concatenate([source.words(20_000) for source in sources for _ in range(2)])
    assert len(np.unique(words)) == len(words)


def test_threads_may_share_a_source():
    source = RandomSource()
    drawn: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: drawn.extend(source.words(3_000) for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn)
    assert len(words) == 240_000
    assert len(np.unique(words)) == len(words)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_draws_what_its_parent_does_not():
    # In a process of its own. The lock is held while forking, as a thread of the parent might do.
    program = """
        import os, sys
        from incrowd.randomness import RandomSource

        def draw(label):
            os.write(1, f"{label} {bytes(source.words(2)).hex()}\\n".encode())

        source = RandomSource()
        source.words(1)
        held = source._bits._current[1]._lock
        held.acquire()
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            draw("grandchild" if grandchild == 0 else "child")
            if grandchild:
                os.waitpid(grandchild, 0)
            os._exit(0)
        held.release()
        os.waitpid(child, 0)
        draw("parent")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )
    drawn = dict(line.split() for line in run.stdout.splitlines())
    assert set(drawn) == {"parent", "child", "grandchild"}
    assert len(set(drawn.values())) == 3


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_cannot_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="twice"):
        duplicate(RandomSource())


# Probabilities


@pytest.mark.parametrize(
    ("probability", "numerator"),
    [
        (0, 0),
        (0.0, 0),
        (5e-324, 0),
        (2.0**-64, 1),
        (math.nextafter(2.0**-64, 0), 0),
        (Fraction(1, 3), (2**64 - 1) // 3),
        (0.5, 2**63),
        (np.float32(0.25), 2**62),
        (math.nextafter(1.0, 0.0), 2**64 - 2**11),
        (1, 2**64),
        (1.0, 2**64),
        (np.int64(1), 2**64),
    ],
)
def test_known_fractions(probability, numerator):
    assert to_fraction64(probability) == numerator


@given(st.floats(0, 1) | st.fractions(0, 1))
def test_a_probability_is_rounded_down_by_less_than_one_unit(probability):
    numerator = to_fraction64(probability)
    assert Fraction(numerator, 2**64) <= Fraction(probability) < Fraction(numerator + 1, 2**64)


@given(st.floats(2.0**-11, 1))
def test_an_ordinary_float_loses_nothing(probability):
    assert Fraction(to_fraction64(probability), 2**64) == Fraction(probability)


@pytest.mark.parametrize("probability", [-0.1, 1.0000001, math.nan, math.inf, Fraction(10**30 + 1, 10**30)])
def test_a_probability_outside_its_range_is_refused(probability):
    for draw in (
        lambda: to_fraction64(probability),
        lambda: RandomSource().binomial([1], probability),
        lambda: RandomSource().bernoulli(probability, 1),
    ):
        with pytest.raises(ParameterError) as caught:
            draw()
        assert caught.value.code == "parameter-range"


@pytest.mark.parametrize("probability", ["0.5", None, True, 0.5j])
def test_a_probability_that_is_no_number_is_refused(probability):
    with pytest.raises(ParameterError) as caught:
        RandomSource().binomial([1], probability)
    assert caught.value.code == "parameter-type"


@given(st.fractions(0, 1).filter(lambda p: p < 1))
def test_binary_digits_add_up(p):
    digits = list(itertools.islice(randomness._binary_digits(p), 200))
    value = sum((Fraction(digit, 2**i) for i, digit in enumerate(digits, start=1)), Fraction(0))
    assert value == p if len(digits) < 200 else 0 <= p - value < Fraction(1, 2**200)


# Binomial


@pytest.mark.parametrize(("n", "digits"), [(1, 6), (2, 5), (3, 4), (5, 3), (4, 4), (7, 2)])
def test_over_all_bit_strings_the_sliced_draw_is_binomial(n, digits):
    cells = np.full(1 << n * digits, n)
    for numerator in range(1, 2**digits):
        p = Fraction(numerator, 2**digits)
        drawn = RandomSource(_bits=Exhaustive(n, digits)).binomial(cells, p)
        seen = Counter(drawn.tolist())
        assert {k: Fraction(seen[k], len(cells)) for k in range(n + 1)} == binomial_law(n, p)


def test_over_all_bit_strings_one_digit_fewer_is_noticed(monkeypatch):
    whole = randomness._binary_digits
    monkeypatch.setattr(randomness, "_binary_digits", lambda p: iter(list(whole(p))[:-1]))
    drawn = RandomSource(_bits=Exhaustive(3, 4)).binomial(np.full(1 << 12, 3), Fraction(5, 16))
    seen = Counter(drawn.tolist())
    assert {k: Fraction(seen[k], 1 << 12) for k in range(4)} != binomial_law(3, Fraction(5, 16))


@pytest.mark.parametrize("padding", [0, ONES])
@pytest.mark.parametrize("draw", [sliced, counted])
@pytest.mark.parametrize(("n", "p"), [(1, Fraction(11, 16)), (2, Fraction(5, 16)), (3, Fraction(5, 8))])
def test_over_all_bit_strings_a_single_cell_is_binomial(monkeypatch, n, p, draw, padding):
    monkeypatch.setattr(randomness, "_STRIDE", 1)
    found, unfinished = law(lambda s: draw(s, n, p), width=n, depth=4, padding=padding)
    assert unfinished == 0
    assert found == binomial_law(n, p)


@pytest.mark.parametrize("draw", [sliced, counted])
@pytest.mark.parametrize(("n", "p", "depth"), [(1, Fraction(1, 3), 10), (2, Fraction(2, 7), 7), (2, Fraction(5, 9), 7)])
def test_a_probability_with_endless_digits_is_drawn_exactly(monkeypatch, n, p, depth, draw):
    monkeypatch.setattr(randomness, "_STRIDE", 1)
    found, unfinished = law(lambda s: draw(s, n, p), width=n, depth=depth)
    assert unfinished == 1 - (1 - Fraction(1, 2**depth)) ** n  # some trial agrees with p in every digit so far
    assert brackets(found, unfinished, binomial_law(n, p))


@given(
    counts=st.lists(st.integers(0, 200), max_size=40),
    block=st.sampled_from([256, 300, 1024]),
    cells=st.sampled_from([1, 7, 100]),
    large=st.sampled_from([1, 64, 201]),
    p=st.sampled_from([0.3, 0.5, Fraction(1, 3), 2.0**-20]),
)
@settings(deadline=None, max_examples=60)
def test_every_record_is_tried_once_and_in_its_own_cell(counts, block, cells, large, p):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "_BLOCK", block)
        patch.setattr(randomness, "_CELLS", cells)
        patch.setattr(randomness, "_LARGE", large)
        # A random 1 is the digit 0 of U: all ones make U = 0 < p, all zeros U > p.
        assert RandomSource(_bits=Constant(ONES)).binomial(counts, p).tolist() == counts
        assert RandomSource(_bits=Constant(0)).binomial(counts, p).tolist() == [0] * len(counts)
        drawn = RandomSource.seeded(1).binomial(counts, p)
        assert ((drawn >= 0) & (drawn <= np.array(counts, dtype=int))).all()


@given(counts=st.lists(st.integers(0, 150), min_size=1, max_size=30))
@settings(deadline=None, max_examples=60)
def test_a_half_counts_the_ones_of_the_stream(counts):
    bits = Recorder()
    drawn = RandomSource(_bits=bits).binomial(counts, 0.5)
    (words,) = bits.calls
    stream = "".join(f"{word:064b}"[::-1] for word in words)
    ends = list(itertools.accumulate(counts))
    expected = [stream[end - count : end].count("1") for end, count in zip(ends, counts, strict=True)]
    assert drawn.tolist() == expected


@given(size=st.integers(1, 300), p=st.sampled_from([0.3, Fraction(1, 3), Fraction(1, 1000), 0.999]))
@settings(deadline=None, max_examples=60)
def test_words_are_revisited_at_their_own_place(size, p):
    """Trial by trial, from the recorded words: a word that is decided early takes no part in later strides."""
    bits = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "_STRIDE", 2)
        outcome = RandomSource(_bits=bits).bernoulli(p, size)
    digits = list(itertools.islice(randomness._binary_digits(Fraction(p)), len(bits.calls)))
    undecided = {i // 64: {j for j in range(i, i + 64) if j < size} for i in range(0, size // 64 * 64 + 1, 64)}
    expected = np.zeros(size, dtype=bool)
    for step, (digit, words) in enumerate(zip(digits, bits.calls, strict=True)):
        if step and step % 2 == 0:
            undecided = {place: trials for place, trials in undecided.items() if trials}
        assert len(words) == len(undecided)
        for (place, trials), word in zip(undecided.items(), words, strict=True):
            zeros_of_u = {j for j in trials if word >> (j - 64 * place) & 1}
            if digit:
                expected[list(zeros_of_u)] = True
            undecided[place] = trials - zeros_of_u if digit else zeros_of_u
    assert outcome.tolist() == expected.tolist()


@given(
    words=st.lists(st.integers(0, ONES), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 6 * 64), min_size=1, max_size=20),
)
def test_ones_between_positions(words, cuts):
    ends = sorted(min(cut, 64 * len(words) - 1) for cut in cuts)
    stream = "".join(f"{word:064b}"[::-1] for word in words)
    expected = [stream[start:end].count("1") for start, end in itertools.pairwise([0, *ends])]
    assert randomness._ones_between(np.array(words, dtype=np.uint64), np.array(ends)).tolist() == expected


@pytest.mark.parametrize("counts", [[], [0], [0, 0, 3], [[1, 2], [3, 4]], 5, np.array([7], dtype=np.uint8)])
def test_certain_outcomes_and_shapes(counts):
    source = RandomSource()
    assert source.binomial(counts, 1).tolist() == np.asarray(counts).tolist()
    assert source.binomial(counts, 0).tolist() == np.zeros_like(counts).tolist()
    drawn = source.binomial(counts, 0.4)
    assert drawn.shape == np.shape(counts)
    assert drawn.dtype == np.int64


def test_certain_outcomes_take_no_bits():
    assert scripted().binomial([10**18], 1).tolist() == [10**18]
    assert scripted().binomial([10**18], 2.0**-65).tolist() == [0]
    assert scripted().bernoulli(1, 3).tolist() == [True] * 3
    assert scripted().bernoulli(0.0, 3).tolist() == [False] * 3


def test_the_counts_given_are_not_changed():
    counts = np.array([5, 300_000, 7])
    RandomSource().binomial(counts, 0.5)
    RandomSource().sample_without_replacement(counts, 1000)
    kept = RandomSource().binomial(counts, 1)
    kept[0] = 99
    assert counts.tolist() == [5, 300_000, 7]


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ([1.0], "parameter-type"),
        ([True], "parameter-type"),
        (["1"], "parameter-type"),
        ([3, -41], "parameter-range"),
        (np.array([2**63], dtype=np.uint64), "parameter-range"),
    ],
)
def test_counts_that_are_not_counts_are_refused_without_showing_them(counts, code):
    with pytest.raises(ParameterError) as caught:
        RandomSource().binomial(counts, 0.5)
    assert caught.value.code == code
    assert "41" not in str(caught.value)


def test_the_largest_count_is_one():
    largest = np.array([2**63 - 1, 0])
    assert RandomSource().binomial(largest, 1).tolist() == largest.tolist()


@pytest.mark.parametrize("counts", [np.full(400, 2**18 - 1), np.full(2, 5 * 10**7)], ids=["many", "few"])
def test_memory_does_not_grow_with_the_records(counts):
    source = RandomSource()
    tracemalloc.start()
    source.binomial(counts, 0.3)  # 10⁸ records: 12.5 MB would hold one bit of each
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6


# The other draws


def test_trials_and_thinning_agree():
    """A Bernoulli trial is a cell of one record: the same bits give the same answer."""
    trials = RandomSource.seeded(8).bernoulli(0.3, 1000)
    assert trials.dtype == np.bool_
    assert trials.tolist() == RandomSource.seeded(8).binomial(np.ones(1000, dtype=int), 0.3).astype(bool).tolist()


def test_trials_in_several_blocks(monkeypatch):
    monkeypatch.setattr(randomness, "_BLOCK", 100)
    assert RandomSource(_bits=Constant(ONES)).bernoulli(0.3, 1001).all()
    assert not RandomSource(_bits=Constant(0)).bernoulli(0.3, 1001).any()


def test_integers_throw_away_the_incomplete_last_round():
    # 2⁶⁴ = 3·6148914691236517205 + 1: only the last word is one too many.
    assert scripted(ONES, ONES - 1).integers(3, 1).tolist() == [2]
    assert scripted(0, 4).integers(3, 2).tolist() == [0, 1]
    # A bound that divides 2⁶⁴ needs no second try.
    assert scripted(ONES, 2**63 + 5).integers(2**63, 2).tolist() == [2**63 - 1, 5]
    assert scripted(ONES).integers(1, 1).tolist() == [0]


@pytest.mark.parametrize("bound", [3, 1000, 2**62 + 1, 2**63 - 1])
def test_as_many_words_are_accepted_for_each_integer(bound):
    """The accepted words are 0 … m·bound − 1: exactly m words for each remainder."""
    accepted = 2**64 // bound * bound
    assert scripted(accepted - 1).integers(bound, 1).tolist() == [bound - 1]
    assert scripted(accepted, 0).integers(bound, 1).tolist() == [0]


@pytest.mark.parametrize("bound", [0, -1, 2**63 + 1])
def test_integers_refuse_a_senseless_bound(bound):
    with pytest.raises(ParameterError):
        RandomSource().integers(bound, 1)


def test_a_permutation_follows_its_keys_and_equal_keys_are_drawn_again():
    assert scripted(9, 7, 8).permutation(3).tolist() == [1, 2, 0]
    assert scripted(7, 9, 7, 6, 5, 4).permutation(3).tolist() == [2, 1, 0]
    assert RandomSource().permutation(0).tolist() == []
    assert sorted(RandomSource().permutation(1000).tolist()) == list(range(1000))


def test_over_all_keys_a_permutation_is_uniform():
    found, unfinished = law(lambda s: tuple(s.permutation(3).tolist()), width=2, depth=6)
    orders = set(itertools.permutations(range(3)))
    assert set(found) == orders
    assert {found[order] for order in orders} == {(1 - unfinished) / 6}


def test_over_all_bit_strings_a_spread_is_multinomial(monkeypatch):
    monkeypatch.setattr(randomness, "_STRIDE", 1)
    found, unfinished = law(lambda s: tuple(s.multinomial([2], [1, 0, 4, 3])[0].tolist()), width=2, depth=7)
    p = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(3, 8)]
    truth: dict[Hashable, Fraction] = defaultdict(Fraction)
    for a, b in itertools.product(range(4), repeat=2):
        truth[tuple(int(a == j) + int(b == j) for j in range(4))] += p[a] * p[b]
    assert unfinished < Fraction(1, 8)
    assert brackets(found, unfinished, {outcome: weight for outcome, weight in truth.items() if weight})


@given(
    counts=st.lists(st.integers(0, 50), max_size=8),
    weights=st.lists(st.integers(0, 9) | st.floats(0, 1) | st.fractions(0, 1), min_size=1, max_size=7),
)
@settings(deadline=None, max_examples=60)
def test_a_spread_loses_nobody(counts, weights):
    if sum(map(Fraction, weights)) == 0:
        return
    table = RandomSource().multinomial(counts, weights)
    assert table.shape == (len(counts), len(weights))
    assert (table >= 0).all()
    assert table.sum(axis=1).tolist() == counts
    assert not table[:, [weight == 0 for weight in weights]].any()


def test_a_spread_keeps_the_shape_of_the_cells():
    assert RandomSource().multinomial(6, [1, 1]).sum() == 6
    assert RandomSource().multinomial(np.ones((2, 3), dtype=int), [1, 1, 1, 1]).shape == (2, 3, 4)


def test_a_category_is_the_number_of_bounds_at_or_below():
    third = (2**64 - 1) // 3  # the first 64 digits of 1/3, and the next 64, and so on
    assert scripted(0, third - 1, third + 1, ONES).categorical([1, 2], 4).tolist() == [0, 0, 1, 1]
    assert scripted(third, third, third - 1).categorical([1, 2], 1).tolist() == [0]
    assert scripted(third, third, third + 1).categorical([1, 2], 1).tolist() == [1]
    # Where the digits of the bound end, 64 are enough.
    assert scripted(2**63 - 1, 2**63).categorical([1, 1], 2).tolist() == [0, 1]
    # Two bounds with the same first 64 digits: 1/3 and 1/3 + 2⁻¹⁰⁰.
    close = [Fraction(1, 3), Fraction(1, 2**100), Fraction(2, 3) - Fraction(1, 2**100)]
    assert scripted(third, third + 2**27).categorical(close, 1).tolist() == [1]
    assert scripted(third, third + 2**29).categorical(close, 1).tolist() == [2]
    assert scripted(third, third - 1).categorical(close, 1).tolist() == [0]


@pytest.mark.parametrize("weights", [[0, 0, 1, 0, 3, 0], [0, 0.25, 0, 0, 0.75]])
@pytest.mark.parametrize("word", [0, 1, 2**62 - 1, 2**62, ONES])
def test_a_category_without_weight_is_never_drawn(weights, word):
    (code,) = scripted(word).categorical(weights, 1)
    assert weights[code] > 0


def test_a_single_category_takes_no_bits():
    assert scripted().categorical([5], 3).tolist() == [0, 0, 0]
    assert scripted().categorical([5, 0], 3).tolist() == [0, 0, 0]


@given(weights=st.lists(st.fractions(0, 1, max_denominator=50), min_size=1, max_size=6), word=st.integers(0, ONES))
@settings(deadline=None)
def test_categories_against_exact_comparison(weights, word):
    if sum(weights) == 0:
        return
    bounds = [bound / sum(weights) for bound in itertools.accumulate(weights)]
    (code,) = scripted(word, 2**63).categorical(weights, 1)
    u = Fraction(word, 2**64) + Fraction(1, 2**65)  # with the next digits 1000…
    assert code == sum(bound <= u for bound in bounds)


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1, 3], [math.nan, 1], [math.inf], ["1"]])
def test_senseless_weights_are_refused(weights):
    for draw in (lambda: RandomSource().categorical(weights, 1), lambda: RandomSource().multinomial([1], weights)):
        with pytest.raises(ParameterError):
            draw()


class SmallIntegers(RandomSource):
    """Takes uniform integers from the script as single choices, so that all of them can be walked."""

    def integers(self, bound: int, size: int) -> np.ndarray:
        return np.array([self._bits.choose(bound) for _ in range(size)], dtype=np.int64)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_over_all_choices_a_sample_without_replacement_is_hypergeometric(monkeypatch, size):
    monkeypatch.setattr(randomness, "_STRIDE", 1)
    counts = [1, 2, 1]
    found, unfinished = law(
        lambda s: tuple(s.sample_without_replacement(counts, size).tolist()), width=4, depth=5, source=SmallIntegers
    )
    truth = {
        kept: Fraction(math.prod(map(math.comb, counts, kept)), math.comb(4, size))
        for kept in itertools.product(*(range(n + 1) for n in counts))
        if sum(kept) == size
    }
    assert unfinished < Fraction(1, 20)
    assert brackets(found, unfinished, truth)


@given(counts=st.lists(st.integers(0, 30), max_size=8), share=st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_a_sample_without_replacement_has_its_size(counts, share):
    size = round(share * sum(counts))
    kept = RandomSource().sample_without_replacement(counts, size)
    assert kept.sum() == size
    assert ((kept >= 0) & (kept <= np.array(counts, dtype=int))).all()


def test_more_records_than_there_are_cannot_be_sampled():
    with pytest.raises(ParameterError) as caught:
        RandomSource().sample_without_replacement([1, 2], 4)
    assert caught.value.code == "parameter-combination"
    with pytest.raises(ParameterError):
        RandomSource().sample_without_replacement([2**62, 2**62], 4)
