// Shows the questionnaire, randomises the answers here, and sends only what was drawn.
import { Randomizer, verify } from "./randomizer.js";

const FEW = 8; // up to so many values are shown as a list to tick, more as a menu

const place = (id) => document.getElementById(id);

function element(name, properties = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...content);
  return made;
}

function share(numerator) {
  const percent = Number(((100 * Number(numerator)) / 2 ** 64).toPrecision(3));
  return `Kept as you give it with a probability of about ${percent}%, else drawn by chance.`;
}

function fields(question, number) {
  const hint = element("small", { id: `hint-${number}` }, share(question.numerator));
  const problem = element("p", { id: `problem-${number}`, className: "problem", hidden: true }, "Please choose one.");
  const described = `hint-${number} problem-${number}`;
  if (question.values.length > FEW) {
    const options = question.labels.map((label, code) => element("option", { value: String(code) }, label));
    const menu = element("select", { id: `q${number}`, name: `q${number}`, required: true });
    menu.append(element("option", { value: "" }, "—"), ...options);
    menu.setAttribute("aria-describedby", described);
    const label = element("label", { htmlFor: `q${number}`, className: "asked" }, question.text);
    return element("div", { className: "question" }, label, menu, problem, hint);
  }
  const choices = question.labels.map((label, code) =>
    element(
      "label",
      { className: "choice" },
      element("input", { type: "radio", name: `q${number}`, value: String(code), required: true }),
      element("span", {}, label),
    ),
  );
  const set = element("fieldset", { className: "question" }, element("legend", { className: "asked" }, question.text));
  set.setAttribute("aria-describedby", described);
  set.append(...choices, problem, hint);
  return set;
}

function notice(heading, text) {
  return element("div", { className: "notice" }, element("strong", {}, heading), element("p", {}, text));
}

function show(...content) {
  place("outcome").replaceChildren(...content);
  place("outcome").focus();
}

/** What was chosen, or the first field where nothing was. */
function chosen(form, questions) {
  const answers = Object.create(null); // so that every name is one like any other
  let first = null;
  questions.forEach((question, number) => {
    const code = new FormData(form).get(`q${number}`) ?? "";
    const problem = place(`problem-${number}`);
    problem.hidden = code !== "";
    if (code !== "") answers[question.name] = question.values[Number(code)];
    else first ??= form.querySelector(`[name="q${number}"]`);
  });
  return { answers, first };
}

async function send(envelope) {
  const response = await fetch("records", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(envelope),
    credentials: "omit",
    referrerPolicy: "no-referrer",
  });
  const said = await response.json().catch(() => null); // some other server on the way may answer anything
  if (response.status === 201 && said?.stored === true) return;
  // A record that was stored by an earlier attempt is as good as one stored now.
  if (response.status === 409 && said?.error?.code === "record-replayed") return;
  throw new Error(said?.error ? `${said.error.message} ${said.error.remedy}` : "The answer was not the service's.");
}

/** Asks before the page is left: whoever comes back would draw a second record. */
function keepOpen(event) {
  event.preventDefault();
  event.returnValue = true; // some browsers ask only then
}

function sent(questions, record) {
  const rows = questions.map(({ name, text, values, labels }) =>
    element("tr", {}, element("th", { scope: "row" }, text), element("td", {}, labels[values.indexOf(record[name])])),
  );
  const table = element("div", { className: "wide" }, element("table", {}, element("tbody", {}, ...rows)));
  return element(
    "section",
    {},
    element("h2", {}, "Thank you"),
    element("p", {}, "Your record is stored. Please do not answer again: two records reveal twice as much."),
    element("details", {}, element("summary", {}, "What was sent"), table),
    element("p", {}, element("small", {}, "Chance had its part in it, so it may differ from what you answered.")),
  );
}

async function start() {
  const questionnaire = await (await fetch("questionnaire", { credentials: "omit" })).json();
  const randomizer = new Randomizer(questionnaire);
  if (crypto.subtle) await verify(questionnaire); // browsers offer it to pages that came over a secure connection
  const { questions } = randomizer;
  document.title = questionnaire.title;
  place("title").textContent = questionnaire.title;
  place("words").append(...questionnaire.promise.in_words.map((sentence) => element("li", {}, sentence)));
  place("promise").hidden = false;
  const form = place("form");
  const button = element("button", { type: "submit" }, "Randomise and send");
  form.append(...questions.map((question, number) => element("section", {}, fields(question, number))), button);
  form.hidden = false;

  let envelope = null; // drawn once: a second attempt sends the same record
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (envelope === null) {
      const { answers, first } = chosen(form, questions);
      if (first !== null) {
        first.focus();
        return;
      }
      try {
        envelope = randomizer.envelope(answers);
      } catch (error) {
        show(notice("Nothing was sent.", error.message));
        return;
      }
      window.addEventListener("beforeunload", keepOpen);
      for (const field of form.querySelectorAll("input, select")) field.disabled = true;
    }
    button.disabled = true;
    try {
      await send(envelope);
      window.removeEventListener("beforeunload", keepOpen);
      form.reset();
      form.remove();
      place("promise").remove();
      show(sent(questions, envelope.record));
    } catch (error) {
      button.disabled = false;
      button.textContent = "Send again";
      const why = error instanceof TypeError ? "The service cannot be reached." : error.message;
      const then = "It may have arrived. Do not reload and do not answer again; use this button: it sends the same record.";
      show(notice("It is not certain that it arrived.", `${why} ${then}`));
    }
  });
}

start().catch((error) => {
  place("title").textContent = "This questionnaire cannot be used";
  show(notice("Do not answer it.", error.message));
});
