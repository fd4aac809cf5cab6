//! What sessions and keys have spent, and what they may. Pure; kept as long as the door is open.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::tokens::Tokens;

/// What a million tokens of a model cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Read, in thousandths of a dollar.
    pub read_milli: u64,
    /// Read from the cache, in thousandths of a dollar.
    pub cached_milli: u64,
    /// Written, in thousandths of a dollar.
    pub written_milli: u64,
}

impl Price {
    /// What `tokens` cost, in billionths of a dollar.
    pub const fn of(self, tokens: Tokens) -> u64 {
        let fresh = tokens.read.saturating_sub(tokens.cached).saturating_mul(self.read_milli);
        let cached = tokens.cached.saturating_mul(self.cached_milli);
        fresh.saturating_add(cached).saturating_add(tokens.written.saturating_mul(self.written_milli))
    }
}

/// Billionths of a dollar in a thousandth.
pub const NANOS_IN_MILLI: u64 = 1_000_000;

/// How much may be spent in one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// In tokens, read and written.
    pub tokens: Option<u64>,
    /// In thousandths of a dollar.
    pub milli_dollars: Option<u64>,
}

/// How much may be spent at one vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpendingBudget {
    /// By one session.
    pub session: Limit,
    /// By one key, on one day of UTC.
    pub day: Limit,
    /// What models cost, by their name, or by how it begins where a `*` ends it.
    pub prices: BTreeMap<String, Price>,
}

impl SpendingBudget {
    /// What `model` costs: by the longest name that fits.
    pub fn price(&self, model: &str) -> Option<Price> {
        let fits = |name: &&String| match name.strip_suffix('*') {
            Some(begins) => model.starts_with(begins),
            None => *name == model,
        };
        let best = self.prices.keys().filter(fits).max_by_key(|name| (!name.ends_with('*'), name.len()))?;
        self.prices.get(best).copied()
    }

    /// Whether a day has a limit.
    pub(crate) const fn has_day(&self) -> bool {
        self.day.tokens.is_some() || self.day.milli_dollars.is_some()
    }

    const fn is_in_dollars(&self) -> bool {
        self.session.milli_dollars.is_some() || self.day.milli_dollars.is_some()
    }
}

/// What was spent in one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The tokens.
    pub tokens: Tokens,
    /// What they cost, in billionths of a dollar.
    pub nano_dollars: u64,
}

impl Spent {
    /// Adds `more`.
    pub fn add(&mut self, more: Self) {
        self.tokens = self.tokens.plus(more.tokens);
        self.nano_dollars = self.nano_dollars.saturating_add(more.nano_dollars);
    }

    /// Less what is in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        let (own, other_tokens) = (self.tokens, other.tokens);
        Self {
            tokens: Tokens {
                read: own.read.saturating_sub(other_tokens.read),
                cached: own.cached.saturating_sub(other_tokens.cached),
                written: own.written.saturating_sub(other_tokens.written),
            },
            nano_dollars: self.nano_dollars.saturating_sub(other.nano_dollars),
        }
    }

    /// Why there is nothing left of `limit`, by itself or with what requests under way may come to.
    pub(crate) fn full(self, held: Self, limit: Limit, (whose, until): (&str, &str)) -> Option<String> {
        if let Some(why) = self.beyond(limit, whose) {
            return Some(format!("{why}{until}"));
        }
        let mut all = self;
        all.add(held);
        let why = all.beyond(limit, &format!("{whose}, with what its requests under way may come to,"))?;
        Some(format!("{why}; send it again when they are answered"))
    }

    /// Why there is nothing left of what `limit` gives a key on a day.
    pub(crate) fn full_today(self, held: Self, limit: Limit) -> Option<String> {
        self.full(held, limit, ("this key", " today, until midnight UTC"))
    }

    /// Why there is nothing left of `limit`.
    fn beyond(self, limit: Limit, whose: &str) -> Option<String> {
        if let Some(most) = limit.tokens.filter(|most| self.tokens.all() >= *most) {
            return Some(format!("{whose} has spent {} of {most} tokens", self.tokens.all()));
        }
        let most = limit.milli_dollars?;
        (self.nano_dollars / NANOS_IN_MILLI >= most).then(|| {
            format!("{whose} has spent ${} of ${}", dollars(self.nano_dollars / NANOS_IN_MILLI), dollars(most))
        })
    }
}

/// An amount in dollars, as people read it.
pub fn dollars(milli: u64) -> String {
    format!("{}.{:03}", milli / 1000, milli % 1000)
}

/// Whose money it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payer {
    /// The vendor.
    pub vendor: &'static str,
    /// The key, or whoever has none.
    pub key: String,
}

/// What may be spent, and of whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purse {
    /// How much.
    pub budget: SpendingBudget,
    /// Whose.
    pub payer: Payer,
}

