//! The body of a request: bounded in length, in time and in the room that all of them take, and unpacked.

use std::error::Error as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::LengthLimitError;

use crate::door::{ModelDoor, Room};
use crate::packed::{NotUnpacked, Packing, UNPACKED};
use crate::reply::{NO_RETRY, refusal};
use crate::wire::Wire;

/// Largest request, also after it was unpacked: what vendors take, and some.
const MAX_BODY_BYTES: usize = 64 << 20;

/// How long a body may take to come, which holds room meanwhile: a minute on a slow line carries a long conversation.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The body of a request, and the room that it takes.
pub(crate) async fn taken(
    door: &ModelDoor,
    wire: Wire,
    headers: &HeaderMap,
    body: Body,
) -> Result<(String, Room), Box<Response>> {
    let refused = |status: StatusCode, why: &str| Box::new(refusal(wire, status, why));
    let packing = Packing::of(headers).map_err(|how| {
        let why =
            format!("the body is compressed in a way that is not known here ({how}); expected {UNPACKED} or none");
        let mut refused = refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, &why);
        refused.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static(UNPACKED));
        refused
    })?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let too_large =
        || refused(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {MAX_BODY_BYTES} bytes"));
    if length.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    // One that does not say how long it is may be as long as any.
    let mut room = door.room(length.unwrap_or(MAX_BODY_BYTES)).ok_or_else(|| busy(wire))?;
    let Ok(body) = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY_BYTES)).await else {
        let why = format!("the body did not come within {} s", BODY_TIME.as_secs());
        return Err(refused(StatusCode::REQUEST_TIMEOUT, &why));
    };
    let body = body.map_err(|error| match error.source().is_some_and(|cause| cause.is::<LengthLimitError>()) {
        true => too_large(),
        // Whoever serves the door may have cut it, because nothing came any more.
        false => refused(StatusCode::REQUEST_TIMEOUT, &format!("the body is not whole: {error}")),
    })?;
    room.shrink(body.len());
    let (body, room) = match packing {
        None => (body.into(), room),
        Some(packing) => unpacked(door, wire, (packing, body)).await?,
    };
    let body = String::from_utf8(body);
    Ok((body.map_err(|_| refused(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?, room))
}

/// What stands in a body that is packed, which may be as long as any: on a thread of its own, because that takes time.
async fn unpacked(
    door: &ModelDoor,
    wire: Wire,
    (packing, body): (Packing, Bytes),
) -> Result<(Vec<u8>, Room), Box<Response>> {
    let refused = |status: StatusCode, why: String| Box::new(refusal(wire, status, &why));
    let room = door.room(MAX_BODY_BYTES).ok_or_else(|| busy(wire))?;
    // It has its room also where nobody waits for it any more.
    let work = tokio::task::spawn_blocking(move || (packing.unpack(&body, MAX_BODY_BYTES), room));
    let Ok((unpacked, mut room)) = work.await else {
        return Err(refused(StatusCode::INTERNAL_SERVER_ERROR, "the body could not be unpacked".into()));
    };
    let body = unpacked.map_err(|error| match error {
        NotUnpacked::TooLarge(_) => refused(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is packed, and {error}")),
        NotUnpacked::Broken => refused(StatusCode::BAD_REQUEST, format!("the body cannot be unpacked: {error}")),
    })?;
    room.shrink(body.len());
    Ok((body, room))
}

fn busy(wire: Wire) -> Box<Response> {
    let why = "the door works as many requests as it can; try again";
    let mut busy = refusal(wire, StatusCode::SERVICE_UNAVAILABLE, why);
    busy.headers_mut().remove(NO_RETRY);
    busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(busy)
}
