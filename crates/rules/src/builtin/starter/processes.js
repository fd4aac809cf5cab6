// Refuses to end what the command itself has not started: other processes, services, containers, the machine.

// What `kill` may name: jobs of this shell, and what it started last.
const OWN = /^(%.*|\$!|\$\{!\}|\$\(jobs\))$/;

// Programs that do nothing else.
const ENDS = /^(pkill|killall|killall5|skill|xkill|kill-port|fkill|shutdown|reboot|poweroff|halt|kexec)$/;

// Programs that do it with one of these words.
const WITH = {
  systemctl: ["stop", "restart", "kill", "disable", "mask", "reboot", "poweroff", "halt", "isolate", "rescue", "emergency", "suspend", "hibernate", "kexec", "soft-reboot", "try-restart", "condrestart"],
  service: ["stop", "restart"],
  "rc-service": ["stop", "restart"],
  initctl: ["stop", "restart"],
  launchctl: ["stop", "kill", "bootout", "unload", "reboot", "remove"],
  loginctl: ["terminate-user", "terminate-session", "terminate-seat", "kill-user", "kill-session"],
  machinectl: ["terminate", "poweroff", "kill", "stop", "reboot"],
  supervisorctl: ["stop", "restart", "shutdown", "reload"],
  pm2: ["kill", "stop", "delete", "restart"],
  virsh: ["destroy", "shutdown", "reboot"],
  tmux: ["kill-server", "kill-session", "kill-pane", "kill-window"],
  screen: ["quit", "kill"],
  fuser: ["-k", "--kill"],
  nginx: ["stop", "quit"],
  apachectl: ["stop", "graceful-stop"],
  pg_ctl: ["stop", "kill", "restart"],
};

// Files that end processes when they are written.
const SWITCHES = /^\/proc\/(sysrq-trigger|sys\/kernel\/sysrq|\d+\/oom_\w+)$|^\/sys\/fs\/cgroup\/.*(cgroup\.(kill|freeze|procs)|freezer\.state)$|^\/sys\/power\//;

// The processes that `kill` names, without its signal.
function targets(command) {
  const words = command.argv.slice(1);
  const found = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === "-s" || word === "-n" || word === "--signal" || word === "-q") at++;
    else if (word === "--") return found.concat(words.slice(at + 1));
    else if (at === 0 && /^-[A-Za-z0-9]+$/.test(word)) continue;
    else if (!/^--?[A-Za-z]/.test(word)) found.push(word);
  }
  return found;
}

function kills(command) {
  const first = command.argv[1] || "";
  // A shell whose `kill` knows no other option but these goes on to what follows.
  const asks = /^-(0|l|L)$|^--(list|table)$/.test(first) || (first === "-s" && command.argv[2] === "0");
  return !asks && targets(command).some((target) => !OWN.test(target));
}

// Whether it stops containers that it names; those of the own `compose` file belong to the workspace.
function stops(command) {
  const words = told(command);
  if (!/^(docker|podman|nerdctl)$/.test(command.name) || /^(run|exec|compose|build)$/.test(words[0])) return false;
  const forced = words.includes("rm") && (short(command, "f") || has(command, "--force"));
  return forced || words.some((word) => /^(kill|stop|restart|pause)$/.test(word));
}

// Whether a program only tells how it is used, or a command of it that is its first word. Where more stands around, the
// word for that may be the value of an option, or come too late.
function helps(command, verb) {
  const words = command.argv.slice(verb && /^[a-z]/.test(command.argv[1]) ? 2 : 1);
  return words.length === 1 && (words[0] === "--help" || words[0] === "--version");
}

function danger(event) {
  const path = paths(event, "writes").find((path) => SWITCHES.test(path));
  if (path !== undefined) return `ends processes through ${path}`;
  for (const command of commands(event)) {
    if (helps(command, Object.hasOwn(WITH, command.name) || /^(docker|podman|nerdctl)$/.test(command.name))) continue;
    if (command.name === "kill" && kills(command)) return `ends processes that it did not start: ${line(command)}`;
    if (ENDS.test(command.name)) return `ends processes of others, or the machine: ${line(command)}`;
    if (/^(tel)?init$/.test(command.name) && /^[0-6sSqQ]$/.test(command.argv[1])) return `ends the machine: ${line(command)}`;
    if (stops(command)) return `ends containers: ${line(command)}`;
    if (row(WITH, command, []).some((word) => has(command, word) || command.argv.includes(word))) return `ends what runs outside of this command: ${line(command)}`;
    if (command.name === "fuser" && short(command, "k")) return `ends processes that it did not start: ${line(command)}`;
    if (command.name === "npx" && has(command, "kill-port", "fkill-cli")) return `ends processes of others: ${line(command)}`;
  }
  return "";
}

function handle(event) {
  return verdict(event, danger(event));
}
