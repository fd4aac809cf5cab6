//! Nobody makes a permit by hand.

use pintle::prelude::*;

fn permit(turn: &Turn, call: Call) -> Permit {
    Permit { who: turn.identity().clone(), call }
}

fn main() {}
