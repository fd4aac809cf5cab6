//! The change log: page by page, as versions of a hook, and back to one of them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::HookScope;
use pintle_domain::store::{LoggedChange, NO_HOOK, TenantScope};

use super::changing::owned;
use super::history::{MAX_PAGE, scope_of};
use super::reading::hook_id;
use super::spending::without_settings;
use super::{AdminError, AdminErrorCode, Caller, CallerRole, INVALID_CURSOR, RuleAdmin, UpdatedRule};

/// Most lines of which versions are made.
const MAX_LINES: usize = 1000;

/// What of a row a version does not bring back: it is the server's, or says how the hook stands.
const NOT_RESTORED: [&str; 9] =
    ["id", "tenant_id", "source", "version", "tripped_at", "disabled_reason", "created_by", "created_at", "updated_at"];

/// One page of the change log.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangePage {
    /// Newest first.
    pub lines: Vec<Value>,
    /// Where the next page begins; empty at the end.
    pub next_cursor: String,
}

impl RuleAdmin {
    /// The changes of the hooks that the caller sees, newest first, after where the page before ended. Those that are
    /// about other tenants, and the settings of global hooks, are for owners, who may ask for one tenant only.
    ///
    /// # Errors
    /// `invalid cursor`; or the store cannot be read.
    pub async fn change_log(
        &self,
        by: &Caller,
        tenant: Option<&TenantId>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ChangePage, AdminError> {
        by.at_least(CallerRole::Viewer, "changes")?;
        let after = cursor.map(place_in).transpose()?;
        let limit = limit.clamp(1, MAX_PAGE);
        let tenant = by.looks_at(tenant)?;
        let lines = self
            .blocking(move |rule_admin| {
                // One more than fits tells whether there is another page.
                Ok(rule_admin.parts.hooks.change_log(tenant.as_ref(), after.as_ref(), limit + 1)?)
            })
            .await?;
        let is_end = lines.len() <= limit;
        let view = self.view(by).await?;
        let hides = |line: &LoggedChange| !by.is_master() && line.tenant_id == TenantId::sentinel();
        let mut names: BTreeMap<HookId, String> =
            view.visible().map(|hook| (hook.id.clone(), hook.name.clone())).collect();
        let is_gone = |id: &HookId| id.as_str() != NO_HOOK && !names.contains_key(id);
        let gone = lines.iter().take(limit).map(|line| line.hook_id.clone()).filter(is_gone).collect();
        names.extend(self.last_names(scope_of(by), gone).await?);
        let name_of = |id: &HookId| names.get(id).cloned();
        let mut page = ChangePage { lines: Vec::new(), next_cursor: String::new() };
        for line in lines.into_iter().take(limit) {
            page.next_cursor = URL_SAFE_NO_PAD.encode(format!("{}|{}", line.at, line.id));
            let line = if hides(&line) { without_settings(line) } else { line };
            page.lines.push(shown(&line, name_of(&line.hook_id)));
        }
        if is_end {
            page.next_cursor.clear();
        }
        Ok(page)
    }

    /// What hooks that are gone were called last, as far as the change log tells.
    async fn last_names(
        &self,
        of: TenantScope,
        gone: BTreeSet<HookId>,
    ) -> Result<BTreeMap<HookId, String>, AdminError> {
        self.blocking(move |rule_admin| {
            let mut names = BTreeMap::new();
            for id in gone {
                if let Some(name) = last_name(&rule_admin.parts.hooks.changes(&of, &id, MAX_LINES)?) {
                    names.insert(id, name);
                }
            }
            Ok(names)
        })
        .await
    }

    /// The changes of one hook, as [`change_log`](Self::change_log) has them.
    ///
    /// # Errors
    /// There is no such hook; or the store cannot be read.
    pub async fn changes_shown(&self, by: &Caller, id: &str, limit: usize) -> Result<Vec<Value>, AdminError> {
        let lines = self.changes(by, id, limit.clamp(1, MAX_PAGE)).await?;
        let id = hook_id(id)?;
        let view = self.view(by).await?;
        let name = match view.hook(&id) {
            Ok(hook) => hook.name.clone(),
            Err(_) => self.last_names(scope_of(by), [id.clone()].into()).await?.remove(&id).unwrap_or_default(),
        };
        Ok(lines.iter().map(|line| shown(line, Some(name.clone()))).collect())
    }

    /// The versions of a hook that its change log still tells of, newest first, without secrets.
    ///
    /// # Errors
    /// There is no such hook; or the store cannot be read.
    pub async fn versions(&self, by: &Caller, id: &str) -> Result<Vec<Value>, AdminError> {
        by.at_least(CallerRole::Viewer, "versions")?;
        let hides = {
            let view = self.view(by).await?;
            !by.is_master() && view.hook(&hook_id(id)?)?.scope == HookScope::Global
        };
        let lines = self.changes(by, id, MAX_LINES).await?;
        let mut versions = replayed(&lines);
        versions.reverse();
        if hides {
            for version in &mut versions {
                version["hook"]["config"] = json!({});
                version["hook"]["config_hidden"] = json!(true);
            }
        }
        Ok(versions)
    }

    /// Lets a hook be again what it was in `version`; its secrets stay those of today, and so does whether it is on.
    ///
    /// # Errors
    /// The log does not tell of that version; what [`update`](Self::update) refuses.
    pub async fn restore(
        &self,
        by: &Caller,
        id: &str,
        version: u32,
        if_version: Option<u32>,
    ) -> Result<UpdatedRule, AdminError> {
        by.at_least(CallerRole::Admin, "restore")?;
        owned(by, self.view(by).await?.hook(&hook_id(id)?)?)?;
        let versions = self.versions(by, id).await?;
        let found = versions.into_iter().find(|known| known["version"] == version);
        let missing = || AdminError::new(AdminErrorCode::NotFound, format!("version not found: {version}"));
        let row = found.ok_or_else(missing)?;
        let updates = restored(row["hook"].as_object().ok_or_else(missing)?);
        self.update(by, id, &Value::Object(updates), if_version).await
    }
}

fn shown(line: &LoggedChange, name: Option<String>) -> Value {
    json!({
        "id": line.id,
        "tenant_id": line.tenant_id,
        "hook_id": (line.hook_id.as_str() != NO_HOOK).then_some(&line.hook_id),
        "hook_name": name.filter(|name| !name.is_empty()),
        "at": line.at,
        "actor": line.actor,
        "action": line.action,
        "version": line.version,
        "diff": line.diff,
    })
}

/// The line that a cursor names.
fn place_in(cursor: &str) -> Result<(String, String), AdminError> {
    let bad = || AdminError::invalid(INVALID_CURSOR);
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad())?;
    let text = String::from_utf8(bytes).map_err(|_| bad())?;
    let (at, id) = text.split_once('|').ok_or_else(bad)?;
    let good = at.parse::<jiff::Timestamp>().is_ok() && uuid::Uuid::parse_str(id).is_ok();
    good.then(|| (at.to_owned(), id.to_owned())).ok_or_else(bad)
}

