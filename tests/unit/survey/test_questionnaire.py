"""The questionnaire file: what it holds, that a change shows, and that its promise is checked."""

import copy
import json
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import GuaranteeError, InputError, InternalError, ParameterError, UnreachableError
from incrowd.core.signing import load_secret_key, make_keys, seal
from incrowd.survey import Question, Questionnaire, Randomizer, promise
from incrowd.survey.questionnaire import numerator64
from incrowd.theory import shuffling
from incrowd.theory.randomisation import RetentionReplacement
from incrowd.theory.randomisation import local_epsilon as reference_epsilon
from incrowd.theory.randomisation import pk as reference_pk


def question(name="a", size=3, rho=0.5, text=None):
    values = tuple(f"v{i}" for i in range(size))
    return Question(name, text or f"Which {name}?", values, values, numerator64(rho))


def questionnaire(sizes=(2, 5, 10), rho=0.3, records=100_000, title="A survey"):
    return Questionnaire.make(title, [question(f"a{i}", size, rho) for i, size in enumerate(sizes)], records=records)


def test_the_file_reads_back_as_it_was_made(tmp_path):
    made = questionnaire()
    (tmp_path / "q.json").write_bytes(made.to_bytes())
    read = Questionnaire.from_file(tmp_path / "q.json")
    assert read.document == made.document
    assert read.questions == made.questions
    assert (
        read.to_bytes()
        == made.to_bytes()
        == json.dumps(made.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    )


def test_no_number_in_it_is_a_float():
    def leaves(value):
        if isinstance(value, dict):
            for inner in value.values():
                yield from leaves(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from leaves(inner)
        else:
            yield value

    assert {type(leaf) for leaf in leaves(questionnaire().document)} == {str, int}


def test_retentions_are_exact_and_rounded_down():
    assert numerator64(0.5) == 2**63
    assert numerator64(Fraction(1, 3)) == 2**64 // 3
    assert question(rho=0.3).retention <= Fraction(0.3)
    for wrong in (1.0, -0.1, math.nan, math.inf):
        with pytest.raises(ParameterError):
            numerator64(wrong)


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(2, 40), min_size=1, max_size=4),
    rho=st.floats(0.0, 0.9),
    records=st.integers(1, 10**7),
)
def test_local_and_linking_are_those_of_the_proved_functions(sizes, rho, records):
    kept = [promise.Kept(numerator64(rho), size) for size in sizes]
    proved = [RetentionReplacement(rho, size) for size in sizes]
    epsilon, k = promise.local_epsilon(kept), promise.linking_k(kept, records)
    with mpmath.workdps(50):
        exact = mpmath.fsum(mpmath.log(1 + mpmath.mpf(a.size * a.numerator) / (2**64 - a.numerator)) for a in kept)
        assert exact <= epsilon <= exact * (1 + mpmath.mpf(10) ** -11)
        exact_k = 1 + (records - 1) * mpmath.exp(-2 * exact)
        assert k <= exact_k <= k * (1 + mpmath.mpf(10) ** -9)
    assert epsilon == pytest.approx(reference_epsilon(proved), rel=1e-9, abs=1e-15)
    assert k == pytest.approx(reference_pk(proved, records), rel=1e-8)


@pytest.mark.parametrize(
    ("sizes", "rho", "records"), [((10,), 0.3, 10_000), ((2, 5, 10), 0.3, 100_000), ((3, 3), 0.6, 500), ((2,), 0.9, 50)]
)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_the_central_bound_is_above_the_sharp_one_and_near_it(sizes, rho, records, share):
    kept = [promise.Kept(numerator64(rho), size) for size in sizes]
    proved = [RetentionReplacement(rho, size) for size in sizes]
    epsilon = share * promise.local_epsilon(kept)
    sharp = shuffling.central_delta(proved, records, epsilon).delta
    assert promise.central_delta(kept, records, epsilon) >= sharp * (1 - 1e-3)
    mine = promise.central_epsilon(kept, records, 1e-6)
    assert promise.central_delta(kept, records, mine) <= 1e-6
    assert mine <= 1.35 * shuffling.central_epsilon(proved, records, 1e-6).epsilon


