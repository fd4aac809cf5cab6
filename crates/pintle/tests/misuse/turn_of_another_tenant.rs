//! A turn has the tenant of the handle that made it, and no door to another's.

use pintle::prelude::*;

fn steal(turn: &Turn, globex: &Tenant) {
    turn.identity().tenant_id = globex.id().into(); //~ cannot assign to data in a `&` reference
}

fn main() {}
