//! Which version of an agent is there, and whether anybody has tried that one.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pintle_guard::host::KnownVersions;
use tokio::process::Command;

/// How long an agent has to say its version: some are slow starters, on a busy machine ten seconds.
const SAY_TIME: Duration = Duration::from_secs(30);

/// The most characters that are shown of an answer without a version.
const MAX_SAID: usize = 120;

/// What is known of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostVersion {
    /// The agent is not there, or does not say it: why.
    Unsaid(String),
    /// This one has been tried.
    Known(String),
    /// This one has not.
    Unproven(String),
}

/// What `program` says of itself, held against `known`.
pub(crate) async fn look(program: &Path, known: KnownVersions) -> HostVersion {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    match tokio::time::timeout(SAY_TIME, command.output()).await {
        // Some say it on standard error.
        Ok(Ok(output)) => judge(&String::from_utf8_lossy(&[output.stdout, output.stderr].concat()), known),
        Ok(Err(error)) => HostVersion::Unsaid(format!("`{}` cannot be started: {error}", program.display())),
        Err(_) => HostVersion::Unsaid(format!(
            "`{} --version` gave no answer within {} s",
            program.display(),
            SAY_TIME.as_secs()
        )),
    }
}

/// A version that was said, held against `known`.
pub(crate) fn judge(said: &str, known: KnownVersions) -> HostVersion {
    let Some(found) = word(said) else {
        return HostVersion::Unsaid(format!("it says no version, but `{}`", telling(said)));
    };
    let (min, newest) = (word(known.min), word(known.newest));
    let is_above = min.is_some_and(|min| min.numbers <= found.numbers);
    let is_below = newest.is_some_and(|newest| found.numbers <= newest.numbers);
    let is_known = found.is_release && is_above && is_below;
    if is_known { HostVersion::Known(found.text) } else { HostVersion::Unproven(found.text) }
}

/// What of `said` tells a person most: the error of a program that failed, else the first line. No trace of its calls.
fn telling(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.contains("Error")).or_else(|| lines().next()).unwrap_or_default();
    line.chars().take(MAX_SAID).collect()
}

/// A version, as it is written.
struct WrittenVersion {
    text: String,
    numbers: Vec<u64>,
    /// Whether nothing stands behind its numbers: of nightly builds and the like nobody has tried any.
    is_release: bool,
}

/// The version in `text`.
fn word(text: &str) -> Option<WrittenVersion> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let word = word.trim_end_matches(['.', ',']);
    let numbered = word.split(['-', '+']).next().unwrap_or(word);
    let is_release = numbered.len() == word.len();
    let numbers: Vec<u64> = numbered.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    // A date is none.
    let is_version = is_release || numbers.len() > 1;
    is_version.then(|| WrittenVersion { text: word.to_owned(), numbers, is_release })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let known = KnownVersions { min: "2.1.99", newest: "2.1.330", packages: &[] };
        let check = |said: &str, expected: &HostVersion| assert_eq!(&judge(said, known), expected, "{said}");
        check("2.1.330 (Claude Code)", &HostVersion::Known("2.1.330".into()));
        check("codex-cli 2.1.99\n", &HostVersion::Known("2.1.99".into()));
        check("GitHub Copilot CLI 2.1.100.\nRun it.\n", &HostVersion::Known("2.1.100".into()));
        check("2.1.98", &HostVersion::Unproven("2.1.98".into()));
        check("2.2.0", &HostVersion::Unproven("2.2.0".into()));
        check("nightly", &HostVersion::Unsaid("it says no version, but `nightly`".into()));
        // Somebody may have tried the release, and nobody this.
        for early in ["2.2.0-alpha.3", "2.1.330-nightly.20261122.1a2b", "2.1.100+build7"] {
            check(&format!("gemini {early}"), &HostVersion::Unproven(early.into()));
        }
        check("2026-11-22", &HostVersion::Unsaid("it says no version, but `2026-11-22`".into()));
        let trace = "file:///usr/lib/kimi.js:3\nimport x\n\nSyntaxError: no export\n    at async run (node:x)\n";
        check(trace, &HostVersion::Unsaid("it says no version, but `SyntaxError: no export`".into()));
    }
}
