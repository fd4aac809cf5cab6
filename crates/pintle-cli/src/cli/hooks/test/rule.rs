//! `pintle hooks test` for a rule, for a record in a file, and for the starter guards.

use std::path::Path;

use pintle_agent::tools::BUILTIN;
use pintle_domain::checkpoint::{CheckpointKind, Facts};
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::json::{Value, json};
use pintle_rules::admin::{Caller, RuleAdmin, Sample, TestResult, TestTarget};
use pintle_rules::condition;

use super::super::super::{Global, terminal};
use super::super::history::event;
use super::super::list::rule::state_word;
use super::super::stored::{is_usage, json, label, lookup, missing, refused, text, with_admin, with_rules_of};
use super::question::{TEXT, TOOL, arguments};
use super::result::Answer;
use super::{TestArgs, untrusted};
use crate::error::CliError;
use pintle_host::config::commands::place_rule;
use pintle_host::config::{Env, Loaded};
use pintle_host::rule_files::RecordsFile;

/// What the starter guards are called together.
const STARTERS: &str = "the starter guards";

/// Tests the rule that people call `named`.
pub(super) fn saved(
    (global, args): (&Global, &TestArgs),
    (env, loaded): (Env, Loaded),
    named: &str,
) -> Result<u8, CliError> {
    let configured: Vec<String> = loaded.config.hooks.iter().map(|loaded| loaded.hook.name.to_string()).collect();
    let answer = with_rules_of(env, loaded, async |host_rules, by| {
        let rule_admin = host_rules.rule_admin();
        let all = super::super::stored::all(rule_admin, by).await?;
        let Some(record) = meant(&all, named, args.event.as_deref())? else {
            let extra_hooks = host_rules.extra_hooks();
            let names = configured.iter().map(String::as_str).chain(all.iter().map(label));
            let found = extra_hooks.iter().find(|hook| hook.name.as_str() == named);
            return Err(found.map_or_else(|| missing("hook", named, names), not_in_force));
        };
        match state_word(record) {
            "disabled" => terminal::note("it is off; it is tested as if it were on"),
            "tripped" => terminal::note("its circuit breaker is open; it is tested as if it were closed"),
            _ => {}
        }
        asked(rule_admin, by, (args, record), TestTarget::Saved(text(record, "id"))).await
    })?;
    say(global, args, &answer)
}

/// The one of `hooks` that is called `named`; of several the one that acts at `event`.
fn meant<'a>(hooks: &'a [Value], named: &str, event: Option<&str>) -> Result<Option<&'a Value>, CliError> {
    lookup(hooks, named).or_else(|several| {
        let mut there = hooks.iter().filter(|hook| text(hook, "name") == named && Some(text(hook, "event")) == event);
        match (there.next(), there.next()) {
            (Some(one), None) => Ok(Some(one)),
            (_, _) => Err(several),
        }
    })
}

/// A rule of a file that cannot be asked.
fn not_in_force(hook: &Hook) -> CliError {
    match &hook.state {
        HookState::Broken(fault) => {
            CliError::failed(format!("hook \"{}\" {} ({})", hook.name, fault.explained(), hook.origin))
                .hint("`pintle hooks lint` says where; `pintle hooks test --file FILE` tests what stands in a file")
        }
        HookState::Armed | HookState::Disabled | HookState::Untrusted | HookState::Tripped { .. } => untrusted(hook),
    }
}

/// Tests a record of a file, or the starter guards.
pub(super) fn unsaved(global: &Global, args: &TestArgs) -> Result<u8, CliError> {
    let Some(file) = &args.file else {
        let answer = with_admin(global, async |rule_admin, by| {
            let like = json!({"name": STARTERS, "event": CheckpointKind::PreToolUse.name()});
            asked(rule_admin, by, (args, &like), TestTarget::Starter).await
        })?;
        return say(global, args, &answer);
    };
    let records = RecordsFile::read(file)?;
    let index = which(&records, Path::new(file), args.hook.as_deref())?;
    let record = &placed(&records, index, Path::new(file))?;
    let answer = with_admin(global, async |rule_admin, by| {
        asked(rule_admin, by, (args, record), TestTarget::Unsaved(record)).await
    });
    let answer = answer.map_err(|why| {
        let about_flags = why.message.starts_with("--");
        if is_usage(&why) && !about_flags {
            CliError { message: records.located(Some(index), &why.message), ..why }
        } else {
            why
        }
    })?;
    say(global, args, &answer)
}

/// The record number `index` as it runs: the files that its command names are those beside its own.
fn placed(records: &RecordsFile, index: usize, file: &Path) -> Result<Value, CliError> {
    let mut record = records.all()[index].clone();
    // What comes through a pipe stands nowhere.
    let folder = file.parent().filter(|_| file != Path::new("-")).map(|folder| Path::new(".").join(folder));
    let is_command = record["handler_type"] == "command";
    if let Some((folder, config)) =
        folder.filter(|_| is_command).zip(record.get_mut("config").and_then(Value::as_object_mut))
    {
        place_rule(config, &folder).map_err(|why| CliError::usage(records.located(Some(index), &why)))?;
    }
    Ok(record)
}

/// The record of a file that is meant.
fn which(records: &RecordsFile, file: &Path, named: Option<&str>) -> Result<usize, CliError> {
    let all = records.all();
    let names = || all.iter().map(|record| text(record, "name"));
    match (named, all) {
        (None, [_]) => Ok(0),
        (None, several) => {
            let names: Vec<String> = names().map(|name| format!("{name:?}")).collect();
            Err(CliError::usage(format!("{} holds {} records", file.display(), several.len()))
                .hint(format!("name the one that you mean before --file: {}", names.join(", "))))
        }
        (Some(named), _) => names().position(|name| name == named).ok_or_else(|| missing("record", named, names())),
    }
}

