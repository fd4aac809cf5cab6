/** What to do about trouble with a known cause, in English. */
export const adviceEn = {
  noUrl: {
    cause: "This is no URL that a hook can call.",
    fix: "Enter one that begins with https:// or http:// and has a host, but no user name and no password.",
  },
  port: {
    cause: "Hooks do not call this port: only 80, 443 and most ports from 1024 up.",
    fix: "Let the program listen at another port and correct the URL.",
  },
  unresolved: {
    cause: "The host of the URL was not found: its name does not resolve.",
    fix: "Check how it is written, and whether the server's DNS knows it.",
  },
  ssrf: {
    cause: "The server does not call this address: it is on the server itself or in a private network.",
    fix: "Use a URL that the server may reach, or let an operator allow it with [[agent_hooks.http.allow]].",
  },
  freeText: {
    cause: "The model answered with text instead of a decision, and that blocks.",
    fix: "Review the instruction: keep it short and imperative, and let it ask for one decision.",
  },
  tripped: {
    cause: "The circuit breaker switched this hook off: it blocked or was late five times in a row within a minute.",
    fix: "Remove the cause, then reset the breaker. Until then, what it matches is answered as “while tripped” says.",
  },
  edition: {
    cause: "Edition standard runs no commands.",
    fix: "Use http, prompt or script, or edition lite.",
  },
  cap: {
    cause: "The model was asked as often in this turn as the hook allows.",
    fix: "Raise “calls per turn”, or let the matcher match fewer calls.",
  },
  budget: {
    cause: "The tenant spent its token budget for this month.",
    fix: "An owner raises the budget on the page Health or with pintle budget set, or it starts over next month.",
  },
  required: {
    cause: "A record needs an event, a handler and a scope.",
    fix: "Include all three: handler_type, event and scope.",
  },
  notJson: {
    cause: "The answer was not JSON, which counts as allow.",
    fix: "Check that the URL is the right one, not a login page. With “strict answers” it would be a fault.",
  },
  late: {
    cause: "There was no answer in time.",
    fix: "Find out why it is slow, or raise the time limit (10 s at most).",
  },
};
