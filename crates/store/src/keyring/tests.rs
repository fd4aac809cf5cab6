//! Sealing and opening: the published vectors, every form, and that nothing altered opens.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pintle_domain::history::SignedContent;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// The key of the vectors, 00 to 1f, in hex.
const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
const UNBOUND: &str = "aes-gcm:AAECAwQFBgcICQoLBWe3aaCX4mjoIuXuxdoJHgf6If3v7F79jcaI6NE=";
const BOUND: &str = "aes-gcm:630dcd29:AAECAwQFBgcICQoLBWe3aaCX4mjoIuXuxWq28hI4/bE/HTxoqMovUoE=";
const ROW: &str = "0193a5b0-7000-7000-8000-0000000000aa";
/// The id of the tenant `default`.
const TENANT: &str = "0193a5b0-7000-7000-8000-000000000002";
const PLAIN: &[u8] = b"Bearer secret";

fn place() -> SealedPlace {
    SealedPlace::new("agent_hooks", ROW, TENANT, "config.headers.Authorization")
}

fn source(primary: Option<&str>, old: Option<&str>) -> KeySource {
    KeySource { primary: primary.map(|key| (ENV_KEYS[0], key.into())), old: old.map(Into::into), file: None }
}

fn keyring(primary: &str, old: Option<&str>) -> Keyring {
    Keyring::open(&source(Some(primary), old)).unwrap()
}

fn forms(opened: Result<Opened, DecryptError>) -> Result<(Vec<u8>, Form), String> {
    opened.map(|o| (o.plain.as_bytes().to_vec(), o.form)).map_err(|e| e.to_string())
}

#[test]
fn the_vectors_of_the_page_hold() {
    let ring = keyring(HEX, None);
    let nonce = std::array::from_fn(|i| u8::try_from(i).unwrap());
    assert_eq!(ring.kid(), Some("630dcd29"));
    assert_eq!(ring.seal_with(&place(), PLAIN, nonce).as_deref(), Ok(BOUND));
    assert_eq!(forms(ring.open_value(&place(), BOUND)), Ok((PLAIN.into(), Form::Current)));
    assert_eq!(forms(ring.open_value(&place(), UNBOUND)), Ok((PLAIN.into(), Form::Unbound)));
}

#[test]
fn every_form_of_a_key_is_the_same_key() {
    let raw = OsString::from_vec((0..32).collect());
    for key in [HEX.into(), HEX.to_uppercase().into(), BASE64.into(), raw] {
        let source = KeySource { primary: Some(("PINTLE_ENCRYPTION_KEY", key)), ..KeySource::default() };
        assert_eq!(Keyring::open(&source).unwrap().kid(), Some("630dcd29"));
    }
}

#[test]
fn what_is_no_key_is_told_without_repeating_it() {
    let expected = "; expected 64 hex digits, the base64 of 32 bytes (44 characters) or 32 raw bytes; \
                    `openssl rand -hex 32` makes one";
    for (key, what) in [
        ("", "is empty"),
        ("hunter2hunter2", "has 14 bytes"),
        (&HEX.replace('f', "g"), "has 64 bytes that are not all hex digits"),
        (&BASE64.replace('=', "A"), "has 44 bytes that are not the base64 of 32 bytes"),
        (&format!("AA{}==", &BASE64[2..42]), "has 44 bytes that are not the base64 of 32 bytes"),
        (&format!("{HEX}\n"), "ends with a line break, which is not part of a key"),
        (&format!("0x{HEX}"), "has 66 bytes"),
    ] {
        let error = Keyring::open(&source(Some(key), None)).unwrap_err();
        assert_eq!(error.to_string(), format!("encryption key: `PINTLE_ENCRYPTION_KEY` {what}{expected}"));
        assert!(key.is_empty() || !format!("{error} {error:?}").contains(key));
        let listed = Keyring::open(&source(Some(HEX), Some(&format!("{OTHER},{key}"))));
        let at = format!("encryption key: `PINTLE_ENCRYPTION_KEYS_OLD, key 2` {what}{expected}");
        assert_eq!(listed.unwrap_err().to_string(), at);
    }
    let many = vec![HEX; 65].join(",");
    assert_eq!(
        Keyring::open(&source(None, Some(&many))).unwrap_err().to_string(),
        "encryption key: `PINTLE_ENCRYPTION_KEYS_OLD` has 65 keys; at most 64 are read"
    );
}

