//! What a change of a rule differs in, for the change log and the audit chain: a JSON Patch without secrets.

use std::collections::BTreeMap;

use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::Rule;

/// The text that stands for a secret.
const MASK: &str = "********";

/// The text that stands for a secret that was another one before, until the difference is found. No JSON that is read
/// from outside is written so by chance, and if it were, a mask in the log would be all that came of it.
const OTHER: &str = "********\u{0}\u{fdd1}other";

/// Headers that are secrets by themselves.
const SECRET_HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

/// How what is encrypted begins, wherever it stands.
const SEALED: &str = "aes-gcm:";

/// From `before` to `after`; `None` is a row that is not there. A secret that changed is replaced by a mask. The version
/// and the times are those of the line of the log, and no part of it.
pub(crate) fn diff(before: Option<&Rule>, after: Option<&Rule>) -> Value {
    let none = Object::new();
    let config = |hook: Option<&Rule>| hook.map_or_else(|| none.clone(), |hook| hook.config.clone());
    let (mut old, mut new) = (config(before), config(after));
    let (old_names, new_names) = (secret_names(&old), secret_names(&new));
    for (place, name) in places(&old, &new) {
        let was = member(&mut old, place, &name).cloned();
        let is_secret = is_secret(place, &name, &old_names) || is_secret(place, &name, &new_names);
        if !is_secret {
            continue;
        }
        if let Some(value) = member(&mut old, place, &name) {
            *value = MASK.into();
        }
        if let Some(value) = member(&mut new, place, &name) {
            let same = was.as_ref().is_none_or(|was| was == value);
            *value = if same { MASK } else { OTHER }.into();
        }
    }
    masked(patch(&shown(before, old), &shown(after, new)))
}

/// The difference that is left of a row that goes: why, where somebody says it, and that it is gone.
pub(crate) fn deletion(old: &Rule, reason: &str) -> Value {
    let mut patch = diff(Some(old), None);
    if let (false, Some(operations)) = (reason.is_empty(), patch.as_array_mut()) {
        operations.insert(0, json!({"op": "add", "path": "/disabled_reason", "value": reason}));
    }
    patch
}

/// The difference between the tenants that a global hook is off for, each with since when.
pub(crate) fn trips_diff(before: &BTreeMap<TenantId, String>, after: &BTreeMap<TenantId, String>) -> Value {
    let shown = |trips: &BTreeMap<TenantId, String>| {
        let trip = |(tenant, at)| json!({"tenant_id": tenant, "tripped_at": at});
        json!({"trips": trips.iter().map(trip).collect::<Vec<_>>()})
    };
    patch(&shown(before), &shown(after))
}

fn patch(before: &Value, after: &Value) -> Value {
    pintle_domain::json::diff(before, after)
}

#[derive(Clone, Copy)]
enum Place {
    Config,
    Headers,
}

fn places(old: &Object, new: &Object) -> Vec<(Place, String)> {
    let headers = |config: &Object| {
        let headers = config.get("headers").and_then(Value::as_object);
        headers.into_iter().flat_map(Object::keys).map(|name| (Place::Headers, name.clone())).collect::<Vec<_>>()
    };
    let mut places = headers(old);
    places.extend(headers(new));
    places.push((Place::Config, "signing_secret".to_owned()));
    places
}

fn member<'a>(config: &'a mut Object, place: Place, name: &str) -> Option<&'a mut Value> {
    match place {
        Place::Config => config.get_mut(name),
        Place::Headers => config.get_mut("headers")?.as_object_mut()?.get_mut(name),
    }
}

/// The names of `config.secret_headers`, in lower case.
fn secret_names(config: &Object) -> Vec<String> {
    let names = config.get("secret_headers").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_lowercase).collect()
}

/// A header that either row calls a secret is one in both.
fn is_secret(place: Place, name: &str, names: &[String]) -> bool {
    let name = name.to_lowercase();
    match place {
        Place::Config => true,
        Place::Headers => SECRET_HEADERS.contains(&name.as_str()) || names.contains(&name),
    }
}

fn shown(hook: Option<&Rule>, config: Object) -> Value {
    let Some(hook) = hook else { return Value::Null };
    let mut row = pintle_domain::json::to_value(Rule { config, ..hook.clone() }).expect("a row is JSON");
    if let Some(members) = row.as_object_mut() {
        for name in ["version", "created_at", "updated_at"] {
            members.shift_remove(name);
        }
    }
    row
}

