//! The master's decisions: events, state, ledger, scheduling.
