//! `GET /v1/models`: the agents that somebody may use.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::json::{Value, json};

use super::refused::Refused;
use super::reply::answer;
use crate::Shared;
use crate::door::Visit;
use crate::roles;
use crate::wire::openai;

pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
) -> Response {
    let found = shared.signed_in(&headers, visit).await.and_then(|who| roles::allow(&who, "agents.list").map(drop));
    if let Err(error) = found {
        let refused = Refused::from(error);
        return refused.response(&openai::error(&refused.error, &refused.code));
    }
    let host = shared.host.read().await;
    // The members of both published ways.
    let model = |name: &String| {
        json!({
            "id": name, "object": "model", "created": 0, "owned_by": "pintle",
            "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
        })
    };
    let data: Vec<Value> = host.loaded.config.agents.keys().map(model).collect();
    let (first, last) = (data.first().map(|it| it["id"].clone()), data.last().map(|it| it["id"].clone()));
    answer(
        StatusCode::OK,
        &json!({ "object": "list", "data": data, "has_more": false, "first_id": first, "last_id": last }),
    )
}
