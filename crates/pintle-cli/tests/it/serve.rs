//! `pintle serve`, as its clients see it: the real program behind a real socket.

mod asking;
mod deploy;
mod doors;
mod ending;
mod events;
mod http;
mod http_client;
mod described;
mod front_end;
mod media;
mod pending;
mod repeats;
mod sdk;
mod rules;
mod seed;
mod server;
mod starting;
mod talking;
mod webhooks;
