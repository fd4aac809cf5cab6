//! `pintle chat` while its configuration changes: whole or not at all.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, Stdio};

use super::env::{PINTLE, TestEnv};
use super::run::{DONE, GUARD, LISTS, MODEL, scripted};

/// A conversation that goes on.
pub(crate) struct Chat {
    child: Child,
    typed: ChildStdin,
    shown: Lines<BufReader<ChildStderr>>,
}

impl Chat {
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.command(PINTLE);
        command.arg("chat").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let typed = child.stdin.take().unwrap();
        let shown = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut chat = Self { child, typed, shown };
        chat.until("session cli:");
        chat
    }

    /// What is shown up to a line with `wanted` in it.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let mut seen = Vec::new();
        for line in self.shown.by_ref().map(Result::unwrap) {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(wanted)) {
                return seen.join("\n");
            }
        }
        panic!("`{wanted}` was never shown: {seen:#?}");
    }

    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) -> String {
        writeln!(self.typed, "{line}").unwrap();
        self.until("turn completed")
    }

    /// Asks for a reload.
    fn hang_up(&self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
    }

    pub(crate) fn end(mut self) {
        drop(self.typed);
        assert!(self.child.wait().unwrap().success());
    }
}

fn conversation() -> TestEnv {
    scripted(&[LISTS, DONE].repeat(4).join(","), "")
}

#[test]
fn a_good_change_is_taken_and_a_bad_one_changes_nothing() {
    let env = conversation();
    let config = env.path("config/pintle/pintle.toml");
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    std::fs::write(&config, format!("{MODEL}{GUARD}timout_ms = 5\n")).unwrap();
    assert!(chat.until("is not in force").contains("timout_ms"));
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    std::fs::write(&config, format!("{MODEL}{GUARD}")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look again").contains("not today"));
    chat.end();
}

#[test]
fn a_removal_that_is_not_in_force_is_named() {
    let env = scripted(&[LISTS, DONE].repeat(4).join(","), GUARD);
    let config = env.path("config/pintle/pintle.toml");
    let mut chat = Chat::start(&env, &[]);
    let off = GUARD.replace("enabled = true", "enabled = false");
    let bad = "[hooks.processes.bad]\nenabled = true\nintercept = ['before_tool']\n";
    std::fs::write(&config, format!("{MODEL}{off}{bad}")).unwrap();
    assert!(chat.until("still act").contains("these were removed and still act: guard"));
    assert!(chat.say("look").contains("not today"));
    chat.end();
}

#[test]
fn a_line_above_an_old_mistake_blocks_nothing() {
    let bad = "[hooks.processes.bad]\nenabled = true\nintercept = ['before_llm']\n";
    let env = scripted(&[LISTS, DONE].repeat(4).join(","), bad);
    let config = env.path("config/pintle/pintle.toml");
    let mut chat = Chat::start(&env, &[]);
    std::fs::write(&config, format!("{MODEL}# a remark\n{bad}{GUARD}")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("not today"));
    chat.end();
}

#[test]
fn an_agent_that_is_gone_refuses_the_change_and_the_conversation_goes_on() {
    let env = conversation();
    let config = env.path("config/pintle/pintle.toml");
    let mut chat = Chat::start(&env, &["--agent", "main"]);
    std::fs::write(&config, MODEL.replace("agents.main", "agents.other") + GUARD).unwrap();
    assert!(chat.until("is not in force").contains("there is no agent `main`"));
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    std::fs::write(&config, format!("{MODEL}[store]\nurl = 'memory:'\n")).unwrap();
    chat.until("warning: store.url takes effect at the next start");
    chat.end();
}

#[test]
fn an_agent_that_cannot_be_used_blocks_a_change_only_if_it_is_new() {
    let lost = "[providers.lost]\nkind = 'scripted'\nscript = 'lost.json'\n[agents.helper]\nmodel = 'lost/x'\n";
    let main = MODEL.replace("[agents.main]\n", "[agents.main]\ndefault = true\ntools = ['list_dir', 'delegate']\n");
    let env = scripted(&[LISTS, DONE].repeat(4).join(","), "");
    let config = env.path("config/pintle/pintle.toml");
    std::fs::write(&config, format!("{main}[agents.helper]\nmodel = 'scripted/x'\n")).unwrap();
    let mut chat = Chat::start(&env, &[]);
    std::fs::write(&config, format!("{main}{lost}{GUARD}")).unwrap();
    assert!(chat.until("is not in force").contains("lost.json"));
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    chat.end();
    let mut chat = Chat::start(&env, &[]);
    std::fs::write(&config, format!("{main}{lost}")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    chat.end();
}

const RULES: &str = "config/pintle/hooks.d/rules.toml";

/// A rule in a file that refuses to list folders.
fn refuses(name: &str, reason: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
         matcher = '^list_dir$'\nbreaker = 'off'\nconfig.command = 'echo {reason} >&2; exit 2'\n"
    )
}

fn with_rules(rules: &str) -> TestEnv {
    let env = scripted(&[LISTS, DONE].repeat(8).join(","), "[agent_hooks]\ndir = 'hooks.d'\n");
    env.write(RULES, rules);
    env
}

#[test]
fn rules_in_files_are_taken_whole_or_not_at_all() {
    let env = with_rules(&refuses("guard", "first words"));
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("first words"));
    // One record is bad: the good one beside it is not taken either, and the one that is gone still acts.
    let bad = refuses("bad", "never").replace("scope", "priorty = 3\nscope");
    std::fs::write(env.path(RULES), refuses("other", "other words") + &bad).unwrap();
    let said = chat.until("still act");
    let place = "rules.toml:13:1: hook.1.priorty: invalid request: invalid config: unknown field \"priorty\"";
    assert!(said.contains("is not in force") && said.contains(place), "{said}");
    assert!(said.contains("these were removed and still act: guard"), "{said}");
    let seen = chat.say("look");
    assert!(seen.contains("first words") && !seen.contains("priorty"), "{seen}");
    std::fs::write(env.path(RULES), "[[hook]\n").unwrap();
    assert!(chat.until("is not in force").contains("rules.toml:1:"));
    assert!(chat.say("look").contains("first words"));
    std::fs::write(env.path(RULES), refuses("guard", "second words")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("second words"));
    chat.end();
}

