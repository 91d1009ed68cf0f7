//! What `gridwright sensor check` says about a run of a sensor, line by line.
