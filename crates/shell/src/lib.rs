//! Reads what a shell text would do, without running it.
//!
//! The text is parsed as bash and walked as an interpreter would walk it, with two differences: every branch is taken,
//! and a value that the text does not say is *unknown* and stays so. Whatever would have to be known and is not makes
//! the whole answer `unknown`; it never makes it empty. The limits stand in `docs/reference/shell-facts.md`.
//!
//! `parse` builds the tree (`syntax`) within `bounds`, `expand` expands words, `read` walks the tree with what is known at
//! each point (`state`), and `run` works out what a command does. `programs` is a table of known programs; `code` looks
//! through other languages, `paths`, `globs` and `number` handle values.

mod bounds;
mod code;
mod expand;
mod globs;
mod number;
mod parse;
mod paths;
mod programs;
mod read;
mod run;
mod state;
mod syntax;

use std::path::Path;

use pintle_domain::shell::{ShellFacts, ShellText};

/// What `text` would do, as far as reading it can tell.
///
/// Total and bounded: any text has an answer, in bounded time, memory and stack.
pub fn facts(text: ShellText<'_>) -> ShellFacts {
    read::facts(text)
}

/// What a tool that writes `files` would do, as a shell text that writes them would do it in `cwd`, a folder of
/// `workspace`.
pub fn written(files: &[&str], cwd: &Path, workspace: &Path) -> ShellFacts {
    read::written(files, cwd, workspace)
}
