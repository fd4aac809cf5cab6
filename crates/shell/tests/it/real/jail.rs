//! A place in which a real shell can run any text and harm nobody.
//!
//! It is an empty root folder with two shells and recorders in the place of all programs, entered by `chroot` as a
//! user who owns nothing, in namespaces of its own: no network, no other process to see or to end, no file but those
//! of the folder, little memory, few processes, short files. Absolute paths so lead nowhere else, `kill -9 -1` ends
//! nobody else, and what a text leaves running ends with its first process.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::WORKSPACE;

/// A user whom no system has.
const NOBODY: &str = "--userspec=61173:61173";

/// How long one text may take; most take a few milliseconds.
const TIME: Duration = Duration::from_secs(2);

/// Most processes at once, longest file in bytes, seconds of work of the first process (a text has two), open files,
/// bytes of memory.
const LIMITS: [&str; 6] = ["--nproc=48", "--fsize=262144", "--cpu=600", "--nofile=64", "--as=268435456", "--core=0"];

/// What stands in the place of every program: it writes down where it was run, as whom and on what. A few also give
/// the output that the reader knows of them; none of them does anything else.
const RECORDER: &str = r#"#!/harness/dash
cd -P .
printf '%s\0' "$#" "$PWD" "$0" "$@" >> /harness/log/runs
case ${0##*/} in
cat)
    show() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done; }
    [ "$#" -gt 0 ] || show
    for file; do show < "$file"; done ;;
base64) exec /harness/base64 "$@" ;;
which) for name do printf '/bin/%s\n' "$name"; done ;;
mktemp) printf '/tmp/tmp.0\n' ;;
esac 2> /dev/null
read -r status < /harness/status
exit "$status"
"#;

/// The first process inside: it lets a shell run one text after the other, and for each stays until nobody is left who
/// holds its output. Then it ends whoever is left, and says so.
const FIRST: &str = r#"export PATH=/bin
exec 3<&0 < /harness/empty
while read -r order <&3; do
    . /harness/order
    { ulimit -t 2; cd "$folder" && unset OLDPWD && exec "/bin/$shell" -c "$text"; } 2> /dev/null 3<&- |
        while read -r line; do :; done
    while kill -9 -1; do (:); done 2> /dev/null
    echo ended
done
"#;

/// One run of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Recorded {
    pub(super) cwd: String,
    pub(super) argv: Vec<String>,
}

/// What a text finds when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct World {
    /// Whether folders of these names are there, in the folder where the text runs.
    pub(super) folders: bool,
    /// What every program answers.
    pub(super) status: u8,
}

/// What came of one text.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) runs: Vec<Recorded>,
    pub(super) ended: bool,
    /// What the way in said, if it failed.
    said: String,
}

pub(super) struct Jail {
    root: TempDir,
    enter: Vec<String>,
    /// The place, while it is entered.
    session: Option<Session>,
}

