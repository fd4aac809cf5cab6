// Refuses to change what lies outside of the workspace and to have programs of the person run something, and asks about
// acting as somebody else.

// Below these folders anybody may write.
const SCRATCH = ["/tmp/", "/var/tmp/", "/dev/shm/"];

// What only takes or gives bytes.
const DEVICES = /^\/(dev\/(null|stdin|stdout|stderr|tty|fd\/\d+)|proc\/(self|thread-self)\/fd\/[0-2])$/;

// Programs that change the system, wherever they are run, and with what they only tell something.
const SYSTEM = {
  useradd: [], userdel: [], usermod: [], adduser: [], deluser: [], groupadd: [], groupdel: [], groupmod: [], chsh: [],
  passwd: ["-S", "--status"], chpasswd: [], visudo: ["-c", "--check"], vipw: [], crontab: ["-l"], at: ["-l"], batch: [],
  iptables: ["-L", "-S", "--list", "--list-rules"], ip6tables: ["-L", "-S", "--list", "--list-rules"], nft: ["list"],
  ufw: ["status"], "firewall-cmd": ["--state", "--list-all"], setenforce: [], insmod: [], rmmod: [],
  modprobe: ["-n", "--dry-run", "--show-depends"], "systemd-run": [], "ssh-copy-id": ["-n"], ldconfig: ["-p", "--print-cache"],
  "update-alternatives": ["--list", "--display", "--query", "--get-selections"],
};

// Programs that install for the whole system with one of these words.
const INSTALLS = {
  "apt-get": ["install", "remove", "purge", "upgrade", "dist-upgrade", "autoremove"],
  apt: ["install", "remove", "purge", "upgrade", "full-upgrade", "autoremove"],
  dpkg: ["-i", "--install", "-r", "--remove", "-P", "--purge"],
  yum: ["install", "remove", "update", "erase"],
  dnf: ["install", "remove", "upgrade", "erase"],
  rpm: ["-i", "-U", "-e", "-ivh", "-Uvh"],
  apk: ["add", "del"],
  pacman: ["-S", "-R", "-Syu", "-Rns"],
  snap: ["install", "remove"],
  flatpak: ["install", "uninstall"],
  brew: ["install", "uninstall", "upgrade"],
  yarn: ["global"],
  systemctl: ["enable", "reenable", "preset", "link", "edit", "set-property", "daemon-reload", "start", "reload", "reload-or-restart", "add-wants", "add-requires", "set-environment", "import-environment"],
  sysctl: ["-w", "--write", "-p", "--load", "--system"],
};

// Programs that only say what they would do with `--dry-run` and the like.
const DRY = /^(apt|apt-get|npm|ufw|brew)$/;

// Whether a program only tells how it is used, or a command of it that is its first word. Where more stands around, the
// word for that may be the value of an option, or come too late.
function helps(command, verb) {
  const words = command.argv.slice(verb && /^[a-z]/.test(command.argv[1]) ? 2 : 1);
  return words.length === 1 && (words[0] === "--help" || words[0] === "--version");
}

// Whether one of `own` is an option for sure: not the value of the one before it, and not after something to act on.
function looks(command, own) {
  const words = command.argv.slice(1);
  const at = words.findIndex((word) => own.includes(word));
  if (at <= 0) return at === 0;
  const first = words[0].startsWith("-") && !/^crontab$|^at$|^batch$/.test(command.name) && /^-[anvqw]+$/.test(words[0]);
  return (at === 1 && first) || (at === 2 && words[0].startsWith("-") && !words[1].startsWith("-"));
}

// Whether it only says what it would do, and nothing takes that back.
function simulates(command) {
  const words = before(command);
  const own = /^apt/.test(command.name) ? /^(--dry-run|--simulate|-s)$/ : /^--dry-run$/;
  const at = words.findIndex((word) => own.test(word));
  return DRY.test(command.name) && at >= 0 && (at === 0 || command.name !== "ufw") && !(at > 0 && /^-(?!-?(y|yes|g|global|q|quiet|s|dry-run|simulate)$)/.test(words[at - 1]))
    && !words.some((word, own) => /^(--no-|--(dry-run|simulate)=|-s=|-o|-c|--opt|--conf)/.test(word) || (own === at + 1 && /^(false|no|0|null)$/.test(word)));
}