#[test]
fn the_first_variable_that_is_set_counts() {
    let from = |set: &'static [(&str, &str)]| {
        let lookup = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        Keyring::open(&KeySource::new(lookup, None)).map(|ring| ring.kid().map(str::to_owned))
    };
    let (vectors, other) = (Some("630dcd29".to_owned()), keyring(OTHER, None).kid().map(str::to_owned));
    assert_eq!(from(&[("GOCLAW_ENCRYPTION_KEY", HEX)]).unwrap(), vectors);
    assert_eq!(from(&[("GOCLAW_ENCRYPTION_KEY", HEX), ("PINTLE_ENCRYPTION_KEY", OTHER)]).unwrap(), other);
    assert_eq!(from(&[("PINTLE_ENCRYPTION_KEYS_OLD", "")]).unwrap(), None);
    let named = from(&[("GOCLAW_ENCRYPTION_KEY", "short"), ("PINTLE_ENCRYPTION_KEYS_OLD", HEX)]).unwrap_err();
    assert!(named.to_string().starts_with("encryption key: `GOCLAW_ENCRYPTION_KEY` has 5 bytes;"), "{named}");
}

#[test]
fn without_a_key_nothing_is_sealed_and_old_keys_still_open() {
    let none = Keyring::open(&KeySource::default()).unwrap();
    assert!(!none.can_seal());
    assert_eq!(none.seal(&place(), PLAIN).unwrap_err().to_string(), "encryption key not configured");
    for sealed in [BOUND, UNBOUND] {
        let said = forms(none.open_value(&place(), sealed));
        assert_eq!(said, Err("decrypt failed: encryption key not configured".into()));
    }
    assert_eq!(forms(none.open_value(&place(), "Bearer x")), Ok((b"Bearer x".into(), Form::Unsealed)));
    let old = Keyring::open(&source(None, Some(HEX))).unwrap();
    assert_eq!(forms(old.open_value(&place(), BOUND)), Ok((PLAIN.into(), Form::OldKey)));
    assert_eq!(old.reseal(&place(), BOUND), Err(ResealError::Seal(SealError::NotConfigured)));
}

#[test]
fn what_front_ends_keep_is_signed_with_the_key_that_seals_and_older_signatures_hold() {
    assert!(Keyring::open(&source(None, Some(HEX))).unwrap().history_key().is_none());
    let signed = SignedContent::text("hi", "default", "s");
    let raw: Vec<u8> = (0..32).collect();
    let old = keyring(HEX, None).history_key().unwrap().sign(signed);
    assert_eq!(old, HistoryKey::of(&raw).sign(signed));
    let rotated = keyring(OTHER, Some(HEX)).history_key().unwrap();
    assert_eq!(rotated.sign(signed), keyring(OTHER, None).history_key().unwrap().sign(signed));
    assert!(rotated.verifies(signed, &old) && rotated.sign(signed) != old);
    assert!(!keyring(OTHER, None).history_key().unwrap().verifies(signed, &old));
}

#[test]
fn rotation_moves_every_form_to_the_new_key() {
    let ring = keyring(OTHER, Some(HEX));
    for (found, form) in [(BOUND, Form::OldKey), (UNBOUND, Form::Unbound), ("Bearer secret", Form::Unsealed)] {
        assert_eq!(forms(ring.open_value(&place(), found)), Ok((PLAIN.into(), form)));
        assert!(!ring.is_current(found));
        let moved = ring.reseal(&place(), found).unwrap().unwrap();
        assert!(ring.is_current(&moved));
        assert_eq!(ring.reseal(&place(), &moved), Ok(None));
        let bytes = ring.reseal_bytes(&place(), found.as_bytes()).unwrap().unwrap();
        assert_eq!(ring.reseal_bytes(&place(), &bytes), Ok(None));
        // The old key is no longer needed.
        let alone = keyring(OTHER, None);
        assert_eq!(forms(alone.open_value(&place(), &moved)), Ok((PLAIN.into(), Form::Current)));
        assert_eq!(forms(alone.open_bytes(&place(), &bytes)), Ok((PLAIN.into(), Form::Current)));
    }
    let alone = keyring(OTHER, None);
    assert_eq!(
        forms(alone.open_value(&place(), BOUND)),
        Err("decrypt failed: no key `630dcd29` here; add the key that it was sealed with to \
             `PINTLE_ENCRYPTION_KEYS_OLD`"
            .into())
    );
    assert!(matches!(alone.reseal(&place(), UNBOUND), Err(ResealError::Open(DecryptError::Tag))));
}

