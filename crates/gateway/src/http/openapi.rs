//! `GET /openapi.json`.

use axum::http::StatusCode;
use axum::response::Response;

use super::reply::answer;
use crate::openapi::document;

/// What is served, in words for programs. There is nothing secret in it.
pub(crate) async fn show() -> Response {
    answer(StatusCode::OK, &document())
}
