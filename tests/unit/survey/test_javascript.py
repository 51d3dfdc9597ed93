"""The JavaScript module does what the Python modules do: the same checks, the same bytes, the same records."""

import base64
import copy
import hashlib
import runpy
from decimal import Decimal
from pathlib import Path

import pytest

from incrowd.core.errors import GuaranteeError
from incrowd.core.signing import load_secret_key, make_keys, seal
from incrowd.survey import Question, Questionnaire, Randomizer, promise
from incrowd.survey.questionnaire import numerator64

HERE = Path(__file__).parent
PYTHON = runpy.run_path(str(HERE / "test_questionnaire.py"))
questionnaire, changed = PYTHON["questionnaire"], PYTHON["changed"]

REFUSED = """
const judge = (document) => { try { new m.Randomizer(document); return ""; } catch (error) { return error.message; } };
console.log(JSON.stringify(input.map(judge)));
"""


def test_it_accepts_and_refuses_what_python_does(javascript):
    good = [questionnaire(s, r, n).document for s, r, n in [((2,), 0.0, 1), ((2, 5, 10), 0.3, 100_000), ((9,), 0.9, 7)]]
    bad = [
        seal(changed(change)) for change in PYTHON["MALFORMED"] if change is not PYTHON["MALFORMED"][5]
    ]  # 1e5 is 100000
    dishonest = [PYTHON["dishonest"](change, words) for change, words in PYTHON["BROKEN"]]
    said = javascript(REFUSED, [*good, *bad, *dishonest])
    assert said[:3] == [""] * 3
    assert all("not a questionnaire" in text for text in said[3 : 3 + len(bad)]), said
    assert all("do not keep" in text for text in said[3 + len(bad) :]), said


def test_its_numbers_are_those_of_python(javascript):
    cases = [
        ((2, 5, 10), 0.3, 100_000, 0.05),
        ((3, 3), 0.6, 500, 1.0),
        ((2,), 0.9, 50, 2.0),
        ((7,) * 8, 0.1, 10**6, 0.02),
    ]
    program = """
    console.log(JSON.stringify(input.map(([kept, records, epsilon]) => {
      const answers = kept.map(([numerator, size]) => ({ numerator: BigInt(numerator), size }));
      return [m.localEpsilon(answers), m.linkingK(answers, records), m.centralDelta(answers, records, epsilon)];
    })));"""
    given = [[[[str(numerator64(r)), s] for s in sizes], n, e] for sizes, r, n, e in cases]
    for (sizes, rho, records, epsilon), said in zip(cases, javascript(program, given), strict=True):
        kept = [promise.Kept(numerator64(rho), size) for size in sizes]
        mine = [
            promise.local_epsilon(kept),
            promise.linking_k(kept, records),
            promise.central_delta(kept, records, epsilon),
        ]
        assert said == pytest.approx(mine, rel=1e-9)


def test_the_same_bytes_give_the_same_records(javascript):
    texts = ("Größe „x“", "日本 😀", "a/b\\c\u2028")
    asked = [
        Question("größe", "Wie groß?", (*texts, None), (*texts, "—"), numerator64(0.4)),
        *(PYTHON["question"](f"b{n}", n, 0.01 * n) for n in (2, 3, 5, 8, 33)),
    ]
    made = Questionnaire.make("Zwölf Boxkämpfer", asked, records=1000)
    answers = [{q.name: q.values[(7 * place + i) % len(q.values)] for place, q in enumerate(asked)} for i in range(300)]

    def stream():
        state = [b"start", b""]

        def read(size):
            while len(state[1]) < size:
                state[0] = hashlib.sha256(state[0]).digest()
                state[1] += state[0]
            taken, state[1] = state[1][:size], state[1][size:]
            return taken

        return read

    program = """
    import { createHash } from "node:crypto";
    let state = Buffer.from("start"), buffer = Buffer.alloc(0);
    const read = (size) => {
      while (buffer.length < size) {
        state = createHash("sha256").update(state).digest();
        buffer = Buffer.concat([buffer, state]);
      }
      const taken = new Uint8Array(buffer.subarray(0, size));
      buffer = buffer.subarray(size);
      return taken;
    };
    const randomizer = new m.Randomizer(input[0], read);
    console.log(JSON.stringify(input[1].map((one) => randomizer.envelope(one))));"""
    mine = Randomizer(made, _bytes=stream())
    assert javascript(program, [made.document, answers]) == [mine.envelope(one) for one in answers]


