//! What a server says of where its clients sign in (OAuth), said of the door: clients ask at the address that they know, and
//! believe what is said of that address alone. Pure.

use std::ops::Range;

use pintle_domain::json::{self, Object, Value};
use pintle_egress::{Reach, classify};
use url::{Host, Url, form_urlencoded};

use super::PATH;

/// Where a resource says who lets its clients in. Source: RFC 9728, 3.1.
pub(super) const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Where whoever lets clients in says how. Source: RFC 8414, 3.1.
pub(super) const ISSUER: &str = "/.well-known/oauth-authorization-server";

/// The same in the words of OpenID. Source: OpenID Connect Discovery 1.0, 4.
pub(super) const OPENID: &str = "/.well-known/openid-configuration";

/// Where the door sends people on who are to sign in.
pub(super) const AUTHORIZE: &str = "/oauth/authorize";

/// Where it hands on what clients ask for tokens.
pub(super) const TOKEN: &str = "/oauth/token";

/// Where it hands on what clients say before people sign in. Source: RFC 9126.
pub(super) const PUSHED: &str = "/oauth/par";

/// The member of a challenge that says where the metadata of a resource are. Source: RFC 9728, 5.1.
const NAMED: &str = "resource_metadata";

/// What is true of the server's side alone, and would count before what stands beside it, or be compared with it.
const NOT_OF_DOOR: [&str; 3] =
    ["signed_metadata", "mtls_endpoint_aliases", "authorization_response_iss_parameter_supported"];

/// Where the metadata `well_known` of `of` may lie, the likeliest place first.
pub(super) fn places(of: &Url, well_known: &str) -> Vec<Url> {
    let path = of.path().trim_end_matches('/');
    let mut paths = vec![format!("{well_known}{path}")];
    match well_known {
        OPENID => paths.push(format!("{path}{OPENID}")),
        RESOURCE => paths.push(RESOURCE.to_owned()),
        _ => {}
    }
    paths.dedup();
    let at = |path: String| {
        let mut place = of.clone();
        place.set_query(None);
        place.set_fragment(None);
        place.set_path(&path);
        place
    };
    paths.into_iter().map(at).collect()
}

/// Whether what `server` names may be asked: nothing is said in the clear that the server itself is not told so, and no
/// server that stands elsewhere leads to an address of this machine or of its network.
fn may_be_asked(named: &Url, server: &Url) -> bool {
    let is_told = named.scheme() == "https" || (named.scheme() == "http" && server.scheme() == "http");
    is_told && (!is_near(named) || is_near(server))
}

/// Whether `url` says by itself that it is not open to everybody.
fn is_near(url: &Url) -> bool {
    let is_closed = |ip| classify(ip) != Reach::Public;
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(ip)) => is_closed(ip.into()),
        Some(Host::Ipv6(ip)) => is_closed(ip.into()),
        None => true,
    }
}

fn members(text: &str) -> Result<Object, String> {
    let value = json::parse_alike(text).map_err(|_| "they are no JSON that everybody reads the same")?;
    value.as_object().cloned().ok_or_else(|| "they are no JSON object".to_owned())
}

fn address(members: &Object, name: &str, server: &Url) -> Result<Option<Url>, String> {
    let Some(value) = members.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let url = value.as_str().and_then(|text| Url::parse(text).ok()).filter(|url| may_be_asked(url, server));
    url.map(Some).ok_or_else(|| format!("`{name}` is not an address that may be asked"))
}

/// The metadata of a server.
#[derive(Debug)]
pub(super) struct ResourceMetadata {
    members: Object,
    /// What it calls itself.
    pub(super) resource: String,
    /// Who lets its clients in: the first one that it names.
    pub(super) issuer: Option<Url>,
}

