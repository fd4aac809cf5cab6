//! Nobody makes a permit by hand.

use pintle::prelude::*;

fn permit(call: Call) -> Permit {
    Permit { call }
}

fn main() {}