#[test]
fn what_does_not_open_says_why_and_nothing_else() {
    let ring = keyring(HEX, None);
    let open = |text: &str| ring.open_value(&place(), text).map(|opened| opened.form);
    let body = BOUND.rsplit(':').next().unwrap();
    for (text, why) in [
        ("aes-gcm:".to_owned(), DecryptError::TooShort(0)),
        ("aes-gcm:!!".to_owned(), DecryptError::Base64),
        (format!("aes-gcm:630DCD29:{body}"), DecryptError::KeyId),
        (format!("aes-gcm::{body}"), DecryptError::KeyId),
        (format!("aes-gcm:630dcd29:{body}:"), DecryptError::Base64),
        (format!("aes-gcm:630dcd29: {body}"), DecryptError::Base64),
        (format!("aes-gcm:630dcd2a:{body}"), DecryptError::UnknownKey("630dcd2a".into())),
        // The two forms cannot be turned into each other.
        (format!("aes-gcm:{body}"), DecryptError::Tag),
        (UNBOUND.replace("aes-gcm:", "aes-gcm:630dcd29:"), DecryptError::Tag),
    ] {
        assert_eq!(open(&text), Err(why.clone()), "{text}");
        assert!(why.to_string().starts_with("decrypt failed: "));
    }
    // A mark that is none makes a plain text.
    for plain in ["AES-GCM:x", "aes-gcm", " aes-gcm:x", ""] {
        assert_eq!(open(plain), Ok(Form::Unsealed));
    }
}

#[test]
fn a_value_opens_in_its_own_place_only() {
    let ring = keyring(HEX, None);
    let sealed = ring.seal(&place(), PLAIN).unwrap();
    let own = ["agent_hooks", ROW, TENANT, "config.headers.authorization"];
    for changed in 0..own.len() {
        let mut parts = own;
        parts[changed] = "elsewhere";
        let other = SealedPlace::new(parts[0], parts[1], parts[2], parts[3]);
        assert_eq!(forms(ring.open_value(&other, &sealed)), Err(DecryptError::Tag.to_string()));
    }
    assert!(ring.open_value(&SealedPlace::new(own[0], own[1], own[2], own[3]), &sealed).is_ok());
    // A bar that would make two places alike is refused; in a path it is good.
    for (table, row, tenant) in [("a|b", "c", "d"), ("a", "b|c", "d"), ("a", "b", "c|d")] {
        let unclear = SealedPlace::new(table, row, tenant, "p");
        assert_eq!(ring.seal(&unclear, PLAIN), Err(SealError::Place));
        assert_eq!(ring.open_value(&unclear, BOUND), Err(DecryptError::Place));
    }
    let barred = SealedPlace::new("a", "b", "c", "config.headers.x|y");
    assert!(ring.open_value(&barred, &ring.seal(&barred, PLAIN).unwrap()).is_ok());
}

#[test]
fn nothing_shows_a_key_or_a_secret() {
    let ring = keyring(HEX, Some(OTHER));
    assert_eq!(
        format!("{ring:?}"),
        format!("Keyring {{ seals: Some(\"630dcd29\"), opens: [{:?}] }}", keyring(OTHER, None).kid().unwrap())
    );
    let shown = format!("{:?}", ring.open_value(&place(), BOUND));
    assert_eq!(shown, "Ok(Opened { plain: Plain(13 bytes), form: Current })");
    assert_eq!(
        format!("{:?}", source(Some(HEX), Some(OTHER))),
        "KeySource { primary: Some(\"PINTLE_ENCRYPTION_KEY\"), old: Some(\"given\"), file: None }"
    );
    let bytes = ring.open_bytes(&place(), &[0xff, 0xfe]).unwrap();
    assert_eq!(bytes.plain.as_str(), Err(DecryptError::NotText));
}

fn from_file(path: &Path) -> Result<Keyring, KeyError> {
    Keyring::open(&KeySource { file: Some(path.into()), ..KeySource::default() })
}

