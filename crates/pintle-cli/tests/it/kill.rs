//! A program that is killed anywhere loses nothing, and does nothing twice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pintle_domain::audit::{AuditKind, Verifier};
use pintle_domain::id::TenantId;
use pintle_domain::message::{Message, Role};
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::store::{RecordQuery, SessionKey, TenantScope};
use pintle_domain::turn::{Fact, OUTCOME_UNKNOWN};
use pintle_store::keyring::signing::{PUBLIC_KEY_FILE, PublicKeys};

use super::env::{PINTLE, TestEnv};
use super::run::scripted;

/// How many lives each kind of host has; in each of them the program is killed once or twice.
const LIVES: usize = 50;

/// How many programs run at once: more than the processors of a small machine, so that kills hit odd places.
const AT_ONCE: usize = 4;

/// Where the moments of the kills come from, unless `PINTLE_KILL_SEED` says otherwise.
const SEED: u64 = 20_261_122;

/// The words that the calls leave a line of, each once.
const WORDS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

/// Nine calls in three rounds, each of which leaves a line, and what the model says when one was cut.
fn script() -> String {
    let call = |word: &str| pintle_domain::json::json!({"name": "exec", "arguments": {"command": format!("echo {word} >>ran; echo {word}-done")}});
    let replies = pintle_domain::json::json!([
        {"when": {"contains": "begin"}, "tool_calls": [call("a"), call("b"), call("c")]},
        {"when": {"tool_result": "c-done"}, "tool_calls": [call("d"), call("e"), call("f")]},
        {"when": {"tool_result": "f-done"}, "tool_calls": [call("g"), call("h"), call("i")]},
        {"when": {"tool_result": "i-done"}, "text": "All done."},
        {"when": {"tool_result": OUTCOME_UNKNOWN}, "text": "One was cut."},
        {"when": {"contains": "again"}, "text": "Here again."}
    ]);
    let text = replies.to_string();
    text[1..text.len() - 1].to_owned()
}

/// Rules that take part in every call and every message, each in a way of its own.
const RULES: &str = r#"
[[hook]]
name = "allows"
event = "pre_tool_use"
handler_type = "script"
scope = "tenant"
config = { source = "function handle(event) { return { decision: 'allow' }; }" }

[[hook]]
name = "sees"
event = "pre_tool_use"
handler_type = "command"
scope = "tenant"
config = { command = "cat >/dev/null" }

[[hook]]
name = "counts"
event = "post_tool_use"
handler_type = "command"
scope = "tenant"
config = { command = "cat >/dev/null" }

[[hook]]
name = "greets"
event = "user_prompt_submit"
handler_type = "script"
scope = "global"
config = { source = "function handle(event) { return { decision: 'allow', additionalContext: event.rawInput }; }" }
"#;

/// Where a program was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// Before it worked on the session, or after.
    Outside,
    /// While it worked on the session, and no call ran.
    BetweenCalls,
    /// While a call ran.
    InACall,
}

/// One life of a session: killed once, then picked up.
struct Life<'a> {
    env: &'a TestEnv,
    number: usize,
}

