//! `pintle webhooks`: who is told what happens, and what they were not told yet.

use clap::{Args, Subcommand};
use pintle_domain::json::Value;
use pintle_gateway::{webhook_list, webhook_retry};

use super::audit::failed;
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;
use crate::operator;
use crate::text::counted;
use pintle_host::host::{load, open_store};

/// What can be done with webhooks.
#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List endpoints and undelivered events
    List(ListArgs),
    /// Retry one delivery, or everything for one endpoint, now
    Retry(RetryArgs),
}

/// Flags of `webhooks list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `webhooks retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The id of a delivery or of an endpoint, as `webhooks list` has it
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn run(global: &Global, command: WebhooksCommand) -> Result<u8, CliError> {
    operator::require()?;
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    match command {
        WebhooksCommand::List(ListArgs { json }) => {
            let list = webhook_list(&loaded.config.gateway, &*store).map_err(failed)?;
            let text = if json { pretty(&list)? } else { plain(&list) };
            terminal::say(&text)?;
        }
        WebhooksCommand::Retry(RetryArgs { id }) => {
            let retried = webhook_retry(&*store, &id.to_lowercase()).map_err(failed)?;
            let missing = || CliError::usage(format!("no delivery and no endpoint has the id `{}`", clean(&id)));
            let retried = retried.ok_or_else(|| missing().hint("`pintle webhooks list` shows the ids"))?;
            let number = counted(usize::try_from(retried).unwrap_or(usize::MAX), "webhook");
            terminal::say(&format!("{number} due now; `pintle serve` sends them within a second\n"))?;
        }
    }
    Ok(0)
}

fn pretty(list: &Value) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(list).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn plain(list: &Value) -> String {
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    let rows = |name: &str| list[name].as_array().cloned().unwrap_or_default();
    let mut out = String::new();
    for endpoint in rows("endpoints") {
        let events: Vec<String> = endpoint["events"].as_array().into_iter().flatten().map(text).collect();
        let stopped = match endpoint["stoppedAt"].as_str() {
            Some(since) => format!("; stopped since {}: it answered 410", clean(since)),
            None => String::new(),
        };
        out.push_str(&format!(
            "{}  {}\n  {}\n  {} waiting, {} given up{stopped}\n",
            text(&endpoint["id"]),
            text(&endpoint["url"]),
            events.join(", "),
            endpoint["waiting"],
            endpoint["failed"],
        ));
    }
    if out.is_empty() {
        out.push_str("no webhooks are configured; add `[[gateway.webhooks]]` to your configuration\n");
    }
    for delivery in rows("deliveries") {
        let when = match (delivery["nextAt"].as_str(), delivery["failedAt"].as_str()) {
            (Some(at), _) => format!("due {}", clean(at)),
            (None, Some(at)) => format!("given up {}", clean(at)),
            (None, None) => String::new(),
        };
        let why = delivery["error"].as_str().map(|why| format!(": {}", clean(why))).unwrap_or_default();
        let (id, event) = (text(&delivery["id"]), text(&delivery["event"]));
        out.push_str(&format!("{id}  {event}  tried {} times, {when}{why}\n", delivery["attempts"]));
    }
    out
}
