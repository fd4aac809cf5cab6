//! Other people's command hooks in the file of a host, taken over: out of the file, and back.

use pintle_domain::json::{Object, Value};

use super::json_edit::Edit;
pub use super::others::FoundHook;
use super::others::{NotEdited, OtherHook, runs};
use super::{EditedFile, KeptFile, install, uninstall};
use crate::host::{ClientEntry, ConfigForm, GuardHost, TimeUnit};

/// A hook that stays where it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftHook {
    /// The hook.
    pub hook: OtherHook,
    /// Why it stays.
    pub why: String,
}

/// A file whose hooks were taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptedFile {
    /// The file, with ours in it.
    pub edited: EditedFile,
    /// The lists of events that were taken over, as they stood there: all of them, with those of earlier times.
    pub taken: Object,
    /// What stays.
    pub left: Vec<LeftHook>,
}

/// What of another hook makes it ours: the reason why it is not, if it is not.
pub type Takes<'a> = &'a dyn Fn(&FoundHook) -> Result<(), String>;

/// What is known of a file whose hooks are taken over.
#[derive(Clone, Copy)]
pub struct Adopting<'a> {
    /// What the last installation left.
    pub kept: Option<&'a KeptFile>,
    /// What was taken over before.
    pub taken: &'a Object,
    /// What is taken over now.
    pub takes: Takes<'a>,
}

/// Whether command hooks of `host` can be taken over.
pub fn adopts(host: &GuardHost) -> bool {
    matches!(host.config.form, ConfigForm::Json { adopts: true, .. })
}

/// Puts our entries into the file `old` of `host` as [`install`] does, and takes out of it what `adopting` says.
///
/// # Errors
/// When the file is none that can be edited like this.
pub fn install_adopting(
    host: &GuardHost,
    hook: &ClientEntry<'_>,
    old: Option<&str>,
    adopting: Adopting<'_>,
) -> Result<AdoptedFile, NotEdited> {
    let Adopting { kept, taken, takes } = adopting;
    let before = uninstall_adopted(host, old, (kept, taken))?;
    let EditedFile { mut text, others, .. } = install(host, hook, old, kept)?;
    let edit = edit(host);
    let (mut taken, mut left) = (taken.clone(), Vec::new());
    let mut news = Object::new();
    // From behind, so that what stands before keeps its place.
    for found in edit.all_others(&text)?.into_iter().rev() {
        match takes(&found) {
            Ok(()) => {
                text = edit.without(&text, &found.event, found.place)?;
                note(&mut news, &found);
            }
            Err(why) => {
                let hook = OtherHook { event: found.event.clone(), runs: runs(&found.hook) };
                left.insert(0, LeftHook { hook, why });
            }
        }
    }
    for (event, groups) in news {
        let mut all = taken.get(&event).and_then(Value::as_array).cloned().unwrap_or_default();
        all.extend(groups.as_array().cloned().unwrap_or_default());
        taken.insert(event, Value::from(all));
    }
    let kept = KeptFile { before, after: text.clone() };
    Ok(AdoptedFile { edited: EditedFile { text, kept, others }, taken, left })
}

/// Puts `found`, which comes before all that is there, into the lists `news`.
fn note(news: &mut Object, found: &FoundHook) {
    let mut groups = news.get(&found.event).and_then(Value::as_array).cloned().unwrap_or_default();
    let shared = groups.first().filter(|first| is_of(first, &found.group)).cloned();
    let mut group = shared.unwrap_or_else(|| {
        let mut group = found.group.clone();
        group["hooks"] = Value::from(Vec::<Value>::new());
        groups.insert(0, group.clone());
        group
    });
    let mut hooks = group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
    hooks.insert(0, found.hook.clone());
    group["hooks"] = Value::from(hooks);
    groups[0] = group;
    news.insert(found.event.clone(), Value::from(groups));
}

/// Whether `group` is a part of the entry `of`: all but its hooks is the same.
fn is_of(group: &Value, of: &Value) -> bool {
    let bare = |entry: &Value| {
        let mut bare = entry.as_object().cloned().unwrap_or_default();
        bare.shift_remove("hooks");
        bare
    };
    let within = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let all = of.get("hooks").map(within).unwrap_or_default();
    bare(group) == bare(of) && group.get("hooks").map(within).unwrap_or_default().iter().all(|hook| all.contains(hook))
}

/// Takes our entries out of `current` as [`uninstall`] does, and puts what was `taken` back.
///
/// # Errors
/// When the file cannot be edited.
pub fn uninstall_adopted(
    host: &GuardHost,
    current: Option<&str>,
    (kept, taken): (Option<&KeptFile>, &Object),
) -> Result<Option<String>, NotEdited> {
    let is_untouched = kept.is_some_and(|kept| Some(kept.after.as_str()) == current);
    let before = uninstall(host, current, kept)?;
    if is_untouched || taken.is_empty() {
        return Ok(before);
    }
    edit(host).put_back(before.as_deref().unwrap_or_default(), taken).map(Some)
}

/// No entry.
const NOTHING: &[(&str, Value)] = &[];

fn edit(host: &GuardHost) -> Edit<'static> {
    let comments = matches!(host.config.form, ConfigForm::Json { comments: true, .. });
    Edit { comments, position: host.config.position, wanted: NOTHING }
}

/// Members of an entry or a hook that say something to people alone.
const REMARKS: [&str; 2] = ["name", "description"];

/// Members of a hook that change nothing where they are false, which they are where nothing is said.
const OFF: [&str; 3] = ["async", "asyncRewake", "once"];

/// The lists `taken` from `host` in the form in which they run here: times in seconds, without remarks.
pub fn runnable(host: &GuardHost, taken: &Object) -> Object {
    let lists = taken.iter().map(|(event, list)| {
        let groups = list.as_array().into_iter().flatten().map(|group| runnable_group(host, group));
        (event.clone(), Value::from(groups.collect::<Vec<_>>()))
    });
    lists.collect()
}

/// One entry in that form.
pub fn runnable_group(host: &GuardHost, group: &Value) -> Value {
    let mut group = group.clone();
    let hooks = group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(members) = group.as_object_mut() {
        // They run one after another in any case.
        REMARKS.iter().chain(&["sequential"]).for_each(|name| drop(members.shift_remove(name)));
    }
    let hooks = hooks.into_iter().map(|mut hook| {
        if let Some(members) = hook.as_object_mut() {
            REMARKS.iter().for_each(|name| drop(members.shift_remove(name)));
            members.retain(|name, value| !(OFF.contains(&name.as_str()) && *value == Value::Bool(false)));
            let timeout = members.get("timeout").and_then(Value::as_u64);
            if let (Some(TimeUnit::Milliseconds), Some(timeout)) = (host.deadline.unit, timeout) {
                members.insert("timeout".to_owned(), Value::from(timeout.div_ceil(1000)));
            }
        }
        hook
    });
    let hooks: Vec<Value> = hooks.collect();
    group["hooks"] = Value::from(hooks);
    group
}
