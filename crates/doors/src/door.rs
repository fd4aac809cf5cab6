//! The door: its vendors, what it keeps, and the sessions whose hooks it asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use pintle_domain::approval::told_meanwhile;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::CallId;
use pintle_domain::json::Object;
use pintle_domain::ruling::Aborted;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Clearance, Dispatcher, Stopped};
use uuid::Uuid;

use crate::answer::{CallRuling, DenyMode};
use crate::keeper::{ChainOwner, Keeper, Visited, session_name};
use crate::request::{BadRequest, Previous, SeenRequest};
use crate::room::{Room, Rooms};
use crate::spending::{
    AskingSession, HeldElsewhere, Holding, Limit, Payer, Purse, SpendingBudget, SpendingLedger, SpendingWish, Spent,
    day_of,
};
use crate::tokens::Tokens;
use crate::upstream::{DoorKey, Upstream, UpstreamError, VendorKey};
use crate::wire::{Vendor, Wire};

/// Why a request cannot go on from the answer that it names.
const UNKNOWN_ANSWER: &str = "it names no answer that this door passed on to you unchanged, in this session, within a \
                              day; send the whole conversation in `input`";

/// Why a result cannot be put to hooks.
const LOST_RESULT: &str = "it names no call that waits for a result; send the whole conversation in `input`";

/// Names the space of ids of turns.
const TURNS: Uuid = Uuid::from_u128(0x2a3c_7e10_9d4b_5f6a_8b1e_64d0_95c7_1f33);

/// What is set of one vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorSettings {
    /// Where it is reached; its own address where nothing is said.
    pub base_url: Option<String>,
    /// How calls are refused.
    pub deny: DenyMode,
    /// The tools that may run there.
    pub hosted: BTreeSet<String>,
    /// The operator's key for it: for guests who bring none of their own.
    pub key: Option<VendorKey>,
    /// How much may be spent there.
    pub budget: SpendingBudget,
}

/// Whose hooks a request is put to, and whose key goes on: whoever serves a door puts this into the extensions of each
/// request that they let in. A request without it is turned away.
#[derive(Clone)]
pub struct DoorGuest {
    /// The hooks.
    pub host: Arc<dyn DoorHost>,
    /// Whose room their requests take; empty where there is nobody else.
    pub tenant: String,
    /// What tells their sessions from those of others; empty where there is nobody else.
    pub space: String,
    /// What their spending is counted by: a key.
    pub payer: String,
    /// Whose key goes on.
    pub key: DoorKey,
}

/// Who speaks to a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorVisit {
    /// The wire.
    pub wire: Wire,
    /// The session, by its name here.
    pub session: String,
    /// The turn.
    pub turn: String,
    /// How the client calls itself: a guess is made of it, and nothing depends on it but names of tools.
    pub user_agent: String,
}

/// What a client says of itself beside its request.
#[derive(Clone, Copy)]
pub(crate) struct ClientSays<'h> {
    /// The session that it names, if it does.
    pub(crate) claim: Option<&'h str>,
    /// How it calls itself.
    pub(crate) user_agent: &'h str,
}

/// Whose hooks are asked.
#[async_trait]
pub trait DoorHost: Send + Sync {
    /// The hooks for a visit: with what is known of the tools, and where persons are asked.
    ///
    /// # Errors
    /// There are none, in words for the client.
    async fn hooks(&self, visit: &DoorVisit) -> Result<Dispatcher, String>;

    /// Why a call must not run, whatever hooks say.
    async fn protects(&self, visit: &DoorVisit, call: &ToolCall) -> Option<String>;

    /// The call of `native` with `arguments` as rules know it: the tool, and its arguments; none where that is the same.
    fn known_as(&self, _native: &str, _arguments: &Object) -> Option<(String, Object)> {
        None
    }

    /// The arguments with which `native`, which was called with `arguments`, runs what hooks made of them as rules know
    /// them; none where it cannot.
    fn told_as(&self, _native: &str, _arguments: &Object, changed: Object) -> Option<Object> {
        Some(changed)
    }

