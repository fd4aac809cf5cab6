// Shared by all starter guards: the answer, words and paths of `event.shell`.

// What cannot be known is no yes: somebody is asked. A danger is refused, a doubt is asked about.
function verdict(event, danger, doubt) {
  if (danger) return { decision: "block", reason: danger };
  const shell = event.shell;
  if (shell && shell.unknown) {
    return { decision: "ask", reason: `what this command does cannot be known by reading it: ${shell.unknown_why}` };
  }
  if (doubt) return { decision: "ask", reason: doubt };
  return { decision: "allow" };
}

function commands(event) {
  return (event.shell && event.shell.commands) || [];
}

function paths(event, list) {
  return (event.shell && event.shell[list]) || [];
}

// What `table` has for the program of `command`, if it names it.
function row(table, command, other) {
  return Object.hasOwn(table, command.name) ? table[command.name] : other;
}

// The files of a tool that runs no text, where `event.shell` has none.
function namedFiles(event) {
  const { commands = [], writes = [] } = event.shell || {};
  const input = commands.length + writes.length > 0 ? {} : event.toolInput || {};
  const names = /^((file|absolute|notebook)?_?path|target(_?file)?|file(name)?)$/i;
  return Object.keys(input).flatMap((key) => (names.test(key) ? input[key] : [])).map(String);
}

// A command as somebody would read it, not too long.
function line(command) {
  const text = command.argv.join(" ");
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

// Its arguments before `--`: what follows is often a command of somebody else.
function before(command) {
  const end = command.argv.indexOf("--");
  return command.argv.slice(1, end < 1 ? undefined : end);
}

// Whether any of `words` stands among the arguments: whole, or as `--word=…`.
function has(command, ...words) {
  return before(command).some((word) => words.some((own) => word === own || word.startsWith(`${own}=`)));
}

// Whether one of `letters` is among the short options, as `f` in `-uf`.
function short(command, letters) {
  return before(command).some((word) => /^-[A-Za-z]/.test(word) && [...letters].some((own) => word.includes(own)));
}

// Its first words that are no options: some may be values of options.
function told(command) {
  return before(command).filter((word) => !word.startsWith("-")).slice(0, 3);
}

// Whether `part`, one name of a path, which may be a pattern with `*`, `?` or `[…]`, can stand for `name`. A pattern
// without a letter, such as `*`, stands for common files only.
function may(part, name) {
  return part === name || (/[A-Za-z0-9]|^\./.test(part) && fits(part, name));
}

// Whether it can, whatever else it stands for. As in a shell, only a pattern that says so stands for a hidden file.
function fits(part, name) {
  if (part === name) return true;
  if (!/[*?[]/.test(part) || (name.startsWith(".") && /^[*?]+$/.test(part))) return false;
  let text = "";
  for (let at = 0; at < part.length; at++) {
    const close = part[at] === "[" ? part.indexOf("]", at + 2) : -1;
    if (part[at] === "*") text += text.endsWith(".*") ? "" : ".*";
    else if (part[at] === "?") text += ".";
    else if (close > 0) {
      // A class such as `[[:alpha:]]` is taken as any letter.
      const own = part.slice(at + 1, close).replace(/^[!^]/, "^");
      text += own.includes("[:") ? "." : `[${own.replace(/[\\\[\]]/g, "\\$&")}]`;
      at = own.includes("[:") ? part.indexOf("]]", at) + 1 : close;
    } else text += part[at].replace(/[\\^$.|+(){}\[\]\/]/, "\\$&");
  }
  try {
    return new RegExp(`^${text}$`).test(name);
  } catch (error) {
    return true;
  }
}
