//! Patterns of `matches`: compiled once, and weighed, for what a search costs depends on both text and pattern.

use std::sync::{Arc, Mutex, PoisonError};

use pintle_domain::matcher::MAX_REGEX_BYTES;
use regex::{Regex, RegexBuilder};
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::{Input, nfa::thompson};
use regex_syntax::hir::{Hir, HirKind};

use super::fault::{Fault, shown};
use super::meter::Meter;

/// Largest compiled form of a pattern that is made while evaluating, in bytes: compiling it takes below a millisecond.
const MAX_MADE_BYTES: usize = 64 << 10;

/// Longest pattern that is made while evaluating, in bytes.
const MAX_MADE_PATTERN_BYTES: usize = 1_024;

/// The cost of a pattern that is made while evaluating, seen before or not: a hundred of them use the whole budget.
const MADE_COST: u64 = 1_000;

/// How many patterns that were made while evaluating are kept.
const KEPT: usize = 16;

/// Largest table in which a literal pattern is written out, in bytes. Most patterns fit, and a search in a table takes
/// one step per byte of text whatever the text is.
const MAX_TABLE_BYTES: usize = 512 << 10;

/// How much a search without a table may keep of states that it has met, in bytes. Where a pattern fills it again and again, the search
/// falls back to walking all states at once, so keeping more only makes the waste larger.
const MET_BYTES: usize = 512 << 10;

/// How many places of a pattern, times bytes of text, a search without a table visits at worst for one unit; a visit
/// takes about 8 ns, and no search can be stopped half-way.
const VISITS_PER_UNIT: u64 = 64;

/// A pattern, ready to search with.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// The pattern as a table, where it fits. It gives up at the first letter that it cannot judge, which only one
    /// beyond ASCII beside `\b` is.
    table: Option<dense::DFA<Vec<u32>>>,
    /// In how many places at once a search can be.
    places: u64,
}

impl Pattern {
    /// Compiles the pattern that an expression names as a literal.
    ///
    /// # Errors
    /// What is wrong with it, on one line.
    pub(super) fn compile(pattern: &str) -> Result<Self, String> {
        Ok(Self { table: table(pattern), ..Self::bounded(pattern, MAX_REGEX_BYTES)? })
    }

    fn bounded(pattern: &str, size_bytes: usize) -> Result<Self, String> {
        let regex = RegexBuilder::new(pattern).size_limit(size_bytes).dfa_size_limit(MET_BYTES).build();
        let regex = regex.map_err(|e| {
            let why = e.to_string();
            why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
        })?;
        let places = regex_syntax::parse(pattern).map_or(u64::MAX, |hir| places(&hir));
        Ok(Self { regex, table: None, places })
    }

    /// Whether `text` matches, somewhere.
    pub(super) fn search<'a>(&self, text: &str, meter: &mut Meter) -> Result<bool, Fault<'a>> {
        meter.bytes(text.len())?;
        let found = self.table.as_ref().map(|table| table.try_search_fwd(&Input::new(text).earliest(true)));
        if let Some(Ok(found)) = found {
            return Ok(found.is_some());
        }
        meter.spend((text.len() as u64).saturating_mul(self.places) / VISITS_PER_UNIT)?;
        let hit = self.regex.is_match(text);
        meter.look_again()?;
        Ok(hit)
    }
}

/// The pattern as a table; nothing where it is too large.
fn table(pattern: &str) -> Option<dense::DFA<Vec<u32>>> {
    let bounds = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .unicode_word_boundary(true)
        .dfa_size_limit(Some(MAX_TABLE_BYTES))
        .determinize_size_limit(Some(MAX_TABLE_BYTES));
    let steps = thompson::Config::new().nfa_size_limit(Some(MAX_REGEX_BYTES));
    dense::Builder::new().configure(bounds).thompson(steps).build(pattern).ok()
}

/// In how many places of a pattern a search can be at once, at most.
fn places(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Literal(text) => text.0.len() as u64,
        HirKind::Class(_) | HirKind::Look(_) => 1,
        HirKind::Repetition(it) => places(&it.sub).saturating_mul(u64::from(it.max.unwrap_or(it.min).max(1))),
        HirKind::Capture(it) => places(&it.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => all.iter().map(places).fold(0, u64::saturating_add),
    }
}

/// A pattern that was made while evaluating, or what is wrong with it.
type Made = Result<Arc<Pattern>, String>;

/// Patterns that are made while evaluating; the last few are kept.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    kept: Mutex<Vec<(String, Made)>>,
}

impl Patterns {
    /// The pattern, compiled now or kept.
    pub(super) fn get<'a>(&self, pattern: &str, meter: &mut Meter) -> Result<Arc<Pattern>, Fault<'a>> {
        if pattern.len() > MAX_MADE_PATTERN_BYTES {
            return Err(Fault::Told(format!(
                "matches(): a pattern that is not a literal may have {MAX_MADE_PATTERN_BYTES} bytes, got {}",
                pattern.len()
            )));
        }
        meter.spend(MADE_COST)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(text, _)| text == pattern).map(|(_, found)| found.clone());
        let found = found.unwrap_or_else(|| {
            let made = Pattern::bounded(pattern, MAX_MADE_BYTES).map(Arc::new);
            if kept.len() >= KEPT {
                kept.drain(..1);
            }
            kept.push((pattern.to_owned(), made.clone()));
            made
        });
        found.map_err(|why| Fault::Told(format!("matches(): pattern \"{}\": {why}", shown(pattern))))
    }
}
