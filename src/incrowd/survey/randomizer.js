// Respondents randomise their own answers: the same as incrowd.local in Python, for browsers and node 18 or later.
// It needs WebCrypto and nothing else. Names, formulas and the order in which random bytes are used are those of the
// Python modules promise.py, questionnaire.py and randomizer.py, where the proofs are.

const FORMAT = "incrowd-questionnaire/1";
const WHOLE = 1n << 64n;
const MARGIN = 2 ** -40; // far above all rounding errors
const MOST_CASES = 20000;
const LARGEST_LOCAL = 300;
const MOST_QUESTIONS = 100;
const MOST_VALUES = 10000;
const MOST_RECORDS = 1e15;
const LONGEST = 2000;
const UNFIT = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\p{Surrogate}/u;

export class QuestionnaireError extends Error {}
export class AnswersError extends Error {}

/** Randomises answers by one questionnaire, after checking that its promise follows from its retentions.
 *
 * One respondent, one record: whoever draws twice from the same answers and sends both reveals twice as much. If
 * sending fails, send the same record again. */
export class Randomizer {
  #randomBytes;

  constructor(questionnaire, randomBytes = systemBytes) {
    this.questions = read(questionnaire);
    this.questionnaire = questionnaire;
    this.#randomBytes = (size) => {
      const bytes = randomBytes(size); // fewer would be taken for zeros, by which answers are kept
      if (bytes?.length !== size) throw new Error("The source of random bytes gave another number of them.");
      return bytes;
    };
    const kept = this.questions.map(({ numerator, values }) => ({ numerator, size: values.length }));
    if (!follows(questionnaire.promise, kept, questionnaire.records)) {
      throw new QuestionnaireError("The questionnaire promises what its retentions do not keep. Do not answer it.");
    }
    Object.freeze(this); // what was checked stays as it was
  }

  /** The record to be sent: each answer kept with its retention, else replaced by a uniformly drawn one. */
  randomize(answers) {
    const names = new Set(this.questions.map((question) => question.name));
    if (answers === null || typeof answers !== "object" || Object.keys(answers).some((name) => !names.has(name))) {
      throw new AnswersError("There are answers that the questionnaire does not ask for.");
    }
    const codes = this.questions.map(({ name, values }) => {
      const code = Object.hasOwn(answers, name) ? values.indexOf(answers[name]) : -1;
      if (code < 0) throw new AnswersError(`The answer to "${name}" is missing or is none of those listed.`);
      return code;
    });
    const record = this.questions.map(({ name, values, numerator }, place) => {
      // Both are drawn always, so that neither time nor bits tell which of them counted.
      const kept = wholeNumber(this.#randomBytes(8)) < numerator;
      const drawn = uniform(values.length, this.#randomBytes);
      return [name, values[[drawn, codes[place]][Number(kept)]]];
    });
    return Object.fromEntries(record);
  }

  /** What is sent to a collector. Keep it until it is stored: by its nonce a second sending is recognised. */
  envelope(answers) {
    const nonce = Array.from(this.#randomBytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return { questionnaire: this.questionnaire.digest, nonce, record: this.randomize(answers) };
  }
}

/** Resolves if the digest is that of the questionnaire and, given a key (32 bytes), the signature is by that key. */
export async function verify(questionnaire, publicKey) {
  const { digest, signature, ...body } = questionnaire;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(body))));
  if (Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("") !== digest) {
    throw new QuestionnaireError("The questionnaire was changed after it was made.");
  }
  if (publicKey === undefined) return;
  const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  const signed = new TextEncoder().encode(`${questionnaire.format} ${digest}`);
  const value = Uint8Array.from(atob(signature?.value ?? ""), (character) => character.charCodeAt(0));
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, key, value, signed))) {
    throw new QuestionnaireError("The questionnaire is not signed by the key that it should be signed by.");
  }
}