impl Purse {
    /// What `tokens` of `model` come to.
    pub fn cost(&self, model: &str, tokens: Tokens) -> Spent {
        let nano_dollars = self.budget.price(model).map_or(0, |price| price.of(tokens));
        Spent { tokens, nano_dollars }
    }

    /// Why no request for `model` leaves, whatever was spent: nobody knows what it costs.
    pub fn unpriced(&self, model: &str) -> Option<String> {
        let is_unknown = self.budget.is_in_dollars() && self.budget.price(model).is_none();
        is_unknown.then(|| {
            let vendor = self.payer.vendor;
            format!(
                "`{model}` has no price, so a budget in dollars refuses it; add it to `doors.model.{vendor}.prices`"
            )
        })
    }
}

/// What one request asks of a purse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingWish {
    /// The most that it is taken to come to.
    pub most: Spent,
    /// What it holds already, which is not in its own way.
    pub own: Spent,
}

/// What is held in accounts that others look at, too. Dropped, nothing came of the request.
pub trait HeldElsewhere: Send + Sync {
    /// The request came to `spent`, and its answer ended on `day`.
    fn settle(self: Box<Self>, day: Date, spent: Spent);
}

/// What becomes of a wish where others count, too.
pub enum Holding {
    /// Nobody else counts.
    Alone,
    /// It is held.
    Held(Box<dyn HeldElsewhere>),
    /// There is no room.
    Full {
        /// What was spent.
        spent: Spent,
        /// What others may come to.
        held: Spent,
    },
}

/// The day of UTC that `now` is on.
pub(crate) fn day_of(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

/// The session that asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskingSession<'s> {
    /// Its name.
    pub name: &'s str,
    /// What it spent.
    pub spent: Spent,
}

#[derive(Debug)]
struct Held {
    payer: Payer,
    session: String,
    most: Spent,
}

/// What keys spent today, and what requests under way may come to.
#[derive(Debug, Default)]
pub struct SpendingLedger {
    day: Date,
    keys: BTreeMap<Payer, Spent>,
    held: BTreeMap<u64, Held>,
    last: u64,
}

impl SpendingLedger {
    /// Holds what a request may come to, until it is let go: by the number that is given.
    ///
    /// # Errors
    /// What the session or its payer may spend is spent, or may be with what is held: why no request leaves for now.
    pub fn hold(
        &mut self,
        Purse { budget, payer }: &Purse,
        session: AskingSession<'_>,
        wish: SpendingWish,
        now: Timestamp,
    ) -> Result<u64, String> {
        self.turn_over(now);
        let of_session = self.held(|held| held.session == session.name).without(wish.own);
        let of_key = self.held(|held| held.payer == *payer).without(wish.own);
        let here = self.keys.get(payer).copied().unwrap_or_default();
        let full = session.spent.full(of_session, budget.session, ("this session", ""));
        match full.or_else(|| here.full_today(of_key, budget.day)) {
            Some(why) => Err(why),
            None => {
                self.last += 1;
                let held = Held { payer: payer.clone(), session: session.name.to_owned(), most: wish.most };
                self.held.insert(self.last, held);
                Ok(self.last)
            }
        }
    }

    /// Nothing is held under this number any more.
    pub fn let_go(&mut self, number: u64) {
        self.held.remove(&number);
    }

    fn held(&self, counts: impl Fn(&Held) -> bool) -> Spent {
        let mut sum = Spent::default();
        self.held.values().filter(|held| counts(held)).for_each(|held| sum.add(held.most));
        sum
    }

    /// Notes what an answer of `model` came to: that with its price.
    pub fn spend(&mut self, purse: &Purse, (model, tokens): (&str, Tokens), now: Timestamp) -> Spent {
        self.turn_over(now);
        let spent = purse.cost(model, tokens);
        self.keys.entry(purse.payer.clone()).or_default().add(spent);
        spent
    }

