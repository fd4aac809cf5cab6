//! The console: the files of its pages, which are built before the program and are part of it.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::refused::refusal;

/// A file of the console.
struct BuiltFile {
    /// Below the root, such as `assets/index-4711.js`.
    name: &'static str,
    bytes: &'static [u8],
    /// The same with gzip, where it was packed.
    packed: Option<&'static [u8]>,
}

/// Every file; none where the console was not built.
const FILES: &[BuiltFile] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// What a page may do: run and show what comes from here, and nothing that stands in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The page where there is none.
const NOT_BUILT: BuiltFile = BuiltFile { name: "index.html", bytes: NOT_BUILT_TEXT.as_bytes(), packed: None };

const NOT_BUILT_TEXT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Pintle</title>\
    <h1>The console is not built</h1><p>This program was built without its pages. In the checkout, with Node.js 20 or \
    newer:</p><pre>npm --prefix console ci\nnpm --prefix console run build\ncargo build</pre><p>Then start it again. \
    Everything else is served without them.</p></html>";

/// The icon, which is there without the pages, too.
const ICON: BuiltFile = BuiltFile { name: "icon.svg", bytes: ICON_TEXT.as_bytes(), packed: None };

const ICON_TEXT: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">\
    <path d=\"M6 1h4v3h3v4H6v7H3V5h3z\" fill=\"#0b6570\"/></svg>\n";

/// A page: the same file under every address.
pub(super) async fn page(headers: HeaderMap) -> Response {
    let mut response = send(file(NOT_BUILT.name).unwrap_or(&NOT_BUILT), "no-cache", &headers);
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
        .headers_mut()
        .insert(header::HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    response
}

/// Whether a browser asks for something that it shows to a person.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
}

/// The page under an address that has none: it says so.
pub(super) async fn no_page(headers: HeaderMap) -> Response {
    let mut response = page(headers).await;
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The icon, for browsers that look for it where nobody named it.
pub(super) async fn icon(headers: HeaderMap) -> Response {
    send(&ICON, "no-cache", &headers)
}

/// A part of the pages. Its name changes with its content, so it is kept for ever.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match file(&format!("assets/{name}")) {
        Some(file) => send(file, "public, max-age=31536000, immutable", &headers),
        None => refusal(StatusCode::NOT_FOUND, "not_found", &format!("there is nothing at /assets/{name}")),
    }
}

fn file(name: &str) -> Option<&'static BuiltFile> {
    FILES.iter().find(|file| file.name == name)
}

fn send(file: &'static BuiltFile, kept: &'static str, asked: &HeaderMap) -> Response {
    let packed = file.packed.filter(|_| takes_gzip(asked));
    let body = Body::from(Bytes::from_static(packed.unwrap_or(file.bytes)));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(file.name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if packed.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether whoever asks can unpack.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    all.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|rest| rest == "q=0")
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encodings(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, text.parse().unwrap())])
    }

    #[tokio::test]
    async fn a_page_lets_nothing_of_others_in() {
        let response = page(HeaderMap::new()).await;
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(response.headers()[header::X_FRAME_OPTIONS], "DENY");
    }

    #[tokio::test]
    async fn an_address_without_a_page_is_a_page_for_browsers() {
        let accepts = |text: &str| HeaderMap::from_iter([(header::ACCEPT, text.parse().unwrap())]);
        assert!(wants_page(&accepts("text/html,application/xhtml+xml,*/*;q=0.8")));
        assert!(!wants_page(&accepts("application/json")) && !wants_page(&HeaderMap::new()));
        let response = no_page(HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let icon = icon(HeaderMap::new()).await;
        assert_eq!(icon.status(), StatusCode::OK);
        assert_eq!(icon.headers()[header::CONTENT_TYPE], "image/svg+xml");
        assert_eq!(ICON_TEXT, include_str!("../../../../console/src/ui/icon.svg"));
    }

    #[tokio::test]
    async fn parts_are_kept_for_ever_and_packed_for_those_who_unpack() {
        for file in FILES.iter().filter(|file| file.name.starts_with("assets/")) {
            let name = || Path(file.name.trim_start_matches("assets/").to_owned());
            let packed = asset(name(), encodings("br, gzip;q=0.5")).await;
            assert!(packed.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
            assert_eq!(packed.headers().contains_key(header::CONTENT_ENCODING), file.packed.is_some(), "{}", file.name);
            assert!(!asset(name(), encodings("gzip;q=0")).await.headers().contains_key(header::CONTENT_ENCODING));
        }
        for strange in ["../index.html", "nothing.js", ""] {
            assert_eq!(asset(Path(strange.to_owned()), HeaderMap::new()).await.status(), StatusCode::NOT_FOUND);
        }
    }
}