impl Jail {
    /// A jail with recorders for `names`; nothing where this system lets nobody make one, with the reason.
    pub(super) fn new(names: &BTreeSet<String>) -> Result<Jail, String> {
        let root = TempDir::with_prefix("pintle-jail-").map_err(|e| e.to_string())?;
        let at = |path: &str| root.path().join(path);
        for folder in ["bin", "dev", "etc", "proc", "usr", "harness/log"] {
            fs::create_dir_all(at(folder)).map_err(|e| e.to_string())?;
        }
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())?;
        for folder in ["usr/bin", "usr/local", "sbin"] {
            std::os::unix::fs::symlink("/bin", at(folder)).map_err(|e| e.to_string())?;
        }
        for (program, copies) in [
            ("bash", &["bin/bash", "bin/rbash"][..]),
            ("dash", &["bin/dash", "harness/dash"]),
            ("base64", &["harness/base64"]),
        ] {
            let real = install(root.path(), program)?;
            for copy in copies {
                fs::copy(&real, at(copy)).map_err(|e| e.to_string())?;
            }
        }
        fs::write(at("harness/empty"), "").map_err(|e| e.to_string())?;
        let recorder = at("harness/recorder");
        fs::write(&recorder, RECORDER).map_err(|e| e.to_string())?;
        fs::set_permissions(&recorder, fs::Permissions::from_mode(0o555)).map_err(|e| e.to_string())?;
        for name in names {
            let path = at("bin").join(name);
            if !path.exists() {
                fs::hard_link(&recorder, path).map_err(|e| format!("{name}: {e}"))?;
            }
        }
        let mut jail = Jail { root, enter: Vec::new(), session: None };
        let mut why = String::new();
        for enter in ways_in() {
            jail.enter = enter;
            match jail.proves_itself() {
                Ok(()) => return Ok(jail),
                Err(problem) => {
                    jail.session.take().map(Session::end);
                    why.push_str(&format!("{}: {problem}; ", jail.enter.join(" ")));
                }
            }
        }
        Err(why)
    }

    /// Runs a text that shows whether the jail holds.
    fn proves_itself(&mut self) -> Result<(), String> {
        let outside = TempDir::new().map_err(|e| e.to_string())?;
        let file = outside.path().join("file");
        let text = format!(
            "echo x > {}; echo y > inside; ls inside; kill -9 -1; exec 3<>/dev/tcp/127.0.0.1/1",
            file.display()
        );
        let world = World { folders: false, status: 0 };
        let ran = self.run("dash", &text, WORKSPACE, world)?;
        if file.exists() {
            return Err("it does not hold".to_owned());
        }
        let expected = Recorded { cwd: WORKSPACE.to_owned(), argv: vec!["/bin/ls".to_owned(), "inside".to_owned()] };
        if ran.runs != [expected] || !self.at(&format!("{}/inside", &WORKSPACE[1..])).exists() {
            return Err(format!("nothing runs in it: {}", ran.said.trim()));
        }
        Ok(())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Everything that a text can change, as it was.
    fn clean(&self, world: World, folders: &BTreeSet<String>, cwd: &str) -> std::io::Result<()> {
        let everybody = || fs::Permissions::from_mode(0o777);
        for folder in ["code", "tmp", "root"] {
            if self.at(folder).exists() {
                fs::remove_dir_all(self.at(folder))?;
            }
            fs::create_dir(self.at(folder))?;
            fs::set_permissions(self.at(folder), everybody())?;
        }
        let cwd = self.at(cwd.trim_start_matches('/'));
        for folder in [self.at(&WORKSPACE[1..]), cwd.clone()] {
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, everybody())?;
        }
        for folder in folders.iter().filter(|_| world.folders) {
            let path = cwd.join(folder);
            fs::create_dir_all(&path)?;
            fs::set_permissions(&path, everybody())?;
        }
        for (file, text) in
            [("dev/null", ""), ("harness/log/runs", ""), ("harness/status", &*format!("{}\n", world.status))]
        {
            fs::write(self.at(file), text)?;
            fs::set_permissions(self.at(file), fs::Permissions::from_mode(0o666))?;
        }
        Ok(())
    }

    /// Lets `shell` run `text` in the folder `cwd`, and says which programs were run.
    pub(super) fn run(&mut self, shell: &str, text: &str, cwd: &str, world: World) -> Result<Ran, String> {
        self.clean(world, &folders_of(text), cwd).map_err(|e| format!("the jail cannot be cleaned: {e}"))?;
        // `sh` is the shell itself: the text is the same one all the way down.
        let sh = self.at("bin/sh");
        drop(fs::remove_file(&sh));
        std::os::unix::fs::symlink(shell, &sh).map_err(|e| e.to_string())?;
        let order = format!("folder={}\nshell={}\ntext={}\n", quoted(cwd), quoted(shell), quoted(text));
        fs::write(self.at("harness/order"), order).map_err(|e| e.to_string())?;
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.enter().map_err(|e| e.to_string())?,
        };
        let answer = session.ask();
        let log = fs::read(self.at("harness/log/runs")).map_err(|e| e.to_string())?;
        let said = match answer {
            Answer::Ended => {
                self.session = Some(session);
                String::new()
            }
            // The next text begins with a place of its own.
            Answer::Gone | Answer::Late => session.end(),
        };
        Ok(Ran { runs: records(&log), ended: answer != Answer::Late, said })
    }

    /// Goes in.
    fn enter(&self) -> std::io::Result<Session> {
        let mut child = Command::new(&self.enter[0])
            .args(&self.enter[1..])
            .args(LIMITS)
            .arg("chroot")
            .args(self.enter.iter().all(|word| word != "--user").then_some(NOBODY))
            .arg(self.root.path())
            .args(["/harness/dash", "-c", FIRST, "first"])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (told, answers) = mpsc::channel();
        let stdout = child.stdout.take().expect("it is piped");
        let reader = std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).take_while(|_| told.send(()).is_ok()).for_each(drop);
        });
        let mut stderr = child.stderr.take().expect("it is piped");
        let listener = std::thread::spawn(move || {
            let mut text = Vec::new();
            drop(stderr.by_ref().take(4096).read_to_end(&mut text));
            drop(std::io::copy(&mut stderr, &mut std::io::sink()));
            String::from_utf8_lossy(&text).into_owned()
        });
        let orders = child.stdin.take().expect("it is piped");
        Ok(Session { child, orders, answers, reader, listener })
    }
}