#[test]
fn a_key_file_is_made_once_for_its_owner_only() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state").join(KEY_FILE);
    let sealed = from_file(&path).unwrap().seal(&place(), PLAIN).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.len() == 65 && text.ends_with('\n'), "64 hex digits and a line break, got {} bytes", text.len());
    assert_eq!(forms(from_file(&path).unwrap().open_value(&place(), &sealed)), Ok((PLAIN.into(), Form::Current)));
    // It can be handed over as a variable, and a variable goes first.
    assert!(keyring(text.trim_end(), None).open_value(&place(), &sealed).is_ok());
    let both = KeySource { file: Some(path.clone()), ..source(Some(HEX), None) };
    let ring = Keyring::open(&both).unwrap();
    assert_eq!(ring.kid(), Some("630dcd29"));
    // What the file's key sealed is the home's all the same.
    assert_eq!(forms(ring.open_value(&place(), &sealed)), Ok((PLAIN.into(), Form::OldKey)));
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn processes_that_start_at_once_have_one_key() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(KEY_FILE);
    let kids = std::thread::scope(|scope| {
        let open = || from_file(&path).unwrap().kid().unwrap().to_owned();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
    });
    assert_eq!(kids.len(), 1);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn a_key_file_that_cannot_be_trusted_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let refused = |path: &Path| from_file(path).unwrap_err().to_string();
    let write = |name: &str, text: &str, mode| {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        at(name)
    };
    let open = write("open", HEX, 0o640);
    let shown = open.display();
    assert_eq!(
        refused(&open),
        format!("encryption key: `{shown}` has mode 0640, so others have access to it; run `chmod 600 {shown}`")
    );
    assert!(refused(&write("empty", "", 0o600)).contains("empty` is empty; expected 64 hex digits"));
    assert!(refused(&write("long", &"0".repeat(5000), 0o600)).ends_with("longer than 4096 bytes, so it is not a key"));
    assert!(refused(home.path()).ends_with("is not a plain file"));
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(refused(&at("pipe")).ends_with("is not a plain file"));
    // A link to nowhere is not made a file of somewhere else.
    symlink(at("nowhere"), at("link")).unwrap();
    assert!(refused(&at("link")).contains("link` cannot be created: "), "{}", refused(&at("link")));
    assert!(!at("nowhere").exists());
    // One that leads to a good key is as good as the key.
    symlink(write("good", HEX, 0o400), at("good link")).unwrap();
    assert_eq!(from_file(&at("good link")).unwrap().kid(), Some("630dcd29"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sealed_opens_and_no_two_texts_are_alike(plain in prop::collection::vec(any::<u8>(), 0..200), path: String) {
        let (ring, place) = (keyring(HEX, Some(OTHER)), SealedPlace::new("t", "r", "n", &path));
        let (a, b) = (ring.seal(&place, &plain).unwrap(), ring.seal(&place, &plain).unwrap());
        prop_assert_ne!(&a, &b);
        prop_assert_eq!(forms(ring.open_value(&place, &a)), Ok((plain.clone(), Form::Current)));
        prop_assert_eq!(forms(ring.open_bytes(&place, b.as_bytes())), Ok((plain, Form::Current)));
    }

    #[test]
    fn no_changed_byte_goes_unseen(
        plain in prop::collection::vec(any::<u8>(), 0..60),
        at: prop::sample::Index,
        bit in 0_u8..8,
    ) {
        let ring = keyring(HEX, Some(OTHER));
        let mut sealed = ring.seal_bytes(&place(), &plain).unwrap();
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        let opened = ring.open_bytes(&place(), &sealed);
        if at < "aes-gcm:".len() {
            // Without its mark it is a text that was never sealed; it is not taken for what was.
            prop_assert_eq!(opened.unwrap().form, Form::Unsealed);
        } else {
            prop_assert!(opened.is_err());
        }
    }

    #[test]
    fn garbage_is_refused_or_plain_and_never_a_panic(tail in prop::collection::vec(any::<u8>(), 0..80), marked: bool) {
        let ring = keyring(HEX, Some(OTHER));
        let bytes = if marked { [b"aes-gcm:".as_slice(), &tail].concat() } else { tail };
        match ring.open_bytes(&place(), &bytes) {
            Ok(opened) => prop_assert_eq!((opened.plain.as_bytes(), opened.form), (bytes.as_slice(), Form::Unsealed)),
            Err(error) => prop_assert!(error.to_string().starts_with("decrypt failed: ")),
        }
        prop_assert!(!ring.is_current(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn no_key_makes_the_reader_panic(key in prop::collection::vec(1_u8..=255, 0..70)) {
        let opened = Keyring::open(&KeySource {
            primary: Some(("PINTLE_ENCRYPTION_KEY", OsString::from_vec(key.clone()))),
            old: Some(OsString::from_vec(key)),
            file: None,
        });
        prop_assert!(opened.is_ok() || opened.unwrap_err().to_string().contains("; expected 64 hex digits"));
    }
}
