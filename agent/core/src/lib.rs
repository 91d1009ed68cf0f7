//! The agent's decisions: task state machine, limits, launch documents, reports.
