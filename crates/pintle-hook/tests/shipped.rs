//! The hook as it ships: small, and without anything to load.

#![cfg(test)]

use std::path::PathBuf;
use std::process::Command;

/// The largest that it may be, in bytes: it is read for each event of a host.
const MAX_BYTES: usize = 2 << 20;

/// The kind of a program header that names a loader. Source: `PT_INTERP` of elf(5).
const INTERPRETER: u32 = 3;

fn program() -> PathBuf {
    PathBuf::from(std::env::var_os("PINTLE_HOOK").expect("run `cargo xtask hook`"))
}

#[test]
fn it_is_small() {
    let bytes = std::fs::metadata(program()).unwrap().len();
    println!("{bytes} bytes");
    assert!(usize::try_from(bytes).unwrap() < MAX_BYTES, "{bytes} bytes");
}

#[test]
fn nothing_is_loaded_for_it() {
    let elf = std::fs::read(program()).unwrap();
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "64 bits, least significant byte first");
    let number = |at: usize, bytes: usize| {
        let mut whole = [0; 8];
        whole[..bytes].copy_from_slice(&elf[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(whole)).unwrap()
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let kinds = (0..count).map(|header| u32::try_from(number(table + header * size, 4)).unwrap());
    assert!(kinds.into_iter().all(|kind| kind != INTERPRETER), "it names a loader");
}

#[test]
fn it_runs() {
    let output = Command::new(program()).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`--socket` is missing"));
}
