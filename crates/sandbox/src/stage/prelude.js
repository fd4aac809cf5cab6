// Takes from a fresh context what scripts do not get, and returns what freezes an event. Runs before any script.
(function (global, console) {
  const kept = {
    __proto__: null,
    Math, JSON, Number, String, Boolean, RegExp, Date, Array, Object, Error, TypeError, RangeError, SyntaxError,
    parseInt, parseFloat, isNaN, isFinite, encodeURIComponent, decodeURIComponent, Infinity, NaN, undefined,
  };
  const { freeze, getOwnPropertyNames, getOwnPropertySymbols, getPrototypeOf, values } = Object;
  // Assignments and deletions that fail throw, since all of this is strict: then there is no run.
  for (const name of getOwnPropertyNames(global)) if (!(name in kept)) delete global[name];
  for (const name of getOwnPropertySymbols(global)) delete global[name];
  // Each of these leads to a constructor that compiles text.
  const kinds = [function () {}, function* () {}, async function () {}, async function* () {}];
  for (const kind of kinds) delete getPrototypeOf(kind).constructor;
  // These hand out the functions that are being called, the engine's and ours among them.
  delete Error.prepareStackTrace;
  delete Error.captureStackTrace;
  global.console = console;
  return function (event) {
    const todo = [event];
    while (todo.length > 0) {
      const value = todo.pop();
      if (typeof value !== "object" || value === null) continue;
      freeze(value);
      for (const inner of values(value)) if (typeof inner === "object" && inner !== null) todo.push(inner);
    }
  };
})
