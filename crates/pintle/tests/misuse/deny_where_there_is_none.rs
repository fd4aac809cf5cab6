//! A stage has only the answers that it can obey.

use pintle::prelude::*;

fn hook(_at: &AfterTool) -> Verdict<AfterTool> {
    Verdict::deny("too late") //~ type mismatch resolving `<AfterTool as Checkpoint>::Deny == Reason`
}

fn main() {}
