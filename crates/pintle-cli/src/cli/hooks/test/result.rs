//! The `result` of `hooks.test`, for people.

use anstyle::{AnsiColor, Style};
use pintle_domain::json::Value;
use pintle_domain::rule::Decision;

use super::super::stored::text;
use crate::clean::{clean, prose};
use crate::cli::session::BLOCKED;
use crate::error::FAILED;
use crate::text::clip;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const CHANGE: Style = AnsiColor::Cyan.on_default();

/// What came of a test.
pub(super) struct Answer {
    name: String,
    result: Value,
}

impl Answer {
    /// `result` is what the rule admin said of the hook that is called `name`.
    pub(super) fn new(name: String, result: Value) -> Self {
        // Of several that were asked, it is the one that decided.
        let name = result["hook"].as_str().map(str::to_owned).unwrap_or(name);
        Self { name, result }
    }

    pub(super) fn result(&self) -> &Value {
        &self.result
    }

    fn decision(&self) -> Option<Decision> {
        Decision::named(text(&self.result, "decision"))
    }

    /// The exit code. A condition that cannot be evaluated is a fault at a real event, whatever the handler says.
    pub(super) fn code(&self) -> u8 {
        match self.decision().filter(|_| self.result.get("celError").is_none()) {
            Some(Decision::Allow) => 0,
            Some(Decision::Block | Decision::Ask) => BLOCKED,
            Some(Decision::Error | Decision::Timeout) | None => FAILED,
        }
    }

    /// One line for the decision, and one for each thing that there is to know besides; with `whole`, output is shown
    /// even if all went well.
    pub(super) fn plain(&self, whole: bool) -> String {
        let mut shown = self.head();
        let mut row = |name: &str, value: &str| shown.push_str(&format!("  {DIM}{name:<9}{DIM:#} {value}\n"));
        for said in self.result["chain"].as_array().into_iter().flatten() {
            let why = said["reason"].as_str().map(|why| format!("  \"{}\"", clean(&clip(why)))).unwrap_or_default();
            row("asked", &format!("{}: {}{why}", clean(text(said, "hook")), text(said, "decision")));
        }
        if self.result["matcherMatched"] == false {
            row("matcher", &format!("{NOTE}does not want this event: it would not be asked{NOTE:#}"));
        }
        match (self.result["celResult"].as_bool(), self.result["celError"].as_str()) {
            (_, Some(why)) => row("condition", &format!("{BAD}a fault at a real event: {}{BAD:#}", clean(why))),
            (Some(false), None) => row("condition", &format!("{NOTE}does not hold: it would not be asked{NOTE:#}")),
            (Some(true), None) if whole => row("condition", "holds"),
            (Some(true) | None, None) => {}
        }
        if self.result["injectionDetected"] == true {
            row("injection", &format!("{BAD}the judge saw an attempt to manipulate it{BAD:#}"));
        }
        if let Some(input) = self.result.get("updatedInput") {
            row("rewrite", &format!("{CHANGE}{}{CHANGE:#}", clean(&self.part("rewrite"))));
            row("", &clean(&input.to_string()));
        }
        for (name, member) in [("context", "additionalContext"), ("status", "statusCode"), ("model", "model")] {
            if self.result.get(member).is_some() {
                row(name, &indented(&self.part(member)));
            }
        }
        if self.result["nonJson"] == true {
            row("answer", &format!("{NOTE}is not JSON, which counts as allow; with `strict` it is a fault{NOTE:#}"));
        }
        for warning in self.result["warnings"].as_array().into_iter().flatten() {
            row("warning", &format!("{NOTE}{}{NOTE:#}", indented(warning.as_str().unwrap_or_default())));
        }
        if self.result.get("tokens").is_some() {
            row("tokens", &self.part("tokens"));
        }
        let failed = self.code() == FAILED;
        for name in ["stdout", "stderr"] {
            let said = text(&self.result, name);
            if !said.trim().is_empty() && (failed || whole) {
                row(name, &indented(said));
            }
        }
        shown
    }