/** The one way to write a questionnaire down: keys sorted, no spaces. Its numbers are whole ones. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function systemBytes(size) {
  return crypto.getRandomValues(new Uint8Array(size));
}

function wholeNumber(bytes) {
  return bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

function uniform(size, randomBytes) {
  const unused = BigInt(Math.clz32(size - 1));
  for (;;) {
    const drawn = Number(wholeNumber(randomBytes(4)) >> unused);
    if (drawn < size) return drawn;
  }
}

// --- reading ---------------------------------------------------------------------------------------------------------

function read(document) {
  const keys = ["format", "title", "attributes", "records", "promise"];
  demand(isObject(document) && document.format === FORMAT, `it is not of the format ${FORMAT}`);
  demand(keys.every((key) => Object.hasOwn(document, key)), "it lacks a part");
  demand(
    Object.keys(document).every((key) => keys.includes(key) || key === "digest" || key === "signature"),
    "it has a part that does not belong there",
  );
  const { title, attributes, records, promise } = document;
  demand(isObject(promise), "it promises nothing");
  demandText(title, "the title");
  demand(Number.isInteger(records) && records >= 1 && records <= MOST_RECORDS, "the number of records is wrong");
  demand(
    Array.isArray(attributes) && attributes.length >= 1 && attributes.length <= MOST_QUESTIONS,
    "it asks no question, or too many",
  );
  const questions = attributes.map(readQuestion);
  demand(new Set(questions.map(({ name }) => name)).size === questions.length, "two attributes have the same name");
  return Object.freeze(questions);
}

function readQuestion(item) {
  demand(hasExactly(item, ["name", "question", "values", "retention"]), "an attribute is not as it should be");
  demandText(item.name, "the name of an attribute");
  demandText(item.question, "a question");
  const listed = item.values;
  demand(Array.isArray(listed) && listed.length >= 2 && listed.length <= MOST_VALUES, "a list of values is wrong");
  demand(listed.every((one) => hasExactly(one, ["value", "label"])), "a value is not as it should be");
  const values = listed.map(({ value }) => value);
  const labels = listed.map(({ label }) => label);
  values.forEach((value) => value === null || demandText(value, "a value"));
  labels.forEach((label) => demandText(label, "a label"));
  const looks = new Set(labels.map(look));
  demand(
    new Set(values).size === values.length && looks.size === labels.length && !looks.has(""),
    "two values are the same or look the same",
  );
  demand(hasExactly(item.retention, ["numerator", "denominator"]), "a retention is not a fraction");
  const { numerator, denominator } = item.retention;
  const written = typeof numerator === "string" && /^(0|[1-9][0-9]{0,19})$/.test(numerator);
  demand(written && denominator === String(WHOLE), "a retention is not a whole number over 2**64");
  demand(BigInt(numerator) < WHOLE, "a retention must be below 1");
  const fixed = { values: Object.freeze(values), labels: Object.freeze(labels), numerator: BigInt(numerator) };
  return Object.freeze({ name: item.name, text: item.question, ...fixed });
}

/** What a reader can tell of a label: neither marks that are not seen nor how wide a space is. */
function look(label) {
  return label.replace(/\p{Cf}/gu, "").normalize("NFKC").trim().split(/\s+/u).join(" ");
}

function demandText(text, what) {
  const fits = typeof text === "string" && text.trim() !== "" && text.length <= 2 * LONGEST && !UNFIT.test(text);
  demand(fits, `${what} must be a text without control characters`);
}

function demand(holds, what) {
  if (!holds) throw new QuestionnaireError(`This is not a questionnaire that can be used: ${what}.`);
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function hasExactly(value, keys) {
  return isObject(value) && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key));
}

// --- the promise -----------------------------------------------------------------------------------------------------

export function localEpsilon(answers) {
  const parts = answers.map(({ numerator, size }) =>
    Math.log1p(Number(BigInt(size) * numerator) / Number(WHOLE - numerator)),
  );
  return sum(parts) * (1 + MARGIN);
}

export function linkingK(answers, records) {
  return Math.max(1, (1 + (records - 1) * Math.exp(-2 * localEpsilon(answers))) * (1 - MARGIN));
}

export function centralDelta(answers, records, epsilon) {
  const local = localEpsilon(answers);
  if (epsilon >= local) return 0;
  if (local > LARGEST_LOCAL) return 1;
  return Math.min(1, ...cases(answers, local).map((one) => chernoff(one, records, epsilon)));
}

export function inWords({ local, linking, central }, records) {
  return [
    "Before anything leaves your device, chance decides for each answer whether it is kept or replaced by one " +
      "drawn from all possible answers, all equally likely.",
    "Whoever sees what you sent can change the odds of any guess about your answers at most " +
      `${local.factor}-fold (ε₀ = ${local.epsilon}). That holds whatever the collector does.`,
    `If at least ${String(records).replace(/\B(?=(\d{3})+$)/g, ",")} people answer and the collector publishes all records together, in no order, then ` +
      `nobody can tell which record is yours with a probability above 1 in ${linking.k}.`,
    "Whatever anyone might conclude from that table, its probability would change at most " +
      `${central.factor}-fold (ε = ${central.epsilon}), plus δ = ${central.delta}, had you answered differently.`,
    "These last two count only records that the onlooker neither made nor learned otherwise. The one before them, " +
      "about what you sent, does not depend on other records.",
    "Answer once. Whoever answers twice reveals twice as much: ε₀ doubles.",
  ];
}

