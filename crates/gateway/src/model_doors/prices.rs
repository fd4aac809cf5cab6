//! What model calls of agents cost: the prices of the door to the vendor that a provider asks. Pure.

use std::collections::BTreeMap;

use pintle_domain::llm::Usage;
use pintle_doors::Vendor;
use pintle_doors::spending::{NANOS_IN_MILLI, SpendingBudget};
use pintle_doors::tokens::Tokens;
use pintle_host::config::{Config, ModelDoorConfig, ProviderConfigKind};
use url::Url;

use super::budget;

/// Billionths of a dollar in a dollar.
const NANOS_IN_DOLLAR: u64 = 1000 * NANOS_IN_MILLI;

/// The prices of models, by the providers that serve them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelPrices(BTreeMap<String, SpendingBudget>);

impl ModelPrices {
    /// Those that `config` knows.
    pub(crate) fn of(config: &Config) -> Self {
        let doors = &config.model_doors;
        let priced = config.providers.iter().filter_map(|(name, provider)| {
            let vendor = vendor_of(name, &provider.kind, doors)?;
            Some((name.clone(), budget(&doors.get(vendor.name())?.budget)))
        });
        Self(priced.collect())
    }

    /// What a call of `model` cost, in billionths of a dollar, where its price is known. How much of what it read came from
    /// a cache is not kept with a turn: all of it counts as read anew.
    pub(crate) fn cost(&self, model: &str, usage: Usage) -> Option<u64> {
        let (provider, name) = model.split_once('/')?;
        let price = self.0.get(provider)?.price(name)?;
        Some(price.of(Tokens { read: usage.prompt_tokens, cached: 0, written: usage.completion_tokens }))
    }
}

/// An amount in dollars with all its digits.
pub(crate) fn usd(nanos: u64) -> String {
    format!("{}.{:09}", nanos / NANOS_IN_DOLLAR, nanos % NANOS_IN_DOLLAR)
}

/// The vendor that a provider asks: the one at its address. A file of replies stands for the vendor that it is called after.
fn vendor_of(name: &str, kind: &ProviderConfigKind, doors: &BTreeMap<String, ModelDoorConfig>) -> Option<Vendor> {
    match kind {
        ProviderConfigKind::Server { base_url: Some(url), .. } => vendor_at(url, doors),
        ProviderConfigKind::Server { wire, base_url: None, .. } => Vendor::named(wire.word()),
        ProviderConfigKind::Scripted { .. } => Vendor::named(name),
    }
}

/// The vendor whose door leads to the server of `url`.
fn vendor_at(url: &Url, doors: &BTreeMap<String, ModelDoorConfig>) -> Option<Vendor> {
    Vendor::ALL.into_iter().find(|vendor| {
        let said = doors.get(vendor.name()).and_then(|door| door.base_url.as_deref());
        let own = Url::parse(said.unwrap_or(vendor.address()));
        own.is_ok_and(|own| {
            (own.host_str(), own.port_or_known_default()) == (url.host_str(), url.port_or_known_default())
        })
    })
}

#[cfg(test)]
mod tests {
    use pintle_doors::spending::Price;

    use super::*;

    fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
        Usage { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost_where_there_is_a_price() {
        // $1.25 and $10 for a million.
        let price = Price { read_milli: 1250, cached_milli: 125, written_milli: 10_000 };
        let budget = SpendingBudget { prices: [("gpt-5*".to_owned(), price)].into(), ..SpendingBudget::default() };
        let prices = ModelPrices([("openai".to_owned(), budget)].into());
        for (model, expected) in [
            ("openai/gpt-5-mini", Some("0.001290000")),
            ("openai/other", None),
            ("local/gpt-5-mini", None),
            ("gpt-5-mini", None),
            ("", None),
        ] {
            assert_eq!(prices.cost(model, usage(1000, 4)).map(usd).as_deref(), expected, "{model}");
        }
        assert_eq!(usd(12_000_000_001), "12.000000001");
    }

    #[test]
    fn a_provider_asks_the_vendor_at_its_address() {
        let elsewhere =
            ModelDoorConfig { base_url: Some("https://llm.example:8443/v1".into()), ..ModelDoorConfig::default() };
        let doors: BTreeMap<String, ModelDoorConfig> = [("openai".to_owned(), elsewhere)].into();
        for (address, with_door, without) in [
            ("https://llm.example:8443/other", Some(Vendor::OpenAi), None),
            ("https://llm.example/v1", None, None),
            ("https://api.openai.com/v1", None, Some(Vendor::OpenAi)),
            ("https://api.anthropic.com", Some(Vendor::Anthropic), Some(Vendor::Anthropic)),
            ("http://127.0.0.1:11434/v1", None, None),
        ] {
            let url = Url::parse(address).unwrap();
            assert_eq!((vendor_at(&url, &doors), vendor_at(&url, &BTreeMap::new())), (with_door, without), "{address}");
        }
        let scripted = ProviderConfigKind::Scripted { script: "replies.json".into() };
        let named = |name: &str| vendor_of(name, &scripted, &doors);
        assert_eq!((named("openai"), named("scripted")), (Some(Vendor::OpenAi), None));
    }
}
