//! The body of a request: bounded in length, in time and in the room that all of them take, and unpacked.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use pintle_domain::json::{MAX_VALUES, holds_more_than};

use crate::door::ModelDoor;
use crate::packed::{NotUnpacked, Packing, UNPACKED};
use crate::reply::{SHOULD_RETRY, refusal};
use crate::room::Room;
use crate::wire::Wire;

/// Largest request, also after it was unpacked: what vendors take, and some.
const MAX_BODY_BYTES: usize = 64 << 20;

/// How long a body may take to come, of which what came holds room: a minute on a slow line carries a long conversation.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Why the body of a request was not taken.
enum NotTaken {
    TooLarge,
    Busy,
    Broken(axum::Error),
}

/// The body of a request of the tenant `whose`, and the room that it takes.
pub(crate) async fn taken(
    (door, whose): (&ModelDoor, &str),
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
    let mut room = door.room(whose, 0).ok_or_else(|| busy(wire))?;
    let Ok(body) = tokio::time::timeout(BODY_TIME, whole(body, &mut room)).await else {
        let why = format!("the body did not come within {} s", BODY_TIME.as_secs());
        return Err(refused(StatusCode::REQUEST_TIMEOUT, &why));
    };
    let body = body.map_err(|why| match why {
        NotTaken::TooLarge => too_large(),
        NotTaken::Busy => busy(wire),
        // Whoever serves the door may have cut it, because nothing came any more.
        NotTaken::Broken(error) => refused(StatusCode::REQUEST_TIMEOUT, &format!("the body is not whole: {error}")),
    })?;
    let (body, room) = match packing {
        None => (body, room),
        Some(packing) => unpacked((door, whose), wire, (packing, body)).await?,
    };
    if holds_more_than(&body, MAX_VALUES) {
        let why = format!("the body holds more than {MAX_VALUES} JSON values, counting each member and each item");
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &why));
    }
    let body = String::from_utf8(body);
    Ok((body.map_err(|_| refused(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?, room))
}

/// All of `body`, with room for what came of it: what is only announced takes none.
async fn whole(mut body: Body, room: &mut Room) -> Result<Vec<u8>, NotTaken> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(NotTaken::Broken)?;
        let Some(bytes) = frame.data_ref() else { continue };
        let length = all.len() + bytes.len();
        if length > MAX_BODY_BYTES {
            return Err(NotTaken::TooLarge);
        }
        if !room.grow(length) {
            return Err(NotTaken::Busy);
        }
        all.extend_from_slice(bytes);
    }
    Ok(all)
}

/// What stands in a body that is packed, which may be as long as any: on a thread of its own, because that takes time.
async fn unpacked(
    (door, whose): (&ModelDoor, &str),
    wire: Wire,
    (packing, body): (Packing, Vec<u8>),
) -> Result<(Vec<u8>, Room), Box<Response>> {
    let refused = |status: StatusCode, why: String| Box::new(refusal(wire, status, &why));
    let room = door.room(whose, MAX_BODY_BYTES).ok_or_else(|| busy(wire))?;
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
    busy.headers_mut().remove(SHOULD_RETRY);
    busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(busy)
}
