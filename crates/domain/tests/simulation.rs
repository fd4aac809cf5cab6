//! The machines under random hooks, faults and interruptions.
//!
//! `laws` states what must hold for every roster and every answer, one property a test. `day` works whole turns
//! from a seed the way the agent's loop does, with cancellations and aborts at random steps, and looks at the
//! invariants after each of them.
//!
//! A failing day prints its seed. `PINTLE_SEED=n` replays that one; `PINTLE_SEEDS=n` runs the first `n` seeds
//! instead of the usual number:
//!
//! ```console
//! $ PINTLE_SEED=4711 cargo test -p pintle-domain --test simulation
//! $ PINTLE_SEEDS=1000000 cargo test -p pintle-domain --test simulation
//! ```

mod simulation {
    mod day;
    mod disk;
    mod evidence;
    mod laws;
    mod person;
    mod replay;
    mod tape;
    mod worker;
    mod world;
}