async fn asked(
    rule_admin: &RuleAdmin,
    by: &Caller,
    (args, record): (&TestArgs, &Value),
    what: TestTarget<'_>,
) -> Result<Answer, CliError> {
    let sample = sample(args, record)?;
    let result: TestResult = rule_admin.test(by, what, &sample).await.map_err(refused)?;
    let result = pintle_domain::json::to_value(&result).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(Answer::new(label(record).to_owned(), result))
}

fn say(global: &Global, args: &TestArgs, answer: &Answer) -> Result<u8, CliError> {
    let whole = global.verbose > 0;
    if args.json {
        terminal::say(&json(answer.result())?)?
    } else {
        terminal::tell(&answer.plain(whole))?
    }
    Ok(answer.code())
}

/// The event that `args` make up for `record`.
fn sample(args: &TestArgs, record: &Value) -> Result<Sample, CliError> {
    let own = text(record, "event");
    if let Some(wanted) = args.event.as_deref().map(|word| event("--event", word)).transpose()?
        && wanted.name() != own
    {
        let name = label(record);
        return Err(CliError::usage(format!(
            "--event: hook \"{name}\" does not act at `{}`; it acts at {own}",
            wanted.name()
        )));
    }
    let tools = [
        CheckpointKind::PreToolUse,
        CheckpointKind::PostToolUse,
        CheckpointKind::SubagentStart,
        CheckpointKind::SubagentStop,
    ];
    let about_tools = tools.iter().any(|kind| kind.name() == own);
    for (flag, given) in [("--tool", &args.tool), ("--input", &args.input)] {
        // An event that there is not is for the rule admin to refuse.
        if given.is_some() && !about_tools && CheckpointKind::named(own).is_some() {
            return Err(
                CliError::usage(format!("{flag}: `{own}` is about no tool")).hint("--prompt says what the user wrote")
            );
        }
    }
    let spawns = [CheckpointKind::SubagentStart, CheckpointKind::SubagentStop].iter().any(|kind| kind.name() == own);
    let default = || Some(tool_for(text(record, "matcher")).to_owned()).filter(|_| about_tools && !spawns);
    Ok(Sample {
        tool_name: args.tool.clone().or_else(default),
        tool_input: args.input.as_deref().map(|input| arguments(Some(input))).transpose()?,
        raw_input: Some(args.prompt.clone().unwrap_or_else(|| TEXT.to_owned())),
    })
}

/// A tool that a pattern is about.
fn tool_for(pattern: &str) -> &'static str {
    let matcher = condition::compile_matcher(pattern).ok().filter(|_| !pattern.is_empty());
    let is_about = |tool: &&str| matcher.as_ref().is_some_and(|matcher| matcher.matches(&Facts::of_tool(tool)));
    BUILTIN.into_iter().find(is_about).unwrap_or(TOOL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> TestArgs {
        use clap::{Args as _, FromArgMatches as _};
        let command = TestArgs::augment_args(clap::Command::new("test"));
        TestArgs::from_arg_matches(&command.get_matches_from([&["test"], words].concat())).unwrap()
    }

    fn check(words: &[&str], record: &Value) -> Result<(Option<String>, Option<String>), String> {
        let made = sample(&args(words), record).map_err(|error| error.message)?;
        Ok((made.tool_name, made.raw_input))
    }

    #[test]
    fn what_is_not_said_is_made_up_of_the_record() {
        let tool = json!({"event": "pre_tool_use", "matcher": "^write"});
        assert_eq!(check(&["h"], &tool), Ok((Some("write_file".into()), Some("hello".into()))));
        assert_eq!(check(&["h", "--tool", "bash"], &tool).unwrap().0, Some("bash".into()));
        let every = json!({"event": "post_tool_use", "matcher": ""});
        assert_eq!(check(&["h"], &every).unwrap().0, Some("exec".into()));
        let prompt = json!({"event": "user_prompt_submit", "name": "p"});
        assert_eq!(check(&["h", "--prompt", "hi"], &prompt), Ok((None, Some("hi".into()))));
        assert_eq!(check(&["h"], &json!({"event": "subagent_start"})).unwrap().0, None);
    }

    #[test]
    fn of_several_with_one_name_the_event_says_which() {
        let hooks =
            ["user_prompt_submit", "pre_tool_use", "stop", "stop"].map(|event| json!({"name": "h", "event": event}));
        let check = |event| meant(&hooks, "h", event).map_err(|error| error.message);
        assert_eq!(check(Some("pre_tool_use")), Ok(Some(&hooks[1])));
        for event in [None, Some("stop"), Some("session_start")] {
            assert_eq!(check(event), Err("4 rules are called \"h\"".to_owned()), "{event:?}");
        }
        assert_eq!(
            meant(&hooks[..1], "h", Some("stop")),
            Ok(Some(&hooks[0])),
            "what it says of `stop` is said elsewhere"
        );
        assert_eq!(meant(&hooks, "i", Some("stop")), Ok(None));
    }

    #[test]
    fn flags_that_do_not_fit_the_event_are_refused() {
        let prompt = json!({"event": "user_prompt_submit", "name": "p"});
        let said = check(&["h", "--tool", "exec"], &prompt).unwrap_err();
        assert_eq!(said, "--tool: `user_prompt_submit` is about no tool");
        let said = check(&["h", "--event", "stop"], &prompt).unwrap_err();
        assert_eq!(said, "--event: hook \"p\" does not act at `stop`; it acts at user_prompt_submit");
        let said = check(&["h", "--input", "[]"], &json!({"event": "pre_tool_use"})).unwrap_err();
        assert!(said.starts_with("--input: expected a JSON object"), "{said}");
    }
}