/// What the first process said of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Ended,
    /// It has ended itself.
    Gone,
    /// Nothing, and the time is over.
    Late,
}

/// A place that was entered.
struct Session {
    child: Child,
    orders: ChildStdin,
    answers: mpsc::Receiver<()>,
    reader: JoinHandle<()>,
    listener: JoinHandle<String>,
}

impl Session {
    /// Lets the text run that lies there.
    fn ask(&mut self) -> Answer {
        if self.orders.write_all(b"go\n").is_err() {
            return Answer::Gone;
        }
        match self.answers.recv_timeout(TIME) {
            Ok(()) => Answer::Ended,
            Err(mpsc::RecvTimeoutError::Timeout) => Answer::Late,
            Err(mpsc::RecvTimeoutError::Disconnected) => Answer::Gone,
        }
    }

    /// Ends all that is inside; what was said there.
    fn end(mut self) -> String {
        // The first process inside belongs to the group, and all others end with it.
        let group = i32::try_from(self.child.id()).expect("a process id fits");
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
        drop(self.child.wait());
        drop(self.reader.join());
        self.listener.join().unwrap_or_default()
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.session.take().map(Session::end);
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How a place of its own can be entered, by who runs the tests. The program `prlimit` comes last, without its limits.
fn ways_in() -> Vec<Vec<String>> {
    let common = ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--", "prlimit"];
    let with = |own: &[&str]| {
        ["unshare"].iter().chain(own).chain(&common).map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    vec![with(&[]), with(&["--user", "--map-root-user"])]
}

/// Copies `program` and the libraries that it needs; where it lies now.
fn install(root: &Path, program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let real = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    let real = real.ok_or_else(|| format!("there is no `{program}`"))?;
    let told = Command::new("ldd").arg(&real).output().map_err(|e| format!("ldd: {e}"))?;
    for word in String::from_utf8_lossy(&told.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(&word[1..]);
        if !copy.exists() {
            fs::create_dir_all(copy.parent().expect("it has a folder")).map_err(|e| e.to_string())?;
            fs::copy(word, &copy).map_err(|e| format!("{word}: {e}"))?;
        }
    }
    Ok(real)
}

/// The names of folders that `text` goes to, as far as they are plain.
fn folders_of(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || ";&|()'\"".contains(letter)).collect();
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-/.".contains(letter))
            && word.chars().all(|letter| letter != '.')
            && !word.starts_with(['-', '/'])
    };
    let goes = words.windows(2).filter(|pair| matches!(pair[0], "cd" | "pushd") && plain(pair[1]));
    goes.map(|pair| pair[1].to_owned()).take(20).collect()
}

/// The runs that the recorders wrote down, but for one that a limit cut off.
fn records(log: &[u8]) -> Vec<Recorded> {
    let text = String::from_utf8_lossy(log);
    let whole = text.rfind('\0').map_or("", |end| &text[..end]);
    let mut words = whole.split('\0');
    let mut runs = Vec::new();
    while let Some(run) = record(&mut words) {
        runs.push(run);
    }
    runs
}

fn record<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Recorded> {
    let count: usize = words.next()?.parse().ok()?;
    let cwd = words.next()?.to_owned();
    let argv = (0..=count).map(|_| words.next().map(str::to_owned)).collect::<Option<Vec<String>>>()?;
    Some(Recorded { cwd, argv })
}
