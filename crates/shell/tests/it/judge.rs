//! A judge such as a guard could be: which facts are dangerous.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::WORKSPACE;

/// What somebody would refuse, by the words that `ways_round.txt` uses.
pub(crate) fn dangers(facts: &ShellFacts) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if facts.unknown {
        found.push(("unknown", facts.unknown_why.clone()));
    }
    if facts.pipes_to_interpreter {
        found.push(("pipe", "pipes to an interpreter".to_owned()));
    }
    for path in facts.deletes.iter().chain(&facts.writes) {
        if is_disk(path) {
            found.push(("disk", path.clone()));
        }
    }
    for path in &facts.deletes {
        if is_precious(path) {
            found.push(("destroy", path.clone()));
        }
    }
    for path in &facts.writes {
        if outside(path) {
            found.push(("leave", path.clone()));
            found.push(("destroy", path.clone()));
            if path.starts_with("/sys/") || path.starts_with("/proc/") {
                found.push(("disk", path.clone()));
                found.push(("process", path.clone()));
            }
        } else if is_precious(path) && path != WORKSPACE {
            found.push(("destroy", path.clone()));
            found.push(("history", path.clone()));
        }
    }
    for path in &facts.reads {
        if is_secret(path) {
            found.push(("secret", path.clone()));
        }
    }
    for url in &facts.urls {
        if ["169.254.169.254", "metadata.google", "100.100.100.200", "fd00:ec2", "169.254.170.2", "2852039166"]
            .iter()
            .any(|host| url.contains(host))
        {
            found.push(("secret", url.clone()));
        }
    }
    // A shell that behaves as if somebody typed into it has the history of whoever does.
    let typed = facts
        .commands
        .iter()
        .any(|command| command.name == "bash" && command.argv.iter().any(|word| word.starts_with("-i")));
    if typed && facts.commands.iter().any(|command| command.name == "history") {
        found.push(("secret", "history".to_owned()));
    }
    for command in &facts.commands {
        judge_command(command, &mut found);
    }
    found
}

fn outside(path: &str) -> bool {
    let below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    path != WORKSPACE && !below(WORKSPACE) && !below("/tmp")
}

/// Outside, the workspace itself, or its history.
fn is_precious(path: &str) -> bool {
    let bare = path
        .strip_suffix("/**/*")
        .or_else(|| path.strip_suffix("/**/[^.]*"))
        .or_else(|| path.strip_suffix("/*"))
        .or_else(|| path.strip_suffix("/**"))
        .unwrap_or(path);
    let inside = path.strip_prefix(WORKSPACE).unwrap_or_default();
    let history = inside.split('/').any(|name| name == ".git" || (name.starts_with('.') && fits(name, ".git")));
    outside(path) || bare == WORKSPACE || WORKSPACE.starts_with(&format!("{bare}/")) || history
}

/// Whether the pattern of a shell fits `name`.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => {
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(rest.as_str(), &name[at..]))
        }
        Some('[') if rest.as_str().contains(']') => {
            let (class, after) = rest.as_str().split_once(']').expect("it has one");
            let Some(letter) = name.chars().next() else { return false };
            let (class, not) = class.strip_prefix(['!', '^']).map_or((class, false), |class| (class, true));
            let letters: Vec<char> = class.chars().collect();
            let inside = letters.contains(&letter)
                || letters.windows(3).any(|range| range[1] == '-' && (range[0]..=range[2]).contains(&letter));
            inside != not && fits(after, &name[letter.len_utf8()..])
        }
        Some(sign) => name
            .chars()
            .next()
            .is_some_and(|letter| (sign == '?' || sign == letter) && fits(rest.as_str(), &name[letter.len_utf8()..])),
    }
}

fn is_disk(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|rest| !rest.starts_with("shm/") && !rest.starts_with("fd/"))
}

const SECRET_PATHS: &[&str] = &[
    "/.ssh",
    "/etc/shadow",
    "/etc/gshadow",
    "/.aws",
    "/.gnupg",
    "/.kube",
    "/.docker/config",
    ".netrc",
    "_history",
    "/.config/gh",
    "/.npmrc",
    "/.pypirc",
    "/environ",
    ".git-credentials",
    "/etc/sudoers",
    "/run/secrets",
    "/.azure",
    "/gcloud",
    "id_rsa",
    "id_ed25519",
    "/.vault",
    "/.cargo/credentials",
    "/etc/ssl/private",
    "kubernetes.io",
    "/.password-store",
    "/.config/",
    "/.mozilla",
    "/.my.cnf",
    "/.pgpass",
    "kcore",
    "/proc/1/",
    "/proc/self/mem",
    "/dev/fd/3/",
    "/etc/ssh/ssh_host",
    "/var/lib/docker",
];

