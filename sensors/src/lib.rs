//! Host facts and the external load-sensor protocol.
