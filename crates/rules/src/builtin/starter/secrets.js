// Refuses to read keys, tokens, the environment, histories of shells, and the metadata of a cloud.

// Folders and files that are secret wherever they lie.
const ANYWHERE = [
  [".ssh"], [".gnupg"], [".password-store"], [".aws", "credentials"], [".kube", "config"], [".docker", "config.json"],
  [".config", "gh", "hosts.yml"], [".cargo", "credentials"],
];

// Those that are secret in a home folder; in a workspace they hold what is shared.
const OUTSIDE = [
  [".aws"], [".kube"], [".docker"], [".azure"], [".mozilla"], [".oci"], [".npmrc"], [".config", "gh"], [".config", "gcloud"],
  [".config", "glab-cli"], [".config", "op"], [".config", "google-chrome"], [".config", "chromium"], [".config", "sops"],
  [".config", "rclone"], [".local", "share", "keyrings"], ["Library", "Application Support", "Google"],
  ["Library", "Keychains"],
];

// Files that are secret wherever they lie, and names to try patterns such as `.e*` on.
const FILES = /^(\.env|\.env\..+|\.envrc|[._]netrc|\.pypirc|\.git-credentials|\.pgpass|\.my\.cnf|\.vault-token|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519)(_.+)?|.*\.(pem|p12|pfx|ppk|keystore|jks|kdbx)|\..*_?history|credentials\.toml|application_default_credentials\.json|terraform\.tfstate)$/;
const NAMES = [
  ".env", ".env.local", ".netrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token", "id_rsa",
  "id_ed25519", "id_ecdsa", ".bash_history", ".zsh_history", ".python_history",
];

// Files that look like it and are meant to be read.
const OPEN = /^(\.env\.(example|sample|template|dist|test|defaults?)|.*\.pub|known_hosts)$/;

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

const METADATA = /^[a-z+]+:\/\/([^/]*@)?(\[?(fd00:ec2::254|fd20:ce::254|::ffff:(169\.254\.169\.254|a9fe:a9fe))\]?|169\.254\.(169\.25[34]|170\.2|0\.2\.3)|([^/]*[.-])?169[.-]254[.-]169[.-]254\.[a-z.]+|100\.100\.100\.200|168\.63\.129\.16|192\.0\.0\.192|metadata(\.google(\.internal)?|\.goog|\.azure\.com|\.oraclecloud\.com|\.packet\.net|\.tencentyun\.com)?|instance-data(\.ec2\.internal)?|::169\.254\.\d+\.\d+)\.?(:\d*)?:?(\/|$|\s|\?)/i;

function secret(path, outside) {
  const parts = path.split("/").filter((part) => part !== "");
  const file = parts[parts.length - 1] || "";
  if (OPEN.test(file)) return false;
  if (path.startsWith("/") && ofSystem(parts)) return true;
  const rules = outside ? [...ANYWHERE, ...OUTSIDE] : ANYWHERE;
  const rest = (at, rule) => rule.every((name, index) => index === 0 || fits(parts[at + index] || "", name));
  if (parts.some((part, at) => rules.some((rule) => may(part, rule[0]) && rest(at, rule)))) return true;
  return FILES.test(file) || NAMES.some((name) => may(file, name));
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
const TOLD = /SECRET|TOKEN|PASS|PWD$|KEY|CREDENTIAL|AUTH|PRIVATE|COOKIE|DSN|_URL$|[$…`*]/i;

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
      return /^[ajlmrsuvwxhSTH]*e[aejlmrsuvwxhSTH]*$/.test(words[0] || "");
    case "history":
      // A shell into which nobody types has no history, until it is told to read one.
      return typed ? words.length === 0 || words.some((word) => /^(-r|\d+)$/.test(word)) : words.some((word) => /^-[a-z]*[rn]/.test(word));
    case "fc":
      return true;
    default:
      return false;
  }
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
  kubectl: [["get", /^secrets?(\/|$)/], ["describe", /^secrets?(\/|$)/], ["config", "view", "--raw"], ["create", "token"]],
  oc: [["get", /^secrets?(\/|$)/], ["whoami", "-t"], ["config", "view", "--raw"]],
  npm: [["config", "get", /auth|token|password/i], ["token"]],
  getent: [[/^g?shadow$/]],
  git: [["credential", "fill"], [/^credential-/, "get"]],
};

function tellsSecret(command) {
  const words = before(command);
  if (/^(docker|podman|nerdctl)$/.test(command.name) && told(command).includes("inspect")) {
    const format = words.find((word, at) => /^(-f|--format)$/.test(words[at - 1]) || word.startsWith("--format="));
    return format === undefined || /Env|json|\{\{ *\.(Config)? *\}\}/.test(format);
  }
  const said = (own) => words.some((word) => (typeof own === "string" ? word === own : own.test(word)));
  return row(KEEPERS, command, []).some((words) => words.every(said));
}

// Programs that tell of a file only that it is there.
const LISTS = /^(ls|stat|du|tree|find|test|\[|cd|pwd|true|chmod|mkdir)$/;

// Whether `path` is only listed: every command lists, and one of them names it.
function listed(event, path) {
  const all = commands(event);
  const words = all.flatMap((command) => command.argv.slice(1));
  if (!all.every((command) => LISTS.test(command.name)) || words.some((word) => /[`…]|\$\(/.test(word))) return false;
  return words.some((word) => path === word || path.endsWith(`/${word.replace(/^(\.?\/)+|\/+$/g, "")}`));
}

function danger(event) {
  const reads = paths(event, "reads");
  const outside = paths(event, "outside");
  const path = reads.find((path) => secret(path, outside.includes(path)) && !listed(event, path));
  if (path !== undefined) {
    return path === "/proc/self/environ" ? "reads secrets of the environment" : `reads ${path}, which may hold secrets`;
  }
  const all = commands(event);
  const home = reads.find((path) => HOMES.test(path));
  const carrier = all.find((command) => CARRIES.test(command.name));
  if (home !== undefined && carrier !== undefined) return `reads all of ${home}, and secrets with it: ${line(carrier)}`;
  const url = paths(event, "urls").find((url) => METADATA.test(url));
  if (url !== undefined) return `asks for the metadata of a cloud: ${url}`;
  const typed = all.some((command) => TYPED.test(command.name) && short(command, "il"));
  for (const command of all.filter((command) => !has(command, "--help", "--version"))) {
    if (tells(command, typed)) return `tells the environment or the history: ${line(command)}`;
    if (tellsSecret(command)) return `tells a secret: ${line(command)}`;
  }
  // Other tools name the file that they read.
  const file = event.toolInput && event.toolInput.path;
  const away = /^[~/]/.test(file) || /(^|\/)\.\.(\/|$)/.test(file);
  return typeof file === "string" && secret(file, away) ? `reads ${file}, which may hold secrets` : "";
}

function handle(event) {
  return verdict(event, danger(event));
}
