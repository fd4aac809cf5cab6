// Refuses to read keys, tokens, the environment and histories of shells.

// Folders and files that are secret wherever they lie.
const ANYWHERE = [
  [".ssh"], [".gnupg"], [".password-store"], [".aws", "credentials"], [".kube", "config"], [".docker", "config.json"],
  [".config", "gh", "hosts.yml"], [".cargo", "credentials"], [".claude", ".credentials.json"], [".codex", "auth.json"],
  [".config", "hub"], [".gem", "credentials"], [".terraform.d", "credentials.tfrc.json"], [".gemini", "oauth_creds.json"],
];

// Those that are secret in a home folder; in a workspace they hold what is shared.
const OUTSIDE = [
  [".aws"], [".kube"], [".docker"], [".azure"], [".mozilla"], [".oci"], [".npmrc"], [".config", "gh"], [".config", "gcloud"],
  [".config", "glab-cli"], [".config", "op"], [".config", "google-chrome"], [".config", "chromium"], [".config", "sops"],
  [".config", "rclone"], [".local", "share", "keyrings"], ["Library", "Application Support", "Google"],
  ["Library", "Keychains"], [".claude.json"], [".yarnrc.yml"], [".kaggle"], [".fly"], [".m2", "settings.xml"], [".bundle", "config"],
  [".gradle", "gradle.properties"], [".config", "doctl"], [".config", "goose"], [".aider.conf.yml"], [".continue"], [".cursor", "mcp.json"], [".cursor", "cli-config.json"],
];

// What programs call the file in a hidden folder of a home in which they keep how they log in.
const LOGINS = ["auth.json", "credentials.json", "token", "hosts.yml"];
const LOGIN = /^((oauth_?)?(auth|creds|credentials|accounts|tokens?|secrets?)|google_accounts|access_token|api_?key|key|hosts|apps)(\.(json|ya?ml|toml))?$/i;

