//! Providers that nobody configured: keys in the environment, or a server on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pintle_domain::json::Value;
use pintle_providers::capabilities::Overrides;
use url::Url;

use super::places::Env;
use super::{Config, NamedRef, ProviderConfig, ProviderConfigKind};
use crate::error::HostError;
use pintle_providers::{ToolMode, WireKind};

/// Asks whether an Ollama answers at an address, and for the names of the models that it has.
pub type Probe<'a> = dyn Fn(SocketAddr) -> Option<Vec<String>> + 'a;

/// Where Ollama listens unless told otherwise.
const OLLAMA: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 11434);

/// How long a server on this machine may take to say what it has: nobody waits for one that is not there.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// The longest answer that is read; a list of a thousand models is shorter.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// A service whose key is in the environment.
struct Known {
    name: &'static str,
    key: &'static str,
    base_url: &'static str,
    model: &'static str,
    wire: WireKind,
}

/// In the order in which they are looked for. The models are small ones that call tools well.
const KNOWN: [Known; 2] = [
    Known {
        name: "openai",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        model: "gpt-5-mini",
        wire: WireKind::OpenAi,
    },
    Known {
        name: "anthropic",
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        model: "claude-haiku-4-5",
        wire: WireKind::Anthropic,
    },
];

/// Adds the first provider that the surroundings offer, if any, and the model that it is used with.
///
/// # Errors
/// The address in the environment is not a URL: its key must not go anywhere else.
pub(super) fn add(config: &mut Config, env: &Env, probe: Option<&Probe<'_>>) -> Result<(), HostError> {
    let found = match KNOWN.iter().find(|known| env.text(known.key).is_some()) {
        Some(known) => Some(known.provider(env)?),
        None => probe.and_then(ollama),
    };
    let Some((name, provider, model)) = found else { return Ok(()) };
    config.providers.insert(name.to_owned(), provider);
    let text = format!("{name}/{model}");
    config.default_model.get_or_insert(NamedRef { text, place: None, path: Vec::new() });
    Ok(())
}

impl Known {
    fn provider(&self, env: &Env) -> Result<(&'static str, ProviderConfig, String), HostError> {
        let base_url = match env.text(self.base_url).map(Url::parse) {
            None => None,
            Some(Ok(url)) if matches!(url.scheme(), "http" | "https") => Some(url),
            Some(_) => {
                let message = format!("{}: expected an http or https URL", self.base_url);
                return Err(HostError::usage(message).hint(format!("correct {}, or unset it", self.base_url)));
            }
        };
        let kind = ProviderConfigKind::Server { wire: self.wire, base_url, tool_mode: ToolMode::Native };
        let provider = ProviderConfig {
            vision: kind.sees(),
            kind,
            api_key_env: Some(self.key.to_owned()),
            takes: Overrides::default(),
        };
        Ok((self.name, provider, self.model.to_owned()))
    }
}

fn ollama(probe: &Probe<'_>) -> Option<(&'static str, ProviderConfig, String)> {
    let model = probe(OLLAMA)?.into_iter().next()?;
    let base_url = Url::parse(&format!("http://{OLLAMA}/v1")).ok();
    let kind = ProviderConfigKind::Server { wire: WireKind::OpenAi, base_url, tool_mode: ToolMode::Native };
    Some((
        "ollama",
        ProviderConfig { vision: kind.sees(), kind, api_key_env: None, takes: Overrides::default() },
        model,
    ))
}

/// Asks the server at `address` for its models, the way Ollama is asked.
pub fn ask_ollama(address: SocketAddr) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT)).ok()?;
    // HTTP 1.0 is answered in one piece that ends with the connection.
    write!(stream, "GET /api/tags HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if head.split(' ').nth(1) != Some("200") {
        return None;
    }
    let body: Value = serde_json::from_str(body).ok()?;
    Some(
        body.get("models")?
            .as_array()?
            .iter()
            .filter_map(|model| Some(model.get("name")?.as_str()?.to_owned()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    fn found(vars: &[(&str, &str)], models: Option<Vec<String>>) -> Option<(String, String)> {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        let mut config = Config::empty("/home".into());
        add(&mut config, &Env { vars, cwd: "/".into() }, Some(&|_| models.clone())).unwrap();
        Some((config.providers.keys().next()?.clone(), config.default_model?.text))
    }

    #[test]
    fn providers_are_looked_for_in_order() {
        let check = |vars: &[(&str, &str)], models: Option<&[&str]>, expected: Option<(&str, &str)>| {
            let models = models.map(|models| models.iter().map(|model| (*model).to_owned()).collect());
            let expected = expected.map(|(name, model)| (name.to_owned(), model.to_owned()));
            assert_eq!(found(vars, models), expected);
        };
        let (openai, anthropic) = (("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"));
        check(&[openai, anthropic], Some(&["m"]), Some(("openai", "openai/gpt-5-mini")));
        check(&[("OPENAI_API_KEY", ""), anthropic], Some(&["m"]), Some(("anthropic", "anthropic/claude-haiku-4-5")));
        check(&[], Some(&["smollm2:135m", "b"]), Some(("ollama", "ollama/smollm2:135m")));
        check(&[], Some(&[]), None);
        check(&[], None, None);
    }

    #[test]
    fn a_key_goes_nowhere_when_its_address_is_no_url() {
        let vars = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "localhost:8000")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.into())).into();
        let mut config = Config::empty("/home".into());
        let said = add(&mut config, &Env { vars, cwd: "/".into() }, None).unwrap_err();
        assert_eq!(
            (said.kind, said.message.as_str()),
            (crate::error::ErrorKind::Usage, "OPENAI_BASE_URL: expected an http or https URL")
        );
        assert!(config.providers.is_empty());
    }

    #[test]
    fn a_server_is_asked_for_its_models() {
        let answer = |answer: &'static str| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let models = ask_ollama(address);
            server.join().unwrap();
            models
        };
        let ok = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"models\":[{\"name\":\"a:1b\"},{}]}";
        assert_eq!(answer(ok), Some(vec!["a:1b".to_owned()]));
        assert_eq!(answer("HTTP/1.0 404 Not Found\r\n\r\n{\"models\":[]}"), None);
        assert_eq!(answer("SSH-2.0-x\r\n"), None);
    }
}