def test_answers_must_be_the_listed_ones(javascript):
    program = """
    const randomizer = new m.Randomizer(input[0]);
    console.log(JSON.stringify(input[1].map((answers) => {
      try { randomizer.randomize(answers); return false; } catch (error) { return error instanceof m.AnswersError; }
    })));"""
    good = {"a0": "v1", "a1": "v2"}
    wrong = [{}, {"a0": "v1"}, {**good, "b": "v0"}, {**good, "a1": "v3"}, {**good, "a1": 2}, {**good, "a1": None}, None]
    said = javascript(program, [questionnaire((2, 3)).document, [good, *wrong]])
    assert said == [False] + [True] * len(wrong)


def test_digest_and_signature(javascript, tmp_path):
    secret, _ = make_keys()
    (tmp_path / "secret.pem").write_bytes(secret)
    made = Questionnaire.make(
        "Tab\u00adelle — 😀 \u2028", [Question("é", "é?", ("\ue000", "😀"), ("\ue000", "😀"), 5)], records=3
    ).signed(load_secret_key(tmp_path / "secret.pem"))
    key = list(base64.b64decode(made.document["signature"]["public_key"]))
    other = [*key[:-1], key[-1] ^ 1]
    unsigned = {k: v for k, v in made.document.items() if k != "signature"}
    program = """
    const judge = async ([document, key]) => {
      try { await m.verify(document, key === null ? undefined : new Uint8Array(key)); return ""; }
      catch (error) { return error.message; }
    };
    console.log(JSON.stringify(await Promise.all(input.map(judge))));"""
    cases = [
        (made.document, None),
        (made.document, key),
        (made.document, other),
        (unsigned, key),
        ({**made.document, "title": "Other"}, key),
    ]
    said = javascript(program, cases)
    assert said[:2] == ["", ""]
    assert all(said[2:])


def off_by_one(document, part, key, sign):
    """The document with one number of its promise better by one unit in the last digit, its words to match."""
    better = copy.deepcopy(document)
    number = Decimal(better["promise"][part][key])
    unit = Decimal(1).scaleb(number.as_tuple().exponent)
    better["promise"][part][key] = format(number + sign * unit, "f")
    better["promise"]["in_words"] = promise.in_words(better["promise"], better["records"])
    return seal(better)


def test_a_promise_better_in_its_last_digit_is_refused_by_both(javascript):
    made = [questionnaire(s, r, n).document for s, r, n in [((2, 5, 10), 0.3, 100_000), ((3, 3), 0.6, 500)]]
    tight = [("local", "epsilon", -1), ("local", "factor", -1), ("linking", "k", 1), ("central", "factor", -1)]
    cases = [off_by_one(document, *change) for document in made for change in tight]
    for document in made:  # the central epsilon is found within a thousandth only
        better = copy.deepcopy(document)
        better["promise"]["central"]["epsilon"] = format(0.995 * float(better["promise"]["central"]["epsilon"]), ".9f")
        better["promise"]["in_words"] = promise.in_words(better["promise"], better["records"])
        cases.append(seal(better))
    for document in cases:
        with pytest.raises(GuaranteeError):
            Questionnaire.of(document)
    assert all("do not keep" in text for text in javascript(REFUSED, cases))


def test_a_short_source_of_random_bytes_is_refused(javascript):
    program = """
    const short = new m.Randomizer(input, (size) => new Uint8Array(size - 1));
    const judge = (act) => { try { act(); return false; } catch { return true; } };
    const acts = [() => short.randomize({ a0: "v1" }), () => short.envelope({ a0: "v1" })];
    console.log(JSON.stringify(acts.map(judge)));
    """
    assert javascript(program, questionnaire((2,)).document) == [True, True]


def test_what_was_checked_cannot_be_changed(javascript):
    program = """
    const made = new m.Randomizer(input);
    const acts = [
      () => { made.questions[0].numerator = 2n ** 64n; },
      () => { made.questions[0].values[0] = "x"; },
      () => { made.questions[0].labels[0] = "x"; },
      () => { made.questions.pop(); },
      () => { made.questions = []; },
    ];
    console.log(JSON.stringify(acts.map((act) => { try { act(); return false; } catch { return true; } })));"""
    assert javascript(program, questionnaire((2,)).document) == [True] * 5