def test_the_central_bound_holds_by_enumeration():
    """Two records of two values, by brute force over all outputs of the shuffled table."""
    rho, size, records = 0.4, 2, 4
    kept = [promise.Kept(numerator64(rho), size)]
    stay = rho + (1 - rho) / size
    for epsilon in (0.1, 0.3, 0.7):
        worst = 0.0
        for others in range(records):  # how many of the other records hold the first value
            tables = [_ones(stay, (first, *[1] * others, *[0] * (records - 1 - others))) for first in (0, 1)]
            for a, b in (tables, tables[::-1]):
                worst = max(worst, sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(a, b, strict=True)))
        assert worst <= promise.central_delta(kept, records, epsilon)


def _ones(stay, records):
    law = [1.0]
    for value in records:
        one = stay if value else 1 - stay
        law = [
            (law[i] if i < len(law) else 0.0) * (1 - one) + (law[i - 1] if i else 0.0) * one
            for i in range(len(law) + 1)
        ]
    return law


def changed(change):
    document = copy.deepcopy(dict(questionnaire().document))
    change(document)
    return document


def numerator(document, value):
    document["attributes"][0]["retention"]["numerator"] = value


# Labels that nobody can tell from "v0", or cannot see.
ALIKE = ["v0 ", "\u00a0v0", "v\u200b0", "\uff56\uff10", "\u200b\u2060"]

MALFORMED = [
    lambda d: d.update(format="incrowd-questionnaire/2"),
    lambda d: d.update(title=""),
    lambda d: d.update(title="a\u202eb"),
    lambda d: d.update(records=0),
    lambda d: d.update(records=True),
    lambda d: d.update(records=1e5),
    lambda d: d.update(extra=1),
    lambda d: d.pop("records"),
    lambda d: d.update(attributes=[]),
    lambda d: d.update(attributes=d["attributes"] * 2),
    lambda d: d.update(attributes={"a": 1}),
    lambda d: d["attributes"][0].update(name=7),
    lambda d: d["attributes"][0].update(extra=7),
    lambda d: d["attributes"][0]["values"].pop(),
    lambda d: d["attributes"][1]["values"].append({"value": "v0", "label": "again"}),
    lambda d: d["attributes"][1]["values"].append({"value": "new", "label": "v0"}),
    *(lambda d, look=look: d["attributes"][1]["values"].append({"value": "new", "label": look}) for look in ALIKE),
    lambda d: d["attributes"][1]["values"].append({"value": 3, "label": "3"}),
    lambda d: d["attributes"][1]["values"].append("v9"),
    lambda d: numerator(d, "18446744073709551616"),
    lambda d: numerator(d, "007"),
    lambda d: numerator(d, "-1"),
    lambda d: numerator(d, 5),
    lambda d: d["attributes"][0].update(retention=0.3),
    lambda d: d["attributes"][0]["retention"].update(denominator="2"),
    lambda d: d.update(promise=[]),
]


@pytest.mark.parametrize("change", MALFORMED)
def test_what_is_not_a_questionnaire_is_refused(change):
    with pytest.raises(InputError) as caught:
        Questionnaire.of(seal(changed(change)))
    assert caught.value.code == "questionnaire-invalid"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"format":1,"format":2}', b"[" * 100_000])
def test_what_is_not_json_is_refused(content):
    with pytest.raises(InputError):
        Questionnaire.from_bytes(content)


def test_a_change_shows():
    with pytest.raises(InputError, match="changed"):
        Questionnaire.of(changed(lambda d: d.update(title="Another survey")))


