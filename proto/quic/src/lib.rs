//! QUIC transport and identity: endpoints, cluster CA, join tokens, frames on streams.
