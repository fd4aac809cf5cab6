//! Rules in files that nobody accepted: they run nowhere, and every event that they are about says so.

use std::sync::Arc;
use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::HookName;
use pintle_domain::json::Value;
use pintle_domain::matcher::RespondTools;
use pintle_domain::rule::AGENT_EVENTS;
use pintle_engine::hook_set::{Mounted, NullHandler};
use pintle_rules::record::{DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS};

use super::filed::{FILE, GATES};
use super::{RuleFile, RuleFolder, read};

/// Most of them that are named one by one, of one configuration: each stands in the record of every event that it is
/// about, and a stranger's folder may hold any number. The others share a line.
const MAX_NAMED: usize = 100;

/// The rules in `folders`, as hooks that are never asked.
pub fn strangers(folders: &[RuleFolder]) -> Vec<Hook> {
    let mut found: Vec<Hook> = folders.iter().flat_map(of_folder).collect();
    if found.len() > MAX_NAMED {
        let more = found.len() - MAX_NAMED;
        found.truncate(MAX_NAMED);
        found.push(stranger(&format!("{more} more rules that have not been accepted"), "file:", &GATES, &Value::Null));
    }
    found
}

/// `stranger` as it is mounted: nothing runs it.
pub fn mounted(stranger: &Hook) -> Mounted {
    Mounted { hook: Arc::new(stranger.clone()), handler: Arc::new(NullHandler) }
}

fn of_folder(folder: &RuleFolder) -> Vec<Hook> {
    match read(folder) {
        Ok(files) => files.into_iter().flat_map(of_file).collect(),
        Err(_) => vec![stranger("a folder of rules", &folder.dir.display().to_string(), &GATES, &Value::Null)],
    }
}

fn of_file(RuleFile { name: file, read }: RuleFile) -> Vec<Hook> {
    let origin = format!("{FILE}{file}");
    match read {
        Ok(records) => records.all().iter().map(|record| of_record(record, (&file, &origin))).collect(),
        Err(_) => vec![stranger(&file, &origin, &GATES, &Value::Null)],
    }
}

/// A rule that does not say where it would act may be about every gate.
fn of_record(record: &Value, (file, origin): (&str, &str)) -> Hook {
    let text = |member: &str| record.get(member).and_then(Value::as_str).unwrap_or_default();
    let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or(file);
    match AGENT_EVENTS.into_iter().find(|event| event.name() == text("event")) {
        Some(event) => stranger(name, origin, &[event], record),
        None => stranger(name, origin, &GATES, record),
    }
}

/// Of `record` little counts, and nothing has to be right: where it would stand among others, and whether it is off.
fn stranger(name: &str, origin: &str, kinds: &[CheckpointKind], record: &Value) -> Hook {
    let timeout_ms = record.get("timeout_ms").and_then(Value::as_u64).and_then(|ms| u32::try_from(ms).ok());
    let timeout_ms = timeout_ms.filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms)).unwrap_or(DEFAULT_TIMEOUT_MS);
    let mut stages = Stages::default();
    for kind in kinds {
        let on_failure = if GATES.contains(kind) { OnFailure::Close } else { OnFailure::Continue };
        stages.set(*kind, Stage { timeout: Duration::from_millis(timeout_ms.into()), on_failure, paired: false });
    }
    let is_off = record.get("enabled") == Some(&Value::Bool(false));
    let priority = record.get("priority").and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    Hook {
        name: HookName::from(name),
        family: Family::Rule,
        origin: origin.to_owned(),
        priority: priority.unwrap_or_default(),
        state: if is_off { HookState::Disabled } else { HookState::Untrusted },
        scope: Scope::Everyone,
        matcher: None,
        respond: RespondTools::Any,
        events: None,
        media_dir: None,
        stages,
        stored: None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// `NAME STATE AT…`, a line each.
    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        let told = |hook: &Hook| {
            let at: Vec<&str> = hook.stages.kinds().map(CheckpointKind::name).collect();
            format!("{} {:?} {}", hook.name, hook.state, at.join(" "))
        };
        strangers(&[RuleFolder::own(folder.path().to_owned())]).iter().map(told).collect()
    }

    #[test]
    fn each_rule_stands_where_it_would_act() {
        let rules = "[[hook]]\nname = 'guard'\nevent = 'pre_tool_use'\n[[hook]]\nname = 'off'\nevent = 'stop'\n\
                     enabled = false\n[[hook]]\nevent = 'no_such'\nhandler_type = 7\n";
        let gates = "user_prompt_submit pre_tool_use subagent_start";
        assert_eq!(
            check(&[("a.toml", rules), ("b.json", "{\"name\": ")]),
            [
                "guard Untrusted pre_tool_use".to_owned(),
                "off Disabled stop".to_owned(),
                format!("a.toml Untrusted {gates}"),
                format!("b.json Untrusted {gates}"),
            ]
        );
        assert_eq!(check(&[]), Vec::<String>::new());
        assert!(strangers(&[RuleFolder::own("/nowhere/at/all".into())]).is_empty());
    }

    #[test]
    fn however_many_there_are_a_record_stays_short() {
        let many = "[[hook]]\nname = 'x'\nevent = 'stop'\n".repeat(MAX_NAMED + 7);
        let found = check(&[("a.toml", &many)]);
        assert_eq!(found.len(), MAX_NAMED + 1);
        assert!(
            found[MAX_NAMED].starts_with("7 more rules that have not been accepted Untrusted"),
            "{}",
            found[MAX_NAMED]
        );
    }
}