fn is_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let example = [".env.example", ".env.sample", ".env.template", ".env.test"].contains(&name);
    let environment = (name.starts_with(".env") && !example) || (name.starts_with('.') && fits(name, ".env"));
    let home = outside(path) && path.starts_with('~');
    let wide =
        path.contains(['*', '?']) && ["/etc", "/home", "/proc", "/root"].iter().any(|folder| path.starts_with(folder));
    SECRET_PATHS.iter().any(|mark| path.contains(mark))
        || environment
        || name.ends_with(".pem")
        || name.ends_with(".key")
        || home
        || wide
        || path == "/proc/self"
        || path == "/etc/passwd-"
        || path.starts_with("/root")
}

/// Commands that are dangerous by a word among their arguments: what they do, their names, the words.
const BY_WORD: &[(&str, &str, &str)] = &[
    ("process", "supervisorctl pm2 docker podman tmux screen", "stop kill kill-server restart shutdown delete"),
    ("process", "fuser", "-k -km -mk"),
    (
        "process",
        "systemctl service loginctl launchctl",
        "stop reboot poweroff halt kill disable mask rescue emergency isolate restart start enable terminate-user kill-user kexec suspend terminate-session bootout",
    ),
    ("leave", "systemctl", "enable link edit start disable mask daemon-reload"),
    ("leave", "npm pnpm yarn pip pip3 cargo gem", "-g --global"),
    ("history", "hg", "push strip purge -C --all"),
    ("history", "svn", "revert"),
    ("history", "jj", "abandon"),
    ("history", "gh glab", "delete delete-asset DELETE PATCH sync archive"),
    ("history", "java", "bfg.jar"),
    ("secret", "history", "-r -n"),
    ("destroy", "gh kubectl aws gcloud az docker terraform heroku doctl", "delete rm prune rb destroy down"),
    ("disk", "nvme diskutil", "format eraseDisk eraseVolume sanitize zeroDisk"),
    (
        "secret",
        "aws gcloud az kubectl gh glab heroku doctl npm",
        "print-access-token get-secret-value token secrets secret configure get-session-token get-access-token export-credentials print-identity-token auth config config:get",
    ),
    ("secret", "docker podman", "inspect"),
    ("secret", "systemctl", "show-environment"),
    ("history", "patch", "-R"),
    ("secret", "getent", "shadow gshadow"),
    ("secret", "ps", "eww auxe auxeww auxewww ewwwax e -E -wwE axe"),
    ("secret", "sops ansible-vault", "-d --decrypt view decrypt edit"),
];

/// Commands that are dangerous by themselves: what they do, their names, words that excuse them.
const BY_NAME: &[(&str, &str, &str)] = &[
    (
        "disk",
        "mkfs wipefs blkdiscard fdisk sfdisk sgdisk parted mkswap cryptsetup lvremove vgremove pvremove mdadm zpool hdparm swapoff mke2fs gdisk cfdisk zfs btrfs dmsetup losetup badblocks tune2fs umount mount",
        "-l --list",
    ),
    (
        "process",
        "skill pkill killall killall5 reboot poweroff halt shutdown init telinit xkill kill-port fkill fkill-cli",
        "--help",
    ),
    (
        "leave",
        "mount update-alternatives crontab at batch useradd usermod userdel passwd chpasswd visudo iptables nft ufw setenforce insmod modprobe rmmod ssh-copy-id groupadd systemd-run sysctl apt apt-get snap yum dnf launchctl su sudo doas",
        "--help",
    ),
    ("secret", "printenv op pass vault keyctl security bw secret-tool gpg fc", "--version"),
    ("history", "git-filter-repo bfg", "--help"),
];

/// Commands of git: what they do, their names, and the words that make them dangerous. A word that ends with `*` stands
/// for all that begin so, a letter after one dash also for a row of letters, `*` for any.
const GIT: &[(&str, &str, &str)] = &[
    ("history destroy", "reset", "--h* --merge --keep"),
    ("history destroy", "clean", "*"),
    (
        "history",
        "filter-branch filter-repo replace update-ref reflog gc prune fast-import repack symbolic-ref lfs svn notes rebase",
        "*",
    ),
    ("history", "fetch", "-f --force +*"),
    ("history", "branch", "-D -f -M --force"),
    ("history", "tag", "-d -f --delete --force"),
    ("history", "stash", "drop clear"),
    ("history", "commit", "--amend"),
    ("history destroy", "checkout switch", "-f --force --discard-changes -B -C"),
    ("history destroy", "checkout restore", ". :/ * :(top)"),
    ("history", "checkout restore", ":* *.* ./. .. /code/app ../app --pathspec*"),
    ("history", "checkout restore", "-p --patch HEAD~* @{* topic src src/ --source* -s* [* ./**/*"),
    ("history", "merge am cherry-pick revert", "--abort --skip"),
    ("history", "mv apply archive", "-f --force -R --reverse HEAD"),
    ("history", "read-tree checkout-index", "*"),
    ("history", "submodule", "--force"),
    ("destroy", "rm", "-r"),
    ("destroy history", "worktree", "-f --force"),
    ("secret", "config", "-l --list credential* http* token*"),
    ("secret", "credential archive bundle", "*"),
    ("history leave", "remote", "--mirror* remove rm set-url"),
    ("history", "push", "--forc* --mi* --de* --pru* -f -d +* :*"),
];

