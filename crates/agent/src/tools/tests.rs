//! The registry and its tools, each in a folder of its own.

mod exec;
mod fetch;
mod files;
mod registry;
mod sandbox;
mod write;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::protected::Protected;
use super::workspace::Workspace;

/// A folder with a workspace `ws`, a protected home `home`, and a protected file `ws/pintle.toml`.
pub(super) struct Tree {
    base: TempDir,
    pub(super) workspace: Workspace,
    pub(super) protected: Protected,
}

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let base = tempfile::tempdir().unwrap();
        for (path, text) in
            files.iter().chain(&[("ws/pintle.toml", "secret_of = 1\n"), ("home/db", "the home's data\n")])
        {
            let path = base.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let at = |path: &str| base.path().join(path);
        let protected = Protected {
            files: vec![at("ws/pintle.toml"), at("ws/later.toml")],
            dirs: vec![at("home")],
            beside: [(at("ws/hooks"), "hook \"guard\"".to_owned())].into(),
            names: vec!["pintle.json".into()],
        };
        let workspace = Workspace::open(&at("ws"), &protected).unwrap();
        Self { base, workspace, protected }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.base.path().join(path)
    }

    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub(super) fn link(&self, path: &str, to: impl AsRef<Path>) {
        symlink(to, self.at(path)).unwrap();
    }

    pub(super) fn fifo(&self, path: &str) {
        nix::unistd::mkfifo(&self.at(path), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
}