fn masked(json: Value) -> Value {
    match json {
        Value::String(text) if text == OTHER || text.starts_with(SEALED) => MASK.into(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, masked(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json,
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::breaker::BreakerPolicy;
    use pintle_domain::checkpoint::CheckpointKind;
    use pintle_domain::id::HookId;
    use pintle_domain::rule::{Fallback, HandlerType, HookScope, Source};

    use super::*;

    fn hook(config: Value) -> Rule {
        Rule {
            id: HookId::from("h"),
            tenant_id: TenantId::from("t"),
            agent_ids: Vec::new(),
            event: CheckpointKind::PreToolUse,
            handler_type: HandlerType::Http,
            scope: HookScope::Tenant,
            name: String::new(),
            config: pintle_domain::json::from_value(config).unwrap(),
            matcher: String::new(),
            if_expr: String::new(),
            timeout_ms: 5000,
            on_timeout: Fallback::Block,
            priority: 0,
            enabled: true,
            version: 1,
            source: Source::User,
            may_rewrite: false,
            breaker: BreakerPolicy::All,
            on_trip: Fallback::Block,
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: Object::new(),
            created_by: None,
            created_at: "2026-01-31T12:00:00Z".into(),
            updated_at: "2026-01-31T12:00:00Z".into(),
        }
    }

    /// The difference between two settings.
    fn check(before: Value, after: Value) -> String {
        let later = Rule { version: 2, updated_at: "2026-02-01T00:00:00Z".into(), ..hook(after) };
        diff(Some(&hook(before)), Some(&later)).to_string()
    }

    #[test]
    fn secrets_are_masked_and_a_new_one_shows() {
        assert_eq!(
            check(json!({"url": "a"}), json!({"url": "b"})),
            r#"[{"op":"replace","path":"/config/url","value":"b"}]"#
        );
        let same = json!({"headers": {"AUTHORIZATION": "Bearer x"}, "signing_secret": "whsec_x"});
        assert_eq!(check(same.clone(), same), "[]");
        for name in ["Authorization", "proxy-authorization", "COOKIE", "X-Key"] {
            let with = |value: &str| json!({"secret_headers": ["x-key"], "headers": {name: value, "x-team": "blue"}});
            let changed = check(with("one secret"), with("another secret"));
            assert_eq!(changed, format!(r#"[{{"op":"replace","path":"/config/headers/{name}","value":"{MASK}"}}]"#));
        }
        let signed = check(json!({"signing_secret": "whsec_one"}), json!({"signing_secret": "whsec_two"}));
        assert_eq!(signed, format!(r#"[{{"op":"replace","path":"/config/signing_secret","value":"{MASK}"}}]"#));
    }

    #[test]
    fn no_secret_is_in_a_log_however_it_is_written() {
        let hidden = json!({
            "headers": {"Cookie": {"deep": ["secret 1"]}, "x-key": "secret 2", "other": "aes-gcm:secret 3"},
            "secret_headers": ["X-KEY", 7],
            "signing_secret": ["secret 4"],
            "source": ["aes-gcm:01234567:secret 5"],
        });
        let shown = json!({"headers": {"x-key": "secret 6"}});
        let none = json!({"headers": "none", "secret_headers": "none"});
        let all = [&hidden, &shown, &none];
        for (before, after) in all.iter().flat_map(|before| all.iter().map(move |after| (*before, *after))) {
            let plain = [before, after].iter().all(|config| **config == shown || **config == none);
            assert_eq!(
                check(before.clone(), after.clone()).contains("secret "),
                plain && before != after && *after == shown
            );
        }
        let gone = diff(Some(&hook(hidden.clone())), None).to_string();
        assert_eq!(gone, r#"[{"op":"replace","path":"","value":null}]"#);
        let made = diff(None, Some(&hook(hidden))).to_string();
        assert!(
            !made.contains("secret ") && made.contains(r#""handler_type":"http""#) && !made.contains("version"),
            "{made}"
        );
    }

    #[test]
    fn trips_differ_by_tenant() {
        let trips = |names: &[&str]| names.iter().map(|name| (TenantId::from(*name), "then".to_owned())).collect();
        let check = |before: &[&str], after: &[&str]| trips_diff(&trips(before), &trips(after)).to_string();
        assert_eq!(check(&["a"], &["a"]), "[]");
        assert_eq!(
            check(&["a"], &["a", "b"]),
            r#"[{"op":"add","path":"/trips/1","value":{"tenant_id":"b","tripped_at":"then"}}]"#
        );
        assert_eq!(check(&["a"], &[]), r#"[{"op":"remove","path":"/trips/0"}]"#);
    }
}