// Programs that reach another one which the person runs, a server of terminals, a desktop or a manager of services,
// and have it run something, out of the agent's reach, as that person. What `harmless` fits only tells something. What
// `starts` fits starts something that the command names, and is asked about; the rest is refused.
const TMUX = /^((-L|-S) [^ -][^ ]* |-[LS][^ ]+ |-[2u8]+ )*(-V|ls|lsw|lsp|lsb|lsc|lsk|lscm|list-[a-z]+|has|has-session|(display|display-message) -p.*|(capturep|capture-pane) (.* )?-[a-zA-Z]*p.*|show|showw|show-[a-z]+|rename|renamew|rename-(session|window)|select[wpl]|select-(window|pane|layout)|switchc|switch-client|(last|next|previous)-window|resizep|resize-pane|swapw|swap-window|movew|move-window)( |$)/;
const NEW = /^((-L|-S) [^ -][^ ]* |-[LS][^ ]+ |-[2u8]+ )*(new|new-session|neww|new-window|splitw|split-window|a|attach|attach-session|start|start-server)( |$)/;
const SERVERS = {
  tmux: { harmless: TMUX, starts: NEW },
  tmate: { harmless: TMUX, starts: NEW },
  byobu: { harmless: TMUX, starts: NEW },
  screen: { harmless: /^(-ls|-list)( [^ -][^ ]*)?$|^(-v|--version|--help)$/, starts: /^(?!(.* )?(-[a-zA-Z]*[XQc]|-[pt] ))/ },
  zellij: { harmless: /^(ls|list-sessions|list-aliases)( -[sn]+)*$|^(-V|--version|--help)$/, starts: /^(a|attach|-s|--session)( [^ -][^ ]*)?$/ },
  dtach: { harmless: /^(-v|--version|--help)$/, starts: /^(?!-p)/ },
  abduco: { harmless: /^(-v|-l)?$/, starts: /^(?!(.* )?-[a-zA-Z]*p)/ },
  emacsclient: { harmless: /^(?!(.* )?(--?e|-[a-zA-Z]*e))/ },
  "dbus-send": { harmless: /^(--\S+ )*\S+ org\.freedesktop\.DBus\.(Introspectable\.Introspect|ListNames|ListActivatableNames|Properties\.Get(All)?|Peer\.Ping)( |$)/, starts: /^(?!.*([sS]ystemd|[kK]onsole|[tT]erminal|[sS]hell|[eE]val|[eE]xec|[rR]un|[iI]nput|[lL]aunch))/ },
  busctl: { harmless: /^(--(system|user|no-pager|list|json=\S+) )*(list|status|tree|introspect|get-property|monitor|--version|--help)?( |$)/, starts: /^(?!.*([sS]ystemd|[kK]onsole|[tT]erminal|[sS]hell|[eE]val|[eE]xec|[rR]un|[iI]nput|[lL]aunch))/ },
  gdbus: { harmless: /^(introspect|monitor|help)( |$)/, starts: /^(?!.*([sS]ystemd|[kK]onsole|[tT]erminal|[sS]hell|[eE]val|[eE]xec|[rR]un|[iI]nput|[lL]aunch))/ },
  launchctl: { harmless: /^(list|print|print-[a-z]+|blame|version|managername|manageruid|managerpid|help|getenv|export)( |$)/, starts: /^$/ },
  machinectl: { harmless: /^(?!(.* )?(shell|login|start|enable|run))/, starts: /^/ },
  wezterm: { harmless: /^(?!(.* )?cli )|^cli list/, starts: /^cli spawn/ },
  kitty: { harmless: /^(?!(.* )?@)|^@ ls( |$)/ },
  kitten: { harmless: /^(?!(.* )?@)|^@ ls( |$)/ },
  "i3-msg": { harmless: /^-t get_[a-z]+$/ },
  swaymsg: { harmless: /^(-r )?-t get_[a-z]+$/ },
  xdotool: { harmless: /^(get|search)[a-z]*( |$)(?!(.* )?(key|type|exec|click|mouse|behave))/ },
};
for (const name of ["byobu-tmux", "tmuxinator", "tmuxp", "smug", "teamocil"]) SERVERS[name] = { harmless: /^(ls|list|version|--version)$/, starts: /^/ };
for (const name of ["byobu-screen", "incrontab", "fcrontab"]) SERVERS[name] = { harmless: /^(-l|-ls|--version)$/ };
for (const name of ["wtype", "ydotool", "xte", "qdbus", "qdbus6", "kdotool", "gtk-launch"]) SERVERS[name] = { harmless: /^(--help|--version)$/ };
for (const name of ["vim", "nvim", "gvim", "vimr"]) SERVERS[name] = { harmless: /^(?!(.* )?--remote)/ };

