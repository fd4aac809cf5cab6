//! What is spoken: params out, results in.
