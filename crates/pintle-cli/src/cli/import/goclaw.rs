//! `pintle import goclaw`: hooks of a GoClaw database, in either of its layouts, and the quality gates from before.

use clap::Args;
use jiff::Timestamp;
use pintle_domain::json::json;
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RuleChange};
use pintle_egress::Egress;

use super::super::audit::failed;
use crate::clean::clean;
use crate::cli::{Global, terminal};
use crate::error::{CliError, FAILED};
use crate::operator;
use pintle_host::KeyringVault;
use pintle_host::host::load;
use pintle_host::host_rules::{RuleEnvironment, edition, keyring};

mod gates;
mod people;
mod plan;
mod source;

use people::People;
use plan::{Host, Plan, Remark, plan};
use source::Source;

/// Who does this, in the change log.
const ACTOR: &str = "import:goclaw";

/// Flags of `import goclaw`.
#[derive(Debug, Args)]
pub struct GoclawArgs {
    /// A database of GoClaw (a file, sqlite://FILE or postgres://USER:PASSWORD@HOST/DATABASE), or an export as JSON
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &GoclawArgs) -> Result<u8, CliError> {
    if !args.dry_run {
        operator::require()?;
    }
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let source = Source::read(&args.source, &env.cwd)?;
    let edition = edition(&loaded.config, &env)?;
    let sealed = KeyringVault(keyring(&loaded.config, &env, edition)?.into());
    // What is imported is sealed with a key of the host, as every change of a rule.
    let store = RuleEnvironment::of(&loaded.config, &env)?.open_store(&loaded.config)?;
    let rules = store.rules().map_err(failed)?;
    let now = Timestamp::now();
    let agents = loaded.config.agents.keys().cloned().collect();
    let mut people = People::new(&source, edition, (rules.tenants.clone(), agents), now);
    let egress = Egress::new(loaded.config.agent_hooks.http_allow.clone());
    let host = Host { config: &loaded.config, edition, sealed: &sealed, egress: &egress, rules: &rules, now };
    let plan = plan(&source, &mut people, &host);
    if !args.dry_run {
        if let Some(why) = store.other_key().map_err(failed)? {
            return Err(CliError::failed(why));
        }
        for tenant in &people.fresh {
            store.add_tenant(tenant).map_err(failed)?;
        }
        let changes: Vec<_> = plan.hooks.iter().cloned().map(|hook| RuleChange::Create(Box::new(hook))).collect();
        if !changes.is_empty() {
            store.change(changes, &Actor { name: ACTOR.to_owned(), at: now, reason: String::new() }).map_err(failed)?;
        }
    }
    match args.json {
        true => terminal::say(&as_json(&plan, args.dry_run)?)?,
        false => terminal::tell(&plain(&plan, args.dry_run))?,
    }
    Ok(if plan.left.is_empty() { 0 } else { FAILED })
}

fn as_json(plan: &Plan, dry_run: bool) -> Result<String, CliError> {
    let shown = |hook: &Rule| {
        json!({
            "id": hook.id, "name": hook.name, "event": hook.event.name(), "handlerType": hook.handler_type,
            "scope": hook.scope, "tenantId": hook.tenant_id, "enabled": hook.enabled,
        })
    };
    let value = json!({
        "dryRun": dry_run,
        "imported": plan.hooks.iter().map(shown).collect::<Vec<_>>(),
        "present": plan.present,
        "left": plan.left,
        "notes": plan.notes,
    });
    let text = serde_json::to_string_pretty(&value).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn plain(plan: &Plan, dry_run: bool) -> String {
    let done = if dry_run { "would be imported" } else { "imported" };
    let mut text = format!("{done}: {}\n", hooks(plan.hooks.len()));
    for hook in &plan.hooks {
        let off = if hook.enabled { "" } else { ", off" };
        text.push_str(&format!(
            "  {}  {} {}, scope {}{off}\n",
            clean(hook.label()),
            hook.event.name(),
            hook.handler_type.word(),
            hook.scope.word(),
        ));
    }
    if !plan.present.is_empty() {
        text.push_str(&format!("already here, and left as they are: {}\n", hooks(plan.present.len())));
    }
    let mut list = |title: &str, remarks: &[Remark]| {
        if !remarks.is_empty() {
            text.push_str(&format!("{title}:\n"));
        }
        for Remark { what, why } in remarks {
            text.push_str(&format!("  {}: {}\n", clean(what), clean(why)));
        }
    };
    list("not imported", &plan.left);
    list("to know", &plan.notes);
    text
}

fn hooks(count: usize) -> String {
    format!("{count} hook{}", if count == 1 { "" } else { "s" })
}