    /// The decision, the hook, why, and how long it took.
    fn head(&self) -> String {
        let (word, style) = match self.decision() {
            Some(Decision::Allow) => ("allow", GOOD),
            Some(Decision::Block) => ("block", BAD),
            Some(Decision::Ask) => ("ask", NOTE),
            Some(Decision::Timeout) => ("timeout", BAD),
            Some(Decision::Error) | None => ("fault", BAD),
        };
        let failed = self.code() == FAILED;
        let why = match (failed, self.result["error"].as_str(), self.result["reason"].as_str()) {
            // What a fault became is what counts at an event.
            (true, Some(fault), _) => format!("  {} → {}", clean(fault), self.part("effective")),
            (_, _, Some(reason)) if !reason.is_empty() => format!("  \"{}\"", clean(&clip(reason))),
            (_, _, _) => String::new(),
        };
        format!(
            "{style}{word}{style:#}  {BOLD}{}{BOLD:#}{why}  {DIM}{} ms{DIM:#}\n",
            clean(&self.name),
            self.result["durationMs"]
        )
    }

    /// A member as a text.
    fn part(&self, name: &str) -> String {
        let value = &self.result[name];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }
}

/// A text that somebody wrote, whole; what follows its first line stands further in.
fn indented(text: &str) -> String {
    prose(text).trim_end().replace('\n', "\n            ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::json;

    /// The exit code and the lines.
    fn check(result: Value, whole: bool) -> (u8, String) {
        let answer = Answer::new("guard".into(), result);
        (answer.code(), anstream::adapter::strip_str(&answer.plain(whole)).to_string())
    }

    #[test]
    fn a_block_says_why() {
        let result = json!({"decision": "block", "durationMs": 12, "reason": "never", "matcherMatched": true, "effective": "block"});
        assert_eq!(check(result, false), (4, "block  guard  \"never\"  12 ms\n".into()));
    }

    #[test]
    fn a_fault_says_what_it_became_and_shows_the_output() {
        let result = json!({"decision": "error", "durationMs": 3, "error": "hook: command exited 1: boom", "effective": "block",
            "matcherMatched": true, "stderr": "boom\n\u{1b}[2Jmore\n", "stdout": ""});
        let expected = "fault  guard  hook: command exited 1: boom → block  3 ms\n  \
                        stderr    boom\n            \\u{1b}[2Jmore\n";
        assert_eq!(check(result, false), (1, expected.into()));
        assert_eq!(check(json!({"decision": "timeout", "durationMs": 5}), false).0, 1);
    }

    #[test]
    fn what_would_happen_besides_has_a_line_each() {
        let result = json!({
            "decision": "allow", "durationMs": 1, "matcherMatched": false, "celResult": false, "effective": "allow",
            "updatedInput": {"command": "ls"}, "rewrite": "dropped: may_rewrite is false", "additionalContext": "be careful",
            "injectionDetected": true, "model": "local/judge", "tokens": 120, "statusCode": 200, "nonJson": true, "stdout": "ok",
        });
        insta::assert_snapshot!(check(result, true).1, @r#"
        allow  guard  1 ms
          matcher   does not want this event: it would not be asked
          condition does not hold: it would not be asked
          injection the judge saw an attempt to manipulate it
          rewrite   dropped: may_rewrite is false
                    {"command":"ls"}
          context   be careful
          status    200
          model     local/judge
          answer    is not JSON, which counts as allow; with `strict` it is a fault
          tokens    120
          stdout    ok
        "#);
    }

    #[test]
    fn of_several_guards_the_one_that_decided_is_named() {
        let result = json!({"decision": "ask", "durationMs": 1, "matcherMatched": true, "effective": "ask", "hook": "starter-outside"});
        assert_eq!(check(result, false), (4, "ask  starter-outside  1 ms\n".into()));
        let result = json!({
            "decision": "block", "durationMs": 2, "matcherMatched": true, "effective": "block", "hook": "starter-secrets",
            "chain": [
                {"hook": "starter-outside", "decision": "ask", "reason": "outside"},
                {"hook": "starter-secrets", "decision": "block"},
            ],
        });
        let expected = "block  starter-secrets  2 ms\n  asked     starter-outside: ask  \"outside\"\n  \
                        asked     starter-secrets: block\n";
        assert_eq!(check(result, false), (4, expected.into()));
    }
}
