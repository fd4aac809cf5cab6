//! `POST /v1/media`, `GET /v1/media/ID`: files that clients hand over and get back.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use pintle_agent::media::MAX_MEDIUM_BYTES;
use pintle_domain::id::SessionId;
use pintle_domain::store::SessionKey;

use super::body::{Bound, whole};
use super::refused::Refused;
use super::reply::answer;
use crate::Shared;
use crate::attachments::{IncomingFile, shown};
use crate::door::Visit;
use crate::error::ApiError;
use crate::roles;
use crate::wire::openai;

/// Longest name of a file that is kept, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Takes a file in.
pub(crate) async fn add(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    taken(&shared, visit, &head.headers, body).await.unwrap_or_else(|refused| refusal(&refused))
}

async fn taken(shared: &Arc<Shared>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Response, Refused> {
    let who = shared.signed_in(headers, visit).await?;
    roles::allow_over_http(&who, "media.add")?;
    let most = usize::try_from(MAX_MEDIUM_BYTES).unwrap_or(usize::MAX);
    let bytes = whole(body, Bound { most, hint: "no file may be longer" }).await?.to_vec();
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let file = IncomingFile {
        content_type: text(header::CONTENT_TYPE).to_owned(),
        file_name: file_name(text(header::CONTENT_DISPOSITION)),
        bytes,
    };
    let upload = shared
        .blocking(move |shared| {
            let nowhere = SessionKey { tenant: who.tenant.clone(), session: SessionId::from("") };
            shared.keep_file((&nowhere, &who.user), false, file)
        })
        .await?;
    Ok(answer(StatusCode::CREATED, &shown(&upload)))
}

/// The name in `attachment; filename="NAME"`; empty if there is none.
fn file_name(disposition: &str) -> String {
    let name = disposition.split(';').skip(1).find_map(|part| part.trim().strip_prefix("filename="));
    let name = name.unwrap_or_default().trim_matches('"');
    name.chars().filter(|char| !char.is_control()).take(MAX_NAME_CHARS).collect()
}

/// Gives a file back. It never opens in a browser, and runs nothing there.
pub(crate) async fn get(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    given(&shared, visit, id, &headers).await.unwrap_or_else(|error| refusal(&error.into()))
}

async fn given(shared: &Arc<Shared>, visit: Visit, id: String, headers: &HeaderMap) -> Result<Response, ApiError> {
    let who = shared.signed_in(headers, visit).await?;
    roles::allow_over_http(&who, "media.get")?;
    let (upload, content) = shared
        .blocking(move |shared| {
            let upload = shared.file_of(&who, &id)?;
            let content = shared.store.upload_content(&who.tenant, &id)?;
            Ok((upload, content.unwrap_or_default()))
        })
        .await?;
    let mut response = (StatusCode::OK, Body::from(content)).into_response();
    let headers = response.headers_mut();
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_. ".contains(char);
    let name: String = upload.file_name.chars().map(|char| if plain(char) { char } else { '_' }).collect();
    let disposition =
        if name.is_empty() { "attachment".to_owned() } else { format!("attachment; filename=\"{name}\"") };
    for (header, value) in [
        (header::CONTENT_TYPE, upload.content_type.as_str()),
        (header::CONTENT_DISPOSITION, disposition.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox"),
        (header::CACHE_CONTROL, "private, no-store"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(header, value);
        }
    }
    Ok(response)
}

fn refusal(refused: &Refused) -> Response {
    refused.response(&openai::error(&refused.error, &refused.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_from_where_clients_put_it() {
        for (disposition, name) in [
            ("", ""),
            ("attachment", ""),
            ("attachment; filename=\"a b.png\"", "a b.png"),
            ("attachment; filename=a.png", "a.png"),
            ("filename=a.png", ""),
        ] {
            assert_eq!(file_name(disposition), name, "{disposition}");
        }
    }
}
