//! The page of agents under guard, from their rows and from what their adapters answer.

use std::fmt::Write as _;

use pintle_domain::json::{Object, json};
use pintle_guard::coverage::GuardLevel;
use pintle_guard::host::{AskSupport, InstallScope};
use pintle_guard::measured::{GuardDoor, door_coverage};
use pintle_guard::tools::ToolClass;
use pintle_guard::{GuardHost, GuardRuling, HOSTS, HostCall, HostEvent, HostWhat, RulingWord};

const HEAD: &str = "\
# Agents under guard

Generated from the code by `cargo xtask gen`. What `pintle guard` knows of each agent: see [guard](../guide/guard.md), and \
the page of each agent there.

Of a class of tools: *held*, a call can be stopped, changed and recorded; *seen*, it is recorded and cannot be stopped; \
*open*, it may pass unseen; *none*, the agent has no such tool. Behind it stand the ways round that are known. \
`pintle guard status` says the same of your machine: there, a version that nobody has tried and that was not proven is \
*open*, and so is everything of an agent whose hooks are off.

Of an event: *asked*, the agent waits for an answer, and where it can be stopped, a refusal stops it; *told*, it goes on at \
once.

Of what hooks conclude: *yes*, the agent does it; else what it is told instead, which is never weaker (the record then says \
`degraded`). *no*: it cannot be told, and what was to be changed has been read already.
";

pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    doors(&mut page);
    decisions(&mut page);
    HOSTS.iter().for_each(|host| of_host(&mut page, host));
    page
}

fn line(page: &mut String, text: &str) {
    writeln!(page, "{text}").unwrap();
}

fn doors(page: &mut String) {
    line(page, "\n## The other doors\n\nThe same for every agent that comes by them.\n");
    line(page, "| door | tools | | known ways round |\n|---|---|---|---|");
    let names = [
        (GuardDoor::Model, "[model door](../guide/model-door.md)"),
        (GuardDoor::Tool, "[tool door](../guide/tool-door.md)"),
    ];
    for (door, name) in names {
        for row in door_coverage(door) {
            let around = if row.level == GuardLevel::Held { row.around.join("; ") } else { String::new() };
            line(page, &format!("| {name} | {} | {} | {around} |", row.class.word(), row.level.word()));
        }
    }
}

/// What happens at a host, as its hooks are told it.
fn event(host: &'static GuardHost, what: HostWhat) -> HostEvent {
    HostEvent {
        host: host.id,
        event: String::new(),
        session: "s".into(),
        turn: None,
        call: None,
        subagent: None,
        cwd: "/".into(),
        transcript: None,
        attended: None,
        what,
        host_raw: Object::new(),
    }
}

/// Whether `host` says a prompt once more before it is sent: what hooks changed of it is told then.
fn says_prompts_twice(host: &'static GuardHost) -> bool {
    let prompt =
        |name: &str| HostEvent { event: name.to_owned(), ..event(host, HostWhat::Prompt { text: "x".to_owned() }) };
    host.events.iter().any(|row| pintle_guard::is_sent_later(&prompt(row.name)))
}

