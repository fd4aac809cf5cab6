//! `pintle hooks add FILE`: records become rules, all of them or none.

use std::collections::BTreeSet;

use clap::Args;
use domain::json::{Value, json};
use domain::rule::HookScope;
use rules::admin::{Caller, CreatedRule, RuleAdmin};
use rules::builtin::starter;

use super::super::{Global, terminal};
use super::stored::{all, is_usage, json, refused, text, warn, with_admin};
use crate::clean::clean;
use crate::error::CliError;
use crate::operator;
use host::rule_files::RecordsFile;

/// Flags of `hooks add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// A file with records: a JSON object or array; in TOML one record, or one [[hook]] for each; `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "starter", conflicts_with = "starter")]
    file: Option<String>,
    /// Add the starter guards instead; those that are there already stay as they are
    #[arg(long)]
    starter: bool,
    /// Print the ids and the warnings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &AddArgs) -> Result<u8, CliError> {
    operator::require()?;
    let read = args.file.as_deref().map(RecordsFile::read).transpose()?;
    let created = with_admin(global, async |rule_admin, by| match &read {
        Some(records) => create(rule_admin, by, records).await,
        None => add_starters(rule_admin, by).await,
    })?;
    let warnings: Vec<String> = created.iter().flat_map(|created| created.warnings.clone()).collect();
    if args.json {
        let ids: Vec<&str> = created.iter().map(|created| created.id.as_str()).collect();
        terminal::say(&json(&json!({"hookIds": ids, "warnings": warnings}))?)?;
        return Ok(0);
    }
    warn(&warnings);
    terminal::say(&created.iter().map(|created| format!("{}\n", created.id)).collect::<String>())?;
    Ok(0)
}

/// Creates what a file holds.
async fn create(rule_admin: &RuleAdmin, by: &Caller, records: &RecordsFile) -> Result<Vec<CreatedRule>, CliError> {
    rule_admin.create_all(by, records.all()).await.map_err(|why| {
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

/// Creates those starter guards that are not there.
async fn add_starters(rule_admin: &RuleAdmin, by: &Caller) -> Result<Vec<CreatedRule>, CliError> {
    let known = all(rule_admin, by).await?;
    let known: BTreeSet<&str> = known.iter().map(|hook| text(hook, "name")).collect();
    let (there, missing): (Vec<Value>, Vec<Value>) =
        starter(HookScope::Tenant).into_iter().partition(|record| known.contains(text(record, "name")));
    for record in &there {
        terminal::note(&format!("`{}` is there already", clean(text(record, "name"))));
    }
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    rule_admin.create_all(by, &missing).await.map_err(refused)
}
