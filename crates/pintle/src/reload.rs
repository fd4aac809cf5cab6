//! A changed configuration takes the place of the one in force: whole or not at all.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{Config, Loaded};
use crate::error::CliError;
use crate::host::{Host, load};

/// Loads the configuration again and puts it in force, if everything that changed in it is good.
///
/// Unchanged entries keep their process and, bad or down, block nothing. Changed and new children have shaken hands
/// before anything is replaced.
///
/// # Errors
/// What is bad, and which removals are therefore not in force. The old set then stays.
pub async fn reload(host: &Host, config: Option<&Path>, home: Option<&Path>) -> Result<Loaded, CliError> {
    let (_, loaded) = load(config, home).map_err(|error| refused(&host.loaded.config, None, &error.message))?;
    let old: BTreeSet<String> = host.loaded.diagnostics.iter().map(ToString::to_string).collect();
    let fresh = loaded.diagnostics.iter().find(|diagnostic| !old.contains(&diagnostic.to_string()));
    if let Some(diagnostic) = fresh {
        return Err(refused(&host.loaded.config, Some(&loaded.config), &diagnostic.to_string()));
    }
    let before = host.running();
    let mounts = host.mounts(&loaded.config);
    for (name, process) in host.running() {
        let kept = before.get(&name).is_some_and(|same| std::sync::Arc::ptr_eq(same, &process));
        if kept {
            continue;
        }
        if let Err(fault) = process.ready().await {
            host.keep_running(before);
            let cause = format!("hook \"{name}\" {fault}");
            return Err(refused(&host.loaded.config, Some(&loaded.config), &cause));
        }
    }
    match host.engine.replace(mounts) {
        Ok(()) => Ok(loaded),
        Err(duplicate) => {
            host.keep_running(before);
            Err(refused(&host.loaded.config, Some(&loaded.config), &duplicate.to_string()))
        }
    }
}

/// One error for the whole reload: the cause, and the hooks that were taken out and still run.
fn refused(old: &Config, new: Option<&Config>, cause: &str) -> CliError {
    let names = |config: &Config| -> BTreeSet<String> {
        config.hooks.iter().map(|loaded| loaded.hook.name.to_string()).collect()
    };
    let error = CliError::usage(format!("the changed configuration is not in force: {cause}"));
    let removed: Vec<String> = new.map(|new| names(old).difference(&names(new)).cloned().collect()).unwrap_or_default();
    if removed.is_empty() {
        return error.hint("the hooks from before the change go on; mend the file and save it again");
    }
    error.hint(format!("these hooks were removed and still run: {}", removed.join(", ")))
}