// Files that are secret wherever they lie, and names to try patterns such as `.e*` on.
const FILES = /^(\.env~?|\.env[._-].+|.+\.env|(\.|#)\.env(\.sw.|#)|\.envrc|[._]netrc|\.pypirc|\.git-credentials|\.pgpass|\.my\.cnf|\.vault-token|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519)(_.+)?|.*\.(pem|p12|pfx|ppk|keystore|jks|kdbx|key|keytab)|\..*_?history|fish_history|\.s3cfg|\.boto|credentials\.(toml|json)|service[-_]?account.*\.json|application_default_credentials\.json|terraform\.tfstate)$/;
const NAMES = [
  ".env", ".env.local", ".netrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token", "id_rsa",
  "id_ed25519", "id_ecdsa", ".bash_history", ".zsh_history", ".python_history", ".s3cfg", ".boto",
];

// Files that look like it and are meant to be read.
const OPEN = /^(\.env[._-](example|sample|template|dist|test|defaults?)|(.+[._-])?(example|sample|template|dist|test|defaults?)\.env|(.+\.)?(process|meta)\.env|(.+[._-])?pub(lic)?\.key|.*[._-](example|sample|template|schema)\.json|.*\.pub|known_hosts)$/;

// Files of the system.
const SYSTEM = [
  ["etc", "shadow"], ["etc", "gshadow"], ["etc", "shadow-"], ["etc", "sudoers"], ["etc", "sudoers.d"],
  ["etc", "ssl", "private"], ["etc", "ssh", "ssh_host_rsa_key"], ["etc", "ssh", "ssh_host_ed25519_key"],
  ["run", "secrets"], ["var", "run", "secrets"], ["var", "lib", "docker", "containers"], ["proc", "kcore"],
  ["dev", "mem"], ["dev", "kmem"],
];

// Whole folders that hold secrets among other things: no matter to list, one to copy or to search.
const HOMES = /^(~[^/]*|\/|\/root|\/home|\/home\/[^/]+|\/Users\/[^/]+|\/proc(\/(\d+|self|thread-self|[^/]*[*?[\]$][^/]*))?)(\/\*+)?$/;
const CARRIES = /^(tar|zip|7z|cp|rsync|scp|grep|egrep|fgrep|rg|ag)$/;

// Programs whose files the facts tell, or that only name them: their words are looked at only where the table says so.
const KNOWN = new RegExp(`^(${[
  "\\[+|[.:]|test|echo|printf|cd|pushd|pwd|export|declare|typeset|local|readonly|read|set|unset|alias|source|eval|exec|command|trap",
  "cat|head|tail|wc|tac|rev|sort|uniq|cut|nl|od|xxd|hexdump|strings|diff|cmp|comm|less|more|bat|file|stat|ls|exa|eza|tree|du|df",
  "readlink|realpath|basename|dirname|[efgz]?grep|rg|ag|ack|g?sed|[gmn]?awk|yq|gojq|jaq|dasel|xq|tomlq|find|fd|fdfind|locate",
  "rm|rmdir|unlink|shred|trash|trash-put|mv|cp|install|ln|scp|sftp|rsync|mkdir|touch|truncate|chmod|chown|chgrp|chattr|setfacl|tee",
  "dd|(bsd|g)?tar|zip|unzip|gzip|gunzip|patch|git|git-.*|hub|gh|glab|hg|svn|curl|wget|ssh|ssh-.*|openssl|keytool|gpg2?|age|sops|mkcert",
  "certbot|sudo|doas|env|nohup|timeout|xargs|parallel|time|nice|watch|[bdzk]?a?sh|fish|python[\\d.]*|node|deno|bun|perl|ruby|php|make",
  "docker(-compose)?|podman|nerdctl|buildah|dotenv|env-cmd|foreman|honcho|direnv|vercel|netlify|railway|wrangler",
  "npm|npx|pnpm|yarn|redis-cli|gsettings|dconf|defaults|vim?|nvim|nano|emacs|code|man|which|type|help|true|false",
].join("|")})$`);

// Options of a key or a certificate, of variables, of a pattern or a text; those whose value is a text if there is a blank
// in it; what a key and variables are called.
const KEYS = /^--?([\w-]*key(-?file)?|[\w-]*cert[\w-]*|[\w-]*ca|ca-?(file|path)|verify|identity)$|^IdentityFile$|^-D[\w.]*store$/i;
const VARIABLES = /^--?env-?file$/;
const TEXTS = /^--?((exclude|ignore|skip|not|filter)[\w-]*|glob|include|message|title|body|description|comment|text|subject|notes?|name|label|query|jq|pattern|regexp?|prompt)(=|$)|^(-o=?)?(jsonpath|go-template|custom-columns)\b/;
const COMPILERS = /^(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cpp|tcc)(-\d+)?$/;
const SPOKEN = /^-[mMtkgp]$/;
const KEY = /\.(key|pem|crt|json|p12|pfx|jks|ppk)$|\bid_\w+$|\/\.ssh\/[^/]+$/;
const SETTINGS = /\.env[^/]*$|[^/]+\.env$/;

// What programs do with the files among their words. With one of `names` they tell of them only that they are there, how
// large, how old, alike or not, or change them unseen, unless a word is one of `but`. `uses` are options of keys. `gives`
// is a command line of theirs whose words are files that are shown, kept or sent, `part` what of a word is such a file.
const PROGRAMS = [
  { is: /^(ls|exa|eza|stat|test|\[+|cd|pwd|true|chmod|mkdir|touch|rm|unlink|readlink|realpath|basename|dirname)$/, names: /^/ },
  { is: /^((md5|b2|sha\d*)(sum)?|cksum|sum)$/, names: /^/, but: /^-\w*[cps]|^--ch/ },
  { is: /^(wc|du|tree|find)$/, names: /^/, but: /^--?fi?les0|^--f|^-(fls|fprint)/ },
  { is: /^file$/, names: /^/, but: /^-\w*[fmC]|^--(f|m|comp)/ },
  { is: /^[ef]?grep$/, names: /^(-[EFGHILPRTUZabhilnorsvwxz]*[qclL]\w*|--(quiet|silent|count|files-with(out)?-match(es)?))$/, but: /^-\w*[ef]|^--(reg|fil?e?$|fil?e?=|lab|exc|inc|gro)/ },
  { is: /^diff$/, names: /^(-\w*q|--brief)$/, but: /^-(?!(-brief|[rNabBwisq]+)$)/ },
  { is: /^cmp$/, names: /^(-s|--quiet|--silent)$/ },
  { is: /^g?sed$/, names: /^(-[nErsz]*i|--in-place=?)(\.(bak|old|orig|save))?$/, edits: true },
  { is: /^(cp|mv)$/, names: /^/, but: /^-\w*[bSt]|^--[bst]/, keeps: true },
  { is: /^(curl|wget)$/, uses: /^-E$/, gives: /^/, part: /[@<,]["']?([^"'=<@,;]+)/g },
  { is: /^openssl$/, uses: /^-(in|CA\w*|(key)?out|signkey|untrusted)$/, when: /^(verify|s_client|x509|gen\w+|ecparam|req|ca|s_server) |^(rsa|pkey|ec) (?!.*-text|.* -out -).* -(pubout|noout) |^pkcs12 (?!.* -out .* -out ).*-export .*-out \S+\.(p12|pfx) / },
  { is: /^(ssh|scp|sftp)$/, uses: /^-i$/ },
  { is: /^http-server$/, uses: /^-[CK]$/ },
  { is: /^(docker|podman|nerdctl|docker-compose)$/, variables: true },
  { is: /^git$/, gives: /\b(annotate|archive|format-patch|whatchanged|mv|update-index .*--(add|cacheinfo|stdin)) |\blog .*(-\w*[pu]|--patch\S*|-L\S*|-c) |\b(add|stage) .*(-\w*f|--force) / },
  { is: /^yq$/, gives: /\bload\w*\(/ },
  { is: /^gh$/, gives: /^(gist|release) / },
  { is: /^parallel$/, gives: /::::/ },
];

// Those with `gives`.
const GIVES = /^(curl|wget|git|yq|gh|parallel)$/;

// The row for a program.
const ROWS = Object.create(null);
function program(name) {
  if (!(name in ROWS)) ROWS[name] = PROGRAMS.find(({ is }) => is.test(name)) || {};
  return ROWS[name];
}

// What counts as a file among other text: `tls.key` may be a member of something.
const PLAIN = /^([.~/]|id_)|\/|\.(pem|p12|pfx|kdbx|keytab|jks)$/;

// The files that word `at` may name: all of it, what is glued to an option, what stands in its text.
function named({ name, argv }, at) {
  const before = argv[at - 1];
  const spoken = SPOKEN.test(before) && /\s/.test(argv[at]);
  const text = TEXTS.test(argv[at]) || (TEXTS.test(before) && !before.includes("="));
  if (spoken || (text && !COMPILERS.test(name)) || filter(name, argv, at)) return [];
  const word = argv[at].includes(":") ? argv[at].replace(/\bfile:(\/\/)?/gi, "").replace(/\b[a-z][a-z0-9+.-]*:\/\/\S*/gi, "") : argv[at];
  const [, option, own] = /^(--?[^=]*=)?(.*)$/s.exec(word);
  if (VARIABLES.test(option ? option.slice(0, -1) : before) || uses(name, option ? option.slice(0, -1) : before, own)) return [];
  if (/[\s"'`()[\]{}<>]/.test(own)) {
    const plain = own.replace(/\b[\w-]*(key|cert|ca)=\S+\.(pem|key|crt|p12)\b/gi, "");
    return plain.split(/[\s"'`()[\]{}<>,:;=|@]+/).filter((part) => PLAIN.test(part));
  }
  // Of `-include.env` and `-fid_rsa` the file.
  if (!option && own.startsWith("-")) return own.startsWith("--") ? [] : [own.slice(2), (/(\.env|[~.]*\/).*$/.exec(own) || [""])[0]];
  const parts = own.split(/[,:;|@]/).flatMap((part) => {
    const [last, ...rest] = part.split("=").reverse();
    return [last, ...rest.filter((left) => PLAIN.test(left))];
  });
  return [own, ...parts].map((part) => part.replace(/^\++/, ""));
}

// Whether word `at` is what `jq` does with its files, or a text for it.
function filter(name, argv, at) {
  if (name !== "jq" || argv.some((word) => /^(-\w*f|--from-file|--(raw|slurp)file=.*)$/.test(word))) return false;
  if (/^--arg(json)?$/.test(argv[at - 2])) return true;
  const operand = (word, place) => place > 0 && !word.startsWith("-") && !/^(--indent|-L)$/.test(argv[place - 1])
    && ![1, 2].some((back) => /^--(arg(json)?|(raw|slurp)file)$/.test(argv[place - back]));
  return argv.findIndex(operand) === at;
}

// Whether `option` of the program `name` is that of a key, which `path` is.
function uses(name, option, path) {
  const row = program(name);
  return KEY.test(path) && (row.uses?.test(option) || (KEYS.test(option) && (!KNOWN.test(name) || row.uses !== undefined)));
}

// A secret file among the words of a program that may do anything with it.
function handed(command) {
  const known = KNOWN.test(command.name);
  if (known && !GIVES.test(command.name)) return undefined;
  const row = program(command.name);
  const gives = row.gives?.test(`${command.argv.slice(1).join(" ")} `);
  if (known && !gives) return undefined;
  for (let at = 1; at < command.argv.length; at++) {
    const word = command.argv[at];
    if (!gives && unseen(command, at)) continue;
    const sends = /^[^\s{]*[@<]/.test(word) && !/:\/\//.test(word);
    const files = !row.part ? named(command, at) : sends ? [...word.matchAll(row.part)].map(([, own]) => own) : [];
    const file = files.find((path) => secret(path, /^[~/]/.test(path)));
    if (file !== undefined) return file;
  }
  return undefined;
}

// Whether the program only names or uses the secret file in word `at`.
function unseen({ name, argv }, at) {
  const row = program(name);
  if (filter(name, argv, at)) return true;
  const own = before({ argv });
  if (row.names) {
    const files = own.filter((word) => !word.startsWith("-"));
    // What is a secret by its new name too is still known as one.
    if ((row.keeps && (files.length !== 2 || !secret(files[1], false))) || (row.edits && !edits(own))) return false;
    return ["", ...own].some((word) => row.names.test(word)) && !own.some((word) => row.but?.test(word));
  }
  const [, option = argv[at - 1], path] = /^(?:(-{0,2}[A-Za-z][^=]*)=)?(.*)$/s.exec(argv[at]);
  if (row.variables) return VARIABLES.test(option) && SETTINGS.test(path);
  return uses(name, option, path) && row.when?.test(`${own.map((word) => word.replace(/\s/g, "_")).join(" ")} `) !== false;
}

// Whether all that `sed` does is to substitute, to delete and to insert.
function edits(words) {
  const given = words.flatMap((word, at) => (/^(-e|--expression)$/.test(words[at - 1]) ? [word] : []));
  const scripts = given.length > 0 ? given : words.filter((word) => word !== "" && !word.startsWith("-")).slice(0, 1);
  const step = /^\s*((\d+|\$|\/([^/\\\n]|\\.)*\/)(,(\d+|\$|\/([^/\\\n]|\\.)*\/))?)?\s*!?\s*(d|s([/|#,@:])((?!\8)[^\\\n]|\\.)*\8((?!\8)[^\\\n]|\\.)*\8[gIi\d]*|[aic][^\n]*)\s*(;|\n|$)/;
  return scripts.length > 0 && !words.some((word) => /^(-\w*f|--f|-\w*e.+|-\w+e$|--exp(?!ression$))/.test(word)) && scripts.every((script) => {
    let rest = script;
    while (rest !== "" && step.test(rest)) rest = rest.replace(step, "");
    return rest === "";
  });
}

// Programs that read files which no word of theirs names.
const BLIND = /^(xargs|parallel|read|mapfile|readarray|eval|source|\.|python[\d.]*|node|deno|bun|perl|ruby|php|[gmn]?awk|(bsd|g)?tar|cpio|pax)$/;

// Whether `path`, which is read, is not shown: all words that have it only name or use it.
function hidden(event, path) {
  const text = event.toolInput && event.toolInput.command;
  if (typeof text !== "string" || /[<`]/.test(text)) return false;
  const base = path.replace(/\/+$/, "").split("/").pop();
  let found = false;
  for (const command of commands(event)) {
    if (BLIND.test(command.name)) return false;
    for (let at = 1; at < command.argv.length; at++) {
      const word = command.argv[at];
      if (/[`…]|\$\(/.test(word)) return false;
      if (!word.includes(base)) continue;
      // `ssh` is a command of its own.
      if (!/^([\w.]*=)?ssh .*-i \S+$/.test(word) && !unseen(command, at)) return false;
      found = true;
    }
  }
  return found;
}

// The one question: which secret file does `event` show or carry off? The answer is a reason.
function shows(event) {
  const reads = paths(event, "reads");
  const outside = paths(event, "outside");
  const path = reads.find((path) => secret(path, outside.includes(path)) && !hidden(event, path));
  if (path !== undefined) {
    return path === "/proc/self/environ" ? "reads secrets of the environment" : `reads ${path}, which may hold secrets`;
  }
  const all = commands(event);
  const home = reads.find((path) => HOMES.test(path));
  const carrier = all.find((command) => CARRIES.test(command.name));
  if (home !== undefined && carrier !== undefined) return `reads all of ${home}, and secrets with it: ${line(carrier)}`;
  for (const command of all.filter((command) => !has(command, "--help", "--version"))) {
    const file = handed(command);
    if (file !== undefined) return `hands ${file} on, which may hold secrets: ${line(command)}`;
    if (searches(command)) return `shows whatever is there, and secrets with it: ${line(command)}`;
  }
  return byTool(event);
}

// Other tools name the file that they read, or where and what they search.
function byTool(event) {
  const input = event.toolInput || {};
  const { glob, pattern } = input;
  const named = Object.keys(input).filter((key) => /^((file|absolute|notebook)?_?paths?|files?|filename|src|source|from|uri)$/i.test(key)).flatMap((key) => input[key]);
  const file = /^mcp_.*(info|stat|exists)$/.test(event.toolName) ? undefined : named.map((own) => String(own).replace(/^file:\/\//, ""))
    .find((own) => secret(own, /^[~/]|(^|\/)\.\.(\/|$)/.test(own)));
  if (file !== undefined) return `reads ${file}, which may hold secrets`;
  const found = typeof glob === "string" ? picked(glob) : { secrets: true, others: true };
  if (event.toolName !== "search_text" || !found.secrets) return "";
  if (!found.others) return `searches ${glob}, which may hold secrets`;
  return showsAll(pattern) ? `shows whatever is there, and secrets with it: ${pattern}` : "";
}

// Options of searches whose value stands in the next word; letters that may stand before another one.
const VALUED = /^(-[a-zA-Z.]*[efmABCDdgtTG]|--(regexp|file|max-count|(after|before)?-?context|include|exclude(-dir)?|i?glob|type(-not)?|label|group-separator|directories|devices|color|sort|threads|max-depth))$/;
const FLAGS = "-[^-efmABCdDtTgG]*";
// All of a folder, or what a search found.
const WIDE = /^(\.{0,2}\/*|(\.\/)?(\*\.)?\*+|\.\/\.|.*\/\*\*\/\*|~.*|\/[^/]*\/?)$/;

// Whether `command` looks into all of a folder for what stands in any line.
function searches({ name, argv, cwd }) {
  if (!/grep$|diff$|^(git|rg|ag|ack)$/.test(name)) return false;
  const end = argv.indexOf("--");
  const words = before({ argv });
  const all = (word) => WIDE.test(word) || (cwd !== "" && `${cwd}/`.startsWith(`${word.replace(/\/+(\.\/*)?$/, "")}/`));
  if (/^(color)?diff$/.test(name)) {
    const some = (option) => words.some((word) => option.test(word));
    return some(/^-\w*r|^--rec/) && some(/^-\w*[NPa]|^--(unid|new)/) && !some(/^-\w*q|^--br/) && words.some((word) => !word.startsWith("-") && all(word));
  }
  const options = words.filter((_, at) => at === 0 || !VALUED.test(words[at - 1]));
  const option = (letters, long) => options.some((word) => new RegExp(`^${FLAGS}[${letters}]|^--(${long})`).test(word));
  const own = name === "git" ? argv.indexOf("grep") : -1;
  if (own > 0 && option("\0", "no-ind|untr|no-excl")) return searches({ name: "rgrep", argv: argv.slice(own), cwd });
  const greps = /^([efgzr]|pcre2?|u)?grep$/.test(name);
  if (!(greps || /^(rg|ag|ack)$/.test(name)) || option("qclL", "quiet|silent|count|files")) return false;
  const recurses = option("rR", "rec|deref") || words.some((word) => /^(-d|--dir\w*=)?recurse$/.test(word));
  const deep = name === "rgrep" || (greps ? recurses : option("u.", "hid|unr|no-ignore"));
  const values = (names) => words.flatMap((word, at) => {
    const glued = new RegExp(`^(?:${names})=?(.+)$`, "s").exec(word);
    return glued ? [glued[1]] : new RegExp(`^(?:${names})$`).test(words[at - 1]) ? [word] : [];
  });
  const globs = values("--include|-g|--i?glob");
  if (globs.length > 0 && !globs.some((glob) => glob.startsWith("!") || picked(glob).secrets)) return false;
  const operands = options.filter((word) => !word.startsWith("-"));
  if (end > 0) operands.push(...argv.slice(end + 1));
  const given = [...values(`${FLAGS}e|--regexp`), ...values(`${FLAGS}f|--file`).map(() => "")];
  const patterns = given.length > 0 ? given : operands.splice(0, 1);
  const places = operands.length > 0 || !deep ? operands : ["."];
  if (!places.some((place) => (deep ? all(place) : /\/\*\*\/\*$/.test(place)))) return false;
  const fixed = name === "fgrep" || option("F", "fixed");
  const basic = /^[gr]?grep$/.test(name) && !option("EP", "ext|perl");
  const flags = option("iS", "ignore-case|smart") ? "(?i)" : "";
  return option("v", "inv") || patterns.flatMap((text) => text.split("\n")).some((text) => {
    if (fixed) return showsAll(text.replace(/[^\w=]/g, "\\$&"));
    // In a basic pattern it is the bracket with a backslash that means something.
    return showsAll(flags + (basic ? text.replace(/\\?[(){}|+?]/g, (mark) => (mark.length > 1 ? mark[1] : `\\${mark}`)) : text));
  });
}

function secret(path, outside) {
  const parts = path.split("/").filter((part) => part !== "");
  const file = parts[parts.length - 1] || "";
  if (OPEN.test(file)) return false;
  if (path.startsWith("/") && ofSystem(parts)) return true;
  // Most paths are no patterns.
  const open = /[*?[]/.test(path);
  const is = open ? may : (part, name) => part === name;
  const rest = (at, rule) => rule.every((name, index) => index === 0 || (open ? fits : is)(parts[at + index] || "", name));
  const rules = outside ? [...ANYWHERE, ...OUTSIDE] : ANYWHERE;
  if (parts.some((part, at) => rules.some((rule) => is(part, rule[0]) && rest(at, rule)))) return true;
  const kept = outside && parts.slice(0, -1).some((part) => part.startsWith("."));
  if (kept && (LOGIN.test(file) || LOGINS.some((name) => is(file, name)))) return true;
  // A copy beside it is no other file.
  return FILES.test(file.replace(/(\.(bak|old|orig|save|copy))+$/, "")) || NAMES.some((name) => is(file, name));
}

function ofSystem(parts) {
  // `/proc/self/root` is `/` by another name.
  const own = parts[0] === "proc" && parts[2] === "root" ? parts.slice(3) : parts;
  // A link of a process leads to any folder, by another name.
  const leads = own[0] === "proc" && own.length > 3 && ["root", "cwd", "fd", "task"].some((name) => fits(own[2], name));
  if (leads || (own[0] === "dev" && own[1] === "fd" && own.length > 3)) return true;
  if (own[0] === "proc" && own.length > 2 && ["environ", "mem"].some((name) => fits(own[2], name))) return true;
  // `**` stands for any folders.
  const found = own.includes("**") && own[own.length - 1];
  return SYSTEM.some((rule) => rule.every((name, at) => fits(own[at] || "", name)) || (found && may(found, rule[rule.length - 1])));
}

// Variables that hold secrets, and names that cannot be known.
const TOLD = /SECRET|TOKEN(?!IZER)|PASS|PWD$|KEY(?!BOARD|MAP|CODE|WORD)|CREDENTIAL|AUTH|PRIVATE|COOKIE|DSN|_URL$|[$…`*]/i;

// Shells that can be told to behave as if somebody typed into them.
const TYPED = /^(bash|zsh|ksh|sh|fish)$/;

// Commands that print variables: all of them, or one by its name.
function tells(command, typed) {
  const words = command.argv.slice(1);
  const options = words.every((word) => word.startsWith("-"));
  switch (command.name) {
    case "printenv":
      return options || words.some((word) => TOLD.test(word));
    case "env":
      return bare(words);
    case "set":
      return words.length === 0;
    case "export":
    case "declare":
    case "typeset":
    case "readonly":
    case "local":
      if (options) return words.every((word) => !/[fF]/.test(word));
      return words[0].startsWith("-p") && words.some((word) => TOLD.test(word));
    case "compgen":
      return short(command, "ev");
    case "ps":
      return processes(words);
    case "pargs":
      return short(command, "e");
    case "procstat":
      return words.some((word) => /^(-e|e|penv|env|environment)$/.test(word));
    case "systemctl":
      return words.some((word) => /^(show-environment|Environment|--property=Environment.*|-pEnvironment.*)$/.test(word));
    case "launchctl":
      return words[0] === "getenv" || words[0] === "export";
    case "tmux":
      return words.some((word) => /^(show-environment|showenv)$/.test(word));
    case "history":
      // A shell into which nobody types has no history, until it is told to read one.
      return typed ? words.length === 0 || words.some((word) => /^(-r|\d+)$/.test(word)) : words.some((word) => /^-[a-z]*[rn]/.test(word));
    case "fc":
      return true;
    default:
      return false;
  }
}

// Whether `ps` is told to show the environment of processes: an `e` without a dash, wherever it stands, or an `E`.
function processes(words) {
  // Options whose values stand in the next word.
  const valued = /^(-[A-Za-z]*[oOCuUgGpqsttN]|--(format|user|User|group|Group|pid|ppid|sid|tty|sort|cols|columns|rows|lines|width))$/;
  return words.some((word, at) => {
    if (/^-[A-Za-z]*E/.test(word) || /\benviron\b/.test(word)) return true;
    const value = at > 0 && (valued.test(words[at - 1]) || /^[a-zA-Z]*[oOkUptN]$/.test(words[at - 1]));
    return !value && /^[aAcfghjlLmnrsSTuvwxXZH]*e[aAcefghjlLmnrsSTuvwxXZHoO]*$/.test(word);
  });
}

// Whether `env` has no command to run.
function bare(words) {
  for (let at = 0; at < words.length; at++) {
    if (/^(-u|--unset|-C|--chdir)$/.test(words[at])) at++;
    else if (/^(-S|--split-string)/.test(words[at]) || !/^-|^[A-Za-z_]\w*=/.test(words[at])) return false;
  }
  return true;
}

// Programs that keep secrets, and the words with which they tell one: all of a row, in any order.
const KEEPERS = {
  vault: [["read"], ["kv", "get"], ["print"]],
  op: [["read"], ["get"], ["--reveal"]],
  bw: [["get"], ["export"]],
  pass: [["show"]],
  gopass: [["show"]],
  lpass: [["show"], ["export"]],
  "cloud-init": [["query"]],
  keyctl: [["print"], ["read"], ["pipe"]],
  security: [["find-generic-password"], ["find-internet-password"], ["dump-keychain"]],
  "secret-tool": [["lookup"]],
  sops: [["-d"], ["--decrypt"], ["decrypt"], ["exec-env"]],
  "ansible-vault": [["view"], ["decrypt"]],
  age: [["-d"], ["--decrypt"]],
  gpg: [["-d"], ["--decrypt"], ["--export-secret-keys"], ["--export-secret-subkeys"]],
  gpg2: [["-d"], ["--decrypt"], ["--export-secret-keys"], ["--export-secret-subkeys"]],
  aws: [
    ["configure", "get"], ["configure", "export-credentials"], ["get-secret-value"], ["get-session-token"],
    ["assume-role"], ["--with-decryption"], ["get-login-password"], ["get-federation-token"],
  ],
  gcloud: [["print-access-token"], ["print-identity-token"], ["secrets", "access"]],
  az: [["get-access-token"], ["keyvault", "secret", "show"], ["list-keys"]],
  gh: [["auth", "token"], ["auth", "--show-token"], ["auth", "status", "-t"]],
  glab: [["auth", "status", "-t"], ["auth", "status", "--show-token"]],
  heroku: [["config"], ["config:get"], ["auth:token"]],
  doctl: [["auth", "token"]],
  direnv: [["export"], ["dump"]],
  caddy: [["--environ"], ["environ"]],
  dotenv: [["list"], ["get"]],
  dotenvx: [["get"], ["decrypt"]],
  kubectl: [["get", /^secrets?(\/|$)/], ["describe", /^secrets?(\/|$)/], ["config", "view", "--raw"], ["create", "token"]],
  oc: [["get", /^secrets?(\/|$)/], ["whoami", "-t"], ["config", "view", "--raw"]],
  npm: [["config", "get", /auth|token|password/i], ["token"]],
  terraform: [["state", "pull"]],
  getent: [[/^g?shadow$/]],
  git: [["credential", "fill"], [/^credential-/, "get"]],
};

function tellsSecret(command) {
  const words = before(command);
  if (/^(docker|podman|nerdctl)$/.test(command.name) && told(command).includes("inspect")) {
    const format = words.find((word, at) => /^(-f|--format)$/.test(words[at - 1]) || word.startsWith("--format="));
    return format === undefined || /Env|json|\{\{ *\.(Config)? *\}\}/.test(format);
  }
  // With the values that an `.env` gives them.
  const verb = words.find((word) => /^(config|convert|up|down|run|exec|logs|ps|build|pull|push|start|stop|restart|cp|rm|create|ls|images)$/.test(word));
  if (/^con/.test(verb) && (command.name === "docker-compose" || words.includes("compose"))) {
    return !has(command, "-q", "--quiet", "--services", "--images", "--profiles", "--volumes", "--networks", "--no-interpolate");
  }
  const said = (own) => words.some((word) => (typeof own === "string" ? word === own : own.test(word)));
  return row(KEEPERS, command, []).some((words) => words.every(said));
}

function danger(event) {
  const shown = shows(event);
  if (shown) return shown;
  const all = commands(event);
  const typed = all.some((command) => TYPED.test(command.name) && short(command, "il"));
  for (const command of all.filter((command) => !has(command, "--help", "--version"))) {
    if (tells(command, typed)) return `tells the environment or the history: ${line(command)}`;
    if (tellsSecret(command)) return `tells a secret: ${line(command)}`;
  }
  return "";
}

// Files of both kinds, which tell what a glob is about.
const SECRETS = [".env", "prod.env", ".env.local", "id_rsa", "id_ed25519", "server.key", "server.pem", ".npmrc", ".netrc", "credentials.json", ".git-credentials", ".pypirc"];
const OTHERS = ["main.rs", "index.js", "README.md", "a.txt", "b.json", "x.py", "y.toml", "z.yaml"];

// Whether `glob` picks files that hold secrets, and others.
function picked(glob) {
  const last = glob.slice(glob.lastIndexOf("/") + 1);
  const parts = { "*": ".*", "?": ".", "{": "(", "}": ")", ",": "|" };
  const text = last.replace(/[.+^$()|\\]/g, "\\$&").replace(/[*?{},]/g, (mark) => parts[mark]).replace(/\[!/g, "[^");
  try {
    const expression = new RegExp(`^(${text})$`);
    return { secrets: SECRETS.some((name) => expression.test(name)), others: OTHERS.some((name) => expression.test(name)) };
  } catch {
    return { secrets: true, others: true };
  }
}

// Lines that have nothing in common, and those of variables, which have a little.
const LINES = [["K=1", "zz"], ["DB_PASSWORD=hunter2", "X_TOKEN=9f", "A_KEY=zz"]];

// Whether `pattern` finds lines that have nothing in common.
function showsAll(pattern) {
  // Flags, classes and names of groups are written otherwise here than in the search.
  const folded = /^\(\?[a-z]*i/.test(String(pattern)) ? "i" : "";
  const text = String(pattern).replace(/\[\[:\^?\w+:\]\]|\\[pP](\{[^}]*\}|\w)/g, "\\S").replace(/\[:\^?\w+:\]/g, "\\S").replace(/\(\?[a-zA-Z-]*\)/g, "");
  try {
    const expression = new RegExp(text.replace(/\(\?(P?<\w+>|[a-zA-Z-]+:)/g, "(?:").replace(/^\*/, ""), folded);
    return LINES.some((lines) => lines.every((line) => expression.test(line)));
  } catch {
    // What cannot be read here shows whatever there is, unless it asks for a word.
    return !/\w{3}/.test(text.replace(/\\./g, ""));
  }
}

function handle(event) {
  return verdict(event, danger(event));
}