impl Life<'_> {
    fn home(&self) -> PathBuf {
        self.env.path(&format!("homes/{}", self.number))
    }

    fn folder(&self) -> PathBuf {
        self.env.path(&format!("here/{}", self.number))
    }

    fn pintle(&self, args: &[&str]) -> Command {
        let mut command = self.env.command(PINTLE);
        command.args(args).arg("--home").arg(self.home()).current_dir(self.folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn begin(&self) -> Command {
        std::fs::create_dir_all(self.folder()).unwrap();
        self.pintle(&["run", "--quiet", "--session", "s", "begin"])
    }

    /// Runs a command to its end, which is one of `codes`.
    fn done(&self, args: &[&str], codes: &[i32]) {
        let output = self.pintle(args).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(codes.contains(&output.status.code().unwrap()), "{args:?} of life {}: {err}", self.number);
    }

    /// Kills the program after `moment`, and goes on: every second time with the turn that was cut, and of these every
    /// second time with another kill after the time `second`.
    fn live(&self, moment: Duration, second: Duration) -> Cut {
        let mut child = self.begin().spawn().unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        self.check_evidence();
        if self.number.is_multiple_of(2) {
            if self.number.is_multiple_of(4) {
                let mut resumed = self.pintle(&["sessions", "resume", "--quiet", "s"]).spawn().unwrap();
                std::thread::sleep(second);
                resumed.kill().unwrap();
                resumed.wait().unwrap();
                self.check_evidence();
            }
            // There may be not a session yet, or nothing open in it.
            self.done(&["sessions", "resume", "--quiet", "s"], &[0, 1, 2]);
        }
        self.done(&["run", "--quiet", "--session", "s", "again"], &[0]);
        self.check()
    }

    fn store(&self) -> Arc<dyn pintle_store::Store> {
        pintle_store::open("sqlite://pintle.db", &self.home(), pintle_store::Durability::Commit).unwrap()
    }

    /// Every call that began to run has its decision in the audit chain, and no chain has a break.
    fn check_evidence(&self) {
        if !self.home().join("pintle.db").exists() {
            return;
        }
        let store = self.store();
        let journal = store.journal(&key()).unwrap();
        let used = journal.iter().filter_map(|entry| match entry {
            JournalEntry::Turn(Fact::Used { digest, .. }) => Some(digest.clone()),
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => None,
        });
        let (used, decided) = (used.collect::<Vec<_>>(), self.decided(&*store));
        for digest in &used {
            // A kill between the decision and the use has it decided twice.
            assert!(decided.contains(digest), "life {}: {digest} was never decided: {decided:?}", self.number);
        }
    }

    /// The permits of the decisions in the audit chains, which are whole.
    fn decided(&self, store: &dyn pintle_store::Store) -> Vec<String> {
        let keys = std::fs::read_to_string(self.home().join(PUBLIC_KEY_FILE)).unwrap_or_default();
        let keys = PublicKeys::parse(&keys).unwrap_or_default();
        let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
        let (mut verifier, mut permits) = (Verifier::new(&check), Vec::new());
        for tenant in store.audited().unwrap() {
            store.checkpoints(&tenant, 0, 100_000).unwrap().iter().for_each(|point| verifier.checkpoint(point));
            for entry in store.audit_entries(&tenant, 1, 100_000).unwrap() {
                let body: pintle_domain::json::Value = serde_json::from_str(&entry.body).unwrap();
                if entry.kind == AuditKind::Decision {
                    permits.extend(body["data"]["permit"].as_str().map(str::to_owned));
                }
                verifier.entry(entry);
            }
        }
        let report = verifier.finish();
        assert!(report.is_intact(), "life {}: {report}", self.number);
        permits
    }

    /// What must hold whenever the program was killed. Says where it was.
    fn check(&self) -> Cut {
        self.check_evidence();
        let (store, key) = (self.store(), key());
        let journal = store.journal(&key).unwrap();
        let turns = paired(&journal).unwrap_or_else(|why| panic!("life {}: {why}: {journal:#?}", self.number));
        let query = RecordQuery { limit: 100_000, ..RecordQuery::of(TenantScope::All) };
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for event in store.find(&query).unwrap().into_iter().filter(|event| event.event == "turn_end") {
            *ends.entry(event.turn_id).or_default() += 1;
        }
        let expected: BTreeMap<String, usize> = turns.into_iter().map(|turn| (turn, 1)).collect();
        assert_eq!(ends, expected, "life {}: one turn_end for each turn", self.number);
        let killed = journal.iter().any(|entry| *entry == JournalEntry::Closed { cause: ReleaseReason::Killed });
        let session = Session::fold(journal);
        self.check_messages(&session);
        let unknown = session.messages().iter().any(|message| message.get().content == OUTCOME_UNKNOWN);
        match (killed, unknown) {
            (true, true) => Cut::InACall,
            (true, false) => Cut::BetweenCalls,
            (false, _) => Cut::Outside,
        }
    }

    fn check_messages(&self, session: &Session) {
        let ran = std::fs::read_to_string(self.folder().join("ran")).unwrap_or_default();
        let messages: Vec<&Message> = session.messages().iter().map(|message| message.get()).collect();
        let said = |text: &str| messages.iter().filter(|it| it.role == Role::User && it.content == text).count();
        assert!(said("begin") <= 1 && said("again") == 1, "life {}: {messages:#?}", self.number);
        for call in messages.iter().flat_map(|message| &message.tool_calls) {
            let results: Vec<_> = messages.iter().filter(|it| it.tool_call_id == call.id).collect();
            assert_eq!(results.len(), 1, "life {}: each call has one result: {messages:#?}", self.number);
            let is_in = |word: &&str| call.function.arguments.contains(&format!("echo {word} "));
            let word = WORDS.into_iter().find(is_in).unwrap();
            let result = results[0].content.as_str();
            let allowed = match result {
                result if result.contains(&format!("{word}-done")) => 1..=1,
                OUTCOME_UNKNOWN => 0..=1,
                _ => 0..=0,
            };
            let times = times(&ran, word);
            assert!(allowed.contains(&times), "life {}: {word} ran {times} times: {result}", self.number);
        }
        assert!(WORDS.iter().all(|word| times(&ran, word) <= 1), "life {}: {ran}", self.number);
    }
}

fn key() -> SessionKey {
    SessionKey { tenant: TenantId::default_tenant(), session: "s".into() }
}

/// How often the call that leaves `word` ran.
fn times(ran: &str, word: &str) -> usize {
    ran.lines().filter(|line| *line == word).count()
}

/// The turns of a journal in which every opening has its end, and every turn, too.
fn paired(journal: &[JournalEntry]) -> Result<Vec<String>, &'static str> {
    let (mut held, mut open, mut turns) = (false, false, Vec::new());
    for entry in journal {
        match entry {
            JournalEntry::Opened { .. } if held => return Err("it was opened twice"),
            JournalEntry::Opened { .. } => held = true,
            JournalEntry::Closed { .. } if !held => return Err("it was closed twice"),
            JournalEntry::Closed { .. } => held = false,
            JournalEntry::Turn(_) if !held => return Err("something happened while nobody worked on it"),
            JournalEntry::Turn(Fact::Begun { turn_id, .. }) if !open => {
                open = true;
                turns.push(turn_id.to_string());
            }
            JournalEntry::Turn(Fact::Begun { .. }) => return Err("a turn began in another one"),
            JournalEntry::Turn(Fact::Ended { .. }) if !open => return Err("a turn ended twice"),
            JournalEntry::Turn(Fact::Ended { .. }) => open = false,
            JournalEntry::Turn(_) | JournalEntry::Kept(_) => {}
        }
    }
    if held || open { Err("it was left open") } else { Ok(turns) }
}

