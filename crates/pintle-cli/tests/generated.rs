//! Files that are generated from the code are committed, and are what the code says now.
//!
//! `cargo xtask gen` writes them anew: it runs this test with `PINTLE_GENERATE=1`.

#![cfg(test)]

use std::any::type_name;
use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use pintle_cli::cli::Cli;
use pintle_domain::checkpoint::runtime::RUNTIME_KINDS;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CHECKPOINTS, Checkpoint, CheckpointKind, Duty, PreToolUse,
    SubagentStart, UserPromptSubmit,
};
use pintle_domain::hook::OnFailure;
use pintle_host::config::found::{FOUND_KEYS, FoundCount};

#[path = "generated/guarded_agents.rs"]
mod guarded_agents;

/// Compares the file at `path`, from the root of the repository, with `expected`; or writes it.
fn check(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("PINTLE_GENERATE").is_some() {
        std::fs::write(&file, expected).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is not what the code says: run `cargo xtask gen` and commit the change");
}

#[test]
fn the_schema_of_the_configuration() {
    let schema = serde_json::to_string_pretty(&pintle_host::config::schema()).unwrap();
    check("schema/config.json", &format!("{schema}\n"));
}

#[test]
fn the_page_of_checkpoints() {
    let mut page = String::from(
        "# Checkpoints\n\nGenerated from the code by `cargo xtask gen`.\n\n\
         The named points of a turn, in order. A fault is what a hook that gave no answer becomes, unless it says \
         otherwise.\n\n| checkpoint | when | hooks there are | may answer | a fault |\n|---|---|---|---|---|\n",
    );
    for row in &CHECKPOINTS {
        let duty = match row.duty {
            Duty::Observer => "observers",
            Duty::Gate => "gates",
            Duty::Rewriter => "rewriters",
            Duty::Approver => "approvers",
            Duty::Injector => "injectors",
        };
        let fault = match row.duty {
            Duty::Observer => "is counted",
            Duty::Injector => "goes on",
            Duty::Gate | Duty::Rewriter | Duty::Approver => match OnFailure::default_at(row.kind) {
                OnFailure::Continue => "goes on",
                OnFailure::AbortTurn => "ends the turn",
                OnFailure::Close => OnFailure::Close.word_at(row.kind),
            },
        };
        writeln!(page, "| `{}` | {} | {duty} | {} | {fault} |", row.name, row.when, answers(row.kind)).unwrap();
    }
    page.push_str("\n## Runtime events\n\nTold at `runtime`, never asked about.\n\n");
    page.push_str("| in `hook.event` | in `hook.runtime_event` |\n|---|---|\n");
    for (_, hook, runtime) in &RUNTIME_KINDS {
        writeln!(page, "| `{hook}` | `agent.{runtime}` |").unwrap();
    }
    check("docs/reference/checkpoints.md", &page);
}

#[test]
fn the_page_of_guarded_agents() {
    check("docs/reference/guarded-agents.md", &guarded_agents::page());
}

/// What hooks may answer: read off the types of the checkpoint, where `Never` is an answer that has no value.
fn answers(kind: CheckpointKind) -> String {
    match kind {
        CheckpointKind::UserPromptSubmit => of_types::<UserPromptSubmit>(),
        CheckpointKind::BeforeLlm => of_types::<BeforeLlm>(),
        CheckpointKind::AfterLlm => of_types::<AfterLlm>(),
        CheckpointKind::BeforeTool => of_types::<BeforeTool>(),
        CheckpointKind::PreToolUse => of_types::<PreToolUse>(),
        CheckpointKind::ApproveTool => of_types::<ApproveTool>(),
        CheckpointKind::AfterTool => of_types::<AfterTool>(),
        CheckpointKind::SubagentStart => of_types::<SubagentStart>(),
        CheckpointKind::SessionStart
        | CheckpointKind::PostToolUse
        | CheckpointKind::SubagentStop
        | CheckpointKind::Stop
        | CheckpointKind::Runtime => "-".to_owned(),
        CheckpointKind::AfterUserInput
        | CheckpointKind::BeforePlanning
        | CheckpointKind::BeforeEachAgent
        | CheckpointKind::BeforeFirstAgent
        | CheckpointKind::AfterToolCall => "inject".to_owned(),
    }
}

fn of_types<C: Checkpoint>() -> String {
    let answers = [
        ("modify", type_name::<C::Modify>()),
        ("respond", type_name::<C::Respond>()),
        ("ask", type_name::<C::Ask>()),
        ("deny", type_name::<C::Deny>()),
        ("abort_turn, hard_abort", type_name::<C::Abort>()),
    ];
    let allowed = answers.iter().filter(|(_, carries)| !carries.ends_with("::Never")).map(|(word, _)| *word);
    std::iter::once("continue").chain(allowed).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_page_of_found_folders() {
    let mut page = String::from(
        "# What a found folder may do\n\nGenerated from the code by `cargo xtask gen`.\n\n\
         A configuration that was merely found, in the working directory or above it, counts as far as somebody accepted \
         it with `pintle trust`: entry by entry, by content, in the folder where it stands. Until then it contributes \
         nothing but one line on standard error, which names what is left out; its hooks are recorded as not run: \
         *untrusted*. What would switch something of yours off or send it elsewhere never counts there, and one line \
         names it. Your own configuration and a file named with `-c` may say everything. See \
         [trust](../guide/configuration.md#trust).\n\n\
         `*` stands for a name.\n\n| key | in a found file | |\n|---|---|---|\n",
    );
    let mut keys = FOUND_KEYS.to_vec();
    keys.sort_by_key(|key| key.path);
    for key in keys {
        let count = match key.count {
            FoundCount::WhenAccepted => "when accepted",
            FoundCount::Never => "**never**",
        };
        writeln!(page, "| `{}` | {count} | {} |", key.path, key.note).unwrap();
    }
    check("docs/reference/found-folders.md", &page);
}

#[test]
fn the_protocol_of_the_socket() {
    check("docs/reference/websocket.md", &pintle_gateway::reference::page().unwrap());
    let schema = serde_json::to_string_pretty(&pintle_gateway::reference::schema().unwrap()).unwrap();
    check("schema/websocket.json", &format!("{schema}\n"));
    check("clients/typescript/src/protocol.generated.ts", &pintle_gateway::reference::typescript().unwrap());
}

#[test]
fn the_page_of_http() {
    check("docs/reference/http.md", &pintle_gateway::openapi::page());
}

#[test]
fn the_page_of_commands() {
    let mut page = String::from("# Commands\n\nGenerated from the code by `cargo xtask gen`.\n");
    let mut command = Cli::command().term_width(100);
    command.build();
    describe(&mut page, &command, "pintle");
    page.push_str(
        "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | done; of `hooks test`: allowed |\n| 1 | failed |\n\
         | 2 | wrong flags, a file that is missing or does not parse, a name that cannot be resolved |\n\
         | 3 | a hook ended the turn or the run |\n| 4 | a hook blocked the prompt; of `hooks test`: blocked |\n\
         | 5 | a guard is bad, down, unproven or untrusted; an operator's command without a terminal or from inside the \
         agent |\n| 75 | a call waits for a person |\n| 130 | interrupted |\n",
    );
    check("docs/reference/cli.md", &page);
}

fn describe(page: &mut String, command: &clap::Command, path: &str) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let help = command.clone().render_help().to_string();
    let usage: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(page, "\n## `{path}`\n\n{about}\n\n```text\n{}\n```\n", usage.join("\n").trim_end()).unwrap();
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    for sub in shown {
        describe(page, sub, &format!("{path} {}", sub.get_name()));
    }
}