    fn turn_over(&mut self, now: Timestamp) {
        let day = day_of(now);
        if day != self.day {
            self.day = day;
            self.keys.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn tokens(read: u64, written: u64) -> Tokens {
        Tokens { read, cached: 0, written }
    }

    fn payer(key: &str) -> Payer {
        Payer { vendor: "openai", key: key.into() }
    }

    #[test]
    fn the_longest_name_of_a_price_counts() {
        let price = |read_milli| Price { read_milli, ..Price::default() };
        let prices = [("gpt-5*", 1), ("gpt-5-mini*", 2), ("gpt-5-mini", 3), ("*", 4)];
        let prices = prices.map(|(name, read)| (name.to_owned(), price(read))).into();
        let mut budget = SpendingBudget { prices, ..SpendingBudget::default() };
        for (model, expected) in [("gpt-5", 1), ("gpt-5-mini", 3), ("gpt-5-mini-2026", 2), ("other", 4)] {
            assert_eq!(budget.price(model), Some(price(expected)), "{model}");
        }
        budget.prices.remove("*");
        assert_eq!(budget.price("other"), None);
    }

    #[test]
    fn what_is_cached_has_its_own_price() {
        // $1.25, $0.125 and $10 for a million.
        let price = Price { read_milli: 1250, cached_milli: 125, written_milli: 10_000 };
        let spent = Tokens { read: 1_000_000, cached: 400_000, written: 100_000 };
        assert_eq!(price.of(spent), (750 + 50 + 1000) * NANOS_IN_MILLI);
        assert_eq!(dollars(1800), "1.800");
    }

    fn refusal(ledger: &mut SpendingLedger, purse: &Purse, spent: Spent, now: Timestamp) -> Option<String> {
        let session = AskingSession { name: "s", spent };
        match ledger.hold(purse, session, SpendingWish::default(), now) {
            Ok(number) => {
                ledger.let_go(number);
                None
            }
            Err(why) => Some(why),
        }
    }

    #[test]
    fn a_budget_that_is_spent_refuses_until_the_next_day_and_for_its_own_key_only() {
        let day = Limit { tokens: Some(100), milli_dollars: None };
        let budget = SpendingBudget { day, ..SpendingBudget::default() };
        let of = |key: &str| Purse { budget: budget.clone(), payer: payer(key) };
        let mut ledger = SpendingLedger::default();
        let (today, tomorrow) = (at("2026-11-26T23:59:59Z"), at("2026-11-27T00:00:00Z"));
        let asked = |ledger: &mut SpendingLedger, key: &str, now| refusal(ledger, &of(key), Spent::default(), now);
        ledger.spend(&of("a"), ("m", tokens(60, 39)), today);
        assert_eq!(asked(&mut ledger, "a", today), None);
        ledger.spend(&of("a"), ("m", tokens(1, 0)), today);
        let why = "this key has spent 100 of 100 tokens today, until midnight UTC";
        assert_eq!(asked(&mut ledger, "a", today).as_deref(), Some(why));
        assert_eq!(asked(&mut ledger, "b", today), None);
        assert_eq!(asked(&mut ledger, "a", tomorrow), None);
    }

    #[test]
    fn requests_of_one_key_at_the_same_time_do_not_go_beyond_its_budget_together() {
        let day = Limit { tokens: Some(100), milli_dollars: None };
        let session = Limit { tokens: Some(150), milli_dollars: None };
        let budget = SpendingBudget { day, session, ..SpendingBudget::default() };
        let of = |key: &str| Purse { budget: budget.clone(), payer: payer(key) };
        let (mut ledger, now) = (SpendingLedger::default(), at("2026-11-26T12:00:00Z"));
        let most = Spent { tokens: tokens(20, 60), nano_dollars: 0 };
        let wish = SpendingWish { most, own: Spent::default() };
        let session = |name: &'static str| AskingSession { name, spent: Spent::default() };
        let first = ledger.hold(&of("a"), session("s"), wish, now).unwrap();
        ledger.hold(&of("a"), session("t"), wish, now).expect("there is some room, of which nobody knows how much");
        let why = ledger.hold(&of("a"), session("s"), wish, now).unwrap_err();
        assert_eq!(
            why,
            "this key, with what its requests under way may come to, has spent 160 of 100 tokens; send it again when \
             they are answered"
        );
        ledger.hold(&of("b"), session("s"), wish, now).expect("another key");
        let why = ledger.hold(&of("c"), session("s"), wish, now).unwrap_err();
        assert!(why.starts_with("this session, with what its requests"), "{why}");
        // What it holds already is not in the way of the next round of the same request.
        ledger.hold(&of("a"), session("u"), SpendingWish { most, own: most }, now).expect("it goes on");
        ledger.let_go(first);
        ledger.spend(&of("a"), ("m", tokens(100, 0)), now);
        let why = ledger.hold(&of("a"), session("u"), wish, now).unwrap_err();
        assert!(why.ends_with("has spent 100 of 100 tokens today, until midnight UTC"), "{why}");
    }

    #[test]
    fn a_budget_in_dollars_needs_prices_and_holds_for_a_session() {
        let session = Limit { tokens: None, milli_dollars: Some(5) };
        let price = Price { read_milli: 1000, cached_milli: 1000, written_milli: 2000 };
        let prices = [("m".to_owned(), price)].into();
        let purse =
            Purse { budget: SpendingBudget { session, prices, ..SpendingBudget::default() }, payer: payer("a") };
        let (mut ledger, now) = (SpendingLedger::default(), at("2026-11-26T12:00:00Z"));
        let mut spent = Spent::default();
        assert!(purse.unpriced("other").unwrap().contains("no price"));
        assert_eq!((purse.unpriced("m"), refusal(&mut ledger, &purse, spent, now)), (None, None));
        assert_eq!(purse.cost("m", tokens(3000, 1000)).nano_dollars, 5_000_000);
        spent.add(ledger.spend(&purse, ("m", tokens(3000, 1000)), now));
        let why = refusal(&mut ledger, &purse, spent, now);
        assert_eq!(why.as_deref(), Some("this session has spent $0.005 of $0.005"));
    }
}
