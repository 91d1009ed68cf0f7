//! One test for each tolerance of SENSORS.md that is about time.