function follows(stated, answers, records) {
  if (!hasExactly(stated, ["relation", "local", "linking", "central", "in_words"])) return false;
  const { relation, local, linking, central, in_words: words } = stated;
  const parts = [
    [local, ["epsilon", "factor"]],
    [linking, ["k"]],
    [central, ["epsilon", "delta", "factor"]],
  ];
  const decimal = (text) => typeof text === "string" && text.length <= 400 && /^[0-9]+(\.[0-9]+)?$/.test(text);
  return (
    parts.every(([part, keys]) => hasExactly(part, keys) && Object.values(part).every(decimal)) &&
    relation === "replace-one" &&
    canonical(words) === canonical(inWords({ local, linking, central }, records)) &&
    localEpsilon(answers) <= Number(local.epsilon) &&
    factor(local.epsilon) <= Number(local.factor) &&
    linkingK(answers, records) >= Number(linking.k) &&
    Number(central.delta) > 0 &&
    Number(central.delta) < 1 &&
    centralDelta(answers, records, Number(central.epsilon)) <= Number(central.delta) &&
    factor(central.epsilon) <= Number(central.factor)
  );
}

function factor(epsilon) {
  return Math.exp(Number(epsilon)) * (1 + MARGIN); // infinite, and so refused, where Python overflows
}

function cases(answers, local) {
  const likely = 2 / (1 + Math.exp(-local));
  const unlikely = 2 / (1 + Math.exp(local));
  const clones = {
    mass: Math.exp(-local) * (1 - MARGIN),
    outputs: [
      [0.5, likely, unlikely],
      [0.5, unlikely, likely],
    ],
  };
  let mass = 1;
  let outputs = [[1, 1, 1]];
  for (const { numerator, size } of answers) {
    const low = Number(WHOLE - numerator) / Number(WHOLE);
    const high = 1 + (size - 1) * (Number(numerator) / Number(WHOLE));
    mass *= low;
    const kinds = [
      [1 / size, high, low],
      [1 / size, low, high],
      [(size - 2) / size, low, low],
    ].slice(0, size > 2 ? 3 : 2);
    if (outputs.length * kinds.length > MOST_CASES) return [clones];
    outputs = outputs.flatMap(([p, a, c]) => kinds.map(([q, b, d]) => [p * q, a * b, c * d]));
  }
  return [clones, { mass: mass * (1 - MARGIN), outputs }];
}

function chernoff({ mass, outputs }, records, epsilon) {
  const odds = Math.exp(epsilon);
  const values = outputs.map(([p, a, c]) => [p, a - odds * c + MARGIN * (a + odds * c)]);
  const highest = values.reduce((most, [, value]) => Math.max(most, value), -Infinity);
  if (highest <= 0) return 0;
  const scale = Math.log(mass * records);
  const exponent = (logTilt) => {
    const tilt = Math.exp(logTilt);
    const grown = values.map(([p, value]) => p * Math.expm1(tilt * value));
    const gain = mass * (sum(grown) + MARGIN * sum(grown.map(Math.abs)));
    const power = records * Math.log1p(gain);
    return power + MARGIN * Math.abs(power) - 1 - logTilt - scale;
  };
  const least = smallest(exponent, Math.log(1e-12 / highest), Math.log(600 / highest));
  return Math.exp(Math.max(-600, Math.min(0, least))) * (1 + MARGIN);
}

/** About the least value of a function that falls, then rises. */
function smallest(f, low, high) {
  const share = (Math.sqrt(5) - 1) / 2;
  let left = high - share * (high - low);
  let right = low + share * (high - low);
  let atLeft = f(left);
  let atRight = f(right);
  for (let step = 0; step < 40; step += 1) {
    if (atLeft < atRight) {
      [high, right, atRight] = [right, left, atLeft];
      left = high - share * (high - low);
      atLeft = f(left);
    } else {
      [low, left, atLeft] = [left, right, atRight];
      right = low + share * (high - low);
      atRight = f(right);
    }
  }
  return Math.min(atLeft, atRight);
}

/** A sum whose error does not grow with the number of terms (Neumaier). */
function sum(terms) {
  let total = 0;
  let rest = 0;
  for (const term of terms) {
    const next = total + term;
    rest += Math.abs(total) >= Math.abs(term) ? total - next + term : term - next + total;
    total = next;
  }
  return total + rest;
}
