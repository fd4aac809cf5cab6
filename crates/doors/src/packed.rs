//! Bodies that come compressed. What hooks read and what leaves is what stands in them, so the vendor cannot find another
//! thing there.

use std::io::{self, Read};

use axum::http::{HeaderMap, HeaderValue, header};
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The ways that are undone here, as `Accept-Encoding` lists them.
pub(crate) const UNPACKED: &str = "gzip, zstd, br";

/// Largest window of zstd. Source: RFC 9659.
const MAX_WINDOW: u64 = 8 << 20;

/// Most frames of zstd in one body: an empty one is nothing to send, and work to read.
const MAX_FRAMES: usize = 1000;

/// What is unpacked at once.
const PIECE_BYTES: usize = 64 << 10;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Brotli,
    Gzip,
    Zstd,
}

/// Why a body could not be unpacked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotUnpacked {
    /// There is more in it than is taken.
    #[error("it holds more than {0} bytes")]
    TooLarge(usize),
    /// It is not what it is said to be.
    #[error("it is not what `Content-Encoding` says, or was cut off")]
    Broken,
}

impl From<io::Error> for NotUnpacked {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl Packing {
    /// How the body behind `headers` is compressed; nothing where it is not.
    ///
    /// # Errors
    /// In a way that nobody here undoes: its name.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let word = |value: &HeaderValue| value.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        let said: Vec<String> = headers.get_all(header::CONTENT_ENCODING).iter().map(word).collect();
        match said.join(", ").as_str() {
            "" | "identity" => Ok(None),
            "br" => Ok(Some(Self::Brotli)),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "zstd" => Ok(Some(Self::Zstd)),
            other => Err(other.to_owned()),
        }
    }

    /// What stands in `body`, if that is at most `most` bytes: no more is ever unpacked.
    pub(crate) fn unpack(self, body: &[u8], most: usize) -> Result<Vec<u8>, NotUnpacked> {
        match self {
            Self::Brotli => brotli(body, most),
            Self::Gzip => bounded(MultiGzDecoder::new(body), most),
            Self::Zstd => zstd(body, most),
        }
    }
}

fn bounded(from: impl Read, most: usize) -> Result<Vec<u8>, NotUnpacked> {
    let mut all = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut all)?;
    if all.len() > most { Err(NotUnpacked::TooLarge(most)) } else { Ok(all) }
}

/// One frame or several, one behind the other.
fn zstd(mut rest: &[u8], most: usize) -> Result<Vec<u8>, NotUnpacked> {
    let mut all = Vec::new();
    for _ in 0..MAX_FRAMES {
        if window(rest).is_some_and(|window| window > MAX_WINDOW) {
            return Err(NotUnpacked::Broken);
        }
        let mut decoder = StreamingDecoder::new(rest).map_err(|_| NotUnpacked::Broken)?;
        if decoder.decoder.content_size() > most as u64 {
            return Err(NotUnpacked::TooLarge(most));
        }
        let frame = bounded(&mut decoder, most - all.len()).map_err(|error| match error {
            NotUnpacked::TooLarge(_) => NotUnpacked::TooLarge(most),
            NotUnpacked::Broken => NotUnpacked::Broken,
        })?;
        all.extend_from_slice(&frame);
        rest = decoder.into_inner();
        if rest.is_empty() {
            return Ok(all);
        }
    }
    Err(NotUnpacked::Broken)
}

/// The window that a frame of zstd asks for; nothing where that is its content. Source: RFC 8878, 3.1.1.1.
fn window(frame: &[u8]) -> Option<u64> {
    let is_whole = frame.get(4)? & 0x20 != 0;
    let said = u64::from(*frame.get(5)?);
    let base = 1_u64 << (10 + (said >> 3));
    (!is_whole).then_some(base + base / 8 * (said & 7))
}

