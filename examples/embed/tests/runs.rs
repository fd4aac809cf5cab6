//! The example runs, says what its page says, and its page shows it as it is.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_runs_and_the_hooks_rule() {
    let ran = Command::new(env!("CARGO_BIN_EXE_pintle-example-embed")).output().unwrap();
    let expected = "refund: refund done with {\"amount\":50}\n\
                    refund: Hook blocked: pre_tool_use: refund-limit: refunds above 200 need a person\n\
                    delete: Tool execution denied by hook: nothing is deleted here (hook \"guard\")\n";
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success());
}

#[test]
fn the_guide_shows_the_example_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/embedding.md")).unwrap();
    for file in ["examples/embed/src/main.rs", "examples/embed/guard.sh"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(page.contains(&text), "copy {file} into docs/guide/embedding.md");
    }
}
