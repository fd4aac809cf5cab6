//! Nobody makes a permit by hand.

use pintle::prelude::*;

fn permit(call: Call) -> Permit {
    Permit { call } //~ cannot construct `pintle::Permit` with struct literal syntax due to private fields
}

fn main() {}
