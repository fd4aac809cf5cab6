// Refuses to force a push, to delete what is published, to rewrite history, and to throw away work that git has not
// kept yet.

// Options of git that come before its command and take the next word.
const VALUED = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"];

// The command of git, and its own arguments.
function git(command) {
  const words = command.argv.slice(1);
  const own = /^git-(.+)$/.exec(command.name);
  if (own) return { name: own[1], words, cwd: command.cwd };
  let at = 0;
  while (at < words.length && words[at].startsWith("-")) at += VALUED.includes(words[at]) ? 2 : 1;
  return { name: words[at] || "", words: words.slice(at + 1), cwd: command.cwd };
}

// Whether a long option is meant: git takes any beginning of it that is long enough to be told apart.
function long(words, option, least) {
  return words.some((word) => {
    const bare = word.split("=")[0];
    return bare.startsWith("--") && bare.length >= least && option.startsWith(bare);
  });
}

// Whether one of the `letters` is a short option; what follows `-o`, `-m` and the like is no option.
function letter(words, letters, valued) {
  return words.some((word, at) => {
    if (!/^-[A-Za-z]/.test(word) || (at > 0 && new RegExp(`^-[A-Za-z]*[${valued}]$`).test(words[at - 1]))) return false;
    for (const own of word.slice(1)) {
      if (letters.includes(own)) return true;
      if (valued.includes(own)) return false;
    }
    return false;
  });
}

function plain(words) {
  return words.filter((word) => !word.startsWith("-"));
}

function push(words) {
  if (letter(words, "n", "o") || long(words, "--dry-run", 4)) return "";
  if (letter(words, "f", "o") || words.some((word) => /^--forc/.test(word))) return "forces a push";
  if (letter(words, "d", "o") || long(words, "--delete", 4)) return "deletes what is published";
  if (long(words, "--mirror", 3) || long(words, "--prune", 4)) return "deletes what is published";
  if (words.some((word) => word.startsWith("+"))) return "forces a push";
  return words.some((word) => word.startsWith(":") && word.length > 1) ? "deletes what is published" : "";
}

