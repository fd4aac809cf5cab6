// Replaces e-mail addresses and phone numbers. What it puts in their place is neither, so a second run changes nothing.

const FIELDS = ["command", "query", "content"];

// The first digit of a number is none of 0, and nothing that could make it longer stands beside it.
const PHONE = /(?<![\d+])\+?[1-9]\d{7,14}(?![\d+])/g;

// Names with dots between them, the last of letters.
const DOMAIN = /(?:[\p{L}\p{N}\p{M}-]+\.)+(?:xn--[a-z0-9-]+|\p{L}{2,})/uiy;

const LOCAL = /[\p{L}\p{N}\p{M}._%+-]/u;

// The longest quoted name before an `@`, as in "john doe"@example.com.
const QUOTED = 64;

// Where the name that ends with `text` begins; at its end if there is none.
function nameStart(text) {
  let start = text.length;
  if (text[start - 1] === '"') {
    const quote = text.lastIndexOf('"', start - 2);
    const near = quote >= 0 && quote < start - 2 && start - quote <= QUOTED + 2;
    return near && !text.slice(quote, start).includes("\n") ? quote : start;
  }
  while (start > 0 && LOCAL.test(text[start - 1])) start--;
  return start;
}

// Goes from one `@` to the next, so that long texts without one cost nothing.
function withoutAddresses(text) {
  let done = 0;
  let out = "";
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", Math.max(at + 1, done))) {
    out += text.slice(done, at);
    done = at;
    const start = nameStart(out);
    DOMAIN.lastIndex = at + 1;
    if (start < out.length && DOMAIN.test(text)) {
      out = `${out.slice(0, start)}[REDACTED_EMAIL]`;
      done = DOMAIN.lastIndex;
    }
  }
  return out + text.slice(done);
}

function clean(value) {
  if (typeof value === "string") return withoutAddresses(value).replace(PHONE, "[REDACTED_PHONE]");
  if (Array.isArray(value)) return value.map(clean);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, clean(own)]));
}

function handle(event) {
  const updatedInput = {};
  const rawInput = clean(event.rawInput);
  if (rawInput !== event.rawInput) updatedInput.rawInput = rawInput;
  const toolInput = {};
  for (const field of FIELDS) {
    const value = event.toolInput?.[field];
    const cleaned = clean(value);
    if (JSON.stringify(cleaned) !== JSON.stringify(value)) toolInput[field] = cleaned;
  }
  if (Object.keys(toolInput).length > 0) updatedInput.toolInput = toolInput;
  return Object.keys(updatedInput).length > 0 ? { decision: "allow", updatedInput } : { decision: "allow" };
}
