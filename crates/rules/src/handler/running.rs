//! One run of a rule, whichever way it is run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::payload::for_script;
use crate::record::{CommandConfig, HandlerConfig, HttpConfig, OnInjection, RecordError, secrets};
use crate::reply::{self, Exit, InputShape};
use bytes::Bytes;
use futures_util::FutureExt as _;
use pintle_domain::account::{Account, RewriteOutcome};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::{Cause, Direction, Fault, ProtocolBreach};
use pintle_domain::id::EventId;
use pintle_domain::identity::Identity;
use pintle_domain::json::Value;
use pintle_domain::rule::Rule;
use pintle_domain::shell::ShellFacts;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::{Failure, ReadAnswer, ShownInput};
use super::argv::missing_file;
use super::{BoundRule, ScriptCall, ScriptFailure};
use crate::http::{Delivery, HttpFault, HttpSpec, MAX_REPLY_BYTES};
use pintle_engine::deadlines::Elapsed;
use pintle_process::command::{self, CommandEnd, CommandResult, CommandSpec, RunLimit, environment};

/// How much of an output is kept for somebody who tests a hook, in characters: a screen or two.
const SHOWN_CHARS: usize = 4000;

/// The time after its deadline at which a handler is given up that did not see to that itself. Source: scripts end
/// within 250 ms of the deadline.
const STUCK_TIME: Duration = Duration::from_millis(250);

/// The result that one run came to, and how.
pub(crate) struct RunResult<T> {
    pub(crate) said: Result<T, Failure>,
    pub(crate) account: Account,
}

/// How a row is run, from its config.
#[derive(Clone, Debug)]
pub enum RuleRunner {
    /// A shell command.
    Command {
        /// The command.
        command: String,
        /// Variables that it sees.
        allowed_env_vars: Vec<String>,
        /// Its folder; the agent's workspace when empty.
        cwd: String,
    },
    /// A request.
    Http {
        /// Where to.
        url: String,
        /// Its own headers: names as written, values as kept; secrets are encrypted.
        headers: Vec<(String, String)>,
        /// Names of headers that are secrets, in lower case.
        secret_headers: Vec<String>,
        /// As kept: encrypted.
        signing_secret: Option<String>,
        /// Whether an answer that is not JSON is a fault.
        strict: bool,
    },
    /// A judge.
    Prompt {
        /// The rule that it judges by.
        template: Arc<str>,
        /// Its model; an alias or a name.
        model: String,
        /// Its provider, if it must be that one.
        provider: Option<String>,
        /// How often it may be asked in one turn.
        max_per_turn: u32,
        /// Whether an attempt to talk it into something blocks.
        on_injection: reply::InjectionEffect,
    },
    /// A script.
    Script {
        /// Its text.
        source: Arc<str>,
    },
}

impl RuleRunner {
    /// How a row is run.
    ///
    /// # Errors
    /// What is wrong with its config.
    pub(crate) fn of(row: &Rule) -> Result<Self, RecordError> {
        Ok(match HandlerConfig::of(row.handler_type, &row.config)? {
            HandlerConfig::Command(CommandConfig { command, allowed_env_vars, cwd }) => {
                Self::Command { command, allowed_env_vars, cwd: cwd.unwrap_or_default() }
            }
            HandlerConfig::Http(HttpConfig { url, headers, signing_secret, strict, .. }) => {
                let of_header = |path: &String| path.strip_prefix("config.headers.").map(str::to_owned);
                let secret_headers = secrets(row).iter().filter_map(of_header).collect();
                Self::Http { url, headers, secret_headers, signing_secret, strict }
            }
            HandlerConfig::Prompt(config) => Self::Prompt {
                template: config.prompt_template.into(),
                model: config.model,
                provider: config.provider,
                max_per_turn: config.max_invocations_per_turn,
                on_injection: match config.on_injection {
                    OnInjection::Block => reply::InjectionEffect::Block,
                    OnInjection::Ignore => reply::InjectionEffect::Ignore,
                },
            },
            HandlerConfig::Script(config) => Self::Script { source: config.source.into() },
        })
    }

