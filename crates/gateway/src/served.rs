//! Everything that is served over HTTP, in one table: the router is made from it, and so are the documents and the tests
//! of who may. What is not in it nobody can reach. Pure.

/// What answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Responder {
    Alive,
    Ready,
    Metrics,
    Document,
    Models,
    Model,
    Completions,
    Messages,
    AddMedium,
    Medium,
    TeamRules,
    TeamRecords,
    Exchange,
    SignIn,
    SignOut,
    Switch,
    Vendor,
    VendorModels,
    Socket,
    Page,
    Asset,
    Icon,
}

/// Who is asked for before anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Nobody: there is nothing of anybody's in it, or it is how somebody says who they are.
    Nobody,
    /// Somebody who may do this, by its name in the table of roles.
    For(&'static str),
    /// The same with an API key in a header of its own: all others are a vendor's there.
    DoorKey(&'static str),
    /// Somebody with a session of the console.
    Session,
}

/// The refusals of an answer: their schema and their statuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    pub(crate) schema: &'static str,
    pub(crate) statuses: &'static [u16],
}

/// One thing that can be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) verb: &'static str,
    pub(crate) path: &'static str,
    pub(crate) by: Responder,
    pub(crate) asks: Asks,
    pub(crate) does: &'static str,
    /// What of the body is expected: a schema, or `*` for a file.
    pub(crate) takes: Option<&'static str>,
    /// The statuses that are no refusals, each with its schema; `*` for what is not JSON.
    pub(crate) gives: &'static [(u16, &'static str)],
    pub(crate) refuses: Refusals,
}

/// What any route may refuse: a request that says something twice, and one of another origin.
const ANY: &[u16] = &[400, 403];

/// What a turn may be refused with.
pub(crate) const TURN: &[u16] = &[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 507];

/// What a page is refused with that signs somebody in.
const SIGN_IN: &[u16] = &[400, 401, 403, 408, 413, 415, 429, 500, 503];

/// What a door refuses, beside what the vendor does.
const DOOR: &[u16] = &[400, 401, 403, 404, 408, 413, 415, 429, 500, 502, 503];

const fn plain(statuses: &'static [u16]) -> Refusals {
    Refusals { schema: "Refusal", statuses }
}

const fn openai(statuses: &'static [u16]) -> Refusals {
    Refusals { schema: "OpenAiError", statuses }
}

/// A way to ask a vendor's models through the model door.
const fn vendor(path: &'static str, does: &'static str) -> Route {
    Route {
        verb: "post",
        path,
        by: Responder::Vendor,
        asks: Asks::DoorKey("door.use"),
        does,
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: Refusals { schema: "VendorError", statuses: DOOR },
    }
}

/// The models of a vendor, asked through the model door.
const fn vendor_models(path: &'static str, does: &'static str) -> Route {
    Route {
        verb: "get",
        path,
        by: Responder::VendorModels,
        asks: Asks::DoorKey("door.use"),
        does,
        takes: None,
        gives: &[(200, "*")],
        refuses: Refusals { schema: "VendorError", statuses: &[400, 401, 403, 404, 429, 500, 502, 503] },
    }
}

