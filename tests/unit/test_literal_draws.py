"""Every exact draw against a transcription of docs/proofs.md (Exact draws), trial by trial, on the same random words.

The transcription is slow and plain: sets of trials, fractions, one word after the other. It shares no code with
`incrowd.randomness`. What the two must agree on is the outcome of every draw and how many words it took.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from incrowd import randomness
from incrowd.mechanisms.pram import draw as pram
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement

SMALL = {"_BLOCK": 192, "_CELLS": 5, "_LARGE": 100, "_STRIDE": 3}


class Words:
    """The words of a seed, one at a time."""

    kind = "a list"

    def __init__(self, seed):
        self.words = RandomSource.seeded(seed).words(60_000).tolist()
        self.taken = 0

    def next(self):
        self.taken += 1
        return self.words[self.taken - 1]

    def fill(self, words):
        words[:] = [self.next() for _ in range(len(words))]


class Literal:
    """The draws as the page of proofs describes them."""

    def __init__(self, words, block, cells, large, stride):
        self.next, self.block, self.chunk, self.large, self.stride = words.next, block, cells, large, stride

    def trials(self, size, p):
        """The trials that succeed. Trial t looks at bit t mod 64 of the words of its own place, t div 64."""
        undecided = [{t for t in range(size) if t // 64 == place} for place in range(size // 64 + 1)]
        won, digit = set(), 0
        places = list(range(len(undecided)))
        while places:
            for _ in range(self.stride):
                if (p * 2**digit).denominator == 1:
                    return won  # no digit of p is left: U ≥ p
                digit += 1
                one = math.floor(p * 2**digit) % 2 == 1
                for place in places:
                    word = self.next()
                    zeros_of_u = {t for t in undecided[place] if word >> t % 64 & 1}
                    if one:
                        won |= zeros_of_u
                        undecided[place] -= zeros_of_u
                    else:
                        undecided[place] = zeros_of_u
            places = [place for place in places if undecided[place]]
        return won

    def bernoulli(self, p, size):
        if p in (0, 1):
            return [p == 1] * size
        outcome = []
        for first in range(0, size, self.block):
            part = min(self.block, size - first)
            won = self.trials(part, p)
            outcome += [t in won for t in range(part)]
        return outcome

    def successes(self, size, p):
        """How many of `size` trials succeed, from counts of ones alone."""
        won, digit = 0, 0
        while size and (p * 2**digit).denominator != 1:
            digit += 1
            ones = self.ones(size)
            won, size = (won + ones, size - ones) if math.floor(p * 2**digit) % 2 else (won, ones)
        return won

    def ones(self, size):
        found = 0
        while size:
            part = min(size, self.block)
            bits = "".join(f"{self.next():064b}"[::-1] for _ in range(part // 64 + 1))
            found += bits[:part].count("1")
            size -= part
        return found

    def binomial(self, counts, p):
        if p in (0, 1):
            return [count * int(p) for count in counts]
        kept = [0] * len(counts)
        for first in range(0, len(counts), self.chunk):
            self.thin(counts, range(first, min(first + self.chunk, len(counts))), p, kept)
        return kept

    def thin(self, counts, cells, p, kept):
        """Small cells side by side in blocks of trials, then large cells one by one."""
        blocks, room = [[]], self.block
        for cell in cells:
            size = counts[cell] if counts[cell] < self.large else 0
            if size > room:
                blocks.append([])
                room = self.block
            blocks[-1].append((cell, size))
            room -= size
        for block in blocks:
            won = self.trials(sum(size for _, size in block), p)
            start = 0
            for cell, size in block:
                kept[cell] = len(won & set(range(start, start + size)))
                start += size
        for cell in cells:
            if counts[cell] >= self.large:
                kept[cell] = self.successes(counts[cell], p)

    def integers(self, bound, size):
        drawn = []
        while len(drawn) < size:
            word = self.next()
            if word < 2**64 // bound * bound:
                drawn.append(word % bound)
        return drawn

    def permutation(self, size):
        while True:
            keys = [self.next() for _ in range(size)]
            if len(set(keys)) == size:
                return sorted(range(size), key=keys.__getitem__)

    def multinomial(self, counts, weights):
        if len(weights) == 1:
            return [[count] for count in counts]
        half, whole = len(weights) // 2, sum(weights)
        kept = self.binomial(counts, Fraction(sum(weights[:half]), whole) if whole else Fraction(1))
        left = self.multinomial(kept, weights[:half])
        right = self.multinomial([a - b for a, b in zip(counts, kept, strict=True)], weights[half:])
        return [a + b for a, b in zip(left, right, strict=True)]

    def categorical(self, weights, size):
        bounds = [Fraction(sum(weights[: j + 1]), sum(weights)) for j in range(len(weights))]
        if bounds[0] == 1:
            return [0] * size  # certain, without any bits
        found = []
        for _ in range(size):
            low = Fraction(self.next(), 2**64)
            assert not any(low < bound < low + Fraction(1, 2**64) for bound in bounds), "a case for another test"
            found.append(sum(bound <= low for bound in bounds))
        return found

    def sample_without_replacement(self, counts, size):
        kept = self.binomial(counts, Fraction(size, max(1, sum(counts))))
        surplus = sum(kept) - size
        if surplus > 0:
            return [a - b for a, b in zip(kept, self.distinct(kept, surplus), strict=True)]
        if surplus < 0:
            rest = [a - b for a, b in zip(counts, kept, strict=True)]
            return [a + b for a, b in zip(kept, self.distinct(rest, -surplus), strict=True)]
        return kept

    def distinct(self, counts, size):
        owner = [cell for cell, count in enumerate(counts) for _ in range(count)]
        chosen = set()
        while len(chosen) < size:
            chosen |= set(self.integers(len(owner), size - len(chosen)))
        return [sum(owner[i] == cell for i in chosen) for cell in range(len(counts))]


def probability(g):
    """Short and long, finite and periodic digits; and the two certainties."""
    return g.choice(
        [
            Fraction(g.randrange(17), 16),
            Fraction(g.randrange(1, 2**64), 2**64),
            Fraction(g.randrange(1, 2**12), 2**64),
            Fraction(g.randrange(1, 30), 30),
            Fraction(g.randrange(1, 997), 997),
        ]
    )


def counts(g):
    return [g.choice([0, 1, 2, 63, 64, 65, 99, 100, 101, 250, g.randrange(400)]) for _ in range(g.randrange(1, 14))]


def weights(g):
    found = [g.choice([0, 1, 1, 2, 7, 1000]) for _ in range(g.randrange(1, 9))]
    return found if any(found) else [1]


DRAWS = {
    "bernoulli": lambda g: ("bernoulli", (probability(g), g.choice([0, 1, 63, 64, 65, 192, 193, g.randrange(900)]))),
    "binomial": lambda g: ("binomial", (counts(g), probability(g))),
    "integers": lambda g: ("integers", (g.choice([1, 2, 3, 10, 2**62 + 1, 2**63 - 1, 2**63]), g.randrange(300))),
    "permutation": lambda g: ("permutation", (g.randrange(60),)),
    "multinomial": lambda g: ("multinomial", (counts(g), weights(g))),
    "categorical": lambda g: ("categorical", (weights(g), g.randrange(300))),
    "sample": lambda g: ("sample_without_replacement", (cells := counts(g), g.randrange(sum(cells) + 1))),
}


def compare(name, cases, seed=0):
    """How many of the cases differ, in what was drawn or in how much was read."""
    generator, differing = random.Random(f"{name} {seed}"), 0
    constants = [getattr(randomness, key) for key in ("_BLOCK", "_CELLS", "_LARGE", "_STRIDE")]
    for case in range(cases):
        method, arguments = DRAWS[name](generator)
        ours, theirs = Words(case), Words(case)
        drawn = getattr(RandomSource(_bits=ours), method)(*arguments).tolist()
        literal = getattr(Literal(theirs, *constants), method)(*arguments)
        differing += drawn != literal or ours.taken != theirs.taken
    return differing


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_transcription(name, monkeypatch):
    for key, value in SMALL.items():
        monkeypatch.setattr(randomness, key, value)
    assert compare(name, 150) == 0


@pytest.mark.parametrize("name", DRAWS)
def test_with_the_sizes_that_are_really_used_too(name):
    assert compare(name, 40, seed=1) == 0


def test_retention_is_a_trial_for_every_record_and_an_integer_for_those_not_kept(monkeypatch):
    generator = random.Random(4)
    for case in range(60):
        size, rho = generator.randrange(2, 40), generator.choice([0.0, 0.3, generator.random(), 1.0])
        values = [generator.randrange(size) for _ in range(generator.randrange(300))]
        ours, theirs = Words(case), Words(case)
        drawn = np.array(values, dtype=np.int64)
        pram._redraw_records(drawn, RetentionReplacement(rho, size), RandomSource(_bits=ours))
        literal = Literal(theirs, randomness._BLOCK, randomness._CELLS, randomness._LARGE, randomness._STRIDE)
        kept = literal.bernoulli(Fraction(rho), len(values))
        fresh = iter(literal.integers(size, kept.count(False)))
        assert drawn.tolist() == [v if stays else next(fresh) for v, stays in zip(values, kept, strict=True)]
        assert ours.taken == theirs.taken


@pytest.mark.parametrize("name", ["bernoulli", "binomial", "multinomial", "sample"])
def test_a_twin_that_looks_at_one_digit_fewer_is_caught(name, monkeypatch):
    whole = randomness._binary_digits

    def shorter(p):
        digits = whole(p)
        last = next(digits)
        for digit in digits:
            yield last
            last = digit

    monkeypatch.setattr(randomness, "_binary_digits", shorter)
    assert compare(name, 30)


def test_a_twin_that_gives_a_word_back_at_the_wrong_place_is_caught(monkeypatch):
    """After words were left out, those that remain must keep their own places."""
    for key, value in SMALL.items():
        monkeypatch.setattr(randomness, key, value)
    found = np.flatnonzero
    monkeypatch.setattr(np, "flatnonzero", lambda a: found(a)[::-1])
    assert compare("bernoulli", 30)
