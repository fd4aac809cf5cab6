//! Under which configuration sessions are worked: kept with each, so that none goes on without its guards unnoticed.

use std::fs;
use std::path::{Path, PathBuf};

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::HookState;
use pintle_domain::session::WorkedUnder;
use sha2::{Digest, Sha256};

use crate::config::{Loaded, LoadedHook};

/// What a session keeps of `loaded`. Rules of the store are not among its guards: who changes those is in the audit
/// chain, and they are in force under every configuration.
pub fn worked_under(loaded: &Loaded) -> WorkedUnder {
    let files: Vec<PathBuf> = loaded.in_force.iter().map(|file| whole(file)).collect();
    let mut digest = Sha256::new();
    for file in &files {
        digest.update(fs::read(file).map(Sha256::digest).unwrap_or_default());
    }
    let mut guards: Vec<String> =
        loaded.config.hooks.iter().filter(|loaded| guards(loaded)).map(|loaded| loaded.hook.name.to_string()).collect();
    guards.sort();
    WorkedUnder {
        config: files.iter().map(|file| file.display().to_string()).collect(),
        guards,
        digest: format!("{:x}", digest.finalize()),
    }
}

/// The same for a host of which there are several: files are compared by their names, since each has its own folders.
pub fn worked_under_anywhere(loaded: &Loaded) -> WorkedUnder {
    let name = |path: String| path.rsplit('/').next().map(str::to_owned).unwrap_or(path);
    let under = worked_under(loaded);
    WorkedUnder { config: under.config.into_iter().map(name).collect(), ..under }
}

/// The file without links and steps back: two names of one file are one.
fn whole(file: &Path) -> PathBuf {
    file.canonicalize().or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned())
}

/// Whether a hook can stop tool calls, and is neither switched off nor left out.
fn guards(loaded: &LoadedHook) -> bool {
    let counts = match loaded.hook.state {
        HookState::Armed | HookState::Tripped { .. } | HookState::Broken(_) => true,
        HookState::Disabled | HookState::Untrusted => false,
    };
    let stages = &loaded.hook.stages;
    counts && [CheckpointKind::BeforeTool, CheckpointKind::ApproveTool].iter().any(|kind| stages.get(*kind).is_some())
}
