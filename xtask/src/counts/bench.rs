//! The programs that count: built by cargo, run from a place that has the same length everywhere.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The benchmarks that count, and where they stand.
const BENCHES: &[&str] = &[
    "-p",
    "pintle-domain",
    "-p",
    "pintle-shell",
    "-p",
    "pintle-dialects",
    "-p",
    "pintle-providers",
    "-p",
    "pintle-engine",
    "-p",
    "pintle-process",
    "-p",
    "pintle-rules",
    "-p",
    "pintle-store",
    "--bench",
    "counts",
    "--bench",
    "exchange",
    "--bench",
    "statements",
];

/// A message of cargo about something that it built.
#[derive(Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
}

/// Builds every benchmark that counts; the programs, each with the folder of its crate.
pub(crate) fn built(root: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let mut cargo = Command::new("cargo");
    // What cargo tells this errand of itself would have build scripts run once more that ask for it.
    let own = std::env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| starts(name, it))) {
        cargo.env_remove(name);
    }
    // What counts is built by the compiler itself, also where `./pintle test` has lints looked at while it builds.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
    let told = cargo
        .args(["bench", "--locked", "--no-run", "--profile", "counts", "--message-format=json-render-diagnostics"])
        .args(BENCHES)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("`cargo bench` did not start")?;
    ensure!(told.status.success(), "the benchmarks were not built");
    let told = String::from_utf8(told.stdout).context("what cargo says is no text")?;
    programs(&told)
}

fn starts(name: &OsStr, with: &str) -> bool {
    name.as_encoded_bytes().starts_with(with.as_bytes())
}

/// The programs that cargo built, by its own messages.
fn programs(told: &str) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let mut programs = Vec::new();
    for line in told.lines() {
        // Messages about anything else lack a manifest, those about libraries an executable.
        if let Ok(Built { executable: Some(program), manifest_path }) = serde_json::from_str(line) {
            let folder = manifest_path.parent().context("a manifest stands in a folder")?.to_owned();
            programs.push((program, folder));
        }
    }
    ensure!(!programs.is_empty(), "cargo built no benchmark");
    Ok(programs)
}

/// A folder whose name is as long on every machine and in every checkout, removed in the end. How long the path of a
/// program is, moves what it allocates first, and that moves what later allocations cost, by up to 3 % of a small case.
pub(crate) struct Stand(PathBuf);

/// As many stands as there can be at once: the last digit of their names tells them apart.
pub(crate) const MOST_STANDS: usize = 10;

impl Stand {
    /// The stand of one worker of this process; `place` is below [`MOST_STANDS`].
    pub(crate) fn new(place: usize) -> anyhow::Result<Self> {
        // Not the folder for temporary files of this machine: its name has another length elsewhere.
        let folder = PathBuf::from(format!("/tmp/pintle-counts-{:09}{place}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        Ok(Self(folder))
    }

    /// Runs the benchmark `program` of the crate in `folder`; what it printed.
    pub(crate) fn run(&self, root: &Path, program: &Path, folder: &Path) -> anyhow::Result<String> {
        let told = self.start(root, program, folder)?.wait_with_output().context("what it prints cannot be read")?;
        ensure!(
            told.status.success(),
            "`{}` failed; such programs need `valgrind`, and `gungraun-runner` in the version of `Cargo.toml`: \
             `./pintle test` installs both",
            program.display()
        );
        String::from_utf8(told.stdout).context("what it prints is no text")
    }

    fn start(&self, root: &Path, program: &Path, folder: &Path) -> anyhow::Result<Child> {
        // One worker at a time: a child that another one just forked holds what is open for writing here until it is
        // another program, and what is open for writing cannot be started.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.0.join("program");
        // A new file: the one before may still be held by whoever looks at processes, and cannot be written then.
        if place.exists() {
            fs::remove_file(&place).with_context(|| format!("`{}` cannot be removed", place.display()))?;
        }
        fs::copy(program, &place).with_context(|| format!("`{}` cannot be copied", program.display()))?;
        Command::new(&place)
            .args(["--bench", "--output-format=json"])
            .env("GUNGRAUN_WORKSPACE_ROOT", root)
            .env("GUNGRAUN_HOME", self.0.join("profiles"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("`{}` did not start", program.display()))
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: `{}` is left behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_are_taken_from_what_cargo_says() {
        let told = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/b/Cargo.toml","executable":"/t/counts-1"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n",
        );
        assert_eq!(programs(told).unwrap(), [(PathBuf::from("/t/counts-1"), PathBuf::from("/r/b"))]);
        assert!(programs("").is_err());
    }

    #[test]
    fn the_place_is_as_long_everywhere_and_goes_away() {
        let stand = Stand::new(0).unwrap();
        let place = stand.0.clone();
        assert!(place.is_dir());
        assert_eq!(place.as_os_str().len(), "/tmp/pintle-counts-0123456789".len());
        drop(stand);
        assert!(!place.exists());
    }
}
