//! `pintle serve`, as its clients see it: the real program behind a real socket.

mod asking;
mod doors;
mod ending;
mod http;
mod http_client;
mod described;
mod front_end;
mod media;
mod pending;
mod repeats;
mod sdk;
mod identity;
mod people;
mod rules;
mod server;
mod talking;
mod two_tenants;
mod who_may;
