//! The smallest host: one tool, one gate, one process hook.

use pintle::prelude::*;

/// Refunds money. It takes nothing but a permit, so no call site can forget the hooks.
struct Refund;

impl Executor for Refund {
    type Error = std::io::Error;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Self::Error> {
        Ok(Output::ok(format!("refunded {}", permit.call().arguments["amount"])))
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is what the example shows")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pintle = Pintle::open(Stores::none(), &["refund"])?;
    pintle.hook("limit", "refund", |at: &PreToolUse| match at.call.number("amount") {
        Some(amount) if amount <= 200.0 => Verdict::Continue,
        _ => Verdict::deny("refunds above 200 need a person"),
    })?;
    pintle.process("guard", Process::new(["sh", "guard.sh"]).intercept(&["before_tool"])).await?;

    let turn = pintle.tenant("default")?.turn("support", "session-1", TurnId::fresh());
    for (id, amount) in [("call-1", 50), ("call-2", 900), ("call-3", 13)] {
        match turn.call(Call::new(id, "refund", [("amount", amount)]), &Refund).await {
            Ok(done) => println!("{}", done.output.for_llm),
            Err(stop) => println!("{}", stop.text()),
        }
    }
    turn.end("done");
    println!("{:?}", pintle.close(Duration::from_secs(5)).await);
    Ok(())
}
