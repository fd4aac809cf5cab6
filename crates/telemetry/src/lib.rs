//! Tells a collector what hooks did: spans and numbers, as OTLP over HTTP with protobuf.
//!
//! [`CollectorSettings`] say where to, from a configuration and from the variables that every program of OpenTelemetry
//! reads. An [`Exporter`] is what the engine tells; it queues, sends from a task of its own, and loses what a collector
//! does not take. No turn ever waits for it.
//!
//! `settings` says where to send, `export` is the queue and its task, `wire` writes OTLP, `post` sends one request.

mod export;
mod post;
mod settings;
mod wire;

pub use export::{Exporter, FLUSH_TIME, Gauges, QUEUE_SPANS};
pub use settings::{
    CollectorSettings, CollectorSettingsError, DEFAULT_SERVICE, ENDPOINT, HEADERS, SERVICE_NAME, check_address,
};