/// Kills programs of a host with `audit.durability = durability` and these rules, and checks each of their lives.
fn survives(durability: &str, rules: &str) {
    let more = format!("tools = ['exec']\n[agent_hooks]\ndir = 'hooks.d'\n[audit]\ndurability = '{durability}'\n");
    let env = scripted(&script(), &more);
    env.write("config/pintle/hooks.d/rules.toml", rules);
    let seed = std::env::var("PINTLE_KILL_SEED").ok().map_or(SEED, |seed| seed.parse().unwrap());
    eprintln!("PINTLE_KILL_SEED={seed}");
    let whole = Life { env: &env, number: LIVES };
    let began = Instant::now();
    let output = whole.begin().output().unwrap();
    let length = began.elapsed();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"All done.\n"[..]));
    whole.done(&["run", "--quiet", "--session", "s", "again"], &[0]);
    whole.check();
    assert_eq!(whole.decided(&*whole.store()).len(), WORDS.len(), "one decision for each call");
    // Several run at once, each slower than one alone.
    let mut random = fastrand::Rng::with_seed(seed);
    let moments: Vec<Duration> = (0..LIVES).map(|_| length.mul_f64(random.f64() * 1.5)).collect();
    let (next, cuts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<Cut, usize>::new()));
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for number in numbers.take_while(|number| *number < LIVES) {
                    let cut = Life { env: &env, number }.live(moments[number], moments[LIVES - 1 - number]);
                    *cuts.lock().unwrap().entry(cut).or_default() += 1;
                }
            });
        }
    });
    let cuts = cuts.into_inner().unwrap();
    eprintln!("{cuts:?}");
    assert!(cuts.contains_key(&Cut::InACall), "no kill hit anything: {cuts:?}");
}

#[test]
fn killed_anywhere_nothing_is_lost_and_nothing_runs_twice() {
    survives("commit", "");
}

#[test]
fn killed_anywhere_with_the_disk_written_first() {
    survives("before_effect", "");
}

#[test]
fn killed_anywhere_with_rules_that_take_part() {
    survives("commit", RULES);
}

#[test]
fn killed_anywhere_with_rules_and_the_disk_written_first() {
    survives("before_effect", RULES);
}
