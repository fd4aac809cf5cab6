//! `pintle hooks add FILE`: records become rules, all of them or none.

use std::collections::BTreeSet;

use clap::{ArgGroup, Args};
use pintle_domain::id::SENTINEL_TENANT;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::HookScope;
use pintle_domain::store::Tenant;
use pintle_rules::admin::{AddOutcome, AddedRule, Caller, RuleAdmin, WhereThere};
use pintle_rules::builtin::starter;

use super::super::identity::{may_seal, tenant_named};
use super::super::{Global, terminal};
use super::stored::{all, is_usage, json, refused, text, warn, with_rules_of};
use crate::clean::clean;
use crate::error::CliError;
use crate::operator;
use pintle_host::blind::BlindMatcher;
use pintle_host::host::load;
use pintle_host::rule_files::RecordsFile;

/// Flags of `hooks add`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("records").required(true).args(["file", "starter"])))]
pub struct AddArgs {
    /// A file with records: a JSON object or array; in TOML one record, or one [[hook]] for each; `-` for standard input
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// Add the starter guards instead; those that are there already stay as they are, unless --update restores them
    #[arg(long)]
    starter: bool,
    /// The tenant whose agents they guard [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Write a record over the hook that has its scope, event and name already, where they differ
    #[arg(long)]
    update: bool,
    /// Print the ids, what was done and the warnings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &AddArgs) -> Result<u8, CliError> {
    operator::require()?;
    may_seal(global)?;
    let read = args.file.as_deref().map(RecordsFile::read).transpose()?;
    let where_there = if args.update { WhereThere::Update } else { WhereThere::Refuse };
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let config = loaded.config.clone();
    let (mut added, owner) = with_rules_of(env, loaded, async |host_rules, by| {
        let rules = host_rules.rule_cache().rules();
        let tenant = tenant_named(&rules.tenants, args.tenant.as_deref())?;
        let by = Caller { tenant: tenant.id.clone(), ..by.clone() };
        let added = match &read {
            Some(records) => add(host_rules.rule_admin(), &by, records, where_there).await?,
            None => add_starters(host_rules.rule_admin(), &by, where_there).await?,
        };
        Ok((added, Owner::of(&rules.tenants, tenant)))
    })?;
    for one in &mut added {
        one.warnings.extend(BlindMatcher::of_rule(&config, one.event, &one.matcher).map(|blind| blind.sentence()));
    }
    let warnings: Vec<String> = added.iter().flat_map(|added| added.warnings.clone()).collect();
    if args.json {
        let ids: Vec<&str> = added.iter().map(|added| added.id.as_str()).collect();
        let hooks: Vec<Value> = added.iter().map(told).collect();
        terminal::say(&json(&json!({"hookIds": ids, "hooks": hooks, "warnings": warnings}))?)?;
        return Ok(0);
    }
    warn(&warnings);
    // Ids alone on stdout, for whoever reads them with a program; which hook each is, for people.
    added.iter().for_each(|added| terminal::note(&line(added)));
    if let Some(said) = owner.sentence().filter(|_| added.iter().any(|added| added.scope != HookScope::Global)) {
        terminal::note(&said);
    }
    terminal::say(&added.iter().map(|added| format!("{}\n", added.id)).collect::<String>())?;
    Ok(0)
}

/// Whom new rules are for.
struct Owner {
    slug: String,
    /// The slugs of the other tenants.
    others: Vec<String>,
}

impl Owner {
    /// `tenants` are those of the store: the owner of global rules first.
    fn of(tenants: &[Tenant], own: &Tenant) -> Self {
        let others = tenants.iter().skip(1).filter(|tenant| tenant.id != own.id).map(|tenant| tenant.slug.clone());
        Self { slug: own.slug.clone(), others: others.collect() }
    }

    /// Whom they do not guard, where there is anybody else.
    fn sentence(&self) -> Option<String> {
        let (slug, others) = (clean(&self.slug), clean(&self.others.join(", ")));
        let flag = match self.others.as_slice() {
            [one] => clean(one),
            [] | [..] => "SLUG".to_owned(),
        };
        (!self.others.is_empty()).then(|| {
            format!(
                "rules of scope tenant guard the tenant {slug} only, not {others}: `--tenant {flag}` adds them there"
            )
        })
    }
}

fn told(added: &AddedRule) -> Value {
    let AddedRule { id, name, event, outcome, .. } = added;
    json!({"hookId": id, "name": name, "event": event.name(), "outcome": outcome.word()})
}

/// What was done with a record.
fn line(added: &AddedRule) -> String {
    let name = if added.name.is_empty() { "a hook without a name".to_owned() } else { clean(&added.name) };
    let what = match added.outcome {
        AddOutcome::Created => "is added",
        AddOutcome::Same => "is already there, unchanged",
        AddOutcome::Updated => "is changed",
    };
    format!("{name} at {} {what}", added.event.name())
}

/// Adds what a file holds.
async fn add(
    rule_admin: &RuleAdmin,
    by: &Caller,
    records: &RecordsFile,
    where_there: WhereThere,
) -> Result<Vec<AddedRule>, CliError> {
    rule_admin.add_all(by, records.all(), where_there).await.map_err(|why| {
        let (index, why) = which(refused(why));
        if is_usage(&why) { CliError { message: records.located(index, &why.message), ..why } } else { why }
    })
}

/// The record that a message names at its beginning, from 0.
fn which(error: CliError) -> (Option<usize>, CliError) {
    let rest = error.message.strip_prefix("record ").unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let index = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    (index, error)
}

/// Creates those starter guards that are not there, and restores the others where that is wanted. One that is everybody's
/// stays as it is.
async fn add_starters(
    rule_admin: &RuleAdmin,
    by: &Caller,
    where_there: WhereThere,
) -> Result<Vec<AddedRule>, CliError> {
    let known = all(rule_admin, by).await?;
    let kept = match where_there {
        WhereThere::Refuse => vec![by.tenant.as_str(), SENTINEL_TENANT],
        WhereThere::Update => vec![SENTINEL_TENANT],
    };
    let own = |hook: &&Value| kept.contains(&text(hook, "tenant_id"));
    let known: BTreeSet<&str> = known.iter().filter(own).map(|hook| text(hook, "name")).collect();
    let (there, wanted): (Vec<Value>, Vec<Value>) =
        starter(HookScope::Tenant).into_iter().partition(|record| known.contains(text(record, "name")));
    for record in &there {
        terminal::note(&format!("`{}` is there already", clean(text(record, "name"))));
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    rule_admin.add_all(by, &wanted, where_there).await.map_err(refused)
}
