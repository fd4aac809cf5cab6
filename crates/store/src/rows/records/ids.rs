//! Ids as bytes: a UUID takes 16 of them and not 36, and still sorts as its text does.

use pintle_domain::hex::hex;
use uuid::Uuid;

/// What the bytes of a UUID begin with.
const UUID: u8 = 0;

/// What the bytes of any other text begin with.
const TEXT: u8 = 1;

/// The bytes that PostgreSQL has an index of.
pub(super) const INDEXED_BYTES: usize = 64;

/// `id` as it is kept.
pub(crate) fn bytes_of(id: &str) -> Vec<u8> {
    match Uuid::try_parse(id) {
        // The one spelling that comes back.
        Ok(uuid) if *uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == *id => tagged(UUID, uuid.as_bytes()),
        Ok(_) | Err(_) => tagged(TEXT, id.as_bytes()),
    }
}

/// The id that `bytes` keep.
///
/// # Errors
/// Somebody else wrote them.
pub(crate) fn id_of(bytes: &[u8]) -> Result<String, String> {
    match bytes {
        [UUID, uuid @ ..] if let Ok(uuid) = Uuid::from_slice(uuid) => Ok(uuid.to_string()),
        [TEXT, text @ ..] if let Ok(text) = str::from_utf8(text) => Ok(text.to_owned()),
        _ => Err(format!("the bytes {} are not an id", hex(bytes))),
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    std::iter::once(tag).chain(bytes.iter().copied()).collect()
}

/// The first and the last bytes of the ids of one kind that begin with a text.
#[derive(Debug, PartialEq)]
pub(super) struct IdRange {
    pub(super) first: Vec<u8>,
    /// That itself is in it.
    pub(super) last: Vec<u8>,
}

/// Where ids stand that begin with `prefix`: among texts, and among UUIDs if one can begin so. A range may hold other
/// ids where `prefix` is longer than an index looks.
pub(super) fn ranges(prefix: &str) -> Vec<IdRange> {
    let text = tagged(TEXT, prefix.as_bytes());
    let text = text[..text.len().min(INDEXED_BYTES)].to_vec();
    // Nothing in UTF-8 is above this byte, however long an id is.
    let last = text.iter().copied().chain([u8::MAX]).collect();
    let mut ranges = vec![IdRange { first: text, last }];
    if let Some((first, last)) = uuid_bounds(prefix) {
        ranges.push(IdRange { first: tagged(UUID, first.as_bytes()), last: tagged(UUID, last.as_bytes()) });
    }
    ranges
}

/// The first and the last UUID whose text begins with `prefix`.
fn uuid_bounds(prefix: &str) -> Option<(Uuid, Uuid)> {
    const LOWEST: &str = "00000000-0000-0000-0000-000000000000";
    const HIGHEST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let filled = |rest: &str| Uuid::try_parse(&format!("{prefix}{}", rest.get(prefix.len()..)?)).ok();
    let (first, last) = (filled(LOWEST)?, filled(HIGHEST)?);
    // Other spellings are texts.
    first.to_string().starts_with(prefix).then_some((first, last))
}

/// The fewest digits at the end of a UUID that stand for it.
const MIN_END: usize = 4;

/// The digits that a UUID ends with, as somebody wrote them; nothing if no UUID ends so, or if there are few.
pub(crate) fn end_of(text: &str) -> Option<String> {
    let digits = text.replace('-', "");
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    ((MIN_END..=32).contains(&digits.len()) && digits.bytes().all(is_digit)).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0193a5b0-7c1f-7000-8000-00000000000f";

    #[test]
    fn every_id_comes_back() {
        let loose = ["", "zz%1", "nul \0", "0193A5B0-7C1F-7000-8000-00000000000F", "0193a5b07c1f7000800000000000000f"];
        for id in loose.into_iter().chain([ID]) {
            let bytes = bytes_of(id);
            assert_eq!(id_of(&bytes).as_deref(), Ok(id));
            assert_eq!(bytes.len() == 17 && bytes[0] == UUID, id == ID, "{id}");
        }
        for foul in [&b""[..], &[0, 1, 2], &[1, 0xff], &[2, 0]] {
            assert!(id_of(foul).is_err());
        }
    }

    #[test]
    fn the_end_of_a_uuid_is_some_of_its_digits() {
        assert_eq!(end_of("0000-beef").as_deref(), Some("0000beef"));
        assert_eq!(["", "eef", "beeg", "BEEF", "%eef", &"0".repeat(33)].map(end_of), [const { None }; 6]);
    }

    #[test]
    fn ids_that_begin_alike_stand_in_the_ranges_and_no_others() {
        let ids = [
            ID,
            "0193a5b0-7c1e-7000-8000-00000000000f",
            "0193a5b1-7c1f-7000-8000-00000000000f",
            "01",
            "0193a5b0-7x",
            "é",
        ];
        for prefix in ["", "0", "0193a5b0", "0193a5b0-", "0193a5b0-7c1", "0193a5b0-7x", ID, "é", "zz", "0193A5"] {
            let ranges = ranges(prefix);
            for id in ids {
                let bytes = bytes_of(id);
                let inside = ranges.iter().any(|range| range.first <= bytes && bytes <= range.last);
                assert_eq!(inside, id.starts_with(prefix), "{id} {prefix}");
            }
        }
        let long = "x".repeat(200);
        assert!(ranges(&long).iter().all(|range| range.first < bytes_of(&long) && bytes_of(&long) < range.last));
        assert!(ranges(&long).iter().all(|range| range.first.len() <= INDEXED_BYTES));
    }
}