    /// The client as it is guessed from `user_agent`, for records.
    fn guessed(&self, user_agent: &str) -> String;

    /// Holds what a request of `payer`'s may come to on `day`, in the accounts of all doors that count together, if there
    /// is room below a limit.
    ///
    /// # Errors
    /// Nobody can say, in words for the client.
    async fn hold(&self, _payer: &Payer, _day: Date, _wish: (SpendingWish, Limit)) -> Result<Holding, String> {
        Ok(Holding::Alone)
    }

    /// Notes for these doors that `more` of `payer`'s was spent on `day`, where nothing was held for it.
    fn spends(&self, _payer: &Payer, _day: Date, _more: Spent) {}
}

struct Behind {
    upstream: Upstream,
    settings: VendorSettings,
}

fn behind(mut settings: BTreeMap<Vendor, VendorSettings>) -> Result<BTreeMap<Vendor, Behind>, UpstreamError> {
    let one = |vendor: Vendor| {
        let settings = settings.remove(&vendor).unwrap_or_default();
        let base = settings.base_url.as_deref().unwrap_or(vendor.address());
        let upstream = Upstream::new(vendor, base, settings.key.clone())?;
        Ok((vendor, Behind { upstream, settings }))
    };
    Vendor::ALL.into_iter().map(one).collect()
}

/// A model door.
pub struct ModelDoor {
    vendors: BTreeMap<Vendor, Behind>,
    keeper: Arc<Mutex<Keeper>>,
    ledger: Arc<Mutex<SpendingLedger>>,
    rooms: Arc<Rooms>,
}

impl ModelDoor {
    /// A door with `settings` of each vendor that has some.
    ///
    /// # Errors
    /// An address is none, or no client can be made.
    pub fn new(settings: BTreeMap<Vendor, VendorSettings>) -> Result<Self, UpstreamError> {
        let (keeper, ledger, rooms) = (Arc::default(), Arc::default(), Arc::default());
        Ok(Self { vendors: behind(settings)?, keeper, ledger, rooms })
    }

