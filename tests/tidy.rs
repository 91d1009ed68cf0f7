//! House rules that the compiler does not check.
