// Refuses to force a push, to delete what is published, to rewrite history, and to throw away work that git has not
// kept yet.

// Options of git that come before its command and take the next word, and those that tell something instead.
const VALUED = /^(-C|-c|--(git-dir|work-tree|namespace|super-prefix|config-env|attr-source|shallow-file))$/;
const TELLS = /^(-h|-v|--help|--version)$/;

// The command of git, and its own arguments.
function git(command) {
  const words = command.argv.slice(1);
  const own = /^git-(.+)$/.exec(command.name);
  if (own) return { name: own[1], words, cwd: command.cwd };
  let at = 0;
  while (at < words.length && words[at].startsWith("-") && !TELLS.test(words[at])) at += VALUED.test(words[at]) ? 2 : 1;
  return { name: words[at] || "", words: words.slice(at + 1), cwd: command.cwd };
}

// Whether a long option is meant: git takes any beginning of it that is long enough to be told apart.
function long(words, option, least) {
  return words.some((word) => {
    const bare = word.split("=")[0];
    return bare.startsWith("--") && bare.length >= least && option.startsWith(bare);
  });
}

// Whether one of the `letters` may be a short option; in one word with `-o`, `-m` and the like it is none. A word that
// looks like one counts, even if it may be a value: what follows which option is easily got wrong.
function letter(words, letters, valued) {
  return words.some((word) => {
    let found = false;
    for (const own of /^-(?!-)/.test(word) ? word.slice(1) : "") {
      if (valued.includes(own)) return found;
      if (!/[A-Za-z0-9]/.test(own)) return false;
      found = found || letters.includes(own);
    }
    return found;
  });
}

// Whether a word that fits `pattern` is an option for sure, so that it may excuse something: not a value, so that no
// option stands before it but one of `flags`, which take none; not taken back, as `--no-dry-run` does; not after `--`.
function sure(words, pattern, flags) {
  const end = words.indexOf("--");
  const own = words.slice(0, end < 0 ? undefined : end);
  return !words.some((word) => /^--no-[a-z]/.test(word) && !/^--no-(verify|thin|progress|signed|track)$/.test(word))
    && own.some((word, at) => pattern.test(word) && (at === 0 || !own[at - 1].startsWith("-") || flags.test(own[at - 1])));
}

function plain(words) {
  return words.filter((word) => !word.startsWith("-"));
}

// Options of `push` and `clean` that take no value.
const FLAGS = /^(-[46dfnquvxX]+|--(all|atomic|branches|delete|dry-run|follow-tags|force|force-if-includes|force-with-lease|ipv4|ipv6|mirror|no-verify|porcelain|progress|prune|quiet|set-upstream|signed|tags|thin|verbose)|--[a-z-]+=.*)$/;

// Whether `push` or `clean` only says what it would do.
function dry(words, flags) {
  return sure(words, flags, FLAGS);
}

function push(words) {
  if (dry(words, /^(-[46dfquv]*n[46dfnquv]*|--dry-run)$/)) return "";
  if (letter(words, "f", "o") || words.some((word) => /^--forc(?!e-i)/.test(word))) return "forces a push";
  if (letter(words, "d", "o") || long(words, "--delete", 4)) return "deletes what is published";
  if (long(words, "--mirror", 3) || long(words, "--prune", 4)) return "deletes what is published";
  if (words.some((word) => word.startsWith("+"))) return "forces a push";
  return words.some((word) => word.startsWith(":") && word.length > 1) ? "deletes what is published" : "";
}