/// Every route but the further pages of the console.
const ROUTES: &[Route] = &[
    Route {
        verb: "get",
        path: "/healthz",
        by: Responder::Alive,
        asks: Asks::Nobody,
        does: "Whether it is alive.",
        takes: None,
        gives: &[(200, "Health")],
        refuses: plain(ANY),
    },
    Route {
        verb: "get",
        path: "/readyz",
        by: Responder::Ready,
        asks: Asks::Nobody,
        does: "Whether turns can be begun: its parts, each ok or not.",
        takes: None,
        gives: &[(200, "Ready"), (503, "Ready")],
        refuses: plain(ANY),
    },
    Route {
        verb: "get",
        path: "/metrics",
        by: Responder::Metrics,
        asks: Asks::For("metrics"),
        does: "Numbers, in the text format of Prometheus. For administrators, or for anybody at `gateway.metrics_listen`.",
        takes: None,
        gives: &[(200, "*")],
        refuses: openai(&[400, 401, 403, 429, 500, 503]),
    },
    Route {
        verb: "get",
        path: "/openapi.json",
        by: Responder::Document,
        asks: Asks::Nobody,
        does: "This document.",
        takes: None,
        gives: &[(200, "Document")],
        refuses: plain(ANY),
    },
    Route {
        verb: "get",
        path: "/v1/models",
        by: Responder::Models,
        asks: Asks::For("agents.list"),
        does: "The agents that the caller may use. Whoever sends `anthropic-version` is refused as Anthropic does, here and \
               below.",
        takes: None,
        gives: &[(200, "Models")],
        refuses: openai(&[400, 401, 403, 429, 500, 503]),
    },
    Route {
        verb: "get",
        path: "/v1/models/{id}",
        by: Responder::Model,
        asks: Asks::For("agents.list"),
        does: "One of them.",
        takes: None,
        gives: &[(200, "Model")],
        refuses: openai(&[400, 401, 403, 404, 429, 500, 503]),
    },
    Route {
        verb: "post",
        path: "/v1/chat/completions",
        by: Responder::Completions,
        asks: Asks::For("chat.send"),
        does: "A turn of an agent, as OpenAI's chat completions. With `stream` the answer is server-sent events, each a \
               `ChatChunk`, `[DONE]` at the end.",
        takes: Some("ChatRequest"),
        gives: &[(200, "ChatCompletion")],
        refuses: openai(TURN),
    },
    Route {
        verb: "post",
        path: "/v1/messages",
        by: Responder::Messages,
        asks: Asks::For("chat.send"),
        does: "A turn of an agent, as Anthropic's messages. With `stream` the answer is server-sent events, each a \
               `MessageEvent`.",
        takes: Some("MessageRequest"),
        gives: &[(200, "Message")],
        refuses: Refusals { schema: "AnthropicError", statuses: TURN },
    },
    Route {
        verb: "post",
        path: "/v1/media",
        by: Responder::AddMedium,
        asks: Asks::For("media.add"),
        does: "Takes a file in: the body is its content, `Content-Type` its type, `Content-Disposition` its name. It is \
               its user's until a session takes it, and goes with that session; after a day without one it is forgotten.",
        takes: Some("*"),
        gives: &[(201, "Media")],
        refuses: openai(&[400, 401, 403, 408, 413, 415, 429, 500, 503, 507]),
    },
    Route {
        verb: "get",
        path: "/v1/media/{id}",
        by: Responder::Medium,
        asks: Asks::For("media.get"),
        does: "Gives a file back, as an attachment.",
        takes: None,
        gives: &[(200, "*")],
        refuses: openai(&[400, 401, 403, 404, 429, 500, 503]),
    },
    Route {
        verb: "get",
        path: "/guard/v1/rules",
        by: Responder::TeamRules,
        asks: Asks::For("guard.rules"),
        does: "The rules of the caller's tenant for a machine under guard, signed. `nonce` comes back in what is signed; \
               with `have`, the digest of the rules that the machine has, none are sent while they are the same, and \
               others are waited for up to `wait` seconds (at most 25). For keys with the scope `operator.guard`.",
        takes: None,
        gives: &[(200, "SignedStatement")],
        refuses: plain(&[400, 401, 403, 409, 429, 500, 503]),
    },
    Route {
        verb: "post",
        path: "/guard/v1/records",
        by: Responder::TeamRecords,
        asks: Asks::For("guard.records"),
        does: "Takes in what those rules did there, at most 200 records, each kept once however often it is told. For keys \
               with the scope `operator.guard`.",
        takes: Some("TeamRecords"),
        gives: &[(200, "TakenRecords")],
        refuses: plain(&[400, 401, 403, 408, 413, 415, 429, 500, 503]),
    },
    Route {
        verb: "post",
        path: "/auth/exchange",
        by: Responder::Exchange,
        asks: Asks::Nobody,
        does: "A session of the console for the code of a link, which works once. The answer sets the session's cookie.",
        takes: Some("ExchangeRequest"),
        gives: &[(200, "ConsoleSession")],
        refuses: plain(SIGN_IN),
    },
    Route {
        verb: "post",
        path: "/auth/sign-in",
        by: Responder::SignIn,
        asks: Asks::Nobody,
        does: "A session of the console for the gateway token or an API key. The answer sets the session's cookie.",
        takes: Some("SignInRequest"),
        gives: &[(200, "ConsoleSession")],
        refuses: plain(SIGN_IN),
    },
    Route {
        verb: "post",
        path: "/auth/sign-out",
        by: Responder::SignOut,
        asks: Asks::Session,
        does: "Ends the session of the console that asks.",
        takes: Some("SignOutRequest"),
        gives: &[(200, "Done")],
        refuses: plain(SIGN_IN),
    },
    Route {
        verb: "post",
        path: "/auth/switch",
        by: Responder::Switch,
        asks: Asks::For("auth.switch"),
        does: "A session in another tenant for the session that asks, which ends. For owners.",
        takes: Some("SwitchRequest"),
        gives: &[(200, "ConsoleSession")],
        refuses: plain(SIGN_IN),
    },
    vendor(
        "/door/anthropic/v1/messages",
        "Anthropic's messages, asked through the model door: what comes back is the vendor's answer, as the hooks leave it.",
    ),
    vendor("/door/anthropic/v1/messages/count_tokens", "The same, to count tokens."),
    vendor(
        "/door/gemini/v1beta/models/{id}",
        "The same for Gemini: `MODEL:generateContent`, `MODEL:streamGenerateContent?alt=sse` and `MODEL:countTokens`.",
    ),
    vendor("/door/gemini/v1/models/{id}", "The same in the other version of its wire."),
    vendor("/door/openai/v1/chat/completions", "The same for OpenAI's chat completions."),
    vendor("/door/openai/v1/responses", "The same for OpenAI's responses."),
    vendor("/door/openai/v1/responses/input_tokens", "The same, to count tokens."),
    vendor_models("/door/openai/v1/models", "The models that the vendor has."),
    vendor_models("/door/openai/v1/models/{id}", "One of them."),
    vendor_models("/door/anthropic/v1/models", "The same for Anthropic."),
    vendor_models("/door/anthropic/v1/models/{id}", "One of them."),
    vendor_models("/door/gemini/v1beta/models", "The same for Gemini."),
    vendor_models("/door/gemini/v1beta/models/{id}", "One of them."),
    vendor_models("/door/gemini/v1/models", "The same in the other version of its wire."),
    vendor_models("/door/gemini/v1/models/{id}", "One of them."),
    Route {
        verb: "get",
        path: "/ws",
        by: Responder::Socket,
        asks: Asks::Nobody,
        does: "The WebSocket, whose first request says who it is.",
        takes: None,
        gives: &[(101, "*")],
        refuses: plain(ANY),
    },
    page("/", "A page of the console. There is no data in it."),
    Route {
        verb: "get",
        path: "/assets/{*name}",
        by: Responder::Asset,
        asks: Asks::Nobody,
        does: "A part of the pages of the console.",
        takes: None,
        gives: &[(200, "*")],
        refuses: plain(&[400, 403, 404]),
    },
    Route {
        verb: "get",
        path: "/favicon.ico",
        by: Responder::Icon,
        asks: Asks::Nobody,
        does: "The icon of the console.",
        takes: None,
        gives: &[(200, "*")],
        refuses: plain(&[400, 403, 404]),
    },
];