#[test]
fn a_rule_that_was_bad_at_the_start_blocks_no_change() {
    let bad = refuses("bad", "never").replace("scope", "priorty = 3\nscope");
    let env = with_rules(&bad);
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("priorty"), "what it was to guard is shut");
    std::fs::write(env.path(RULES), format!("# a remark\n{}{bad}", refuses("guard", "new words"))).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("priorty"), "still");
    std::fs::write(env.path(RULES), refuses("guard", "new words")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("new words"));
    chat.end();
}

#[test]
fn a_folder_of_rules_that_comes_later_is_seen() {
    let env = scripted(&[LISTS, DONE].repeat(4).join(","), "[agent_hooks]\ndir = 'hooks.d'\n");
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("▸ tool         list_dir"));
    std::fs::create_dir(env.path("config/pintle/hooks.d")).unwrap();
    chat.until("the new configuration is in force");
    std::fs::write(env.path(RULES), refuses("guard", "late words")).unwrap();
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("late words"));
    chat.end();
}

#[test]
fn an_edited_script_is_another_hook_and_what_became_of_each_child_is_said() {
    let other = "[hooks.processes.other]\nenabled = true\ncommand = ['sh', 'other.sh']\nintercept = ['before_llm']\n";
    let env = scripted(&[LISTS, DONE].repeat(4).join(","), &format!("{GUARD}{other}"));
    let refuses = std::fs::read_to_string(env.path("config/pintle/refuses.sh")).unwrap();
    env.write("config/pintle/other.sh", &refuses);
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("not today"));
    env.write("config/pintle/refuses.sh", &refuses.replace("not today", "nor tomorrow"));
    chat.hang_up();
    chat.until("the new configuration is in force; restarted: guard; kept: other");
    assert!(chat.say("look").contains("nor tomorrow"));
    // One that does not come up leaves the old child where it is.
    env.write("config/pintle/refuses.sh", "exit 3");
    chat.hang_up();
    assert!(chat.until("is not in force").contains("exited with status 3 before it answered hook.hello"));
    assert!(chat.say("look").contains("nor tomorrow"));
    chat.end();
}
