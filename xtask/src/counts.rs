//! `cargo xtask bench -- --count`: what the hot path costs in numbers that do not depend on the hour, against those that
//! are committed for the toolchain in use.

use std::fs;
use std::io::Write as _;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use anyhow::{Context, bail, ensure};

mod bench;
mod compare;
mod counted;
mod kept;

use compare::Comparison;
use counted::Counts;

/// What is to be done with the counts.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    /// They are compared with what is committed.
    Compare,
    /// They become what is committed.
    Write,
}

/// Counts, and compares or writes; `words` are what follows `--count`.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<ExitCode> {
    let aim = match words {
        [] => Aim::Compare,
        [word] if word == "--write" => Aim::Write,
        _ => bail!("after `--count` only `--write` may follow, got `{}`", words.join(" ")),
    };
    let version = toolchain(root)?;
    let name = format!("counts/{version}.toml");
    let file = root.join(&name);
    let committed = match aim {
        Aim::Write => None,
        Aim::Compare => {
            let text = fs::read_to_string(&file).with_context(|| {
                format!(
                    "no counts can be read for Rust {version}, in `{name}`: use the toolchain of `rust-toolchain.toml`, \
                     or write them with `cargo xtask bench -- --count --write`"
                )
            })?;
            Some(kept::read(&text).with_context(|| format!("`{name}` is not as it was written"))?)
        }
    };
    let now = count(root)?;
    let Some(committed) = committed else {
        fs::create_dir_all(root.join("counts"))?;
        fs::write(&file, kept::written(&version, &now)).with_context(|| format!("`{name}` cannot be written"))?;
        writeln!(std::io::stdout(), "{} counts are in `{name}` now", now.len())?;
        return Ok(ExitCode::SUCCESS);
    };
    let comparison = Comparison::of(&committed, &now);
    write!(std::io::stdout(), "{comparison}")?;
    Ok(if comparison.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The version of the compiler that is in use here, such as `1.95.0`.
fn toolchain(root: &Path) -> anyhow::Result<String> {
    let told = Command::new("rustc").arg("--version").current_dir(root).output().context("`rustc` did not start")?;
    ensure!(told.status.success(), "`rustc --version` failed: {}", told.status);
    let text = String::from_utf8(told.stdout).context("`rustc --version` is no text")?;
    let version = text.split(' ').nth(1).with_context(|| format!("`{}` names no version", text.trim()))?;
    Ok(version.to_owned())
}

/// Runs every benchmark that counts.
fn count(root: &Path) -> anyhow::Result<Counts> {
    let programs = bench::built(root)?;
    // What else the machine does changes no count, so each core takes the next program.
    let next = AtomicUsize::new(0);
    let printed = Mutex::new(String::new());
    let work = |place: usize| -> anyhow::Result<()> {
        let stand = bench::Stand::new(place)?;
        while let Some((program, folder)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let told = stand.run(root, program, folder)?;
            printed.lock().unwrap_or_else(PoisonError::into_inner).push_str(&told);
        }
        Ok(())
    };
    let cores = available_parallelism().map_or(1, NonZero::get).min(bench::MOST_STANDS);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|place| {
                let work = &work;
                scope.spawn(move || work(place))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    counted::read(&printed.into_inner().unwrap_or_else(PoisonError::into_inner))
}
