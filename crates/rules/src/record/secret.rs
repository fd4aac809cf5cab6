//! What of a hook nobody reads again: it is encrypted before it is kept, and a mask stands for it in every answer.

use std::collections::BTreeSet;

use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::{HandlerType, HookScope, Rule};

use super::config::{HandlerTraits, HttpConfig};
use super::{RecordError, RecordErrorCode};

/// The text that stands for a secret in every answer.
pub const MASK: &str = "********";
/// How what is encrypted begins.
pub const SEALED: &str = "aes-gcm:";

/// Headers whose values are always secret, in lower case.
const SECRET_HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
/// Where the secret is that signs requests.
const SIGNING: &str = "config.signing_secret";

/// Which secrets may come encrypted.
#[derive(Clone, Copy)]
pub(super) enum SealedInput<'a> {
    /// None.
    Refused,
    /// Those with these paths, taken from the row that is changed.
    Kept(&'a BTreeSet<String>),
    /// All: they come from a row.
    Taken,
}

/// Where the secrets of `hook` are: `config.headers.<name in lower case>`, `config.signing_secret`.
pub fn secrets(hook: &Rule) -> Vec<String> {
    let mut config = hook.config.clone();
    let mut paths = Vec::new();
    each(hook.handler_type, &mut config, |path, _| paths.push(path.to_owned()));
    paths
}

/// Replaces each secret of `hook` by what `with` makes of its path and its value.
///
/// # Errors
/// The first that `with` has; what came before it is replaced.
pub fn map_secrets<E>(hook: &mut Rule, mut with: impl FnMut(&str, &str) -> Result<String, E>) -> Result<(), E> {
    let mut end = Ok(());
    each(hook.handler_type, &mut hook.config, |path, value| {
        let Some(text) = value.as_str().filter(|_| end.is_ok()) else { return };
        match with(path, text) {
            Ok(new) => *value = new.into(),
            Err(why) => end = Err(why),
        }
    });
    end
}

/// `hook` with a mask for each secret.
pub fn masked(hook: &Rule) -> Rule {
    let mut hook = hook.clone();
    each(hook.handler_type, &mut hook.config, |_, value| *value = MASK.into());
    hook
}

/// `hook` as an answer shows it: masked; and to those `as_other_tenant`, who are not master, without the settings of
/// what belongs to everybody.
pub fn shown(hook: &Rule, as_other_tenant: bool) -> Value {
    let mut shown = json!(masked(hook));
    if as_other_tenant && hook.scope == HookScope::Global {
        shown["config"] = json!({});
        shown["config_hidden"] = true.into();
    }
    shown
}

/// Calls `with` for each secret of `config`, whatever stands there.
fn each(handler: HandlerType, config: &mut Object, mut with: impl FnMut(&str, &mut Value)) {
    if !HandlerTraits::of(handler).has_secrets {
        return;
    }
    let named: Vec<String> = config
        .get("secret_headers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for (name, value) in config.get_mut("headers").and_then(Value::as_object_mut).into_iter().flatten() {
        let name = name.to_ascii_lowercase();
        if SECRET_HEADERS.contains(&name.as_str()) || named.contains(&name) {
            with(&header(&name), value);
        }
    }
    if let Some(value) = config.get_mut("signing_secret").filter(|value| value.as_str() != Some("")) {
        with(SIGNING, value);
    }
}

/// The path of a header.
fn header(name: &str) -> String {
    format!("config.headers.{}", name.to_ascii_lowercase())
}

/// Puts into `config`, which is to replace that of `current`, the secrets that are there: those whose mask it has, if
/// `at_home` and the requests still go to the same place. Gives their paths.
pub(super) fn keep(current: &Rule, handler: HandlerType, config: &mut Object, at_home: bool) -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    let mut had = Vec::new();
    each(current.handler_type, &mut current.config.clone(), |path, value| had.push((path.to_owned(), value.clone())));
    let may_keep = at_home && same_origin(&current.config, config);
    each(handler, config, |path, value| {
        let Some((_, old)) = had.iter().find(|(old, _)| old == path) else { return };
        if may_keep && value.as_str() == Some(MASK) {
            *value = old.clone();
            kept.insert(path.to_owned());
        }
    });
    kept
}

/// Puts into `record` the secrets of `current`, which stand there in clear text, where it has their masks and its requests
/// go to the same place.
pub fn with_kept_secrets(current: &Rule, record: &mut Value) {
    let handler = record.get("handler_type").and_then(Value::as_str).and_then(HandlerType::named);
    if let (Some(handler), Some(Value::Object(config))) = (handler, record.get_mut("config")) {
        keep(current, handler, config, true);
    }
}

fn same_origin(a: &Object, b: &Object) -> bool {
    let origin = |config: &Object| {
        let url = config.get("url")?.as_str()?;
        url::Url::parse(url).ok().map(|url| url.origin())
    };
    // An origin that is not one of http or https equals no other, not even itself.
    origin(a).is_some_and(|a| origin(b).is_some_and(|b| a == b))
}

/// The secrets of `config` that were written just now and in clear text.
pub(super) struct ClearSecrets<'a> {
    pub(super) signing_secret: Option<&'a str>,
}

/// Looks for masks that stand for nothing and for what is encrypted elsewhere, in all headers: neither is ever sent.
pub(super) fn vet<'a>(config: &'a HttpConfig, sealed: SealedInput<'_>) -> Result<ClearSecrets<'a>, RecordError> {
    for (name, value) in &config.headers {
        open(name, &header(name), value, sealed)?;
    }
    let Some(secret) = &config.signing_secret else { return Ok(ClearSecrets { signing_secret: None }) };
    let is_open = open("signing_secret", SIGNING, secret, sealed)?;
    Ok(ClearSecrets { signing_secret: is_open.then_some(secret) })
}

/// Whether `value` is clear text.
fn open(name: &str, path: &str, value: &str, sealed: SealedInput<'_>) -> Result<bool, RecordError> {
    let kept = match sealed {
        SealedInput::Refused | SealedInput::Taken => false,
        SealedInput::Kept(paths) => paths.contains(path),
    };
    if kept {
        return Ok(false);
    }
    let name = super::quoted(name);
    if value == MASK {
        return Err(RecordError::new(RecordErrorCode::InvalidRequest, format!("secret {name} must be sent anew")));
    }
    match (value.starts_with(SEALED), sealed) {
        (false, _) => Ok(true),
        (true, SealedInput::Taken) => Ok(false),
        (true, SealedInput::Refused | SealedInput::Kept(_)) => Err(RecordError::new(
            RecordErrorCode::InvalidRequest,
            format!("secret {name} is encrypted already, which only an import may bring; send it in clear text"),
        )),
    }
}
