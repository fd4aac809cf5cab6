//! What rules and their record stand on: folders with rules, keys, the audit chain.

use pintle_domain::audit::Proof;
use pintle_domain::node::{NodeKeys, other_keys};
use pintle_store::Store;
use pintle_store::keyring::signing::{PUBLIC_KEY_FILE, SigningSource};

use super::super::audit::{first_finding, keys, unsigned};
use super::{Check, State};
use pintle_host::HostError;
use pintle_host::blind;
use pintle_host::config::{Config, Env};
use pintle_host::host::Host;
use pintle_host::host_rules::{edition, keyring, open_known_store, signing};
use pintle_host::rule_files;

/// What is odd about rules, and the folders that rules are read from.
pub(super) fn rules(host: &Host) -> Vec<Check> {
    let odd = host.bad_rules().iter().map(|line| Check::new("rules", "", State::Note, line.clone()));
    let folders = host.loaded.config.agent_hooks.dirs.iter().map(|folder| {
        let dir = &folder.dir;
        let read =
            rule_files::read(folder).and_then(|files| match files.iter().find_map(|file| file.read.as_ref().err()) {
                Some(why) => Err(why.to_string()),
                None => Ok(files.len()),
            });
        match read {
            Err(why) => Check { guard: true, ..Check::new("rules", "", State::Failed, why) },
            Ok(1) => Check::new("rules", "", State::Ok, format!("{}: 1 file", dir.display())),
            Ok(files) => Check::new("rules", "", State::Ok, format!("{}: {files} files", dir.display())),
        }
    });
    let doubts = host.host_rules.doubts();
    // A rule that is about no tool is named where it is proven.
    let stored = host.host_rules.rule_cache().rules();
    let blind: Vec<String> = blind::of_rules(&host.loaded.config, &stored.hooks, host.host_rules.rule_cache())
        .map(|(_, line)| line)
        .collect();
    let odd = odd.filter(|check| !doubts.contains(&check.message) && !blind.contains(&check.message));
    let doubted =
        doubts.iter().map(|line| Check { guard: true, ..Check::new("rules", "", State::Failed, line.clone()) });
    folders.chain(odd).chain(doubted).collect()
}

/// Members, keys and sessions that grant nothing.
pub(super) fn identities(config: &Config, env: &Env) -> Vec<Check> {
    let known = open_known_store(config, env)
        .and_then(|store| store.identity_doubts().map_err(|error| HostError::failed(error.to_string())));
    let check = |line| Check::new("members", "", State::Failed, line);
    match known {
        Ok(doubts) => doubts.into_iter().map(check).collect(),
        // That the store cannot be opened is said of the store.
        Err(_) => Vec::new(),
    }
}

/// The nodes that are there and work with other keys than this one.
pub(super) fn nodes(config: &Config, env: &Env, store: &dyn Store) -> Vec<Check> {
    let keyring = edition(config, env).and_then(|edition| keyring(config, env, edition)).ok();
    let encryption = keyring.and_then(|keyring| keyring.kid().map(str::to_owned));
    let signing = Some(signing(config, env)).filter(SigningSource::is_there).and_then(|source| source.key().ok());
    let own = NodeKeys { signing: signing.map(|key| key.kid().to_owned()), encryption };
    let lines = other_keys(&store.nodes().unwrap_or_default(), ("", &own));
    lines.into_iter().map(|line| Check::new("keys", "", State::Failed, line)).collect()
}

/// The key that encrypts secrets.
pub(super) fn encryption(config: &Config, env: &Env) -> Check {
    let found = edition(config, env).and_then(|edition| keyring(config, env, edition));
    match found {
        Err(error) => Check::new("keys", "", State::Failed, error.message),
        Ok(keyring) => match keyring.kid() {
            Some(kid) => Check::new("keys", "", State::Ok, format!("secrets are encrypted with the key {kid}")),
            None => {
                let message = "encryption key not configured: hooks can have no secrets, and details of faults are not \
                               kept; set PINTLE_ENCRYPTION_KEY";
                Check::new("keys", "", State::Note, message)
            }
        },
    }
}

/// The key that signs the audit chain, and its last signatures.
pub(super) fn audit(config: &Config, store: &dyn Store) -> Check {
    let check = |state: State, message: String| Check::new("audit", "", state, message);
    let file = config.home.join(PUBLIC_KEY_FILE);
    if !file.is_file() {
        let message = format!("{} is not there: nothing of the record can be proven", file.display());
        return check(State::Note, message);
    }
    let keys = match keys(&file) {
        Ok(keys) => keys,
        Err(error) => return check(State::Failed, error.message),
    };
    match unsigned(config, store) {
        Ok(why) if why.is_empty() => {}
        Ok(why) => return check(State::Failed, why.join("; ")),
        Err(error) => return check(State::Failed, error.to_string()),
    }
    match signatures(store, |kid, message, signature| keys.verify(kid, message, signature)) {
        Ok(chains) => match first_finding(store, &keys) {
            Ok(None) => check(State::Ok, intact(chains)),
            Ok(Some(why)) => check(State::Failed, format!("{why}; see `pintle audit verify`")),
            Err(error) => check(State::Failed, error.message),
        },
        Err(why) => check(State::Failed, format!("{why}; see `pintle audit verify`")),
    }
}

/// What is said of `signed` chains in which nothing is wrong.
fn intact(signed: usize) -> String {
    match signed {
        0 => "nothing is signed yet".to_owned(),
        1 => "the last signature of 1 chain is good".to_owned(),
        chains => format!("the last signature of {chains} chains is good"),
    }
}

/// Checks the last signature of every chain. Says how many there are.
fn signatures(store: &dyn Store, verify: impl Fn(&str, &[u8], &str) -> Proof) -> Result<usize, String> {
    let said = |error: pintle_domain::store::StoreError| error.to_string();
    let unhashed: u64 = store.unhashed().map_err(said)?.iter().map(|(_, entries)| entries).sum();
    if unhashed > 0 {
        return Err(format!("{unhashed} entries are kept behind the chains and could not be hashed"));
    }
    let mut signed = 0;
    for tenant in store.audited().map_err(said)? {
        let Some(last) = store.last_checkpoint(&tenant).map_err(said)? else { continue };
        let of = format!("the signature of entry {} of tenant {tenant}", last.seq);
        match verify(&last.kid, &last.message(), &last.signature) {
            Proof::Good => {}
            Proof::Bad => return Err(format!("{of} is not that of its key")),
            Proof::UnknownKey => return Err(format!("{of} is by key {}, which is not available here", last.kid)),
        }
        let row = store.audit_entries(&tenant, last.seq, 1).map_err(said)?.pop();
        let stays = row.as_ref().is_none_or(|row| row.seq == last.seq && row.hash == last.hash);
        // A chain whose entries were all forgotten ends with its anchor.
        let cut = row.is_none() && store.audit_entries(&tenant, 1, 1).map_err(said)?.is_empty();
        if !stays || (row.is_none() && !cut) {
            return Err(format!("{of} is not that of the entry that stands there"));
        }
        signed += 1;
    }
    Ok(signed)
}