    /// The same door with other settings: what it keeps of sessions stays.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with(&self, settings: BTreeMap<Vendor, VendorSettings>) -> Result<Self, UpstreamError> {
        let (keeper, ledger, rooms) = (self.keeper.clone(), self.ledger.clone(), self.rooms.clone());
        Ok(Self { vendors: behind(settings)?, keeper, ledger, rooms })
    }

    /// Room for a request of `bytes` of the tenant `whose`, if there is any.
    pub(crate) fn room(&self, whose: &str, bytes: usize) -> Option<Room> {
        self.rooms.take(whose, bytes)
    }

    /// The vendor of a wire.
    pub(crate) fn upstream(&self, wire: Wire) -> &Upstream {
        &self.vendors[&wire.vendor()].upstream
    }

    /// `request`, with what is known of the answer that it goes on from, if it names one.
    ///
    /// # Errors
    /// That answer is none of the `owner`'s, or something in the request is of a call that nobody knows: it would pass
    /// no hook as what it is.
    pub(crate) fn known(&self, owner: &ChainOwner, request: SeenRequest) -> Result<SeenRequest, BadRequest> {
        let Some(Previous::Named(id)) = &request.previous else { return Ok(request) };
        let chain = locked(&self.keeper).chain(&owner.key(id), Timestamp::now());
        let chain = chain.ok_or_else(|| BadRequest::member("previous_response_id", UNKNOWN_ANSWER))?;
        let request = SeenRequest { previous: Some(Previous::Known(chain)), ..request };
        match request.lost_result() {
            Some(place) => Err(BadRequest::member(format!("input[{place}].call_id"), LOST_RESULT)),
            None => Ok(request),
        }
    }

    /// The session of `guest` that `request` belongs to.
    pub(crate) async fn session(
        &self,
        guest: &DoorGuest,
        (wire, request): (Wire, &SeenRequest),
        says: ClientSays<'_>,
    ) -> Result<Session, String> {
        let ClientSays { claim, user_agent } = says;
        let session = match &request.previous {
            Some(Previous::Known(chain)) => chain.session.clone(),
            Some(Previous::Named(_)) => return Err(UNKNOWN_ANSWER.into()),
            None => session_name(wire.name(), &guest.space, claim, request),
        };
        // What is kept of one is never found by another, whatever the digests are.
        let name = if guest.space.is_empty() { session.clone() } else { format!("{} {session}", guest.space) };
        let turn = request.turn();
        let visited = locked(&self.keeper).visit(&name, turn, Timestamp::now());
        let turn = Uuid::new_v5(&TURNS, format!("{name}/{turn}").as_bytes()).to_string();
        let visit = DoorVisit { wire, session, turn, user_agent: user_agent.to_owned() };
        let hooks = guest.host.hooks(&visit).await?;
        let settings = &self.vendors[&wire.vendor()].settings;
        Ok(Session {
            wire,
            name,
            model: request.model.clone(),
            visit,
            visited,
            hooks,
            host: guest.host.clone(),
            keeper: self.keeper.clone(),
            hosted: settings.hosted.clone(),
            deny: settings.deny,
            ledger: self.ledger.clone(),
            purse: Purse {
                budget: settings.budget.clone(),
                payer: Payer { vendor: wire.vendor().name(), key: guest.payer.clone() },
            },
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request of a session, with the hooks that it is put to.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) wire: Wire,
    /// Its name.
    pub(crate) name: String,
    /// The model that is asked; some wires say it beside the body.
    model: String,
    pub(crate) visit: DoorVisit,
    pub(crate) visited: Visited,
    pub(crate) hooks: Dispatcher,
    host: Arc<dyn DoorHost>,
    keeper: Arc<Mutex<Keeper>>,
    pub(crate) hosted: BTreeSet<String>,
    pub(crate) deny: DenyMode,
    ledger: Arc<Mutex<SpendingLedger>>,
    purse: Purse,
}

/// What became of a call, and what else is to be kept of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Ruled {
    pub(crate) ruling: CallRuling,
    /// A text that stands behind its result.
    pub(crate) note: Option<String>,
    /// What the door could not express.
    pub(crate) degraded: Option<&'static str>,
}

/// Why a call cannot go on as a hook changed it.
const NOT_TOLD: &str = "a hook changed its arguments in a way that this tool of the client cannot be told";

/// What a request may come to, held for as long as nobody knows what it came to. Dropped, nothing came of it.
pub(crate) struct Held {
    ledger: Arc<Mutex<SpendingLedger>>,
    number: u64,
    most: Spent,
    elsewhere: Option<Box<dyn HeldElsewhere>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        locked(&self.ledger).let_go(self.number);
    }
}

/// Why a request must not leave for what it costs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overspent {
    pub(crate) why: String,
    /// Whether it may leave at another time.
    pub(crate) for_now: bool,
}

impl Session {
    /// Asks the keeper, or tells it.
    pub(crate) fn kept<T>(&self, work: impl FnOnce(&mut Keeper) -> T) -> T {
        work(&mut locked(&self.keeper))
    }

    /// Holds the `most` that a request may come to. Why it must not leave, if what it may spend is spent or nobody knows
    /// what it would, is kept in the record.
    pub(crate) async fn hold(&self, most: Tokens, own: &[Held]) -> Result<Held, Overspent> {
        let held = match self.purse.unpriced(&self.model) {
            Some(why) => Err(Overspent { why, for_now: false }),
            None => self.held(most, own).await.map_err(|why| Overspent { why, for_now: true }),
        };
        held.inspect_err(|over| self.hooks.refused(CheckpointKind::BeforeLlm, &over.why))
    }