DISHONEST = [
    lambda p: p["local"].update(epsilon="1.5"),
    lambda p: p["local"].update(factor="2"),
    lambda p: p["linking"].update(k="100000"),
    lambda p: p["central"].update(epsilon="0.01"),
    lambda p: p["central"].update(delta="0.000000001"),
    lambda p: p["central"].update(factor="1"),
    lambda p: p["central"].update(p["local"], delta="0"),
    lambda p: p["central"].update(delta="1"),
    lambda p: p["central"].update(delta="5"),
    lambda p: p["central"].update(p["local"], delta="0." + "0" * 330 + "1"),
    lambda p: p.update(relation="add/remove"),
    lambda p: p.update(in_words=["Nothing can happen."]),
    lambda p: p["local"].update(epsilon="inf"),
    lambda p: p["local"].update(epsilon=3.5),
    lambda p: p["local"].update(epsilon="nan"),
    lambda p: p.update(local=[["epsilon", "9"], ["factor", "9000"]]),
    lambda p: p.pop("central"),
    lambda p: p.update(more=1),
]


def dishonest(change, words):
    """A sealed questionnaire with a changed promise; None if its words cannot be made to match, or are honest then."""
    document = changed(lambda d: change(d["promise"]))
    if words == "to match":
        try:
            document["promise"]["in_words"] = promise.in_words(document["promise"], document["records"])
        except (KeyError, TypeError):
            return None
        if document["promise"] == questionnaire().promise:
            return None
    return seal(document)


BROKEN = [(change, words) for change in DISHONEST for words in ("as they were", "to match") if dishonest(change, words)]


@pytest.mark.parametrize(("change", "words"), BROKEN)
def test_a_promise_that_does_not_follow_is_refused(change, words):
    with pytest.raises(GuaranteeError) as caught:
        Questionnaire.of(dishonest(change, words))
    assert caught.value.code == "promise-not-kept"


def test_fewer_records_than_the_promise_needs_are_refused():
    document = changed(lambda d: d.update(records=10))
    document["promise"]["in_words"] = promise.in_words(document["promise"], 10)
    with pytest.raises(GuaranteeError):
        Questionnaire.of(seal(document))


def test_where_nothing_can_be_promised_nothing_is():
    asked = [question(f"a{i}", 100, 1 - 2.0**-53) for i in range(40)]
    with pytest.raises(UnreachableError):
        Questionnaire.make("T", asked, records=1000)
    few = asked[:15]  # e^ε₀ is still a number, and nothing but it is promised
    stated = Questionnaire.make("T", few, records=1000).promise
    assert stated["linking"]["k"] == "1"
    assert stated["central"]["epsilon"] == stated["local"]["epsilon"]


def test_signatures(tmp_path):
    for name in ("ours", "theirs"):
        secret, public = make_keys()
        (tmp_path / f"{name}.secret.pem").write_bytes(secret)
        (tmp_path / f"{name}.public.pem").write_bytes(public)
    plain = questionnaire()
    signed = plain.signed(load_secret_key(tmp_path / "ours.secret.pem"))
    assert signed.digest == plain.digest
    Randomizer(signed, public_key=tmp_path / "ours.public.pem")
    for document, key in ((signed, "theirs"), (plain, "ours")):
        with pytest.raises(InputError) as caught:
            Randomizer(document, public_key=tmp_path / f"{key}.public.pem")
        assert caught.value.code == "questionnaire-signature"
    forged = {**questionnaire(title="Forged").document, "signature": signed.document["signature"]}
    with pytest.raises(InputError, match="signed"):
        Questionnaire.of(forged)


def test_answers_must_be_the_listed_ones():
    randomizer = Randomizer(questionnaire((2, 3)).document)
    good = {"a0": "v1", "a1": "v2"}
    assert set(randomizer.randomize(good)) == set(good)
    for wrong in ({}, {"a0": "v1"}, {**good, "b": "v0"}, {**good, "a1": "v3"}, {**good, "a1": 2}, {**good, "a1": None}):
        with pytest.raises(InputError) as caught:
            randomizer.randomize(wrong)
        assert caught.value.code == "answers-invalid"
        assert "v3" not in str(caught.value)
    with pytest.raises(InputError):
        randomizer.randomize("v1")


