//! What is read out of shell texts: facts one by one, two collections of texts, hostile texts.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod options;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod real;

#[cfg(test)]
use std::path::Path;

#[cfg(test)]
use pintle_domain::shell::{ShellFacts, ShellKind, ShellText};

#[cfg(test)]
const WORKSPACE: &str = "/code/app";

/// What `text` would do in the workspace.
#[cfg(test)]
fn facts(text: &str) -> ShellFacts {
    facts_in(text, WORKSPACE)
}

#[cfg(test)]
fn facts_in(text: &str, cwd: &str) -> ShellFacts {
    facts_as(ShellKind::Bash, text, cwd)
}

/// What a shell of the kind `shell` would make of `text`.
#[cfg(test)]
fn facts_as(shell: ShellKind, text: &str, cwd: &str) -> ShellFacts {
    pintle_shell::facts(ShellText { text, cwd: Path::new(cwd), workspace: Path::new(WORKSPACE), shell })
}

/// Every kind of shell.
#[cfg(test)]
const SHELLS: [ShellKind; 3] = [ShellKind::Bash, ShellKind::Dash, ShellKind::Unknown];
