//! `pintle init`.

use super::env::TestEnv;

#[test]
fn the_first_file_is_written_once_and_is_good() {
    let env = TestEnv::new();
    let seen = [env.pintle(&["init"]), env.pintle(&["init"]), env.pintle(&["hooks", "lint"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"");
    assert!(env.path("config/pintle/pintle.toml").is_file());
}

#[test]
fn elsewhere_it_has_to_be_trusted() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.pintle(&["init", "--dir", "."]), @"");
}