fn brotli(body: &[u8], most: usize) -> Result<Vec<u8>, NotUnpacked> {
    // Without the large windows, which are no part of the coding of HTTP: what is kept is at most 16 MiB.
    let (one, two, three) = (StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let mut state = BrotliState::new_strict(one, two, three);
    let (mut all, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    let (mut left, mut at, mut total) = (body.len(), 0, 0);
    loop {
        let (mut room, mut written) = (piece.len(), 0);
        let came = BrotliDecompressStream(
            &mut left,
            &mut at,
            body,
            &mut room,
            &mut written,
            &mut piece,
            &mut total,
            &mut state,
        );
        all.extend_from_slice(&piece[..written]);
        if all.len() > most {
            return Err(NotUnpacked::TooLarge(most));
        }
        match came {
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultSuccess if left == 0 => return Ok(all),
            BrotliResult::ResultSuccess | BrotliResult::NeedsMoreInput | BrotliResult::ResultFailure => {
                return Err(NotUnpacked::Broken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Brotli that compresses nothing, as RFC 7932 has it: a window of 16 bits, blocks of bytes as they are, the end.
    fn stored(text: &[u8]) -> Vec<u8> {
        let mut bits: Vec<bool> = vec![false];
        let mut put = |value: usize, width: usize| bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
        put(0, 1); // not the last
        put(0, 2); // four digits of length
        put(text.len() - 1, 16);
        put(1, 1); // as it is
        let mut all: Vec<u8> =
            bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| sum << 1 | u8::from(*bit))).collect();
        all.extend_from_slice(text);
        all.push(0b11); // the last, and empty
        all
    }

    fn packed(packing: Packing, text: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Brotli => stored(text),
            Packing::Gzip => gzip(text),
            Packing::Zstd => compress_to_vec(text, CompressionLevel::Fastest),
        }
    }

    const ALL: [Packing; 3] = [Packing::Brotli, Packing::Gzip, Packing::Zstd];

    #[test]
    fn what_was_packed_comes_out_in_the_same_bytes() {
        let text = "{\"model\": \"m\", \"x\": [1.50, \"\\u00e4\"]}\n".repeat(300);
        for packing in ALL {
            let body = packed(packing, text.as_bytes());
            assert_eq!(packing.unpack(&body, text.len()).unwrap(), text.as_bytes(), "{packing:?}");
            // One byte too many, one too few, and another thing behind it.
            assert_eq!(
                packing.unpack(&body, text.len() - 1),
                Err(NotUnpacked::TooLarge(text.len() - 1)),
                "{packing:?}"
            );
            for cut in [0, 1, 5, body.len() / 2, body.len() - 1] {
                assert_eq!(packing.unpack(&body[..cut], text.len()), Err(NotUnpacked::Broken), "{packing:?} {cut}");
            }
            let more = [body.as_slice(), b"{\"model\": \"other\"}"].concat();
            assert_eq!(packing.unpack(&more, 1 << 20), Err(NotUnpacked::Broken), "{packing:?}");
            assert_eq!(packing.unpack(text.as_bytes(), 1 << 20), Err(NotUnpacked::Broken), "{packing:?}");
        }
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(Packing::Gzip.unpack(&two, 10).unwrap(), b"ab");
        let two = [packed(Packing::Zstd, b"a"), packed(Packing::Zstd, b"b")].concat();
        assert_eq!(Packing::Zstd.unpack(&two, 10).unwrap(), b"ab");
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = gzip(&vec![b' '; 8 << 20]);
        assert!(bomb.len() < 16 << 10);
        assert_eq!(Packing::Gzip.unpack(&bomb, 1 << 20), Err(NotUnpacked::TooLarge(1 << 20)));
        let bomb = packed(Packing::Zstd, &vec![b' '; 8 << 20]);
        assert!(bomb.len() < 16 << 10, "{}", bomb.len());
        assert_eq!(Packing::Zstd.unpack(&bomb, 1 << 20), Err(NotUnpacked::TooLarge(1 << 20)));
        let one = packed(Packing::Zstd, b"a");
        assert_eq!(Packing::Zstd.unpack(&one.repeat(MAX_FRAMES), 1 << 20).unwrap().len(), MAX_FRAMES);
        assert_eq!(Packing::Zstd.unpack(&one.repeat(MAX_FRAMES + 1), 1 << 20), Err(NotUnpacked::Broken));
        // A window of 64 MiB, which is what would be kept.
        assert_eq!(window(&[0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3]), Some(64 << 20));
        assert_eq!(
            Packing::Zstd.unpack(&[0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3, 1, 0, 0], 1 << 20),
            Err(NotUnpacked::Broken)
        );
    }

    #[test]
    fn how_a_body_is_packed_is_said_once() {
        for (said, expected) in [
            (&[][..], Ok(None)),
            (&["identity"], Ok(None)),
            (&["GZip"], Ok(Some(Packing::Gzip))),
            (&["x-gzip"], Ok(Some(Packing::Gzip))),
            (&["zstd"], Ok(Some(Packing::Zstd))),
            (&["br"], Ok(Some(Packing::Brotli))),
            (&["deflate"], Err("deflate")),
            (&["gzip, br"], Err("gzip, br")),
            (&["gzip", "identity"], Err("gzip, identity")),
        ] {
            let mut headers = HeaderMap::new();
            for value in said {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(Packing::of(&headers), expected.map_err(str::to_owned), "{said:?}");
        }
    }
}