// Whether `word` stands for all of the folder `cwd` or more: `.`, `..`, `*.*`, `:/`, `:!x`, `src/..`, the folder by its
// path.
function wide(word, cwd) {
  if (/^:($|\/$|\/?\*|\(|!|\^)/.test(word) || /^(\[\^\.\]|[.*?\/])+$/.test(word)) return true;
  // Where the command runs may not be known; a path that starts there leads back to it all the same.
  const here = cwd === "" ? "/?" : cwd;
  const parts = word.startsWith("/") ? [] : here.split("/").filter((name) => name !== "");
  for (const name of word.replace(/^:\//, "").split("/")) {
    if (name === "..") parts.pop();
    else if (name !== "." && name !== "") parts.push(name);
  }
  const path = `/${parts.join("/")}`;
  // `src/../*` is `*`.
  if (path.startsWith(`${here}/`) && /^(\[\^\.\]|[.*?])+$/.test(path.slice(here.length + 1))) return true;
  return word !== "" && (path === here || path === "/" || here.startsWith(`${path}/`));
}

function checkout({ name, words, cwd }) {
  if (letter(words, "f", "bBcC") || long(words, "--force", 4) || long(words, "--discard-changes", 4)) {
    return "throws away changes that are not committed";
  }
  if (letter(words, name === "switch" ? "C" : "B", "")) return "moves a branch to another commit";
  const own = words.slice(0, words.includes("--") ? words.indexOf("--") : undefined);
  if (name !== "switch" && !staging(name, words) && (letter(own, "p", "bBs") || long(own, "--patch", 4))) {
    return "throws away changes that are not committed";
  }
  const all = words.some((word) => wide(word, cwd) || long([word], "--pathspec-from-file", 8));
  return all && !staging(name, words) ? "throws away changes that are not committed" : "";
}

// Whether `restore` changes only what is staged.
function staging(name, words) {
  return name === "restore" && sure(words, /^(-[qp]*S[qp]*|--staged)$/, /^(-[qpS]+|--(quiet|progress|patch|source=.*))$/)
    && !letter(words, "W", "s") && !long(words, "--worktree", 3);
}

// Whether files get what another commit has, or all of a folder what they had: a name with `/` at its end, or without
// an ending and a capital.
function overwrites({ name, words }) {
  const dashes = words.indexOf("--");
  const own = dashes < 0 ? words : words.slice(0, dashes);
  if (staging(name, words) || sure(own, /^(-[qtl]*[bB].*|--orphan)$/, /^(-[qtfl]+|--(force|no-track|progress|quiet|track))$/)) return false;
  const all = plain(own).filter((word) => !/^(-s|--source)$/.test(own[own.indexOf(word) - 1]));
  const tree = name === "restore"
    ? own.map((word, at) => (/^(-s|--source)$/.test(own[at - 1]) ? word : (/^(--source=|-s)(.+)$/.exec(word) || [])[2])).find(Boolean)
    : all[0];
  const files = [...(dashes < 0 ? [] : words.slice(dashes + 1)), ...(name === "restore" ? all : all.slice(1))];
  if (files.length === 0) return false;
  const other = tree !== undefined && !/^(HEAD|@|--.*)$/.test(tree) && (name === "restore" || all.length > 0);
  return other || files.some((file) => /\/\.*$|[*?[]/.test(file) || /^[a-z0-9_-]+$/.test(file.split("/").pop()));
}

// What each command of git loses with which arguments.
function loses(parts) {
  const { name, words } = parts;
  const any = (...own) => words.some((word) => own.includes(word));
  switch (name) {
    case "push":
    case "send-pack":
    case "http-push":
      return push(words);
    case "reset":
      return long(words, "--hard", 3) || long(words, "--merge", 4) ? "throws away changes or commits" : "";
    case "clean":
      return dry(words, /^(-[dfqxX]*n[dfnqxX]*|--dry-run)$/) || words.length === 0
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
      return words.some((word) => /^--p[a-z]*=(?!\d+\.(day|week|month|year))/.test(word)) ? "deletes what could bring commits back" : "";
    case "repack":
      return (letter(words, "a", "") && letter(words, "d", "")) || words.some((word) => /^--(unpack-unreach|cruft-exp|expire-to)/.test(word))
        ? "deletes what could bring commits back" : "";
    case "prune":
      return sure(words, /^(-[nv]*n[nv]*|--dry-run)$/, /^-[nv]+$/) ? "" : "rewrites history";
    case "filter-repo":
      return sure(words, /^--(dry-run|analyze)$/, /^--(force|quiet|debug)$/) ? "" : "rewrites history";
    case "replace":
      return words.length === 0 || (/^(-l|--list)$/.test(words[0]) && !words.slice(1).some((word) => /^-(?!-format=)/.test(word)))
        ? "" : "rewrites history";
    case "filter-branch":
    case "update-ref":
    case "fast-import":
      return "rewrites history";
    case "subtree":
      return any("push") && (words.some((word) => word.startsWith("+")) || letter(words, "f", "Pm") || long(words, "--force", 4)) ? "forces a push" : "";
    case "symbolic-ref":
      return plain(words).length > 1 || letter(words, "d", "m") ? "moves what HEAD is" : "";
    case "fetch":
    case "pull":
      if (words.some((word) => word.startsWith("+") && !/:refs\/remotes\//.test(word))) return "moves a branch to another commit";
      return letter(words, "f", "ojX") || long(words, "--force", 5) ? "moves a branch to another commit" : "";
    case "worktree":
      return any("remove") && (letter(words, "f", "") || long(words, "--force", 4)) ? "throws away changes that are not committed" : "";
    case "remote":
      return any("add") && long(words, "--mirror", 3) ? "makes pushes delete what is published" : "";
    case "submodule":
      return (any("deinit") && any("--all")) || (any("deinit", "update") && (letter(words, "f", "j") || long(words, "--force", 4))) ? "throws away changes that are not committed" : "";
    default:
      return "";
  }
}

// What can be brought back, for a while.
function rewrites({ name, words }) {
  switch (name) {
    case "checkout":
    case "restore":
      return overwrites({ name, words }) ? "throws away changes that are not committed" : "";
    case "mv":
      return letter(words, "f", "") || long(words, "--force", 4) ? "throws away what lies in its way" : "";
    case "merge":
    case "am":
    case "cherry-pick":
    case "revert":
      return long(words, "--abort", 4) || long(words, "--skip", 4) ? "throws away changes that are not committed" : "";
    case "commit":
      return long(words, "--amend", 4) ? "rewrites the last commit" : "";
    case "reset":
      return long(words, "--keep", 3) ? "moves a branch to another commit" : "";
    case "branch":
      return letter(words, "M", "") ? "renames a branch, whatever has that name" : "";
    case "rebase":
      if (words.length === 1 && /^--(continue|quit|show-current-patch|edit-todo)$/.test(words[0])) return "";
      return long(words, "--abort", 4) || long(words, "--skip", 4) ? "throws away changes that are not committed" : "rewrites history";
    default:
      return "";
  }
}

// Settings that turn a plain push or a cleaning up into a dangerous one.
function settings(command, own) {
  const given = own.name === "config" ? own.words.map((word, at) => `${word}=${own.words[at + 1] || ""}`) : [];
  const options = command.argv.map((word, at) => (/^(-c|--config)$/.test(command.argv[at - 1]) ? word : word.replace(/^(-c|--config=)/, "")));
  return [...given, ...options].some((text) => /^remote\.[^=]*\.push=(\+|[^=]*=\+)/i.test(text)
    || /^remote\.[^=]*\.mirror=(true|yes|on|1)/i.test(text)
    || /^clean\.requireforce=(false|no|off|0)/i.test(text)
    || /^gc\.(reflogexpire|reflogexpireunreachable|pruneexpire)=(now|all|0)/i.test(text));
}

// Other programs that keep history.
function others(command) {
  const rest = command.argv.slice(1).filter((word) => word !== "--");
  const words = plain(rest.filter((_, at) => !/^(-R|--repo|--hostname)$/.test(rest[at - 1]))).slice(0, 3);
  const method = (name) => rest.some((word, at) => new RegExp(`^(-X|--method=|--request=)=?${name}$`, "i").test(word)
    || (new RegExp(`^${name}$`, "i").test(word) && /^(-X|--method|--request)$/.test(rest[at - 1])));
  switch (command.name) {
    case "hg": {
      // Its commands may be told by their beginnings, and options with values may stand before them.
      const asks = (begin, name) => plain(rest).some((word) => word.length >= begin && name.startsWith(word));
      const option = (letters, name) => letter(rest, letters, "RrbBempl") || long(rest, name, 4);
      return asks(4, "strip") || asks(4, "histedit") || asks(4, "rollback") || asks(3, "purge") || (asks(4, "revert") && option("a", "--all"))
        || ((asks(2, "update") || asks(5, "checkout") || rest.includes("co")) && option("C", "--clean")) || (asks(3, "push") && option("f", "--force"));
    }
    case "svn":
      return words.includes("revert") && (letter(rest, "R", "") || long(rest, "--recursive", 5));
    case "jj":
      return words.includes("abandon") || has(command, "--deleted");
    case "gh":
    case "glab":
    case "hub":
      if (words[0] === "api") {
        return method("DELETE") || rest.includes("force=true") || (method("PATCH") && rest.some((word) => /\/git\/refs\b/.test(word)))
          || rest.some((word) => /\b(delete|update)Refs?\b/.test(word));
      }
      return (command.name === "hub" && words[0] === "delete") || /^delete/.test(words[1]) || (words[0] === "repo" && words[1] === "archive") || (words[1] === "sync" && has(command, "--force"))
        || (/(^| )(pr (checkout|co)|co)( |$)/.test(words.join(" ")) && (short(command, "f") || has(command, "--force")));
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
  // Only as the first word they are sure to ask for help.
  return all.map((command) => [command, git(command)]).filter(([, { words }]) => !/^(--help|-h)$/.test(words[0]));
}

// Whether a patch is put on the files here, rather than looked at.
function patches(command) {
  const applies = /^git(-apply)?$/.test(command.name) && git(command).name === "apply";
  const words = command.argv.slice(command.argv[1] === "apply" ? 2 : 1);
  const looks = sure(words, /^--(check|stat|numstat|summary|cached|dry-run|help)$/, /^(-[R3vqsfNE]+|-[RsfNE]*p\d|--(reverse|3way|check|stat|numstat|summary|cached|verbose|quiet|force))$/);
  return (applies || command.name === "patch") && !(looks && !long(words, "--apply", 4));
}

// Whether it is put on the wrong way round.
function reverses(command) {
  const words = command.argv.slice(1);
  return patches(command) && (letter(words, "R", "p") || long(words, "--reverse", 5));
}

// Whether the archive that `git archive` makes is unpacked over what it was made of.
function unpacks(command, archive) {
  const words = command.argv.slice(1);
  const into = (option) => {
    const folder = words.map((word, at) => (option.test(words[at - 1]) ? word : (/^(?:--directory=|-[oC])(.+)/.exec(word) || [])[1]))
      .filter(Boolean).pop() || ".";
    const path = folder.startsWith("/") ? folder : `${command.cwd}/${folder}`;
    // A folder below is another place, unless it alone is in the archive.
    const part = folder === "." || archive.words.some((word) => /.:./.test(word));
    return command.cwd === "" || wide(path, archive.cwd) || (part && path.startsWith(`${archive.cwd}/`));
  };
  // A folder of its own in the archive is another place too.
  const prefix = (/^--prefix=(.+)\/$/.exec(archive.words.find((word) => /^--prefix=/.test(word)) || "") || [])[1];
  const same = words.some((word) => /^(--(strip|transform|xform)|-s|-j|-C|-d|--dir)/.test(word)) || archive.words.some((word) => /:|[$`…]/.test(word));
  if (prefix !== undefined && !same && !/^\/|(^|\/)\.*(\/|$)/.test(prefix)) return false;
  if (command.name === "unzip") return !short(command, "ltpvzZ") && into(/^-d$/);
  if (/^7z[az]?$/.test(command.name)) return /^[xe]$/.test(words[0]) && into(/^$/);
  const extracts = /^[A-Za-z]*x[A-Za-z]*$/.test(words[0]) || words.some((word) => /^-[A-Za-z]*x|^--extract|^--get/.test(word));
  return /^(bsd|g)?tar$/.test(command.name) && extracts && !sure(words, /^(-[xvz]*O[xvz]*|--to-stdout)$/, /^-[xvzO]+$/) && into(/^(-C|--directory)$/);
}

// What puts back over the files here what git has: the reverse of a difference, or an archive of a commit.
function takesBack(event, mine) {
  const told = mine.map(([, parts]) => parts);
  const differs = told.filter(({ name }) => /^diff(-files|-index|-tree)?$/.test(name));
  const shows = ({ name, words }) => /^(diff(-files|-index|-tree)?|show|log)$/.test(name) || (name === "stash" && words[0] === "show");
  const turned = told.filter(shows).some(({ words }) => letter(words, "R", "GOSUl"));
  const packed = told.filter(({ name }) => name === "archive");
  return commands(event).find((command) => (turned && patches(command)) || (differs.length > 0 && reverses(command))
    || packed.some((archive) => unpacks(command, archive)));
}

// Whether `git diff` is told the newer commit first, so that its patch takes back what lies between the two.
function backwards({ name, words }) {
  if (name !== "diff") return false;
  const [from, to = ""] = plain(words).flatMap((word) => word.split(/\.\.+/));
  const before = (commit) => [...commit.matchAll(/~(\d*)|\^|@\{(\d+)\}/g)].reduce((sum, [, back, moved]) => sum + Number(back || moved || 1), 0);
  return from !== undefined && !to.includes("/") && before(to) > before(from);
}

// `word` as a path from the root, as far as it can be known.
function absolute(word, cwd) {
  const parts = [];
  for (const name of (/^[~/]/.test(word) ? word : `${cwd}/${word}`).split("/")) {
    if (name === "..") parts.pop();
    else if (name !== "." && name !== "") parts.push(name);
  }
  return `/${parts.join("/")}`;
}

// Folders that the text fills with what git has, and whether it comes from the repository here.
function filled(mine) {
  return mine.flatMap(([, { name, words, cwd }]) => {
    const [first, second] = plain(words.filter((_, at) => !/^(-[bBco]|--(branch|config|depth|origin|reason))$/.test(words[at - 1])));
    if (name === "worktree" && first === "add" && second !== undefined) return [{ folder: absolute(second, cwd), here: true }];
    if (name !== "clone" || first === undefined) return [];
    const folder = second || first.replace(/\/+$|\.git\/*$/g, "").split(/[/:]/).pop();
    return [{ folder: absolute(folder, cwd), here: /^[.~/]|^file:/.test(first) }];
  });
}

// What copies out of such a folder over the files here: all of them, or some.
function copiesBack(event, mine, wholly) {
  const folders = filled(mine);
  return folders.length === 0 ? undefined : commands(event).find((command) => {
    const words = plain(command.argv.slice(1));
    const below = (word, folder) => `${absolute(word, command.cwd)}/`.startsWith(`${folder}/`);
    const packs = /^(bsd|g)?tar$/.test(command.name);
    if (!packs && (!/^(cp|mv|rsync|install|ditto|ln)$/.test(command.name) || words.length < 2)) return false;
    const target = packs ? "." : words[words.length - 1];
    const unpacked = () => commands(event).some((other) => unpacks(other, { words: [], cwd: event.shell.commands[0].cwd }));
    return folders.some(({ folder, here }) => {
      const sources = packs ? words : words.slice(0, -1);
      if (!sources.some((word) => below(word, folder)) || below(target, folder)) return false;
      const start = event.shell.commands[0].cwd;
      const path = absolute(target, command.cwd);
      if (packs ? unpacked() : path === start || start.startsWith(`${path}/`)) return true;
      return !wholly && here && !packs && path.startsWith(`${start}/`);
    });
  });
}

function danger(event) {
  const mine = own(event);
  for (const [command, parts] of mine) {
    const why = loses(parts) || (settings(command, parts) ? "makes git force or forget" : "");
    if (why) return `${why}: ${line(command)}`;
  }
  const back = mine.length > 0 && (takesBack(event, mine) || copiesBack(event, mine, true));
  if (back) return `throws away changes that are not committed: ${line(back)}`;
  const other = commands(event).find(others);
  return other === undefined ? "" : `rewrites or deletes history: ${line(other)}`;
}

function doubt(event) {
  const mine = own(event);
  for (const [command, parts] of mine) {
    const why = rewrites(parts);
    if (why) return `${why}: ${line(command)}`;
  }
  const turned = mine.some(([, parts]) => backwards(parts));
  const back = commands(event).find((command) => reverses(command) || (turned && patches(command))) || copiesBack(event, mine, false);
  return back === undefined ? "" : `takes changes back: ${line(back)}`;
}

function handle(event) {
  return verdict(event, danger(event), doubt(event));
}
