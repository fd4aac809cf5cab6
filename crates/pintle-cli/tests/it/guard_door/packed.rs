//! The model door: bodies that come compressed.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::models::{OPENAI, guarded};
use super::upstream::said;

/// Zstd that compresses nothing: one frame with one block of the bytes as they are. Source: RFC 8878.
fn zstd(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    let block = u32::from(length) << 3 | 1;
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length], &block.to_le_bytes()[..3], text].concat()
}

/// Brotli that compresses nothing: one block of the bytes as they are, and the end. Source: RFC 7932.
fn brotli(text: &[u8]) -> Vec<u8> {
    let head = (text.len() - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], text, &[3]].concat()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = gzip.stdin.take().unwrap();
    // Both at once: what it makes may be more than a pipe holds.
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(text).unwrap());
        gzip.wait_with_output().unwrap().stdout
    })
}

#[test]
fn a_body_that_comes_packed_leaves_as_what_is_in_it() {
    let guarded = guarded("");
    let body = br#"{ "model" : "m", "x": 1.0e0, "messages": [ {"role":"user","content":"hello\u0020you"} ] }"#;
    for (word, packed) in [("gzip", gzip(body)), ("zstd", zstd(body)), ("br", brotli(body))] {
        let (status, _, answer) = guarded.post(OPENAI, &format!("Content-Encoding: {word}\n"), &packed);
        assert_eq!(status, 200, "{word} {answer}");
        let came = guarded.vendor.came().pop().unwrap();
        assert_eq!((came.body.as_bytes(), came.header("content-encoding")), (&body[..], None), "{word}");
        assert_eq!(answer, said(&came).2);
    }
    // What is in it passes the hooks as if it had come as it is.
    let body = br#"{"messages":[{"role":"user","content":"call forbidden lookup"}]}"#;
    let answer = guarded.post(OPENAI, "Content-Encoding: gzip\n", &gzip(body)).2;
    assert!(!answer.contains("forbidden") && answer.contains("lookup"), "{answer}");
    // A bomb of 65 MiB is not unpacked to its end, and does not leave.
    let before = guarded.vendor.came().len();
    let bomb = gzip(&vec![b' '; 65 << 20]);
    assert!(bomb.len() < 100 << 10, "{}", bomb.len());
    let (status, _, answer) = guarded.post(OPENAI, "Content-Encoding: gzip\n", &bomb);
    assert!(status == 413 && answer.contains("holds more than"), "{status} {answer}");
    // Small values take room and time beyond their bytes.
    let many = format!(r#"{{"messages":[],"x":[{}{{}}]}}"#, "{},".repeat(2_000_000));
    let began = Instant::now();
    for (headers, body) in [("Content-Encoding: gzip\n", gzip(many.as_bytes())), ("", many.into_bytes())] {
        let (status, _, answer) = guarded.post(OPENAI, headers, &body);
        assert!(status == 413 && answer.contains("more than 200000 JSON values"), "{status} {answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(guarded.vendor.came().len(), before);
}

#[test]
fn an_answer_that_comes_packed_is_not_passed_unread() {
    let guarded = guarded("");
    let body = r#"{"messages":[{"role":"user","content":"packed"}]}"#;
    for (line, body) in [(OPENAI, body), ("GET /door/openai/v1/models?packed=1", "")] {
        let (status, _, answer) = guarded.send(line, "Accept-Encoding: gzip\n", body);
        assert!(status == 502 && answer.contains("answers compressed"), "{status} {answer}");
        let came = guarded.vendor.came().pop().unwrap();
        assert_eq!(came.header("accept-encoding"), Some("identity"));
    }
}