    /// How its rewrites are written.
    fn shape(&self) -> InputShape {
        match self {
            Self::Script { .. } => InputShape::Parts,
            Self::Command { .. } | Self::Http { .. } | Self::Prompt { .. } => InputShape::Whole,
        }
    }
}

/// One question to one rule.
pub struct RuleQuestion<'a> {
    pub(crate) about: &'a Arc<BoundRule>,
    pub(crate) event_id: &'a EventId,
    pub(crate) who: &'a Identity,
    pub(crate) payload: Bytes,
    /// The facts about what a shell would do with the call, for a script.
    pub(crate) shell: Option<Arc<ShellFacts>>,
    pub(crate) facts: ShownInput<'a>,
    pub(crate) event: CheckpointKind,
    pub(crate) timeout: Duration,
    pub(crate) budget: Duration,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) again: bool,
}

/// A command that never ran.
fn cannot_start(why: String) -> Failure {
    let why = Cause::from(why);
    Failure::of(Fault::CannotStart { cause: why.clone() }, why)
}

impl RuleQuestion<'_> {
    /// Names this run, also over retries and restarts.
    pub(crate) fn dedup_key(&self) -> String {
        format!("{}:{}{}", self.about.id(), self.event_id, if self.again { "#2" } else { "" })
    }

    /// Runs the hook once. What it answers counts as `take` takes it: an answer that has no place here is a fault.
    pub(crate) async fn run<T>(&self, take: impl FnOnce(ReadAnswer) -> Result<T, Failure>) -> RunResult<T> {
        let began = Instant::now();
        let mut account = Account::default();
        let said = self.within_time(&mut account).await.map(|said| self.as_it_counts(said));
        if let Ok(said) = &said {
            self.note_dropped(said, &mut account);
        }
        let decision = said.as_ref().ok().map(|said| said.decision);
        let shape = self.about.runs.shape();
        let said = said.and_then(|said| take(ReadAnswer { said, shape }));
        self.trace(began.elapsed(), decision, said.as_ref().err());
        RunResult { said, account }
    }

    /// An answer with the decision that it is here, for gates and observers alike.
    fn as_it_counts(&self, said: reply::HandlerReply) -> reply::HandlerReply {
        if said.decision == reply::Decision::Defer {
            let (hook_id, event) = (self.about.id(), self.event.name());
            tracing::warn!(%hook_id, event, "hooks.decision_not_yet_implemented: `defer` counts as a block");
        }
        reply::HandlerReply { decision: said.decision.at(self.event), ..said }
    }

    /// Records what a ruling has no place for: the reason of an answer that lets pass, and, where nothing can be changed
    /// or added, what was sent for that.
    fn note_dropped(&self, said: &reply::HandlerReply, account: &mut Account) {
        if said.decision == reply::Decision::Allow {
            account.allowed.clone_from(&said.reason);
        }
        if matches!(self.event, CheckpointKind::PreToolUse | CheckpointKind::UserPromptSubmit) {
            return;
        }
        account.context_dropped = said.context.is_some();
        if said.updated_input.as_ref().is_some_and(|updated| !updated.is_empty()) {
            account.rewrite = Some(RewriteOutcome::Dropped(format!("nothing is rewritten at {}", self.event.name())));
        }
    }

    /// Runs it until it answers, its time is over or the turn is; a panic is a fault.
    async fn within_time(&self, account: &mut Account) -> Result<reply::HandlerReply, Failure> {
        if let Some(detail) = self.about.refused() {
            return Err(Failure::unavailable(detail));
        }
        // Each kind has its own deadline, which says more; this one is for what gets stuck around it.
        let most = self.timeout.max(self.budget) + STUCK_TIME;
        let run = AssertUnwindSafe(self.by_kind(account)).catch_unwind();
        tokio::select! {
            biased;
            heard = self.about.parts.deadlines.within(most, run) => match heard {
                Ok(Ok(said)) => said,
                Ok(Err(_panic)) => Err(Failure::of(Fault::Panicked, "the handler panicked")),
                Err(Elapsed) => Err(self.timed_out()),
            },
            () = self.cancel.cancelled() => Err(Failure::of(Fault::Cancelled, "the turn was cancelled")),
        }
    }

    async fn by_kind(&self, account: &mut Account) -> Result<reply::HandlerReply, Failure> {
        match &self.about.runs {
            RuleRunner::Command { command, allowed_env_vars, cwd } => {
                self.command(command, allowed_env_vars, cwd, account).await
            }
            RuleRunner::Http { .. } => self.http(account).await,
            RuleRunner::Prompt { .. } => self.judge(account).await,
            RuleRunner::Script { source } => self.script(source, account).await,
        }
    }

    async fn command(
        &self,
        command: &str,
        allowed: &[String],
        cwd: &str,
        account: &mut Account,
    ) -> Result<reply::HandlerReply, Failure> {
        let around = &self.about.parts.commands;
        let vars = environment(around.vars.iter().cloned(), allowed, &around.operator_env, &around.secrets);
        let folder = command::folder(cwd, &(around.workspace_of)(&self.who.agent_id));
        let spec = CommandSpec::new(command.to_owned(), folder.clone(), vars);
        let limit = RunLimit { time: self.timeout, deadlines: &self.about.parts.deadlines };
        let CommandResult { end, stdout, stderr, .. } =
            spec.run(self.payload.clone(), limit, self.cancel, &self.about.parts.tasks).await;
        account.stdout_len = Some(stdout.len());
        account.stderr_len = Some(stderr.len());
        account.stdout = shown(&stdout);
        account.stderr = shown(&stderr);
        let read = |exit| reply::stdout(exit, &stdout, &stderr).map_err(Failure::from);
        match end {
            // An interpreter that finds no script leaves with 2, too: that is no refusal of anybody's.
            CommandEnd::Exit(reply::BLOCKS) if !reply::is_json(&stdout) => match missing_file(command, &folder) {
                Some(file) => Err(cannot_start(format!("the file `{file}` does not exist in {}", folder.display()))),
                None => read(Exit::Code(reply::BLOCKS)),
            },
            CommandEnd::Exit(code) => read(Exit::Code(code)),
            CommandEnd::Signal(signal) => read(Exit::Signal(signal)),
            CommandEnd::TimedOut => Err(self.timed_out()),
            CommandEnd::Cancelled => Err(Failure::of(Fault::Cancelled, "the turn was cancelled")),
            CommandEnd::TooMuch { stream } => {
                let detail =
                    format!("hook: command wrote more than {} bytes to {}", command::MAX_OUTPUT_BYTES, stream.name());
                Err(Failure::of(Fault::TooLarge { way: Direction::Reply, limit: command::MAX_OUTPUT_BYTES }, detail))
            }
            CommandEnd::CannotStart(why) => Err(cannot_start(why)),
        }
    }

    async fn http(&self, account: &mut Account) -> Result<reply::HandlerReply, Failure> {
        let spec = self.opened().map_err(Failure::unavailable)?;
        let parts = &self.about.parts;
        let owner = self.about.owner();
        let slug = (parts.slug_of)(&owner);
        let key = self.dedup_key();
        let delivery =
            Delivery { body: self.payload.clone(), dedup_key: &key, timeout: self.timeout, is_test: self.who.is_test };
        let answer = parts.exchange.for_tenant(slug.as_deref()).post(&spec, delivery).await;
        match answer {
            Ok(response) => {
                account.http_status = Some(response.status);
                account.retry = response.retries.into();
                let body = reply::body(&response.body, spec.strict)?;
                account.non_json = body.non_json;
                Ok(body.said)
            }
            Err(fault) => {
                account.http_status = fault.status();
                account.retry = fault.retries().into();
                Err(http_failure(&fault))
            }
        }
    }

    /// The request of this hook, its secrets decrypted.
    fn opened(&self) -> Result<HttpSpec, String> {
        let RuleRunner::Http { url, headers, secret_headers, signing_secret, strict } = &self.about.runs else {
            return Err("it is not an http hook".into());
        };
        let (id, owner) = (self.about.id(), self.about.owner());
        let open = |path: &str, text: &str| self.about.parts.vault.open(&id, &owner, path, text);
        let headers = headers.iter().map(|(name, value)| {
            let lower = name.to_ascii_lowercase();
            let value = if secret_headers.contains(&lower) {
                open(&format!("config.headers.{lower}"), value)?
            } else {
                value.clone()
            };
            Ok((name.clone(), value))
        });
        let headers = headers.collect::<Result<_, String>>()?;
        let signing_secret = signing_secret.as_ref().map(|secret| open("config.signing_secret", secret)).transpose()?;
        Ok(HttpSpec { url: url.clone(), headers, signing_secret, strict: *strict })
    }

    async fn script(&self, source: &str, account: &mut Account) -> Result<reply::HandlerReply, Failure> {
        let none = ShellFacts::default();
        let shell = self.shell.as_deref().unwrap_or(&none);
        let event = for_script(&self.payload, shell).map_err(Failure::unavailable)?;
        let call = ScriptCall {
            tenant: self.who.tenant_id.as_str(),
            duty: self.event.duty(),
            source,
            event: &event,
            timeout: self.timeout,
            budget: self.budget,
        };
        let ran = self.about.parts.scripts.run(call).await;
        account.slot_wait = ran.waited;
        if !ran.log.is_empty() {
            account.stderr_len = Some(ran.log.len());
            account.stderr = shown(ran.log.as_bytes());
        }
        match ran.returned {
            Ok(object) => Ok(reply::script(&Value::Object(object))?),
            // It had less than its own time, since it waited: that says nothing of it.
            Err(ScriptFailure::TimedOut { after }) if after.as_millis() < self.timeout.as_millis() => {
                account.uncounted = true;
                let (waited, after_ms) = (ran.waited.as_millis(), after.as_millis());
                let detail = format!(
                    "the script waited {waited} ms for a slot, and did not answer within the {after_ms} ms left"
                );
                Err(Failure::of(Fault::TimedOut { after: ran.waited + after }, detail))
            }
            Err(ScriptFailure::TimedOut { after }) => {
                let detail = format!("the script did not answer within {} ms", after.as_millis());
                Err(Failure::of(Fault::TimedOut { after: after.max(self.timeout) }, detail))
            }
            Err(ScriptFailure::NoSlot { waited }) => {
                account.uncounted = true;
                let detail = format!("no slot for a script became free within {} ms", waited.as_millis());
                Err(Failure::of(Fault::TimedOut { after: waited }, detail))
            }
            Err(ScriptFailure::Threw(what)) => {
                let detail = Cause::from(format!("script threw: {what}"));
                Err(Failure::of(Fault::Protocol(ProtocolBreach::Threw(what.into())), detail))
            }
            Err(ScriptFailure::Failed(detail)) => {
                let detail = Cause::from(detail);
                Err(Failure::of(Fault::Protocol(ProtocolBreach::Broke(detail.clone())), detail))
            }
        }
    }

    pub(crate) fn timed_out(&self) -> Failure {
        Failure::of(
            Fault::TimedOut { after: self.timeout },
            format!("no answer within {} ms", self.timeout.as_millis()),
        )
    }
}

fn http_failure(fault: &HttpFault) -> Failure {
    let detail = Cause::from(fault.to_string());
    let fault = match fault {
        HttpFault::Again(fault) => return http_failure(fault),
        HttpFault::TimedOut { after } => Fault::TimedOut { after: *after },
        HttpFault::TooLarge => Fault::TooLarge { way: Direction::Reply, limit: MAX_REPLY_BYTES },
        HttpFault::Truncated | HttpFault::NotHttp(_) | HttpFault::Encoded(_) => {
            Fault::Unreadable { cause: detail.clone() }
        }
        HttpFault::Refused(_) | HttpFault::BadConfig(_) | HttpFault::Connection(_) => {
            Fault::Unavailable { cause: detail.clone() }
        }
        HttpFault::Unexpected(_) | HttpFault::Client(_) | HttpFault::Server(_) => {
            Fault::Protocol(ProtocolBreach::Returned(detail.clone()))
        }
    };
    Failure { fault, detail }
}

fn shown(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_CHARS * 4)]);
    (!bytes.is_empty()).then(|| text.chars().take(SHOWN_CHARS).collect())
}