// Whether `word` stands for all of the folder `cwd` or more: `.`, `..`, `*.*`, `:/`, `:!x`, the folder by its path.
function wide(word, cwd) {
  if (/^:($|\/$|\/?\*|\(|!|\^)/.test(word) || /^[.*?\/]+$/.test(word)) return true;
  const parts = word.startsWith("/") ? [] : cwd.split("/");
  for (const name of word.split("/")) {
    if (name === "..") parts.pop();
    else if (name !== "." && name !== "") parts.push(name);
  }
  const path = `/${parts.filter((name) => name !== "").join("/")}`;
  return cwd !== "" && /^(\/|\.\.\/)/.test(word) && (path === cwd || cwd.startsWith(`${path}/`));
}

function checkout({ name, words, cwd }) {
  if (letter(words, "f", "bBcC") || long(words, "--force", 4) || long(words, "--discard-changes", 4)) {
    return "throws away changes that are not committed";
  }
  if (letter(words, name === "switch" ? "C" : "B", "")) return "moves a branch to another commit";
  const all = words.some((word) => wide(word, cwd) || long([word], "--pathspec-from-file", 8));
  const staged = name === "restore" && (letter(words, "S", "s") || long(words, "--staged", 4))
    && !letter(words, "W", "s") && !long(words, "--worktree", 3);
  return all && !staged ? "throws away changes that are not committed" : "";
}

// What each command of git loses with which arguments.
function loses(parts) {
  const { name, words } = parts;
  const any = (...own) => words.some((word) => own.includes(word));
  switch (name) {
    case "push":
      return push(words);
    case "send-pack":
      return long(words, "--force", 4) || long(words, "--mirror", 4) ? "forces a push" : "";
    case "reset":
      return long(words, "--hard", 3) || long(words, "--merge", 4) ? "throws away changes or commits" : "";
    case "clean":
      return letter(words, "n", "e") || long(words, "--dry-run", 4) || words.length === 0
        ? "" : "deletes files that git has not kept";
    case "checkout":
    case "switch":
    case "restore":
      return checkout(parts);
    case "read-tree":
      return letter(words, "u", "") || long(words, "--reset", 4) ? "throws away changes that are not committed" : "";
    case "checkout-index":
      return letter(words, "f", "") || long(words, "--force", 4) ? "throws away changes that are not committed" : "";
    case "branch":
      if (letter(words, "M", "") && plain(words).length < 2) return "";
      return letter(words, "DMCf", "u") || long(words, "--force", 4) ? "deletes or moves a branch" : "";
    case "tag":
      return letter(words, "df", "mFu") || long(words, "--delete", 4) || long(words, "--force", 5)
        ? "deletes or moves a tag" : "";
    case "stash":
      return any("drop", "clear") ? "throws away what was stashed" : "";
    case "reflog":
      return any("expire", "delete") ? "deletes what could bring commits back" : "";
    case "gc":
      return words.some((word) => /^--prune=(?!\d+\.(day|week|month|year))/.test(word)) ? "deletes what could bring commits back" : "";
    case "prune":
    case "filter-branch":
    case "filter-repo":
    case "replace":
    case "update-ref":
    case "fast-import":
      return any("--help", "-h", "-n", "--dry-run", "-l") ? "" : "rewrites history";
    case "symbolic-ref":
      return plain(words).length > 1 || letter(words, "d", "m") ? "moves what HEAD is" : "";
    case "fetch":
    case "pull":
      if (words.some((word) => word.startsWith("+") && !/:refs\/remotes\//.test(word))) return "moves a branch to another commit";
      return letter(words, "f", "ojX") || long(words, "--force", 5) ? "moves a branch to another commit" : "";
    case "worktree":
      return any("remove") && (letter(words, "f", "") || long(words, "--force", 4)) ? "throws away changes that are not committed" : "";
    case "remote":
      return any("add") && words.some((word) => /^--mirror/.test(word)) ? "makes pushes delete what is published" : "";
    case "submodule":
      return (any("deinit") && any("-f", "--force", "--all")) || (any("update") && any("-f", "--force")) ? "throws away changes that are not committed" : "";
    default:
      return "";
  }
}

// What can be brought back, for a while.
function rewrites({ name, words }) {
  switch (name) {
    case "commit":
      return long(words, "--amend", 4) ? "rewrites the last commit" : "";
    case "reset":
      return long(words, "--keep", 3) ? "moves a branch to another commit" : "";
    case "branch":
      return letter(words, "M", "") ? "renames a branch, whatever has that name" : "";
    case "rebase":
      return words.some((word) => /^--(abort|continue|skip|quit|show-current-patch|edit-todo)$/.test(word)) ? "" : "rewrites history";
    default:
      return "";
  }
}

// Settings that turn a plain push or a cleaning up into a dangerous one.
function settings(command, own) {
  const given = own.name === "config" ? own.words.map((word, at) => `${word}=${own.words[at + 1] || ""}`) : [];
  const options = command.argv.filter((_, at) => command.argv[at - 1] === "-c" || command.argv[at - 1] === "--config");
  return [...given, ...options].some((text) => /^remote\.[^=]*\.push=(\+|[^=]*=\+)/i.test(text)
    || /^remote\.[^=]*\.mirror=(true|yes|on|1)/i.test(text)
    || /^gc\.(reflogexpire|reflogexpireunreachable|pruneexpire)=(now|all|0)/i.test(text));
}

// Other programs that keep history.
function others(command) {
  const words = told(command);
  const rest = before(command);
  const method = (name) => rest.some((word, at) => new RegExp(`^(-X|--method=|--request=)=?${name}$`, "i").test(word)
    || (new RegExp(`^${name}$`, "i").test(word) && /^(-X|--method|--request)$/.test(rest[at - 1])));
  switch (command.name) {
    case "hg":
      return /^(strip|histedit|rollback|purge)$/.test(words[0]) || (words[0] === "revert" && has(command, "-a", "--all"))
        || (/^(update|up|checkout|co)$/.test(words[0]) && has(command, "-C", "--clean")) || (words.includes("push") && has(command, "-f", "--force"));
    case "svn":
      return words[0] === "revert" && has(command, "-R", "--recursive");
    case "jj":
      return words[0] === "abandon" || has(command, "--deleted");
    case "gh":
    case "glab":
    case "hub":
      if (words[0] === "api") {
        return method("DELETE") || rest.includes("force=true") || (method("PATCH") && rest.some((word) => /\/git\/refs\b/.test(word)))
          || rest.some((word) => /\b(delete|update)Refs?\b/.test(word));
      }
      return (command.name === "hub" && words[0] === "delete") || /^delete/.test(words[1]) || (words[0] === "repo" && words[1] === "archive") || (words[1] === "sync" && has(command, "--force"));
    case "bfg":
      return true;
    case "java":
      return rest.some((word) => /(^|\/)bfg[^/]*\.jar$/.test(word));
    case "curl":
      return rest.some((word) => /\/git\/refs\b/.test(word)) && (method("DELETE") || method("PATCH"));
    default:
      return false;
  }
}

function own(event) {
  const all = commands(event).filter(({ name }) => name === "git" || name === "hub" || name.startsWith("git-"));
  return all.map((command) => [command, git(command)]).filter(([, { words }]) => !words.includes("--help") && !words.includes("-h"));
}

function danger(event) {
  for (const [command, parts] of own(event)) {
    const why = loses(parts) || (settings(command, parts) ? "makes git force or forget" : "");
    if (why) return `${why}: ${line(command)}`;
  }
  const other = commands(event).find(others);
  return other === undefined ? "" : `rewrites or deletes history: ${line(other)}`;
}

function doubt(event) {
  for (const [command, parts] of own(event)) {
    const why = rewrites(parts);
    if (why) return `${why}: ${line(command)}`;
  }
  return "";
}

function handle(event) {
  return verdict(event, danger(event), doubt(event));
}