// Whether it has a server run something: "block", "ask", or nothing.
function serves(command) {
  const rule = row(SERVERS, command);
  if (rule === undefined) return "";
  const words = command.argv.slice(1);
  const text = words.map((word) => word.replace(/\s/g, "_")).join(" ");
  // In texts for tmux `;` begins another command, and `#(` runs one, also when `#{…}` puts it together.
  const more = /^(tmux|tmate|byobu)$/.test(command.name) && (/;|#\(|#\{(?!(\?[a-z_]+,[^#{}:]*|[a-z_]+)\})/.test(text) || /(^| )rename.*#/.test(text));
  if (rule.harmless.test(text) && !more) return "";
  return rule.starts && rule.starts.test(text) && !words.some((word) => /;\s*$/.test(word)) ? "ask" : "block";
}

// Whether `ssh` leads back to this machine.
function comesBack(command) {
  return /^(ssh|autossh|mosh|rsh)$/.test(command.name)
    && command.argv.slice(1).some((word) => /^([^ ]*@)?(localhost|ip6-localhost|127\.[0-9.]+|::1|0|0\.0\.0\.0|\[::1\])$/i.test(word.replace(/^ssh:\/\/(.*?)(:\d+)?\/*$/, "$1").replace(/^(-o)?hostname[= ]*/i, "")));
}

// Whether it installs for everybody.
function isGlobal(command) {
  if (!/^(npm|pnpm)$/.test(command.name) || !has(command, "-g", "--global", "--location=global")) return false;
  return told(command).some((word) => /^(install|i|add|uninstall|remove|rm|un|update|up|upgrade|link|ln)$/.test(word));
}

const OTHERS = /^(sudo|doas|su|pkexec|runuser|gosu|su-exec)$/;

// Where nobody has a workspace: folders of the system, and hidden ones of a home folder. On macOS letters have no case,
// some of these folders lie below `/private`, and what starts by itself stands in the `Library` of a home folder.
const PLACES = /^\/(private$|(private\/)?((etc|bin|sbin|lib\w*|boot|dev|proc|sys|run|System|Library|Applications)(\/|$)|usr(?!\/(local\/)?src\/)(\/|$)|var\/(lib|spool|cache|log|run|mail|lock|backups|db|root)(\/|$)|(root|((var\/)?home|Users)\/[^/]+)\/\.[^/]|Users\/[^/]+\/Library(?!\/(Mobile Documents|CloudStorage)\/)(\/|$)))/i;

// Whether the file that a tool names lies outside for sure, where the workspace is not known.
function leaves(name) {
  const file = name.replace(/^file:(\/\/(localhost)?)?(?=\/)/i, "");
  if (/^~[\w.-]*(\/|$)/.test(file)) return true;
  const rooted = file.startsWith("/");
  const names = [];
  for (const part of file.split("/").filter((part) => part !== "" && part !== ".")) {
    if (part !== "..") names.push(part);
    else if (names.pop() === undefined && !rooted) return true;
  }
  const path = `/${names.join("/")}`;
  return rooted && !DEVICES.test(path) && PLACES.test(path) && !SCRATCH.some((own) => path.startsWith(own));
}

function danger(event) {
  const outside = paths(event, "outside");
  const path = paths(event, "writes").find((path) => outside.includes(path) && !DEVICES.test(path) && !SCRATCH.some((own) => path.startsWith(own)));
  if (path !== undefined) return `changes ${path}, which lies outside of the workspace`;
  for (const command of commands(event).filter((command) => !helps(command, Object.hasOwn(INSTALLS, command.name)))) {
    if (serves(command) === "block") return `has another program of yours run something: ${line(command)}`;
    const tells = row(SYSTEM, command);
    if (simulates(command)) continue;
    const installs = row(INSTALLS, command, []).some((word) => has(command, word) || command.argv.includes(word));
    const changes = tells !== undefined && !looks(command, tells);
    if (changes || installs || isGlobal(command)) return `changes the system: ${line(command)}`;
  }
  // Other tools name the file that they change.
  const file = namedFiles(event).find(leaves);
  return file === undefined ? "" : `changes ${file}, which lies outside of the workspace`;
}

function doubt(event) {
  for (const command of commands(event)) {
    const tells = helps(command) || (/^(sudo|doas)$/.test(command.name) && looks(command, ["-l", "--list", "-V"]));
    if (OTHERS.test(command.name) && !tells) return `acts as somebody else: ${line(command)}`;
    if (serves(command) === "ask" && !helps(command)) return `starts something that runs on as you, out of the agent's reach: ${line(command)}`;
    if (comesBack(command)) return `comes back to this machine as you: ${line(command)}`;
  }
  return "";
}

function handle(event) {
  return verdict(event, danger(event), doubt(event));
}
