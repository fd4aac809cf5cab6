//! This test program again, as another process: a test that finds [`FILE`] set plays the child's part.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Holds the file that the child is to write to.
const FILE: &str = "PINTLE_STORE_TEST_FILE";

/// What stands before each id that a child prints, to tell it from the test program's own lines.
pub(crate) const KEPT: &str = "kept ";

/// The file of the child, if this process is one.
pub(crate) fn file() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

/// Starts the test called `name` as a child that works on `file`.
pub(crate) fn start(name: &str, file: &Path) -> Child {
    spawn(name, file, Stdio::null())
}

/// The same, with an input that ends with this process.
pub(crate) fn start_with_input(name: &str, file: &Path) -> Child {
    spawn(name, file, Stdio::piped())
}

fn spawn(name: &str, file: &Path, input: Stdio) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(FILE, file)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}