/// The addresses of further pages of the console. What stands in them is read in the browser.
const PAGES: &[&str] = &[
    "/chat",
    "/chat/{*rest}",
    "/approvals",
    "/approvals/{*rest}",
    "/hooks",
    "/hooks/{*rest}",
    "/executions",
    "/executions/{*rest}",
    "/chain",
    "/turns",
    "/turns/{*rest}",
    "/health",
    "/settings",
    "/settings/{*rest}",
];

const fn page(path: &'static str, does: &'static str) -> Route {
    Route {
        verb: "get",
        path,
        by: Responder::Page,
        asks: Asks::Nobody,
        does,
        takes: None,
        gives: &[(200, "*")],
        refuses: plain(ANY),
    }
}

/// Every route.
pub(crate) fn routes() -> impl Iterator<Item = Route> {
    let further = PAGES.iter().map(|path| page(path, "The same page of the console."));
    ROUTES.iter().copied().chain(further)
}

/// The verbs that are served at `path`, in capitals; nothing where nothing is.
pub(crate) fn verbs_at(path: &str) -> String {
    let verbs = routes().filter(|route| is_at(route.path, path)).map(|route| route.verb.to_uppercase());
    verbs.collect::<Vec<_>>().join(", ")
}

/// Whether `path` is one of a route, some parts of which may have names.
fn is_at(route: &str, path: &str) -> bool {
    if let Some((folder, _)) = route.split_once("{*") {
        return path.strip_prefix(folder).is_some_and(|rest| !rest.is_empty());
    }
    let (parts, names) = (route.split('/'), path.split('/'));
    parts.clone().count() == names.clone().count()
        && parts.zip(names).all(|(part, name)| part.starts_with('{') || part == name)
}

/// Whether a page of the console stands under `path`.
pub(crate) fn is_page(path: &str) -> bool {
    routes().filter(|route| route.by == Responder::Page).any(|page| is_at(page.path, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles;

    #[test]
    fn pages_are_known_by_their_paths() {
        for path in ["/", "/chat", "/chat/agent:main:ws:direct:c", "/approvals/1", "/chain"] {
            assert!(is_page(path), "{path}");
        }
        for path in ["/chat/", "/chats", "/assets/a.js", "/v1/models", "/ws", "/metrics", "/auth/sign-in", "//"] {
            assert!(!is_page(path), "{path}");
        }
    }

    #[test]
    fn verbs_are_those_of_the_table() {
        for (path, verbs) in [
            ("/v1/chat/completions", "POST"),
            ("/v1/models/main", "GET"),
            ("/v1/models/a/b", ""),
            ("/chat/a/b", "GET"),
            ("/none", ""),
        ] {
            assert_eq!(verbs_at(path), verbs, "{path}");
        }
    }

    #[test]
    fn what_asks_for_somebody_stands_in_the_table_of_roles() {
        for route in routes() {
            if let Asks::For(name) | Asks::DoorKey(name) = route.asks {
                assert!(roles::over_http(name).is_some(), "{}: {name}", route.path);
                assert!(route.refuses.statuses.contains(&401), "{}", route.path);
            }
            assert!(ANY.iter().all(|status| route.refuses.statuses.contains(status)), "{}", route.path);
            assert_eq!(route.verb == "post", route.takes.is_some(), "{}", route.path);
            assert!(route.takes.is_none() || [408, 413].iter().all(|it| route.refuses.statuses.contains(it)));
        }
    }
}
