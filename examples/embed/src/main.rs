//! A loop of one's own around Pintle, with everything that a real host has: tools, stored rules, two tenants, a person to
//! ask, calls that wait for one over a kill, a store of its own, numbers, and an end that has bounds.
//!
//! `embed FOLDER` works what is open there, then a prompt of each tenant; a call that must wait for a person leaves its
//! turn open, and the program waits to be told or killed. `embed FOLDER approve` is that person, elsewhere.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pintle::json::json;
use pintle::llm::{LlmReply, LlmRequest};
use pintle::message::{CallPart, Message, Role};
use pintle::prelude::*;
use pintle::record::EventRecord;
use pintle::store::{OnKept, RecordQuery, RecordStore, StoreError, StoredEvent};
use pintle::{CallFolder, PintleStore};

const TENANTS: [&str; 2] = ["default", "acme"];

/// The cashier, who decides small things at once and leaves large ones to the office.
struct Cashier;

impl Ui for Cashier {
    fn ask<'a>(&'a self, question: &'a Approval) -> Fut<'a, Option<Answer>> {
        let amount = question.arguments.get("amount").and_then(|amount| amount.as_f64());
        let yes = Answer { approve: true, by: "cashier".into(), note: String::new() };
        Box::pin(async move { amount.filter(|amount| *amount < 500.0).map(|_| yes) })
    }
}

/// The tools. They run only with a permit.
struct Till {
    book: PathBuf,
}

impl Executor for Till {
    type Error = std::io::Error;

    fn runs(&self, tool: &str) -> bool {
        ["lookup", "refund"].contains(&tool)
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Self::Error> {
        let who = permit.owner().tenant_id.to_string();
        let call = permit.into_call();
        if call.tool == "lookup" {
            return Ok(Output::ok("order 7: 900, card 4111 1111"));
        }
        // Every line of this book is money that is gone.
        let mut book = OpenOptions::new().create(true).append(true).open(&self.book)?;
        writeln!(book, "{who} {}", json!(call.arguments))?;
        Ok(Output::ok(format!("refunded {}", call.number("amount").unwrap_or_default())))
    }
}

/// The records of what hooks did, a line of JSON each, in the form that `pintle why --json` prints.
struct Lines(PathBuf);

fn unavailable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

impl RecordStore for Lines {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        let text: String = records.iter().map(|record| format!("{}\n", json!(StoredEvent::from(record)))).collect();
        // A real one hands them to a thread. One append is written whole.
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        done(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(unavailable));
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let file = File::open(&self.0).map_err(unavailable)?;
        let mut found = Vec::new();
        for line in BufReader::new(file).lines() {
            let event: StoredEvent = serde_json::from_str(&line.map_err(unavailable)?).map_err(unavailable)?;
            if query.tenant.one().is_none_or(|tenant| tenant.as_str() == event.tenant_id) {
                found.push(event);
            }
        }
        Ok(found.split_off(found.len().saturating_sub(query.limit)))
    }
}

/// A turn as this host keeps it while it is open: the ids are its own to keep.
#[derive(serde::Serialize, serde::Deserialize)]
struct Open {
    tenant: String,
    turn: String,
    state: TurnSnapshot,
    call: CallPart,
}

/// One host of the example.
struct Shop {
    folder: PathBuf,
    pintle: Pintle,
    till: Till,
}

impl Shop {
    async fn open(folder: &Path, told: Arc<Mutex<BTreeMap<&'static str, usize>>>) -> Result<Self, Box<dyn Error>> {
        let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        let stores = PintleStore::at("sqlite://shop.db", folder).key(key).open()?;
        let stores = stores.with_records(Arc::new(Lines(folder.join("records.jsonl"))));
        let stores = stores.with_calls(CallFolder::open(folder.join("calls"))?);
        let pintle = Pintle::open(stores, &["lookup", "refund"])?;
        pintle.hook("large", "refund", |at: &PreToolUse| match at.call.number("amount") {
            Some(amount) if amount <= 100.0 => Verdict::Continue,
            Some(_) => Verdict::Ask("more than 100 leaves the till".into()),
            None => Verdict::deny("a refund needs an amount"),
        })?;
        pintle.hook("cards", "", |at: &AfterTool| {
            let text = at.result.for_llm.replace("4111 1111", "****");
            Verdict::Modify(Output { for_llm: text, ..at.result.clone() })
        })?;
        pintle.observer("metrics", move |notice: &Notice| {
            if let Ok(mut told) = told.lock() {
                *told.entry(notice.what.name()).or_default() += 1;
            }
        })?;
        pintle.ui(Cashier);
        pintle.add_tenant("acme")?;
        let rules = pintle.tenant("default")?.rules().ok_or("this host has stored rules")?;
        if !rules.list().await?.iter().any(|rule| rule["name"] == "shut") {
            let rule = json!({
                "name": "shut", "event": "pre_tool_use", "handler_type": "command", "scope": "tenant",
                "if_expr": "tool_name == 'refund' && tool_input.amount > 500",
                "config": {"command": "echo 'we are wound up' >&2; exit 2"},
            });
            rules.create(&rule).await?;
        }
        Ok(Self { folder: folder.to_owned(), pintle, till: Till { book: folder.join("book") } })
    }