    /// Holds it here at once, and then where others count, if it matters.
    async fn held(&self, most: Tokens, own: &[Held]) -> Result<Held, String> {
        let now = Timestamp::now();
        let mut wish = SpendingWish { most: self.purse.cost(&self.model, most), ..SpendingWish::default() };
        own.iter().for_each(|held| wish.own.add(held.most));
        let spent = |why: String| format!("the budget is spent: {why}");
        let session = AskingSession { name: &self.name, spent: self.kept(|keeper| keeper.spent(&self.name)) };
        let number = locked(&self.ledger).hold(&self.purse, session, wish, now).map_err(spent)?;
        let mut held = Held { ledger: self.ledger.clone(), number, most: wish.most, elsewhere: None };
        let limit = self.purse.budget.day;
        if self.purse.budget.has_day() {
            let holding = self.host.hold(&self.purse.payer, day_of(now), (wish, limit)).await;
            match holding.map_err(|why| format!("nobody can say what is left of the budget: {why}"))? {
                Holding::Alone => {}
                Holding::Held(elsewhere) => held.elsewhere = Some(elsewhere),
                Holding::Full { spent: all, held: others } => {
                    let why = all.full_today(others.without(wish.own), limit);
                    return Err(spent(why.unwrap_or_else(|| "this key has nothing left for today".into())));
                }
            }
        }
        Ok(held)
    }

    /// Notes what an answer cost, for which `held` was held.
    pub(crate) fn spend(&self, tokens: Tokens, is_told: bool, held: Vec<Held>) {
        let now = Timestamp::now();
        let spent = locked(&self.ledger).spend(&self.purse, (&self.model, tokens), now);
        let mut elsewhere = held.into_iter().filter_map(|mut held| held.elsewhere.take());
        match elsewhere.next() {
            Some(first) => first.settle(day_of(now), spent),
            None => self.host.spends(&self.purse.payer, day_of(now), spent),
        }
        // What was held for later rounds goes with the first.
        drop(elsewhere);
        self.kept(|keeper| keeper.spend(&self.name, spent));
        let cost = match self.purse.budget.prices.is_empty() {
            true => String::new(),
            false => format!(", {} millionths of a dollar", spent.nano_dollars / 1000),
        };
        let guessed = if is_told { "" } else { " (guessed by its length: the vendor does not say it)" };
        let Tokens { read, cached, written } = tokens;
        let text = format!(
            "usage of `{}`: {read} tokens read, {cached} of them cached, {written} written{cost}{guessed}",
            self.model
        );
        self.hooks.noted(CheckpointKind::AfterLlm, &text);
    }

    /// Reads a body of this session's.
    pub(crate) fn read(&self, body: String) -> Result<SeenRequest, String> {
        let seen = self.wire.read(body).map_err(|error| error.to_string())?;
        let model = if seen.model.is_empty() { self.model.clone() } else { seen.model.clone() };
        Ok(SeenRequest { model, ..seen })
    }

    /// A call of the engine's: with the name that rules know.
    pub(crate) fn call(&self, id: &str, native: &str, arguments: Object) -> ToolCall {
        let (tool, arguments) = match self.host.known_as(native, &arguments) {
            Some(known) => known,
            None => (self.hooks.known().meant(native), arguments),
        };
        ToolCall { id: CallId::new(id), tool, raw_tool: native.to_owned(), arguments }
    }

    /// `ruled` in the words of the client, whose call was of `native` with `arguments`.
    pub(crate) fn told(&self, (native, arguments): (&str, &Object), ruled: Ruled) -> Ruled {
        let Ruled { ruling, note, degraded } = ruled;
        let (ruling, degraded) = match ruling {
            CallRuling::Rewritten(changed) => match self.host.told_as(native, arguments, changed) {
                Some(changed) => (CallRuling::Rewritten(changed), degraded),
                None => (CallRuling::Denied(NOT_TOLD.to_owned()), Some("modify→deny")),
            },
            ruling @ (CallRuling::Allowed | CallRuling::Denied(_) | CallRuling::Aborted(_)) => (ruling, degraded),
        };
        Ruled { ruling, note, degraded }
    }

