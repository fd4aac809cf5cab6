//! Hooks that are children.

use std::path::Path;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use pintle::prelude::*;

use crate::host::{TOOLS, Till, memory, open, refund, request, turn};

/// A hook in plain sh that writes its pid to a file; what it answers is up to `answers`.
fn script(folder: &Path, answers: &str) -> Process {
    let text = format!(
        "echo $$ > pid\nwhile IFS= read -r line; do\n  id=${{line#*'\"id\":'}}\n  id=${{id%%,*}}\n  case $line in\n    \
         *'\"method\":\"hook.event\"'* | *'\"method\":\"hook.cancel\"'*) continue ;;\n    {answers}\n    \
         *) result='{{}}' ;;\n  esac\n  printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' \"$id\" \"$result\"\ndone\n"
    );
    std::fs::write(folder.join("hook.sh"), text).unwrap();
    Process::new(["sh", "hook.sh"]).in_folder(folder)
}

fn pid(folder: &Path) -> Pid {
    Pid::from_raw(std::fs::read_to_string(folder.join("pid")).unwrap().trim().parse().unwrap())
}

fn is_gone(pid: Pid) -> bool {
    kill(pid, None).is_err()
}

const DENIES: &str = "*'\"method\":\"hook.before_tool\"'*'\"tool\":\"refund\"'*) \
                      result='{\"action\":\"deny_tool\",\"reason\":\"no\"}' ;;";

#[tokio::test]
async fn a_child_is_in_force_once_it_is_added_and_gone_once_its_host_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let pintle = open();
    pintle.process("guard", script(folder.path(), DENIES).intercept(&["before_tool"])).await.unwrap();
    let (till, turn) = (Till::default(), turn(&pintle));
    let Err(Stop::Refused(refusal)) = turn.call(refund("c1"), &till).await else { panic!("it ran") };
    assert_eq!(refusal.text, "Tool execution denied by hook: no (hook \"guard\")");
    let _done = turn.call(Call::new("c2", "lookup", [("a", 1)]), &till).await.unwrap();
    // Also while a turn holds it.
    assert_eq!(pintle.close(Duration::from_secs(10)).await, pintle::Left::default());
    assert!(is_gone(pid(folder.path())));
    drop(turn);
}

#[tokio::test]
async fn a_tool_that_a_child_brought_is_answered_by_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let brings = "*'\"method\":\"hook.before_llm\"'*) result='{\"action\":\"modify\",\"request\":{\"tools\":[{\"type\":\"function\",\
                  \"function\":{\"name\":\"weather\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}}]}}' ;;\n    \
                  *'\"method\":\"hook.before_tool\"'*'\"tool\":\"weather\"'*) result='{\"action\":\"respond\",\
                  \"result\":{\"for_llm\":\"sunny\"}}' ;;";
    let pintle = open();
    let hook = script(folder.path(), brings).intercept(&["before_llm", "before_tool"]);
    pintle.process("plugin", hook).await.unwrap();
    let turn = turn(&pintle);
    let asks = |sent: pintle::llm::LlmRequest| async move {
        let offered: Vec<String> = sent.tools.iter().map(|tool| tool.get().function.name.clone()).collect();
        Ok::<_, String>(pintle::llm::LlmReply::text(offered.join(",")))
    };
    let answer = turn.model(request("weather?"), asks).await.unwrap();
    assert_eq!(answer.reply.content, "weather");
    assert_eq!(turn.owner("weather").unwrap().as_str(), "plugin");
    let call = || Call::new("c1", "weather", [("city", "Beijing")]);
    let done = turn.call_owned(call()).await.unwrap();
    assert_eq!((done.output.for_llm.as_str(), done.by.unwrap().as_str()), ("sunny", "plugin"));
    // Nobody else may answer for it, and a turn that goes on elsewhere knows whose it is.
    let Err(Stop::Refused(refusal)) = turn.call(call(), &Till::default()).await else { panic!("it ran") };
    assert_eq!(refusal.text, "tool \"weather\" not found");
    let resumed = crate::host::turn(&pintle).resumed(turn.snapshot());
    assert_eq!(resumed.call_owned(call()).await.unwrap().output.for_llm, "sunny");
    assert!(pintle.close(Duration::from_secs(10)).await.tasks == 0);
}

#[tokio::test]
async fn a_child_that_does_not_come_up_is_known_at_once_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pintle = open();
    let none = pintle.process("none", Process::new(["/nothing/here"]).intercept(&["before_tool"])).await;
    assert!(matches!(&none, Err(AddError::Entry(_) | AddError::NotUp { .. })), "{none:?}");
    let dies = pintle.process("dies", Process::new(["false"]).intercept(&["before_tool"])).await;
    assert!(matches!(&dies, Err(AddError::NotUp { .. })), "{dies:?}");
    std::fs::write(folder.path().join("silent.sh"), "echo $$ > pid\nwhile read -r line; do :; done\n").unwrap();
    let mut entry = pintle::json::Object::new();
    entry.insert("command".into(), pintle::json::json!(["sh", "silent.sh"]));
    entry.insert("intercept".into(), pintle::json::json!(["before_tool"]));
    entry.insert("start_timeout_ms".into(), 300.into());
    let silent = pintle.process("silent", Process::from_entry(entry).in_folder(folder.path())).await;
    assert!(matches!(&silent, Err(AddError::NotUp { .. })), "{silent:?}");
    assert!(is_gone(pid(folder.path())), "it is still running");
    let idle = pintle.process("idle", script(folder.path(), DENIES)).await;
    assert!(matches!(&idle, Err(AddError::Entry(why)) if why.contains("no hook modes enabled")), "{idle:?}");
    let typo = pintle.process("typo", script(folder.path(), DENIES).intercept(&["before_tool"]).tools("refnud")).await;
    assert!(matches!(&typo, Err(AddError::MatchesNothing { .. })), "{typo:?}");
    pintle.process("good", script(folder.path(), DENIES).intercept(&["before_tool"])).await.unwrap();
    let first = pid(folder.path());
    let taken = pintle.process("good", script(folder.path(), DENIES).intercept(&["before_tool"])).await;
    assert_eq!(taken, Err(AddError::Taken("good".into())));
    let second = pid(folder.path());
    assert!(first != second && is_gone(second) && !is_gone(first));
    assert_eq!(pintle.close(Duration::from_secs(10)).await, pintle::Left::default());
    assert!(is_gone(first));
    let late = pintle.process("late", script(folder.path(), DENIES).intercept(&["before_tool"])).await;
    assert_eq!(late, Err(AddError::Closed("late".into())));
}

#[test]
fn dropping_everything_ends_the_children() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pintle = Pintle::open(memory(), &TOOLS).unwrap();
        pintle.process("guard", script(folder.path(), DENIES).intercept(&["before_tool"])).await.unwrap();
        let turn = turn(&pintle);
        assert!(!is_gone(pid(folder.path())));
        drop((turn, pintle));
        while !is_gone(pid(folder.path())) {
            tokio::task::yield_now().await;
        }
    });
}
