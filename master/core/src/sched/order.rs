//! What a scheduler asks the core to do. The type is public: schedulers outside the master use the
//! same.

pub use proto::wire::stream::Order;
