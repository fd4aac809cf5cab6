// Refuses to change what lies outside of the workspace, and asks about acting as somebody else.

// Below these folders anybody may write.
const SCRATCH = ["/tmp/", "/var/tmp/", "/dev/shm/"];

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
  systemctl: ["enable", "link", "edit", "set-property", "daemon-reload", "start"],
  sysctl: ["-w", "--write", "-p", "--load", "--system"],
};

// With these words the programs above only say what they would do.
const LOOKS = ["--help", "--version", "--dry-run", "--simulate"];

// Whether it installs for everybody.
function isGlobal(command) {
  if (!/^(npm|pnpm)$/.test(command.name) || !has(command, "-g", "--global", "--location=global")) return false;
  return told(command).some((word) => /^(install|i|add|uninstall|remove|rm|un|update|up|upgrade|link|ln)$/.test(word));
}

const OTHERS = /^(sudo|doas|su|pkexec|runuser|gosu|su-exec)$/;

function danger(event) {
  const outside = paths(event, "outside");
  const path = paths(event, "writes").find((path) => outside.includes(path) && !SCRATCH.some((own) => path.startsWith(own)));
  if (path !== undefined) return `changes ${path}, which lies outside of the workspace`;
  for (const command of commands(event).filter((command) => !has(command, ...LOOKS))) {
    const tells = row(SYSTEM, command);
    const installs = has(command, ...row(INSTALLS, command, [])) && !(/^apt/.test(command.name) && has(command, "-s"));
    const changes = tells !== undefined && !has(command, ...tells);
    if (changes || installs || isGlobal(command)) return `changes the system: ${line(command)}`;
  }
  // Other tools name the file that they change.
  const file = event.shell && event.shell.commands.length > 0 ? "" : (event.toolInput && event.toolInput.path) || "";
  let depth = 0;
  for (const name of String(file).split("/")) {
    depth += name === ".." ? -1 : name === "" || name === "." ? 0 : 1;
    if (depth < 0) return `changes ${file}, which lies outside of the workspace`;
  }
  return "";
}

function doubt(event) {
  const command = commands(event).find((command) => OTHERS.test(command.name) && !has(command, "--help", "--version", "-l"));
  return command === undefined ? "" : `acts as somebody else: ${line(command)}`;
}

function handle(event) {
  return verdict(event, danger(event), doubt(event));
}
