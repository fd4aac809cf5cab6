//! A configuration in a folder of its own, and the program's own host over it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use pintle_host::error::HostError;
use pintle_host::host::{Host, load};
use pintle_host::reload::ConversationSource;
use tempfile::TempDir;

use crate::child::{Answers, PID_FILE, VARIABLE};
use crate::stage::Stage;

const CONFIG: &str = r#"
[providers.scripted]
kind = "scripted"
script = "replies.json"

[agents.main]
model = "scripted/m"
workspace = "workspace"
"#;
const REPLIES: &str = r#"{ "replies": [{ "text": "Nobody asked." }] }"#;

/// A hook as people write it: it answers `continue`, whatever it is asked.
const SCRIPT: &str = r#"while IFS= read -r line; do
    id=${line#*'"id":'}
    printf '{"jsonrpc":"2.0","id":%s,"result":{"action":"continue"}}\n' "${id%%,*}"
done
"#;
/// Becomes this program. The host reads what the words of a command name, at each start, and this program is large.
const OWN: &str = "exec \"$PINTLE_BENCH_PROGRAM\"\n";

/// The shell that runs both.
pub(crate) const SHELL: &str = "/bin/sh";

pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    /// A folder with a configuration that has so many process hooks at `before_tool`, each a script for the shell.
    pub(crate) fn new(hooks: usize) -> anyhow::Result<Self> {
        let home = Self { folder: tempfile::tempdir()? };
        fs::create_dir(home.path().join("workspace"))?;
        fs::write(home.path().join("replies.json"), REPLIES)?;
        fs::write(home.script(), SCRIPT)?;
        fs::write(home.own(), OWN)?;
        let entry = |number| entry(&format!("hook-{number}"), &home.script(), &[]);
        home.write(&(0..hooks).map(entry).collect::<String>())?;
        Ok(home)
    }

    /// Puts a guard into the configuration, alone, which differs from that of another `edition`.
    pub(crate) fn guard(&self, edition: u64) -> anyhow::Result<()> {
        let (program, edition) = (std::env::current_exe()?, edition.to_string());
        let (program, pid_file) = (program.to_string_lossy(), self.pid_file());
        let vars = [
            (VARIABLE, Answers::Guard.word()),
            (PID_FILE, &*pid_file.to_string_lossy()),
            ("PINTLE_BENCH_PROGRAM", &*program),
            ("EDITION", &*edition),
        ];
        self.write(&entry("guard", &self.own(), &vars))
    }

    fn write(&self, hooks: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.config(), format!("{CONFIG}{hooks}"))?)
    }

    /// The script of its hooks.
    pub(crate) fn script(&self) -> PathBuf {
        self.path().join("answers.sh")
    }

    fn own(&self) -> PathBuf {
        self.path().join("own.sh")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("pintle.toml")
    }

    /// The folder of the state.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The file that a guard writes its process id to.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.path().join("pid")
    }

    /// Reads the configuration and opens the host, whose children are then on their way.
    pub(crate) fn open(&self, stage: &Stage) -> anyhow::Result<Host> {
        let (env, loaded) = load(Some(&self.config()), Some(&self.data())).map_err(said)?;
        ensure!(loaded.diagnostics.is_empty(), "the configuration: {:?}", loaded.diagnostics);
        let _inside = stage.runtime.enter();
        Host::open(env, loaded, Vec::new()).map_err(said)
    }

    /// The same, until its children have shaken hands.
    pub(crate) fn ready(&self, stage: &Stage) -> anyhow::Result<Host> {
        let host = self.open(stage)?;
        let down = stage.runtime.block_on(host.ready());
        ensure!(down.is_empty(), "hooks did not come up: {down:?}");
        Ok(host)
    }

    /// Puts the configuration that is written now in force in `host`.
    pub(crate) async fn reload(&self, host: &mut Host) -> anyhow::Result<()> {
        let (config, home) = (self.config(), self.data());
        let source = ConversationSource { config: Some(&config), home: Some(&home), agent: None, model: None };
        let reloaded = pintle_host::reload::reload(host, source).await.map_err(said)?;
        ensure!(reloaded.children.restarted == ["guard"], "another child was wanted: {:?}", reloaded.children);
        Ok(())
    }
}

/// The entry of a process hook at `before_tool`: a script, with these variables.
fn entry(name: &str, script: &Path, vars: &[(&str, &str)]) -> String {
    let vars = vars.iter().map(|(name, value)| format!("{name} = {value:?}")).collect::<Vec<_>>();
    format!(
        "[hooks.processes.{name}]\nenabled = true\ncommand = [{SHELL:?}, {script:?}]\n\
         intercept = [\"before_tool\"]\nstrict = true\nenv = {{ {} }}\n",
        vars.join(", ")
    )
}

/// The error of a host as one of ours.
pub(crate) fn said(error: HostError) -> anyhow::Error {
    anyhow::Error::msg(error.message)
}