    /// Keeps who executes, once a turn: their permits bind nobody, because the client runs the tools.
    pub(crate) fn note_turn(&self) {
        let client = self.host.guessed(&self.visit.user_agent);
        let text = format!("door: model, {}; executor: host, guessed {client}; bound: no", self.wire.name());
        self.hooks.noted(CheckpointKind::UserPromptSubmit, &text);
    }

    /// Keeps that a ruling was made stricter.
    pub(crate) fn degraded(&self, kind: CheckpointKind, what: &str) {
        let text = format!("degraded: {what}, because the wire {} can express no more", self.wire.name());
        self.hooks.noted(kind, &text);
    }

    /// Why `call` must not run, whatever hooks say.
    pub(crate) async fn protects(&self, call: &ToolCall) -> Option<String> {
        self.host.protects(&self.visit, call).await
    }
}

/// `clearance` of the call `asked`; a refusal where hooks made of it a call that `protects` does not let pass, as it would
/// not have been asked about had the agent made it.
pub(crate) async fn looked_at_again<F>(
    clearance: Clearance,
    asked: &ToolCall,
    hooks: &Dispatcher,
    protects: impl FnOnce(ToolCall) -> F,
) -> Clearance
where
    F: Future<Output = Option<String>>,
{
    let changed = if let Clearance::Run(permit, _) = &clearance { Some(permit.call().clone()) } else { None };
    let Some(call) = changed.filter(|call| call != asked) else { return clearance };
    let Some(text) = protects(call.clone()).await else { return clearance };
    hooks.refused_call(CheckpointKind::PreToolUse, &call, &text);
    Clearance::Refused { call, text, by: None, rewritten: true }
}

/// What the client is told of a call that was cleared.
pub(crate) fn ruling_of(clearance: Clearance, asked: &ToolCall) -> Ruled {
    let ruled = |ruling| Ruled { ruling, note: None, degraded: None };
    match clearance {
        Clearance::Run(permit, left) => {
            // The client runs the tool: the permit ends here.
            let call = permit.into_call();
            if call.tool != asked.tool {
                let reason =
                    format!("a hook made it a call of `{}`, and only the model can call another tool", call.tool);
                return Ruled { degraded: Some("modify→deny"), ..ruled(CallRuling::Denied(reason)) };
            }
            let notes: Vec<&str> = left.notes.iter().map(|note| note.text.as_str()).collect();
            let ruling = match call.arguments == asked.arguments {
                true => CallRuling::Allowed,
                false => CallRuling::Rewritten(call.arguments),
            };
            Ruled { note: (!notes.is_empty()).then(|| notes.join("\n\n")), ..ruled(ruling) }
        }
        Clearance::Substituted { output, by, .. } => {
            let reason = format!("hook \"{by}\" answered in its place: {}", output.for_llm);
            Ruled { degraded: Some("respond→deny"), ..ruled(CallRuling::Denied(reason)) }
        }
        Clearance::Waiting { approval, .. } => ruled(CallRuling::Denied(told_meanwhile(&asked.raw_tool, &approval.id))),
        Clearance::Refused { text, .. } => ruled(CallRuling::Denied(text)),
        Clearance::Abort { aborted, .. } => ruled(CallRuling::Aborted(abort_text(&aborted))),
    }
}

fn abort_text(aborted: &Aborted) -> String {
    aborted.text()
}

/// What the client is told of something that goes no further.
pub(crate) fn stopped_text(stopped: &Stopped) -> String {
    match stopped {
        Stopped::Denied(denied) => denied.text(),
        Stopped::Aborted(aborted) => abort_text(aborted),
        Stopped::Cancelled => "the hooks did not rule in time, so it is refused".into(),
    }
}