impl ResourceMetadata {
    /// Reads those of `server`.
    ///
    /// # Errors
    /// They are none, or are about something else: who signs in there would get the keys of that.
    pub(super) fn read(text: &str, server: &Url) -> Result<Self, String> {
        let members = members(text)?;
        let resource = members.get("resource").and_then(Value::as_str).unwrap_or_default().to_owned();
        let url = Url::parse(&resource).map_err(|_| "`resource` is not an address")?;
        let is_part = |whole: &str| {
            server.path().strip_prefix(whole).is_some_and(|rest| matches!(rest.chars().next(), None | Some('/')))
        };
        if url.origin() != server.origin() || !is_part(url.path().trim_end_matches('/')) {
            return Err("`resource` is not the server that they were asked of".into());
        }
        let named = members.get("authorization_servers").and_then(Value::as_array).and_then(|list| list.first());
        let issuer = match named {
            None => None,
            Some(named) => {
                let url = named.as_str().and_then(|text| Url::parse(text).ok()).filter(|url| may_be_asked(url, server));
                Some(url.ok_or("`authorization_servers` names no address that may be asked")?)
            }
        };
        Ok(Self { members, resource, issuer })
    }

    /// The same of the door at `own`.
    pub(super) fn of_door(mut self, own: &str) -> String {
        self.members.insert("resource".into(), format!("{own}{PATH}").into());
        if self.issuer.is_some() {
            self.members.insert("authorization_servers".into(), Value::from(vec![Value::from(own)]));
        }
        NOT_OF_DOOR.iter().for_each(|name| drop(self.members.shift_remove(name)));
        Value::Object(self.members).to_string()
    }
}

/// The metadata of whoever lets clients in.
#[derive(Debug)]
pub(super) struct IssuerMetadata {
    members: Object,
    /// Where people sign in.
    pub(super) authorize: Option<Url>,
    /// Where clients ask for tokens.
    pub(super) token: Option<Url>,
    /// Where clients say something before people sign in.
    pub(super) pushed: Option<Url>,
}

impl IssuerMetadata {
    /// Reads those of `issuer`, which `server` named.
    ///
    /// # Errors
    /// They are none, or are those of somebody else.
    pub(super) fn read(text: &str, (issuer, server): (&Url, &Url)) -> Result<Self, String> {
        let members = members(text)?;
        let says = members.get("issuer").and_then(Value::as_str).unwrap_or_default();
        if says.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err(format!("`issuer` is not {issuer}, which they were asked of"));
        }
        // To those that the door does not stand in for, clients say their secrets by themselves.
        for name in members.keys().filter(|name| name.ends_with("_endpoint")) {
            address(&members, name, server)?;
        }
        let authorize = address(&members, "authorization_endpoint", server)?;
        let token = address(&members, "token_endpoint", server)?;
        let pushed = address(&members, "pushed_authorization_request_endpoint", server)?;
        Ok(Self { members, authorize, token, pushed })
    }

    /// The same of the door at `own`: what a client says there of the door is said of the server.
    pub(super) fn of_door(mut self, own: &str) -> String {
        self.members.insert("issuer".into(), own.into());
        for (name, there, here) in [
            ("authorization_endpoint", &self.authorize, AUTHORIZE),
            ("token_endpoint", &self.token, TOKEN),
            ("pushed_authorization_request_endpoint", &self.pushed, PUSHED),
        ] {
            if there.is_some() {
                self.members.insert(name.into(), format!("{own}{here}").into());
            }
        }
        NOT_OF_DOOR.iter().for_each(|name| drop(self.members.shift_remove(name)));
        Value::Object(self.members).to_string()
    }
}

/// The form or query `said`, with the server's own name `resource` where it names the door at `own`.
pub(super) fn for_server(said: &str, own: &str, resource: &str) -> String {
    let below = format!("{own}/");
    let mut written = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(said.as_bytes()) {
        let is_door = name == "resource" && (value == own || value.starts_with(&below));
        written.append_pair(&name, if is_door { resource } else { &value });
    }
    written.finish()
}

/// Where the challenge `says` has its metadata, if it names them.
pub(super) fn named_in(says: &str, server: &Url) -> Option<Url> {
    let span = spans(says).into_iter().next()?;
    let value = says.get(span)?.trim_matches('"');
    Url::parse(value).ok().filter(|url| may_be_asked(url, server))
}

/// The challenge `says`, where the metadata of the door at `own` are named wherever the server's are.
pub(super) fn challenge(says: &str, own: &str) -> String {
    let (mut made, mut done) = (String::new(), 0);
    for span in spans(says) {
        made.push_str(&says[done..span.start]);
        made.push_str(&format!("\"{own}{RESOURCE}{PATH}\""));
        done = span.end;
    }
    made.push_str(&says[done..]);
    made
}

