//! What writing a request to a model costs in instructions and allocations, on each wire.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use pintle_domain::json::{Rendered, json};
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_providers::ProviderSpec;
use pintle_providers::preview::{preview, spec_of_entry};

/// The sizes of conversations, in bytes of JSON, about.
const LARGE: usize = 100 << 10;
const SMALL: usize = 4 << 10;

/// A provider, a model of it, and what it is to be sent.
type Asked = (ProviderSpec, &'static str, LlmRequest);

/// A request to `model`. A short one went out before, so that the table of models is read. A long one would leave the heap
/// in pieces, and what allocations cost then depends on where the heap begins.
fn asked(provider: &str, model: &'static str, bytes: usize) -> Asked {
    let asked = |bytes| (spec_of_entry(provider), model, conversation(bytes));
    assert!(sent(&asked(0)).contains("Be brief."), "the conversation is not in the request");
    asked(bytes)
}

/// A conversation of about so many bytes of JSON: mixed roles, calls of tools with their results, text in two scripts.
/// None of its messages was written as JSON before.
fn conversation(bytes: usize) -> LlmRequest {
    let rounds = bytes / 1000;
    let mut messages = vec![Message::text(Role::System, "You are an agent that mends data pipelines. Be brief.")];
    for round in 0..rounds {
        let id = format!("call_{round:08}");
        let tool_calls = vec![CallPart::new(&id, "search", r#"{"path":"logs/import.log","pattern":"ERROR|WARN"}"#)];
        messages.push(Message::text(Role::User, "Die Umlaute in „Größe“ kommen falsch an.\n".repeat(5)));
        messages.push(Message { tool_calls, ..Message::text(Role::Assistant, "I look at the log first.") });
        messages.push(Message::tool(&id, "import.log:118: \"WARN\" value too long\t\n".repeat(7)));
    }
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let tools =
        ["read", "write", "search", "exec"].map(|name| ToolDef::new(name, "Works on a file.", parameters.clone()));
    let options = json!({ "temperature": 0.2, "max_tokens": 4096 });
    LlmRequest {
        model: "main/large".to_owned(),
        messages: messages.into_iter().map(Rendered::new).collect(),
        tools: tools.into_iter().map(Rendered::new).collect(),
        options: options.as_object().cloned().unwrap_or_default(),
        graceful_terminal: false,
    }
}

fn sent((spec, model, request): &Asked) -> String {
    preview(spec, model, black_box(request), None).expect("the request can be sent")
}

fn openai(bytes: usize) -> Asked {
    asked("openai", "gpt-5", bytes)
}

fn anthropic(bytes: usize) -> Asked {
    asked("anthropic", "claude-sonnet-4-5", bytes)
}

#[library_benchmark]
#[bench::openai_small(args = (SMALL), setup = openai)]
#[bench::openai_large(args = (LARGE), setup = openai)]
#[bench::anthropic_small(args = (SMALL), setup = anthropic)]
#[bench::anthropic_large(args = (LARGE), setup = anthropic)]
fn request_out(asked: Asked) -> (String, Asked) {
    (sent(&asked), asked)
}

library_benchmark_group!(name = models, benchmarks = [request_out]);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = models
);
