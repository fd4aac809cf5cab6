//! Pages that are generated from the rules are committed, and are what the rules say now.
//!
//! `cargo xtask gen` writes them anew: it runs this test with `PINTLE_GENERATE=1`.

#![cfg(test)]

use std::fmt::Write as _;
use std::path::Path;

mod generated {
    mod vectors;
}

use pintle_domain::approval::{ApprovalMode, CallHandling, HooksDecision, LIFETIME_SECONDS, MODES, handling};

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

const CAME: [(HooksDecision, &str); 3] =
    [(HooksDecision::Allow, "allow"), (HooksDecision::Deny, "deny"), (HooksDecision::Ask, "ask")];

fn mode(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Chat => "`chat`",
        ApprovalMode::Run => "`run`",
        ApprovalMode::Resume => "`sessions resume`",
        ApprovalMode::Mcp => "`mcp`",
        ApprovalMode::Serve => "`serve`",
        ApprovalMode::Subagent => "a sub-agent, in any of these",
    }
}

fn word(handling: CallHandling) -> &'static str {
    match handling {
        CallHandling::Runs => "runs",
        CallHandling::Refused => "refused",
        CallHandling::AskedHere => "asked here",
        CallHandling::WaitsHere => "waits here",
        CallHandling::Parked => "parked",
    }
}

fn meaning(handling: CallHandling) -> &'static str {
    match handling {
        CallHandling::Runs => "The call runs.",
        CallHandling::Refused => "The call does not run; the model reads why.",
        CallHandling::AskedHere => "The person there is asked, and the call waits meanwhile; others may answer too.",
        CallHandling::WaitsHere => {
            "The call waits for `pintle approvals approve` or `refuse` from elsewhere, while the program goes on waiting."
        }
        CallHandling::Parked => {
            "The turn is parked: the program ends with exit code 75 and says how to go on, with `pintle sessions resume`. \
             `serve` goes on by itself once somebody answered; where a request is its own conversation, nobody's answer \
             is a no after `gateway.approval_wait_s`."
        }
    }
}

#[test]
fn the_page_of_approvals() {
    let mut page = String::from(
        "# Approvals\n\nGenerated from the code by `cargo xtask gen`.\n\n\
         What happens to a tool call, by what hooks said, by which command runs the turn, and by whether somebody is there to \
         be asked. No mode turns an ask into leave.\n\n\
         | hooks said | run by | somebody is there | nobody is there |\n|---|---|---|---|\n",
    );
    for (came, said) in CAME {
        for by in MODES {
            let [present, absent] = [true, false].map(|present| word(handling(came, by, present)));
            writeln!(page, "| {said} | {} | {present} | {absent} |", mode(by)).unwrap();
        }
    }
    page.push('\n');
    let words = [
        CallHandling::Runs,
        CallHandling::Refused,
        CallHandling::AskedHere,
        CallHandling::WaitsHere,
        CallHandling::Parked,
    ];
    for handling in words {
        writeln!(page, "- **{}**: {}", word(handling), meaning(handling)).unwrap();
    }
    let hours = LIFETIME_SECONDS / 3_600;
    writeln!(
        page,
        "\nA question can be answered, and its answer used, for {hours} hours. The first answer stands. Leave is for \
         exactly the call that was shown, down to the digits of its numbers, and for one run of it: if the call \
         changes, the question is void and a new one shows what it was before."
    )
    .unwrap();
    check("docs/reference/approvals.md", &page);
}