/// Where in a challenge addresses of metadata stand, with their quotes.
fn spans(says: &str) -> Vec<Range<usize>> {
    let (mut found, mut quoted, mut before, mut past) = (Vec::new(), false, b' ', 0);
    for (at, byte) in says.bytes().enumerate() {
        if at < past {
            continue;
        }
        if !quoted
            && matches!(before, b' ' | b',' | b'\t')
            && says.get(at..at + NAMED.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAMED))
            && let Some(span) = value_behind(says, at + NAMED.len())
        {
            (past, before) = (span.end, b'"');
            found.push(span);
            continue;
        }
        quoted ^= byte == b'"' && before != b'\\';
        before = byte;
    }
    found
}

/// Where the value stands of a member whose name ends at `end`; nothing where that is no name.
fn value_behind(says: &str, end: usize) -> Option<Range<usize>> {
    let value = says.get(end..)?.trim_start().strip_prefix('=')?.trim_start();
    let length = match value.strip_prefix('"') {
        // What does not end is all that is left.
        Some(inner) => inner.find('"').map_or(value.len(), |end| end + 2),
        None => value.find([',', ' ', '\t']).unwrap_or(value.len()),
    };
    let start = says.len() - value.len();
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::json;

    const OWN: &str = "http://127.0.0.1:8788";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_lie_where_clients_look() {
        let shown = |of: &str, well_known: &str| {
            places(&url(of), well_known).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            shown("https://s.example/a/mcp?x=1", RESOURCE),
            [
                "https://s.example/.well-known/oauth-protected-resource/a/mcp",
                "https://s.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            shown("https://s.example/t/", OPENID),
            [
                "https://s.example/.well-known/openid-configuration/t",
                "https://s.example/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(shown("https://s.example", OPENID), ["https://s.example/.well-known/openid-configuration"]);
        assert_eq!(shown("https://s.example", ISSUER), ["https://s.example/.well-known/oauth-authorization-server"]);
    }

    #[test]
    fn a_server_is_said_to_be_the_door() {
        let server = url("https://s.example/a/mcp");
        let text = json!({
            "resource": "https://s.example/a/mcp", "authorization_servers": ["https://i.example/t"], "signed_metadata": "x",
            "scopes_supported": ["read"],
        });
        let read = ResourceMetadata::read(&text.to_string(), &server).unwrap();
        assert_eq!(read.issuer, Some(url("https://i.example/t")));
        let expected = json!({
            "resource": "http://127.0.0.1:8788/mcp", "authorization_servers": [OWN], "scopes_supported": ["read"],
        });
        assert_eq!(json::parse(&read.of_door(OWN)).unwrap(), expected);
        for (resource, issuer, is_read) in [
            ("https://s.example", "https://i.example", true),
            ("https://s.example/a", "https://i.example", true),
            ("https://s.example/a/mc", "https://i.example", false),
            ("https://bank.example/a/mcp", "https://i.example", false),
            ("https://s.example/a/mcp", "http://i.example", false),
            ("https://s.example/a/mcp", "https://127.0.0.1:9", false),
            ("", "https://i.example", false),
        ] {
            let text = json!({"resource": resource, "authorization_servers": [issuer]}).to_string();
            assert_eq!(ResourceMetadata::read(&text, &server).is_ok(), is_read, "{resource} {issuer}");
        }
    }

    #[test]
    fn whoever_lets_clients_in_is_said_to_be_the_door() {
        let (issuer, server) = (url("https://i.example/t"), url("https://s.example/mcp"));
        let text = json!({
            "issuer": "https://i.example/t", "authorization_endpoint": "https://i.example/a",
            "token_endpoint": "https://i.example/b", "registration_endpoint": "https://i.example/c",
            "authorization_response_iss_parameter_supported": true,
        });
        let read = IssuerMetadata::read(&text.to_string(), (&issuer, &server)).unwrap();
        assert_eq!((read.authorize.clone(), read.pushed.clone()), (Some(url("https://i.example/a")), None));
        let expected = json!({
            "issuer": OWN, "authorization_endpoint": "http://127.0.0.1:8788/oauth/authorize",
            "token_endpoint": "http://127.0.0.1:8788/oauth/token", "registration_endpoint": "https://i.example/c",
        });
        assert_eq!(json::parse(&read.of_door(OWN)).unwrap(), expected);
        let other = url("https://other.example");
        assert!(IssuerMetadata::read(&text.to_string(), (&other, &server)).is_err());
        for (name, place, is_read) in [
            ("token_endpoint", json!("https://i.example/x"), true),
            ("token_endpoint", json!("http://i.example/x"), false),
            ("token_endpoint", json!("https://10.0.0.1/x"), false),
            ("revocation_endpoint", json!("http://i.example/x"), false),
            ("revocation_endpoint", json!(null), true),
            ("registration_endpoint", json!("https://localhost./x"), false),
        ] {
            let mut text = json!({"issuer": "https://i.example/t"});
            text.as_object_mut().unwrap().insert(name.into(), place);
            assert_eq!(IssuerMetadata::read(&text.to_string(), (&issuer, &server)).is_ok(), is_read, "{text}");
        }
    }

    #[test]
    fn a_server_elsewhere_leads_to_no_address_of_this_machine_or_its_network() {
        for (named, server, may) in [
            ("http://169.254.169.254/latest", "http://s.example", false),
            ("https://127.0.0.1/m", "https://s.example", false),
            ("https://[::1]/m", "https://s.example", false),
            ("https://[::ffff:10.0.0.1]/m", "https://s.example", false),
            ("https://a.localhost/m", "https://s.example", false),
            ("https://8.8.8.8/m", "https://s.example", true),
            ("http://127.0.0.1:9/m", "http://127.0.0.1:8", true),
            ("http://192.168.0.2/m", "http://localhost:8", true),
            ("http://s.example/m", "https://s.example", false),
            ("file:///etc/passwd", "http://s.example", false),
        ] {
            assert_eq!(may_be_asked(&url(named), &url(server)), may, "{named} {server}");
        }
    }

    #[test]
    fn what_is_said_of_the_door_is_said_of_the_server() {
        let said = "a=1&resource=http%3A%2F%2F127.0.0.1%3A8788%2Fmcp&scope=x+y";
        assert_eq!(
            for_server(said, OWN, "https://s.example/mcp"),
            "a=1&resource=https%3A%2F%2Fs.example%2Fmcp&scope=x+y"
        );
        let other = "resource=http%3A%2F%2F127.0.0.1%3A87888";
        assert_eq!(for_server(other, OWN, "https://s.example/mcp"), other);
    }

    #[test]
    fn a_challenge_names_the_metadata_of_the_door() {
        let own = "http://127.0.0.1:8788/.well-known/oauth-protected-resource/mcp";
        for (says, expected) in [
            ("Bearer", "Bearer".to_owned()),
            (
                r#"Bearer error="invalid_token", resource_metadata="https://s.example/m", scope="a b""#,
                format!(r#"Bearer error="invalid_token", resource_metadata="{own}", scope="a b""#),
            ),
            ("Bearer Resource_Metadata = https://s.example/m,a=b", format!("Bearer Resource_Metadata = \"{own}\",a=b")),
            (r#"Bearer a="x resource_metadata=y""#, r#"Bearer a="x resource_metadata=y""#.to_owned()),
            (
                r#"DPoP resource_metadata="https://s.example/a", Bearer resource_metadata=https://s.example/b"#,
                format!(r#"DPoP resource_metadata="{own}", Bearer resource_metadata="{own}""#),
            ),
            (r#"Bearer resource_metadata="https://s.example/m"#, format!(r#"Bearer resource_metadata="{own}""#)),
        ] {
            assert_eq!(challenge(says, OWN), expected);
        }
        let server = url("https://s.example/mcp");
        let named = |says: &str| named_in(says, &server);
        assert_eq!(named(r#"Bearer resource_metadata="https://s.example/m""#), Some(url("https://s.example/m")));
        assert_eq!(named(r#"Bearer resource_metadata="http://127.0.0.1/m""#), None);
    }
}
