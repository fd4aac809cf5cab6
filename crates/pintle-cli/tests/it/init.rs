//! `pintle init`.

use super::env::TestEnv;

#[test]
fn the_first_file_is_written_once_and_is_good() {
    let env = TestEnv::new();
    let seen = [env.pintle(&["init"]), env.pintle(&["init"]), env.pintle(&["hooks", "lint"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"
    exit 0
    --- out
    wrote [root]/config/pintle/pintle.toml

    next:
      pintle demo                        see one whole turn, without a key
      pintle hooks new guard --lang sh   write a first guard with its test; python, node and rust too
      pintle doctor                      prove that the guards are armed
      pintle chat                        talk to the agent

    The agent in it may run commands (`exec`); take that out of its tools if it only has to read.
    For a model set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama on this machine, or write a [providers.NAME] table into the file.

    exit 1
    --- err
    error: [root]/config/pintle/pintle.toml is there already, and stays as it is
      hint: `pintle hooks lint` checks it

    exit 0
    --- err
    no mistakes
    ");
    assert!(env.path("config/pintle/pintle.toml").is_file());
}

#[test]
fn elsewhere_it_has_to_be_trusted() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.pintle(&["init", "--dir", "."]), @"
    exit 0
    --- out
    wrote [root]/here/pintle.toml

    next:
      pintle trust [root]/here accept it: a file that is merely found in a folder starts nothing by itself
      pintle demo                        see one whole turn, without a key
      pintle hooks new guard --lang sh   write a first guard with its test; python, node and rust too
      pintle doctor                      prove that the guards are armed
      pintle chat                        talk to the agent

    The agent in it may run commands (`exec`); take that out of its tools if it only has to read.
    For a model set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama on this machine, or write a [providers.NAME] table into the file.
    ");
}

#[test]
fn a_configuration_that_is_named_is_not_passed_over() {
    let env = TestEnv::new();
    for command in ["init", "trust"] {
        let seen = env.pintle(&["-c", "other.toml", command]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
        assert!(seen.err.starts_with(&format!("error: `{command}` takes no --config")), "{}", seen.err);
    }
    assert!(!env.path("config/pintle").exists());
}
