//! What the runs of one command come to, and the verdict that this is.

use pintle_dialects::claude::tools::ToldCall;
use pintle_dialects::claude::{CommandAnswer, CommandDecision};
use pintle_domain::checkpoint::{ApproveTool, Reply, Subject};
use pintle_domain::json::Object;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::{Abort, AbortScope, ParsedVerdict, Reason, Verdict};

/// What a command said of one event, all its runs together.
#[derive(Debug, Default)]
pub(super) struct Told {
    decision: CommandDecision,
    input: Option<Object>,
    output: Option<String>,
    contexts: Vec<String>,
    warnings: Vec<String>,
    /// How many runs there are.
    runs: usize,
}

impl Told {
    /// Nothing yet, of `runs` runs.
    pub(super) fn of(runs: usize) -> Self {
        Self { runs, ..Self::default() }
    }

    /// Whether nothing that is still to be heard could change what was decided.
    pub(super) fn is_decided(&self) -> bool {
        matches!(self.decision, CommandDecision::Deny(_) | CommandDecision::Stop(_))
    }

    /// Whether nothing stands against it so far.
    pub(super) fn lets_pass(&self) -> bool {
        self.decision == CommandDecision::Allow
    }

    /// Takes one answer, which is about a part of a call where it is about one.
    pub(super) fn take(&mut self, answer: CommandAnswer, part: Option<(&ToldCall, &ToolCall)>) {
        let CommandAnswer { decision, updated_input, updated_output, context, message: _, warnings } = answer;
        self.warnings.extend(warnings);
        self.contexts.extend(context);
        if updated_output.is_some() && self.runs == 1 {
            self.output = updated_output;
        } else if updated_output.is_some() {
            self.warnings.push("its changed result was dropped: it saw a part of the call".to_owned());
        }
        let is_stricter = match (&self.decision, &decision) {
            (CommandDecision::Deny(_) | CommandDecision::Stop(_), _)
            | (CommandDecision::Ask(_), CommandDecision::Allow | CommandDecision::Ask(_)) => false,
            (CommandDecision::Allow | CommandDecision::Ask(_), _) => true,
        };
        if is_stricter {
            self.decision = decision;
        }
        let (Some(changed), Some((told, call))) = (updated_input, part) else { return };
        match told.back(call, changed) {
            Ok(arguments) if arguments == call.arguments => {}
            Ok(arguments) => self.input = Some(arguments),
            // What it wanted changed must not run as it is.
            Err(why) if !self.is_decided() => {
                self.decision = CommandDecision::Deny(format!("a hook wants it changed: {why}"))
            }
            Err(_) => {}
        }
    }

    fn context(&self) -> Option<String> {
        (!self.contexts.is_empty()).then(|| self.contexts.join("\n\n"))
    }
}

/// The reply to `subject` that `told` is.
pub(super) fn reply(subject: Subject<'_>, told: Told) -> Reply {
    let context = told.context();
    let refused = match &told.decision {
        CommandDecision::Allow => None,
        CommandDecision::Ask(why) => Some(format!("it wants a person to say, and nobody can be asked here: {why}")),
        CommandDecision::Deny(why) | CommandDecision::Stop(why) => Some(why.clone()),
    };
    match subject {
        Subject::UserPromptSubmit(_) => Reply::UserPromptSubmit(ParsedVerdict {
            warnings: told.warnings,
            context,
            ..refused.map_or(Verdict::Continue, |why| Verdict::Deny(Reason::new(&why))).into()
        }),
        Subject::PreToolUse(_) => {
            let verdict = match (told.decision, &told.input) {
                (CommandDecision::Allow, None) => Verdict::Continue,
                (CommandDecision::Allow, Some(input)) => Verdict::Modify(input.clone()),
                (CommandDecision::Ask(why), _) => Verdict::Ask(Reason::new(&why)),
                (CommandDecision::Deny(why) | CommandDecision::Stop(why), _) => Verdict::Deny(Reason::new(&why)),
            };
            let rewrite = told.input.filter(|_| matches!(verdict, Verdict::Ask(_))).map(Box::new);
            Reply::PreToolUse(ParsedVerdict { verdict, warnings: told.warnings, rewrite, context })
        }
        Subject::SubagentStart(_) => Reply::SubagentStart(ParsedVerdict {
            warnings: told.warnings,
            context,
            ..refused.map_or(Verdict::Continue, |why| Verdict::Deny(Reason::new(&why))).into()
        }),
        Subject::AfterTool(at) => {
            let verdict = match &told.decision {
                CommandDecision::Stop(why) => {
                    Verdict::Abort(Abort { abort_scope: AbortScope::Turn, reason: Reason::new(why) })
                }
                CommandDecision::Allow | CommandDecision::Ask(_) | CommandDecision::Deny(_) => {
                    match told.result(&at.result, refused) {
                        Some(result) => Verdict::Modify(result),
                        None => Verdict::Continue,
                    }
                }
            };
            Reply::AfterTool(ParsedVerdict { warnings: told.warnings, ..verdict.into() })
        }
        // It is asked nowhere else.
        Subject::BeforeLlm(_) => Reply::BeforeLlm(Verdict::Continue.into()),
        Subject::AfterLlm(_) => Reply::AfterLlm(Verdict::Continue.into()),
        Subject::BeforeTool(_) => Reply::BeforeTool(Verdict::Continue.into()),
        Subject::ApproveTool(_) => {
            Reply::ApproveTool(Verdict::<ApproveTool>::deny("a command hook approves nothing").into())
        }
    }
}

impl Told {
    /// The result as the model is to read it, where that is another one: changed, or with what was said of it behind it.
    fn result(&self, was: &ToolOutput, refused: Option<String>) -> Option<ToolOutput> {
        let said: Vec<String> = refused.into_iter().chain(self.contexts.iter().cloned()).collect();
        if self.output.is_none() && said.is_empty() {
            return None;
        }
        let mut result = was.clone();
        if let Some(text) = &self.output {
            // What was taken out reaches nobody.
            result.for_llm.clone_from(text);
            if !result.for_user.is_empty() {
                result.for_user.clone_from(text);
            }
        }
        for text in said {
            if !result.for_llm.is_empty() {
                result.for_llm.push_str("\n\n");
            }
            result.for_llm.push_str(&text);
        }
        Some(result)
    }
}
