//! A turn has the tenant of the handle that made it, and no door to another's.

use pintle::prelude::*;

fn steal(mut turn: Turn, globex: &Tenant) -> Turn {
    turn.who.tenant_id = globex.id().into();
    turn
}

fn main() {}
