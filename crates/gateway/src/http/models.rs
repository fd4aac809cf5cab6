//! `GET /v1/models` and `GET /v1/models/{id}`: the agents that somebody may use.

use std::sync::Arc;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use pintle_domain::json::{Value, json};
use serde::Deserialize;

use super::dialect::Wire;
use super::refused::Refused;
use super::reply::answer;
use crate::Shared;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::roles;

/// Which of them are wanted, as Anthropic's clients say it.
#[derive(Deserialize)]
pub(crate) struct Page {
    limit: Option<usize>,
    after_id: Option<String>,
}

/// All of them, or a page.
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    Query(page): Query<Page>,
    headers: HeaderMap,
) -> Response {
    let names = match named(&shared, visit, &headers).await {
        Ok(names) => names,
        Err(error) => return refused(error, &headers),
    };
    let begins = |after: &String| names.iter().position(|name| name == after).map_or(names.len(), |at| at + 1);
    let rest = &names[page.after_id.as_ref().map_or(0, begins)..];
    let shown = &rest[..rest.len().min(page.limit.unwrap_or(rest.len()).max(1))];
    let data: Vec<Value> = shown.iter().map(|name| model(name)).collect();
    let (first, last) = (data.first().map(|it| it["id"].clone()), data.last().map(|it| it["id"].clone()));
    answer(
        StatusCode::OK,
        &json!({ "object": "list", "data": data, "has_more": shown.len() < rest.len(), "first_id": first, "last_id": last }),
    )
}

/// One of them.
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    match named(&shared, visit, &headers).await {
        Ok(names) if names.contains(&id) => answer(StatusCode::OK, &model(&id)),
        Ok(_) => {
            let why = format!("there is no agent \"{}\"", id.escape_debug());
            refused(ApiError::new(ErrorCode::NotFound, why), &headers)
        }
        Err(error) => refused(error, &headers),
    }
}

/// The names of the agents that whoever asks may use.
async fn named(shared: &Arc<Shared>, visit: Visit, headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
    let who = shared.signed_in(headers, visit).await?;
    roles::allow(&who, "agents.list")?;
    Ok(shared.host.read().await.loaded.config.agents.keys().cloned().collect())
}

/// An agent with the members of both published ways.
fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "created": 0, "owned_by": "pintle",
        "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
    })
}

/// A refusal in the words of whoever asks: both published ways list models here, and one of them names its version.
fn refused(error: ApiError, headers: &HeaderMap) -> Response {
    let wire = if headers.contains_key("anthropic-version") { Wire::Anthropic } else { Wire::OpenAi };
    wire.refusal(&Refused::from(error))
}
