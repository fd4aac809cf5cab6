/** What is said about rules beside their forms, in English. */
const count = (n: number, one: string, many: string): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const rulesEn = {
  begin: "Begin with",
  beginEmpty: "an empty form",
  templates: {
    forcePush: { title: "No forced pushes", about: "A script reads the command as the shell would, and blocks git push --force.", name: "no-force-push", says: "forced pushes are done by people" },
    outside: { title: "Ask outside the workspace", about: "A script asks a person before a command touches anything outside the workspace.", name: "ask-outside", says: "outside the workspace: " },
    keys: { title: "No keys to the model", about: "A script takes API keys out of messages before the model, the log and other hooks see them.", name: "no-keys", says: "" },
    judge: { title: "A model judges commands", about: "A small model decides about each command. It costs tokens of the budget.", name: "judge-commands", says: "Block commands that delete data, change permissions or send files away. Allow the rest." },
    context: { title: "Say something first", about: "Each conversation begins with a note to the model.", name: "first-note", says: "The main branch is frozen until Friday. Work on branches." },
    notify: { title: "Tell another system", about: "Each finished turn is posted to a URL of yours.", name: "notify", says: "" },
  },
  budget: {
    title: "Budget for judges",
    about: "What prompt hooks may spend on models this month, in tokens.",
    left: (left: number, total: number) => `${left.toLocaleString("en")} of ${total.toLocaleString("en")} tokens are left`,
    used: (n: number) => `${n.toLocaleString("en")} used`,
    again: "begins anew",
    spent: "spent",
    isLow: "low",
    over: "It is spent: every prompt hook blocks what it matches.",
    low: "Less than a fifth is left.",
    change: "Change the budget",
    total: "Tokens a month",
    totalHint: "0 means: no calls of models by hooks.",
    bad: "A whole number from 0 on.",
    save: "Set the budget",
    raises: (by: number) => `Prompt hooks may spend ${by.toLocaleString("en")} tokens more this month. It counts at once.`,
    lowers: (by: number) => `Prompt hooks may spend ${by.toLocaleString("en")} tokens less this month. Where nothing is left they block what they match.`,
  },
  tenant: "Tenant",
  thisTenant: "This tenant",
  allTenants: "All tenants",
  live: {
    paused: (n: number) => `${count(n, "new row", "new rows")}`,
    title: "Live",
  },
};
