//! What this program is when it starts itself: a process with a store of its own, whose memory or haste is looked at.

use std::env;
use std::fs;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use pintle_store::Durability;

use crate::conversations;
use crate::stage::{Load, Stage, open};

/// Set in a process that has a role: its word and what it works with, a line each.
const ROLE: &str = "PINTLE_BENCH_ROLE";

/// A role.
#[derive(Debug)]
pub(crate) enum Role {
    /// Works a turn of as many calls as it is told on its input, again and again.
    Worker { home: PathBuf, url: String },
    /// Says how much memory turns take that are worked at once.
    Turns { home: PathBuf, url: String, turns: usize, calls: usize },
    /// Says what open conversations take.
    Open { home: PathBuf, conversations: usize },
    /// Runs a program in a folder, and says the most memory that it ever had.
    Peak { home: PathBuf, command: Vec<String> },
}

impl Role {
    /// The role of this process, if it has one.
    pub(crate) fn from_env() -> Option<anyhow::Result<Self>> {
        env::var(ROLE).ok().map(|written| Self::read(&written))
    }

    fn read(written: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = written.lines().collect();
        Ok(match words.as_slice() {
            ["worker", home, url] => Self::Worker { home: home.into(), url: (*url).to_owned() },
            ["turns", home, url, turns, calls] => {
                let url = (*url).to_owned();
                Self::Turns { home: home.into(), url, turns: turns.parse()?, calls: calls.parse()? }
            }
            ["open", home, conversations] => Self::Open { home: home.into(), conversations: conversations.parse()? },
            ["peak", home, command @ ..] => {
                Self::Peak { home: home.into(), command: command.iter().map(|word| (*word).to_owned()).collect() }
            }
            other => bail!("there is no role {other:?}"),
        })
    }

    /// A process of this program with the role `words`.
    pub(crate) fn spawn(words: &[&str]) -> anyhow::Result<Child> {
        let mut command = Command::new(env::current_exe()?);
        command.env(ROLE, words.join("\n")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().context("this program does not start once more")
    }

    /// What a process with the role `words` says in the end, a number each.
    pub(crate) fn said<const N: usize>(words: &[&str]) -> anyhow::Result<[u64; N]> {
        let output = Self::spawn(words)?.wait_with_output()?;
        ensure!(output.status.success(), "the process `{}` failed: {}", words[0], output.status);
        let said = String::from_utf8(output.stdout)?;
        let numbers: Vec<u64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let Ok(numbers) = numbers.try_into() else { bail!("`{said}` are no {N} numbers") };
        Ok(numbers)
    }

    pub(crate) fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Worker { home, url } => work(&home, &url),
            Self::Turns { home, url, turns, calls } => {
                let stage = Stage::new()?;
                let store = open(&url, &home, Durability::Commit)?;
                // Whatever is made at the first call is made, and its libraries are there.
                stage.work_well(&store, Load { turns: 1, calls })?;
                let before = kib("VmRSS:")?;
                forget_peak()?;
                stage.work_well(&store, Load { turns, calls })?;
                say(&[kib("VmHWM:")?.saturating_sub(before)])
            }
            Self::Open { home, conversations } => {
                say(&conversations::held(&open(conversations::URL, &home, Durability::Commit)?, conversations)?)
            }
            Self::Peak { home, command } => {
                let (program, arguments) = command.split_first().context("a program is named")?;
                let ran = in_surroundings_of(&home, program).args(arguments).stdout(Stdio::null()).output()?;
                let said = String::from_utf8_lossy(&ran.stderr);
                ensure!(ran.status.success(), "`{}` failed: {said}", command.join(" "));
                let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
                say(&[u64::try_from(peak)?])
            }
        }
    }
}

/// Works turns as it is told.
fn work(home: &Path, url: &str) -> anyhow::Result<()> {
    let stage = Stage::new()?;
    let store = open(url, home, Durability::Commit)?;
    say(&[0])?;
    for line in stdin().lock().lines() {
        let worked = stage.work(&store, Load { turns: 1, calls: line?.trim().parse()? })?;
        for why in &worked.failed {
            eprintln!("scale: process {}: {why}", std::process::id());
        }
        say(&[worked.failed.len() as u64])?;
    }
    Ok(())
}

/// A program in surroundings of its own: those of `home`.
pub(crate) fn in_surroundings_of(home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(home).stdin(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(name, home);
    }
    command
}

/// Says numbers, in a line.
fn say(numbers: &[u64]) -> anyhow::Result<()> {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let mut out = stdout().lock();
    writeln!(out, "{}", words.join(" ")).and_then(|()| out.flush()).context("the output is closed")
}

/// A size of this process, in KiB.
pub(crate) fn kib(name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{name} is not a number"))
}

/// The most memory that this process had is what it has now.
fn forget_peak() -> anyhow::Result<()> {
    // Source: `man 5 proc`, `/proc/pid/clear_refs`.
    fs::write("/proc/self/clear_refs", "5").context("the peak cannot be set back")
}