def test_a_missing_value_is_a_value_where_it_is_declared():
    made = Questionnaire.make("T", [Question("a", "A?", ("x", None), ("x", "no answer"), 2**63)], records=10)
    drawn = {Randomizer(made).randomize({"a": None})["a"] for _ in range(100)}
    assert drawn == {"x", None}


BLOCKED = """
import sys
allowed = set(sys.stdlib_module_names) | {"incrowd", "cryptography", "_cffi_backend", "cffi"}

class Guard:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in allowed:
            raise ImportError(f"{name} must not be needed")

sys.meta_path.insert(0, Guard())
from incrowd.survey import Randomizer
randomizer = Randomizer(sys.argv[1], public_key=sys.argv[2])
print(sorted(randomizer.randomize({"a0": "v0", "a1": "v0"})))
assert not {"numpy", "pydantic", "scipy", "duckdb"} & set(sys.modules)
"""


def test_the_randomizer_needs_the_standard_library_and_cryptography_only(tmp_path):
    secret, public = make_keys()
    (tmp_path / "secret.pem").write_bytes(secret)
    (tmp_path / "public.pem").write_bytes(public)
    signed = questionnaire((2, 3)).signed(load_secret_key(tmp_path / "secret.pem"))
    (tmp_path / "q.json").write_bytes(signed.to_bytes())
    command = [sys.executable, "-c", BLOCKED, tmp_path / "q.json", tmp_path / "public.pem"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "['a0', 'a1']"), done.stderr
    heavy = subprocess.run(
        [*command[:2], BLOCKED.replace("randomizer = ", "import numpy\nx = "), *command[3:]],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "numpy must not be needed" in heavy.stderr


def test_labels_that_differ_to_the_eye_are_accepted():
    labels = ("Yes", "yes", "Yes!", "Ye s", "é", "e")
    assert Questionnaire.make("T", [Question("a", "A?", tuple("uvwxyz"), labels, 5)], records=3)


@pytest.mark.parametrize("broken", ["\ud800", math.nan, {1, 2}, {1: 2, "a": 3}])
def test_what_json_cannot_hold_is_not_sealed(broken):
    document = changed(lambda d: d["promise"].update(in_words=[broken]))
    with pytest.raises(InputError) as caught:
        Questionnaire.of(document)
    assert caught.value.code == "questionnaire-invalid"


@pytest.mark.parametrize("short", [0, 3, 7, 15, 17])
def test_a_short_source_of_random_bytes_is_refused(short):
    made = Randomizer(questionnaire((2,)), _bytes=lambda size: bytes(min(size, short) if short < 16 else short))
    with pytest.raises(InternalError):
        made.envelope({"a0": "v1"})


def test_words_say_what_k_and_epsilon_count():
    assert any("neither made nor learned" in sentence for sentence in questionnaire().promise["in_words"])


def test_the_central_bound_outweighs_rounding_errors():
    """With a thousand million records an error of 2^-45 in the likelihoods is felt. The bound must cover it.

    The bound is evaluated for one attribute of two values in exact arithmetic, likelihoods off to the unsafe side.
    """
    kept, records, epsilon = [promise.Kept(numerator64(0.01), 2)], 10**9, 1e-6
    found = promise.central_delta(kept, records, epsilon)
    with mpmath.workdps(50):
        rho, off = mpmath.mpf(kept[0].numerator) / 2**64, mpmath.mpf(2) ** -45
        low, high, odds = 1 - rho, 1 + rho, mpmath.exp(mpmath.mpf(epsilon))
        losses = [a * (1 + off) - odds * c * (1 - off) for a, c in ((high, low), (low, high))]

        def bound(tilt):
            grown = low * mpmath.fsum(mpmath.expm1(tilt * loss) for loss in losses) / 2
            return mpmath.exp(records * mpmath.log1p(grown) - 1) / (tilt * low * records)

        # The bound falls, then rises, in the tilt: least near epsilon over the variance, or near 1 over the deviation.
        least = min(bound(mpmath.mpf(10) ** (mpmath.mpf(power) / 400)) for power in range(-2400, 1))
        assert 0 < least <= found < 1