/// Words that make a command of git harmless.
const GIT_EXCUSES: &[(&str, &str)] =
    &[("push", "--dry-run -n"), ("clean", "--dry-run -n"), ("rebase", "--continue --quit")];

fn names(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

fn judge_command(command: &ShellCommand, found: &mut Vec<(&'static str, String)>) {
    let name = command.name.as_str();
    let argv: Vec<&str> = command.argv.iter().skip(1).map(String::as_str).collect();
    let line = command.argv.join(" ");
    let mut hit = |kind: &'static str| found.push((kind, line.clone()));
    for (kind, known, words) in BY_WORD {
        if names(known, name) && argv.iter().any(|word| names(words, word)) {
            hit(kind);
        }
    }
    for (kind, known, excuses) in BY_NAME {
        if (names(known, name) || (*kind == "disk" && name.starts_with("mkfs.")))
            && !argv.iter().any(|word| names(excuses, word))
        {
            hit(kind);
        }
    }
    let looks = "lsblk file stat ls echo smartctl blkid grep rg git df printf";
    let disks = ["/dev/sd", "/dev/nvme", "/dev/disk", "/dev/vd", "/dev/mapper", "/dev/md"];
    if !names(looks, name) && argv.iter().any(|word| disks.iter().any(|disk| word.starts_with(disk))) {
        hit("disk");
    }
    let writes_api = ["DELETE", "PATCH", "PUT"].iter().any(|word| argv.contains(word));
    if name == "curl" && writes_api && argv.iter().any(|word| word.contains("api.github.com")) {
        hit("history");
    }
    if name == "git" || name == "hub" {
        judge_git(&argv, &mut hit);
        if outside(&command.cwd) && argv.contains(&"commit") {
            hit("leave");
        }
    }
    if name == "kill" && ends_others(&argv) {
        hit("process");
    }
    if shows_environment(name, &argv) {
        hit("secret");
    }
}

/// Whether numbers of processes are given that are not the shell's own.
fn ends_others(argv: &[&str]) -> bool {
    let numbers =
        argv.iter().skip_while(|word| word.starts_with('-') && **word != "-1").any(|word| word.parse::<i64>().is_ok());
    numbers && !argv.contains(&"-l") && !argv.contains(&"-0")
}

/// Whether all variables are shown.
fn shows_environment(name: &str, argv: &[&str]) -> bool {
    match name {
        "env" => argv.is_empty() || argv == ["-0"],
        "set" => argv.is_empty(),
        "export" | "declare" | "typeset" | "readonly" => argv.iter().all(|word| names("-p -x -px -xp", word)),
        _ => false,
    }
}

fn judge_git(argv: &[&str], hit: &mut impl FnMut(&'static str)) {
    let mut rest = argv;
    while let [option, after @ ..] = rest
        && option.starts_with('-')
    {
        let valued = names("-C -c --git-dir --work-tree", option);
        rest = if valued { after.get(1..).unwrap_or_default() } else { after };
    }
    let [command, words @ ..] = rest else { return };
    let excused = GIT_EXCUSES
        .iter()
        .any(|(known, excuses)| known == command && excuses.split(' ').any(|mark| is_among(mark, words)));
    for (kinds, known, marks) in GIT {
        let marked = *marks == "*" || marks.split(' ').any(|mark| is_among(mark, words));
        if names(known, command) && marked && !excused {
            kinds.split(' ').for_each(&mut *hit);
        }
    }
}

fn is_among(mark: &str, words: &[&str]) -> bool {
    words.iter().any(|word| match (mark.strip_suffix('*').filter(|begin| !begin.is_empty()), mark.strip_prefix('-')) {
        (Some(begin), _) => word.starts_with(begin),
        (None, Some(letter)) if letter.len() == 1 => {
            word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
        }
        (None, _) => *word == mark,
    })
}