    /// Works a prompt to its end, or until a call waits for a person: then its question comes back.
    async fn work(&self, tenant: &str, prompt: &str) -> Result<Option<String>, Box<dyn Error>> {
        let id = TurnId::fresh();
        let turn = self.pintle.tenant(tenant)?.turn("support", "session-1", id.clone());
        let prompt = turn.begin(prompt, InputKind::Followup).await?.prompt;
        let mut messages = vec![Message::text(Role::User, prompt)];
        loop {
            let answer = turn.model(LlmRequest::new("scripted", messages.clone()), answer).await?;
            let Some(call) = answer.reply.tool_calls.first().cloned() else {
                println!("{tenant}: {}", answer.reply.content);
                turn.end(&answer.reply.content);
                return Ok(None);
            };
            messages.push(answer.reply.into_message(&answer.model));
            match self.call(&turn, &call).await {
                Ok(text) => messages.push(Message::tool(&call.id, text)),
                Err(question) => {
                    let open = Open { tenant: tenant.into(), turn: id.to_string(), state: turn.park(), call };
                    fs::write(self.folder.join("open.json"), serde_json::to_vec(&open)?)?;
                    return Ok(Some(question));
                }
            }
        }
    }

    /// What the model reads of a call; or the question that it waits for.
    async fn call(&self, turn: &Turn, call: &CallPart) -> Result<String, String> {
        let Ok(arguments) = call.arguments() else { return Ok("the arguments are no object".into()) };
        let made = Call::new(&call.id, &call.function.name, arguments);
        match turn.call(made, &self.till).await {
            Ok(done) => Ok(done.output.for_llm),
            Err(Stop::Parked(parked)) => Err(parked.question.id),
            Err(stop) => Ok(stop.text()),
        }
    }

    /// Goes on with the turn that was left open. Says whether there was one.
    async fn go_on(&self) -> Result<bool, Box<dyn Error>> {
        let path = self.folder.join("open.json");
        let Ok(text) = fs::read(&path) else { return Ok(false) };
        let Open { tenant, turn, state, call } = serde_json::from_slice(&text)?;
        let turn = self.pintle.tenant(&tenant)?.turn("support", "session-1", turn.as_str().into()).resumed(state);
        match self.call(&turn, &call).await {
            Ok(text) => {
                println!("{tenant}, after all: {text}");
                turn.end(&text);
                fs::remove_file(path)?;
            }
            // What is kept of the turn stays as it is.
            Err(question) => {
                println!("{tenant}: still waits for {question}");
                drop(turn.park());
            }
        }
        Ok(true)
    }

    /// Says yes to everything that waits.
    fn approve(&self) -> Result<(), Box<dyn Error>> {
        for name in TENANTS {
            let approvals = self.pintle.tenant(name)?.approvals().ok_or("questions are kept")?;
            for question in approvals.list(true, 99)? {
                let yes = Answer { approve: true, by: "office".into(), note: String::new() };
                println!("{name}: {} approved", approvals.answer(&question.id, yes)?.tool);
            }
        }
        Ok(())
    }
}

/// The model: it looks the order up, gives the money back, and says so.
async fn answer(request: LlmRequest) -> Result<LlmReply, String> {
    let said = request.messages.iter().filter(|message| message.get().role == Role::Tool).count();
    let last = request.messages.last().map(|message| message.get().content.clone()).unwrap_or_default();
    let amount = if last.contains("900") { 900 } else { 50 };
    Ok(match said {
        0 => LlmReply::calls(vec![CallPart::new("call-1", "lookup", r#"{"order":7}"#)]),
        1 => LlmReply::calls(vec![CallPart::new("call-2", "refund", &format!(r#"{{"amount":{amount}}}"#))]),
        _ => LlmReply::text(last),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().ok_or("usage: embed FOLDER [approve]")?);
    fs::create_dir_all(&folder)?;
    let told: Arc<Mutex<BTreeMap<&'static str, usize>>> = Arc::default();
    let shop = Shop::open(&folder, told.clone()).await?;
    if words.next().as_deref() == Some("approve") {
        shop.approve()?;
    } else if !shop.go_on().await? {
        for tenant in TENANTS {
            let Some(question) = shop.work(tenant, "my order 7 never came, give me my money back").await? else {
                continue;
            };
            println!("{tenant}: waits for {question}");
            let approvals = shop.pintle.tenant(tenant)?.approvals().ok_or("questions are kept")?;
            // Here a real host would do something else; this one can be killed.
            drop(approvals.answered(&question).await?);
            shop.go_on().await?;
        }
    }
    let left = shop.pintle.close(Duration::from_secs(5)).await;
    let told = told.lock().map(|told| told.clone()).unwrap_or_default();
    println!("told: {told:?}\nleft: {left:?}");
    Ok(())
}
