//! Adding is being in force; what cannot act is an error.

use pintle::prelude::*;

use crate::host::{TOOLS, memory, open};

fn gate(_at: &PreToolUse) -> Verdict<PreToolUse> {
    Verdict::Continue
}

#[tokio::test]
async fn a_hook_that_could_not_act_is_an_error() {
    let pintle = open();
    pintle.hook("limit", "refund|lookup", gate).unwrap();
    assert_eq!(pintle.hook("limit", "", gate), Err(AddError::Taken("limit".into())));
    assert_eq!(pintle.observer("limit", |_: &Notice| {}), Err(AddError::Taken("limit".into())));
    let nothing =
        AddError::MatchesNothing { hook: "typo".into(), pattern: "refnud".into(), tools: "lookup, refund".into() };
    assert_eq!(pintle.hook("typo", "refnud", gate), Err(nothing));
    assert!(matches!(pintle.hook("bad", "(", gate), Err(AddError::Pattern { hook, .. }) if hook == "bad"));
    let elsewhere = pintle.hook("llm", "refund", |_: &BeforeLlm| Verdict::Continue);
    assert_eq!(elsewhere, Err(AddError::NotAboutTools { hook: "llm".into(), checkpoint: "before_llm" }));
    assert_eq!(pintle.close(Duration::from_secs(5)).await, pintle::Left::default());
    assert_eq!(pintle.hook("late", "", gate), Err(AddError::Closed("late".into())));
}

#[test]
fn a_host_needs_a_runtime_that_keeps_time() {
    let open = || Pintle::open(Stores::none(), &TOOLS).map(drop);
    assert_eq!(open(), Err(OpenError::NoRuntime));
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(bare.block_on(async { open() }), Err(OpenError::NoTimers));
    let whole = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(whole.block_on(async { open() }), Ok(()));
    assert_eq!(
        whole.block_on(async { Pintle::open(memory(), &["a", "a"]).map(drop) }),
        Err(OpenError::BadTool("a".into()))
    );
}