/// What of the row of a version is written again. What is empty there is cleared.
fn restored(row: &Object) -> Object {
    let kept = |name: &str| !NOT_RESTORED.contains(&name) && name != "enabled" && name != "scope";
    let value = |value: &Value| if value.is_null() { json!("") } else { value.clone() };
    row.iter().filter(|(name, _)| kept(name)).map(|(name, was)| (name.clone(), value(was))).collect()
}

/// The name that `lines`, newest first, tell of last.
fn last_name(lines: &[LoggedChange]) -> Option<String> {
    let operations =
        lines.iter().filter_map(|line| line.diff.as_array()).flat_map(|operations| operations.iter().rev());
    let mut names = operations.filter_map(|operation| match operation["path"].as_str()? {
        "" => operation["value"]["name"].as_str(),
        "/name" => operation["value"].as_str(),
        _ => None,
    });
    names.next().map(str::to_owned)
}

/// The versions that `lines`, newest first, tell of, oldest first: each patch over what was there before.
fn replayed(lines: &[LoggedChange]) -> Vec<Value> {
    let mut row = Value::Null;
    let mut versions: Vec<Value> = Vec::new();
    for line in lines.iter().rev() {
        if !patched(&mut row, &line.diff) {
            // What came before it is not told any more.
            row = Value::Null;
            continue;
        }
        if !row.is_object() || line.version == 0 {
            continue;
        }
        let version = json!({
            "version": line.version,
            "at": line.at,
            "actor": line.actor,
            "action": line.action,
            "hook": row,
        });
        // A breaker that opens makes no version.
        match versions.last_mut() {
            Some(last) if last["version"] == line.version => *last = version,
            Some(_) | None => versions.push(version),
        }
    }
    versions
}

/// Carries the JSON Patch `patch` out. Says whether it fits `row`; one that does not leaves it anyhow.
fn patched(row: &mut Value, patch: &Value) -> bool {
    patch.as_array().is_some_and(|operations| operations.iter().all(|operation| carry_out(row, operation)))
}

