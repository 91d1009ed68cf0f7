//! The recorded interactions of SENSORS.md, each as a test.
