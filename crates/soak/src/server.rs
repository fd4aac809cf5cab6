//! The server that is measured, and the floor beside it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// The gateway token of a soak.
pub(crate) const TOKEN: &str = "a-token-of-this-soak";

/// What a server has besides, that lets clients in.
pub(crate) const SETTINGS: &str =
    "[gateway]\nedition = 'standard'\ntoken_env = 'PINTLE_SOAK_TOKEN'\nrequests_per_minute = 1000000\n";

/// Makes the folders of a home with one agent, whose model is at `model`, and its configuration.
pub(crate) fn folders(home: &Path, model: &str, more: &str) -> Result<()> {
    for folder in ["config", "data", "here"] {
        fs::create_dir(home.join(folder))?;
    }
    let config = format!(
        "{more}[providers.model]\nkind = 'openai'\nbase_url = 'http://{model}/v1'\n\
         [agents.main]\nmodel = 'model/m'\ntools = ['list_dir']\nworkspace = '{}'\n",
        home.join("here").display()
    );
    Ok(fs::write(home.join("pintle.toml"), config)?)
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    shown: Lines<BufReader<ChildStderr>>,
    _home: TempDir,
    pub(crate) address: String,
    pub(crate) pid: u32,
}

impl Server {
    /// Starts `program` with a home of its own and one agent, whose model is at `model`.
    pub(crate) async fn start(program: &Path, model: &str) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("pintle-soak-").tempdir()?;
        let at = |name: &str| home.path().join(name);
        folders(home.path(), model, SETTINGS)?;
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.path());
        command.env("XDG_CONFIG_HOME", at("config")).env("XDG_DATA_HOME", at("data")).env("PINTLE_SOAK_TOKEN", TOKEN);
        command.arg("serve").arg("-c").arg(at("pintle.toml")).args(["--listen", "127.0.0.1:0"]);
        command.current_dir(at("here")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().with_context(|| format!("`{}`", program.display()))?;
        let mut shown = BufReader::new(child.stderr.take().context("it is piped")?).lines();
        let mut seen = Vec::new();
        let pid = child.id().context("it has just started")?;
        while let Some(line) = shown.next_line().await? {
            if let Some((_, address)) = line.split_once("listening at http://") {
                return Ok(Self { address: address.trim().to_owned(), pid, child, shown, _home: home });
            }
            seen.push(line);
        }
        anyhow::bail!("the server ended before it listened:\n{}", seen.join("\n"))
    }

    /// Reads what it shows, so that it never waits for that; hands over what is a warning.
    pub(crate) async fn warnings(&mut self, mut warned: impl FnMut(String)) {
        while let Ok(Some(line)) = self.shown.next_line().await {
            if line.contains("WARN") || line.contains("ERROR") || line.contains("panicked") {
                warned(line);
            }
        }
        // The end of its words is its own end; nobody asked for that.
        let code = self.child.wait().await;
        warned(format!("the server ended: {code:?}"));
    }
}

/// Stops the server `pid`, or lets it go on.
pub(crate) fn signal(pid: u32, signal: Signal) -> Result<()> {
    Ok(kill(Pid::from_raw(i32::try_from(pid)?), signal)?)
}

/// The floor in a process of its own, until it is dropped.
pub(crate) struct Floor {
    _child: Child,
    pub(crate) address: String,
}

impl Floor {
    /// Starts this program once more, as the floor.
    pub(crate) async fn start(program: &Path, model: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["floor", model]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("it is piped")?).lines();
        let address = lines.next_line().await?.context("the floor says where it listens")?;
        Ok(Self { _child: child, address })
    }
}
