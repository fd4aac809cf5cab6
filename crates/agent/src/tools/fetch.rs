//! `web_fetch`: the text of one page, behind the egress guard.

mod html;

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::ToolOutput;
use pintle_egress::{Client, Egress, EgressError, Timeouts};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT};
use reqwest::{Method, Response};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::BuiltinTool;
use super::error::ToolError;
use super::read::is_binary;

/// How much of a body is read, in bytes; a page of text is far smaller.
const MAX_BODY: usize = 1024 * 1024;

/// How many redirects are followed; real pages need two or three.
const MAX_REDIRECTS: usize = 5;

/// How long one hop may take to connect, and in all.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(10), total: Duration::from_secs(30) };

/// How much of a failed page is shown, in characters: its message, not its decoration.
const MAX_ERROR_TEXT: usize = 2000;

/// How we introduce ourselves.
const AGENT: &str = concat!("pintle/", env!("CARGO_PKG_VERSION"));

pub(super) struct WebFetch {
    client: Client,
}

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) url: String,
}

impl BuiltinTool for WebFetch {
    type Args = Args;
    const READ_ONLY: bool = false;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "web_fetch",
            "Fetches a web page or text file with GET and returns its text; HTML is reduced to what one would read. \
             Internal addresses cannot be reached.",
            json!({
                "type": "object",
                "properties": {
                    "url": {"type": "string", "minLength": 1, "description": "An http or https URL."},
                },
                "required": ["url"],
                "additionalProperties": false,
            }),
        )
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        tokio::select! {
            result = self.fetch(&args.url) => match result {
                Ok(output) => output,
                Err(reason) => ToolOutput::error(reason),
            },
            () = cancel.cancelled() => ToolOutput::error(ToolError::Cancelled.to_string()),
        }
    }
}

impl WebFetch {
    pub(super) fn new(egress: &Egress) -> Result<Self, EgressError> {
        Ok(Self { client: egress.client(TIMEOUTS)? })
    }

    pub(super) async fn fetch(&self, url: &str) -> Result<ToolOutput, String> {
        let mut at = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            // Each hop passes the whole guard anew.
            let request = self.client.request(Method::GET, &at).map_err(|e| e.to_string())?;
            let request =
                request.header(USER_AGENT, AGENT).header(ACCEPT, "text/html, text/*, application/json, */*;q=0.1");
            let response = request.send().await.map_err(|e| why(&e))?;
            match redirect(&response)? {
                Some(next) => at = next.into(),
                None => return page(response).await,
            }
        }
        Err(format!("more than {MAX_REDIRECTS} redirects; the last one led to {at}"))
    }
}

/// The refusal of the guard, or what else is behind a failed request. The URL stays out of it: the model knows it.
fn why(error: &reqwest::Error) -> String {
    if let Some(refusal) = EgressError::of(error) {
        return refusal.to_string();
    }
    if error.is_timeout() {
        return format!("no answer within {} s", TIMEOUTS.total.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    format!("the request failed: {cause}")
}

/// Where a redirect leads.
fn redirect(response: &Response) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(target) = header(response, LOCATION) else {
        return Err(format!("status {} without a location", response.status().as_u16()));
    };
    let joined =
        response.url().join(&target).map_err(|e| format!("a redirect to `{target}`, which is not a URL: {e}"))?;
    Ok(Some(joined))
}

fn header(response: &Response, name: HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The kind of text that a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Plain,
}

async fn page(response: Response) -> Result<ToolOutput, String> {
    let status = response.status();
    let content_type = header(&response, CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = kind(&content_type)?;
    if let Some(encoding) = header(&response, CONTENT_ENCODING).filter(|e| !e.eq_ignore_ascii_case("identity")) {
        return Err(format!("the body is encoded as `{encoding}`, which was not asked for"));
    }
    let (body, cut) = body(response).await?;
    if is_binary(&body) {
        return Err("the body is binary data, not text".into());
    }
    let text = decode(&body, &content_type);
    let mut text = if kind == Kind::Html { html::readable(&text) } else { text };
    if !status.is_success() {
        let shown: String = text.chars().take(MAX_ERROR_TEXT).collect();
        return Err(format!("status {}\n{shown}", status.as_u16()).trim_end().to_owned());
    }
    if cut {
        text.push_str(&format!("\n[cut: the page is longer than {MAX_BODY} bytes]"));
    }
    Ok(ToolOutput::ok(if text.trim().is_empty() { "[no text]".into() } else { text }))
}

fn kind(content_type: &str) -> Result<Kind, String> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    match essence {
        "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
        // Without a type, the zero byte decides.
        ""
        | "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/x-ndjson"
        | "application/yaml"
        | "application/toml" => Ok(Kind::Plain),
        text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => Ok(Kind::Plain),
        other => Err(format!("the page is `{other}`; only text can be fetched")),
    }
}

/// At most [`MAX_BODY`] bytes, and whether there was more.
async fn body(response: Response) -> Result<(Vec<u8>, bool), String> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|e| why(&e))?;
        let room = MAX_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

fn decode(body: &[u8], content_type: &str) -> String {
    let latin = ["charset=iso-8859-1", "charset=latin1", "charset=windows-1252", "charset=\"iso-8859-1\""];
    if latin.iter().any(|charset| content_type.contains(charset)) {
        return body.iter().map(|byte| char::from(*byte)).collect();
    }
    let text = String::from_utf8_lossy(body);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}