/// What becomes of `ruling` about `what`.
fn becomes(host: &'static GuardHost, what: HostWhat, ruling: &GuardRuling) -> &'static str {
    let changes_prompt = matches!(what, HostWhat::Prompt { .. }) && !ruling.stops();
    let answer = if changes_prompt && says_prompts_twice(host) {
        let text = || "x".to_owned();
        let sent = event(host, HostWhat::PromptSent { text: text() });
        (host.adapter.encode)(&sent, &GuardRuling::ModifyPrompt { text: text() })
    } else {
        (host.adapter.encode)(&event(host, what), ruling)
    };
    match answer.degraded {
        None => "yes",
        Some(degraded) => match degraded.to {
            RulingWord::Deny => "refused",
            RulingWord::AbortTurn => "ends the turn",
            RulingWord::AbortRun => "ends the run",
            RulingWord::Inject => "a text beside it",
            RulingWord::NoObjection
            | RulingWord::Allow
            | RulingWord::Ask
            | RulingWord::Modify
            | RulingWord::Respond
            | RulingWord::ModifyResult => "no",
        },
    }
}

fn call() -> HostCall {
    let arguments = json!({"command": "ls"}).as_object().cloned().unwrap();
    HostCall { native: "x".into(), canonical: "exec".into(), class: ToolClass::Shell, arguments }
}

fn decisions(page: &mut String) {
    let done = || HostWhat::ToolDone {
        tool: call(),
        result: json!({"stdout": "x", "stderr": "", "interrupted": false, "isImage": false}),
        failed: false,
    };
    let prompt = || HostWhat::Prompt { text: "x".into() };
    let stop = || HostWhat::Stop { text: None, again: false };
    let reason = || "no".to_owned();
    let text = || "text".to_owned();
    let changed = json!({"command": "ls -l"}).as_object().cloned().unwrap();
    let rows: [(&str, &dyn Fn() -> HostWhat, GuardRuling); 12] = [
        ("a call is refused", &|| HostWhat::Tool(call()), GuardRuling::Deny { reason: reason() }),
        (
            "a call is changed",
            &|| HostWhat::Tool(call()),
            GuardRuling::ModifyInput { arguments: changed, context: None },
        ),
        (
            "a hook answers in the tool's place",
            &|| HostWhat::Tool(call()),
            GuardRuling::Respond { by: "h".into(), text: text() },
        ),
        ("a text goes beside a call", &|| HostWhat::Tool(call()), GuardRuling::Inject { text: text() }),
        ("a call ends the turn", &|| HostWhat::Tool(call()), GuardRuling::AbortTurn { reason: reason() }),
        ("a result is changed", &done, GuardRuling::ModifyResult { text: text(), shaped: None, added: None }),
        ("a result is withheld", &done, GuardRuling::Deny { reason: reason() }),
        (
            "a text goes beside a result",
            &done,
            GuardRuling::ModifyResult { text: format!("x\n\n{}", text()), shaped: None, added: Some(text()) },
        ),
        ("a prompt is refused", &prompt, GuardRuling::Deny { reason: reason() }),
        ("a prompt is changed", &prompt, GuardRuling::ModifyPrompt { text: text() }),
        ("a text goes beside a prompt", &prompt, GuardRuling::Inject { text: text() }),
        ("the agent goes on", &stop, GuardRuling::Deny { reason: reason() }),
    ];
    line(page, "\n## What hooks conclude, and what each agent does\n");
    let names: Vec<&str> = HOSTS.iter().map(|host| host.name).collect();
    line(page, &format!("| | {} |", names.join(" | ")));
    line(page, &format!("|---|{}", "---|".repeat(names.len())));
    for (name, what, ruling) in rows {
        let cells: Vec<&str> = HOSTS.iter().map(|host| becomes(host, what(), &ruling)).collect();
        line(page, &format!("| {name} | {} |", cells.join(" | ")));
    }
    let asks: Vec<&str> = HOSTS.iter().map(|host| asks(host.asks)).collect();
    line(page, &format!("| it can ask a person itself | {} |", asks.join(" | ")));
}

fn asks(support: AskSupport) -> &'static str {
    match support {
        AskSupport::AsksOrRefuses => "yes; with nobody there it refuses",
        AskSupport::AsksOnly => "only with somebody there",
        AskSupport::Never => "no",
    }
}

fn of_host(page: &mut String, host: &GuardHost) {
    let (min, newest) = (host.versions.min, host.versions.newest);
    let versions = if min == newest { newest.to_owned() } else { format!("{min} to {newest}") };
    line(page, &format!("\n## {}\n\n`--host {}`, version {versions}.\n", host.name, host.id));
    line(page, "| settings of | file |\n|---|---|");
    for place in host.config.places {
        let scope = match place.scope {
            InstallScope::User => "you",
            InstallScope::Project => "the project (`--project`)",
            InstallScope::ProjectLocal => "you in the project (`--local`)",
            InstallScope::System => "the machine (`--system`)",
        };
        line(page, &format!("| {scope} | `{}` |", place.path));
    }
    line(page, "\n| tools | | known ways round |\n|---|---|---|");
    for row in host.coverage {
        line(page, &format!("| {} | {} | {} |", row.class.word(), row.level.word(), row.around.join("; ")));
    }
    line(page, "\n| event | a hook of ours is | it can be stopped |\n|---|---|---|");
    for row in host.events {
        let is = match (row.installed, row.answers) {
            (false, _) => "not there",
            (true, true) => "asked",
            (true, false) => "told",
        };
        line(page, &format!("| `{}` | {is} | {} |", row.name, if row.stops { "yes" } else { "no" }));
    }
}