fn carry_out(row: &mut Value, operation: &Value) -> bool {
    let (Some(path), Some(op)) = (operation["path"].as_str(), operation["op"].as_str()) else { return false };
    // The log has the breakers of tenants beside the row.
    if path.starts_with("/trips") {
        return true;
    }
    let value = || operation["value"].clone();
    let Some((parent, step)) = path.rsplit_once('/') else {
        *row = value();
        return true;
    };
    let step = step.replace("~1", "/").replace("~0", "~");
    let place = step.parse::<usize>();
    match (row.pointer_mut(parent), op, place) {
        (Some(Value::Object(members)), "remove", _) => members.shift_remove(&step).is_some(),
        (Some(Value::Object(members)), _, _) => {
            members.insert(step, value());
            true
        }
        (Some(Value::Array(items)), "remove", Ok(at)) if at < items.len() => {
            items.remove(at);
            true
        }
        (Some(Value::Array(items)), "add", Ok(at)) if at <= items.len() => {
            items.insert(at, value());
            true
        }
        (Some(Value::Array(items)), "replace", Ok(at)) if at < items.len() => {
            items[at] = value();
            true
        }
        (Some(_) | None, ..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(version: u32, action: &str, diff: Value) -> LoggedChange {
        LoggedChange {
            id: "01".into(),
            tenant_id: TenantId::default_tenant(),
            hook_id: HookId::new("01"),
            at: "2026-11-25T10:00:00Z".into(),
            actor: "anna".into(),
            action: action.into(),
            version,
            diff,
        }
    }

    #[test]
    fn versions_are_what_the_patches_made_of_the_row() {
        let lines = [
            line(3, "toggled", json!([{"op": "replace", "path": "/enabled", "value": false}])),
            line(2, "tripped", json!([{"op": "add", "path": "/trips/0", "value": {}}])),
            line(
                2,
                "updated",
                json!([
                    {"op": "replace", "path": "/config/a~1b", "value": 2},
                    {"op": "add", "path": "/agent_ids/0", "value": "x"},
                ]),
            ),
            line(
                1,
                "created",
                json!([{"op": "replace", "path": "", "value":
                {"name": "g", "enabled": true, "config": {"a/b": 1}, "agent_ids": []}}]),
            ),
        ];
        let versions = replayed(&lines);
        let said: Vec<(u64, &Value)> =
            versions.iter().map(|it| (it["version"].as_u64().unwrap(), &it["hook"])).collect();
        assert_eq!(said[0], (1, &json!({"name": "g", "enabled": true, "config": {"a/b": 1}, "agent_ids": []})));
        assert_eq!(said[1], (2, &json!({"name": "g", "enabled": true, "config": {"a/b": 2}, "agent_ids": ["x"]})));
        assert_eq!(said[2].1["enabled"], false);
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn a_hook_that_is_gone_is_called_as_it_was_last() {
        let created = line(1, "created", json!([{"op": "replace", "path": "", "value": {"name": "old"}}]));
        let renamed = line(2, "updated", json!([{"op": "replace", "path": "/name", "value": "new"}]));
        let other = line(3, "updated", json!([{"op": "replace", "path": "/priority", "value": 5}]));
        let deleted = line(3, "deleted", json!([{"op": "replace", "path": "", "value": null}]));
        assert_eq!(last_name(&[deleted.clone(), other.clone(), renamed, created.clone()]).as_deref(), Some("new"));
        assert_eq!(last_name(&[deleted.clone(), other, created]).as_deref(), Some("old"));
        assert_eq!(last_name(&[deleted]), None);
    }

    #[test]
    fn what_is_not_told_from_the_beginning_is_no_version() {
        let updated = line(7, "updated", json!([{"op": "replace", "path": "/name", "value": "h"}]));
        assert_eq!(replayed(&[updated]), [Value::Null; 0]);
    }

    #[test]
    fn a_version_brings_back_settings_and_neither_ids_nor_whether_it_is_on() {
        let row =
            json!({"id": "1", "enabled": false, "name": "g", "on_timeout": null, "version": 4, "scope": "tenant"});
        assert_eq!(restored(row.as_object().unwrap()), *json!({"name": "g", "on_timeout": ""}).as_object().unwrap());
    }

    #[test]
    fn a_cursor_names_a_line() {
        let good = URL_SAFE_NO_PAD.encode("2026-11-25T10:00:00Z|01a2143f-30e4-72a6-9657-8c823464c0cc");
        assert!(place_in(&good).is_ok());
        for bad in ["", "!", &URL_SAFE_NO_PAD.encode("x|y")] {
            assert_eq!(place_in(bad).unwrap_err().message, INVALID_CURSOR, "{bad}");
        }
    }
}
