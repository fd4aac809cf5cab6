//! A permit for one tool never reaches what runs another.

use std::convert::Infallible;

use pintle::checkpoint::CallPatch;
use pintle::prelude::*;

/// Runs `refund`, and nothing else.
struct Refund;

impl Executor for Refund {
    type Error = Infallible;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Infallible> {
        assert_eq!(permit.call().tool, "refund", "the permit is for another tool");
        Ok(Output::ok("refunded"))
    }
}

#[tokio::test]
async fn a_hook_that_renames_a_call_does_not_have_the_wrong_tool_run() {
    let pintle = Pintle::open(Stores::none(), &["refund", "lookup"]).unwrap();
    let rename = |_: &BeforeTool| Verdict::Modify(CallPatch { tool: Some("lookup".into()), ..CallPatch::default() });
    pintle.hook("rename", "^refund$", rename).unwrap();
    let turn = pintle.tenant("default").unwrap().turn("support", "s", TurnId::fresh());
    let stop = turn.call(Call::new("c", "refund", [("amount", 1)]), &Refund).await.unwrap_err();
    assert_eq!(stop.text(), "hooks changed the tool to \"lookup\", which does not run here");
    drop(turn);
    assert_eq!(pintle.close(Duration::from_secs(5)).await.tasks, 0);
}
