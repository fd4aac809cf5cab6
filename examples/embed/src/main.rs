//! A loop of one's own around Pintle: one hook in Rust, one in a child, and no tool without a permit.

use std::convert::Infallible;
use std::path::Path;

use pintle::json::Value;
use pintle::prelude::*;

/// The host's own tools. They take nothing but a permit, so no call site can forget the hooks.
struct Runs(&'static str);

impl Executor for Runs {
    type Error = Infallible;

    fn tool(&self) -> &str {
        self.0
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Infallible> {
        let call = permit.into_call();
        Ok(Output::ok(format!("{} done with {}", call.tool, Value::from(call.arguments))))
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is what the example shows")]
async fn main() -> anyhow::Result<()> {
    let pintle = Pintle::open(Stores::none(), &["refund", "delete"])?;
    pintle.hook("refund-limit", "^refund$", |at: &PreToolUse| match at.call.number("amount") {
        Some(amount) if amount <= 200.0 => Verdict::Continue,
        _ => Verdict::deny("refunds above 200 need a person"),
    })?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    pintle.process("guard", Process::new(["sh", "guard.sh"]).in_folder(folder).intercept(&["before_tool"])).await?;

    let turn = pintle.tenant("default")?.turn("support", "session-1", TurnId::fresh());
    for (id, tool, amount) in [("call-0", "refund", 50), ("call-1", "refund", 900), ("call-2", "delete", 0)] {
        let said = match turn.call(Call::new(id, tool, [("amount", amount)]), &Runs(tool)).await {
            Ok(done) => done.output.for_llm,
            Err(stop) => stop.text(),
        };
        println!("{tool}: {said}");
    }
    drop(turn);
    let left = pintle.close(Duration::from_secs(5)).await;
    anyhow::ensure!(left == pintle::Left::default(), "{left:?}");
    Ok(())
}
